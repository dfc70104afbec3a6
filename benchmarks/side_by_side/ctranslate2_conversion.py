# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Converts a network to CTranslate2, from Hugging Face's form of it."""

import pathlib

from ctranslate2.converters import transformers as converter

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import hugging_face_ways
from speculative_t5x.networks import t5


class IdsAsPieces:
  """A tokenizer for the converter, whose pieces are the ids as text."""

  pad_token = str(t5.SPECIAL_IDS.padding)
  eos_token = str(t5.SPECIAL_IDS.end)
  unk_token = '2'

  def __init__(self, vocab_size: int):
    self._vocab_size = vocab_size

  def get_vocab(self) -> dict[str, int]:
    return {str(i): i for i in range(self._vocab_size)}

  def convert_ids_to_tokens(self, token_id: int) -> str:
    return str(token_id)


def convert(network: cases.Network, folder: pathlib.Path) -> None:
  """Writes a network as CTranslate2 reads it."""
  model = hugging_face_ways.make_network(network)
  spec = converter.T5Loader()(model, IdsAsPieces(network.config.vocab_size))
  spec.validate()
  spec.optimize()
  spec.save(str(folder))

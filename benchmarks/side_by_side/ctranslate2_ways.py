# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes with CTranslate2 in float32, converted from Hugging Face's network.

Inputs have no padding, as is usual for a batch of one.
"""

from concurrent import futures
import functools
import multiprocessing
import os
import pathlib
import tempfile

import ctranslate2
import numpy as np

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from speculative_t5x.networks import t5


def versions() -> dict[str, str]:
  return {'ctranslate2': ctranslate2.__version__}


def make_ways(case: cases.Case) -> dict[str, measuring.Way]:
  """Return CTranslate2's greedy search, which always runs its encoder."""
  translator = load(case.target)
  return {
      'ctranslate2': measuring.Way(functools.partial(_whole, translator), None)
  }


def load(target: cases.Network) -> ctranslate2.Translator:
  """Return a translator with the weights, on all cores of this process."""
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    # In another process, because the conversion loads torch, beside whose
    # threads CTranslate2 takes several times as long.
    with futures.ProcessPoolExecutor(
        max_workers=1, mp_context=multiprocessing.get_context('spawn')
    ) as other:
      other.submit(_convert, target, folder).result()
    return ctranslate2.Translator(
        str(folder),
        device='cpu',
        compute_type='float32',
        inter_threads=1,
        intra_threads=len(os.sched_getaffinity(0)),
    )


def _convert(target: cases.Network, folder: pathlib.Path) -> None:
  """Write a network as CTranslate2 reads it, from Hugging Face's form."""
  from ctranslate2.converters import transformers as converter

  from benchmarks.side_by_side import hugging_face_ways

  model = hugging_face_ways.make_network(target)
  spec = converter.T5Loader()(model, _IdsAsPieces(target.config.vocab_size))
  spec.validate()
  spec.optimize()
  spec.save(str(folder))


class _IdsAsPieces:
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


def pieces_of(tokens: np.ndarray) -> list[str]:
  """Return the pieces of an input with padding."""
  return [str(i) for i in tokens if i != t5.SPECIAL_IDS.padding]


def _whole(
    translator: ctranslate2.Translator, tokens: np.ndarray
) -> measuring.Decode:
  pieces = pieces_of(tokens)

  def decode() -> list[int]:
    results = translator.translate_batch(
        [pieces], beam_size=1, max_decoding_length=cases.LENGTH
    )
    return [int(piece) for piece in results[0].hypotheses[0]]

  return decode

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of a seqio task behind the interface of `vocabularies`."""

from collections.abc import Sequence
import dataclasses

import seqio


@dataclasses.dataclass(frozen=True)
class TaskVocabulary:
  """Encodes and decodes as seqio does; see `vocabularies.Vocabulary`.

  Attributes:
    vocabulary: of the task.
  """

  vocabulary: seqio.Vocabulary

  @property
  def num_pieces(self) -> int:
    return self.vocabulary.vocab_size

  @property
  def eos_id(self) -> int:
    return self.vocabulary.eos_id

  def id_to_piece(self, i: int) -> str:
    return self.vocabulary.tokenizer.IdToPiece(i)

  def encode(self, text: str) -> list[int]:
    return list(self.vocabulary.encode(text))

  def decode(self, ids: Sequence[int]) -> str:
    return self.vocabulary.decode(ids)

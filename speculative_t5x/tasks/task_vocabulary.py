# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of a seqio task, as `vocabularies` has it and as T5X does."""

from collections.abc import Sequence
import functools

import sentencepiece
import seqio

from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import user_paths


class TaskVocabulary(vocabularies.Vocabulary):
  """Encodes and decodes as seqio does; see `vocabularies.Vocabulary`."""

  def __init__(self, vocabulary: seqio.Vocabulary):
    self._vocabulary = vocabulary
    self.name = type(vocabulary).__name__
    self.num_ids = vocabulary.vocab_size
    self.pad_id = vocabulary.pad_id
    self.eos_id = vocabulary.eos_id
    self.unk_id = vocabulary.unk_id

  def _encode(self, text: str) -> list[int]:
    return list(self._vocabulary.encode(text))

  def decode(self, ids: Sequence[int]) -> str:
    if self._processor is None:
      return self._vocabulary.decode(ids)
    return vocabularies.decode_by(self._processor, ids)

  @functools.cached_property
  def _processor(self) -> sentencepiece.SentencePieceProcessor | None:
    """Decodes sentinels that the task's vocabulary may lack, if any does."""
    if not isinstance(self._vocabulary, seqio.SentencePieceVocabulary):
      return None
    path = user_paths.expand(self._vocabulary.sentencepiece_model_file)
    return vocabularies.with_sentinels(self._vocabulary.tokenizer, path)

  def id_to_piece(self, i: int) -> str:
    if i >= self.num_ids:
      return f'<id {i}>'
    if isinstance(self._vocabulary, seqio.SentencePieceVocabulary):
      return self._vocabulary.tokenizer.IdToPiece(i)
    if i in (self.pad_id, self.eos_id):
      return '<pad>' if i == self.pad_id else '</s>'
    if i >= self.num_ids - self._vocabulary.extra_ids:
      return f'<extra_id_{self.num_ids - 1 - i}>'
    # A byte that is part of a character has no text.
    return str(self._vocabulary.decode([i])) or f'<id {i}>'


class _ByContent(seqio.SentencePieceVocabulary):
  """A vocabulary that equals every other one whose ids mean the same.

  seqio compares paths and numbers of extra ids. T5X's models name a file with
  the sentinels, and tasks of the `t5` package one without, to which they are
  added. T5X asks the task's vocabulary whether it differs from the model's, and
  Python lets an instance of a subclass answer.
  """

  def __eq__(self, other: object) -> bool:
    if not isinstance(other, seqio.SentencePieceVocabulary):
      return False
    if super().__eq__(other):  # reads no file
      return True
    try:
      vocabularies.check_same(TaskVocabulary(self), TaskVocabulary(other))
    except vocabularies.VocabularyError:
      return False
    return True


def by_content(vocabulary: seqio.Vocabulary) -> seqio.Vocabulary:
  """Return a vocabulary that is compared with others by its pieces.

  Vocabularies of other kinds than SentencePiece are compared so already.
  """
  if type(vocabulary) is not seqio.SentencePieceVocabulary:
    return vocabulary
  found = _ByContent.__new__(_ByContent)
  found.__setstate__(vocabulary.__getstate__())
  return found

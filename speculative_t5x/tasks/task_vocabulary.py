# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The vocabulary of a seqio task, as `vocabularies` has it and as T5X does."""

from collections.abc import Sequence
import functools

from etils import epath
import numpy as np
import seqio
import tensorflow as tf

from speculative_t5x.loading import vocabularies


class TaskVocabulary(vocabularies.Vocabulary):
  """Encodes and decodes as a vocabulary of seqio that has no file."""

  def __init__(self, vocabulary: seqio.Vocabulary):
    self._vocabulary = vocabulary
    self.name = type(vocabulary).__name__
    self.num_ids = vocabulary.vocab_size
    self.pad_id = vocabulary.pad_id
    self.eos_id = vocabulary.eos_id
    self.unk_id = vocabulary.unk_id

  def _encode(self, text: str) -> list[int]:
    return list(self._vocabulary.encode(text))

  def decode(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
    if isinstance(self._vocabulary, seqio.PassThroughVocabulary):
      return self._vocabulary.decode(ids)  # which are no text
    return super().decode(ids, before)

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    # The text of one id is known by those of two.
    pieces = [] if before is None else [before]
    text = str(self._vocabulary.decode([*pieces, i]))
    return text[len(str(self._vocabulary.decode(pieces))) :].encode()

  def id_to_piece(self, i: int) -> str:
    if i >= self.num_ids:
      return f'<id {i}>'
    return str(self._vocabulary.decode([i])) or f'<id {i}>'


class SeqioTokenizer(seqio.Vocabulary):
  """A tokenizer.json of Hugging Face as a vocabulary of seqio.

  As seqio's own, it is read when it is first used. Two are equal if an id means
  the same in both.
  """

  def __init__(self, path: epath.PathLike):
    super().__init__()
    self._path = path

  @functools.cached_property
  def vocabulary(self) -> vocabularies.Vocabulary:
    return vocabularies.load(self._path)

  @property
  def bos_id(self) -> int | None:
    begin_ids = self.vocabulary.begin_ids
    return begin_ids[0] if begin_ids else None

  @property
  def eos_id(self) -> int:
    return self.vocabulary.eos_id

  @property
  def pad_id(self) -> int:
    return self.vocabulary.pad_id

  @property
  def unk_id(self) -> int | None:
    return self.vocabulary.unk_id

  @property
  def _base_vocab_size(self) -> int:
    return self.vocabulary.num_ids

  def _encode(self, s: str) -> list[int]:
    return self.vocabulary.encode(s)

  def _decode(self, ids: Sequence[int]) -> str:
    return self.vocabulary.decode(ids)

  def _encode_tf(self, s: tf.Tensor) -> tf.Tensor:
    def encode(text: np.ndarray | bytes) -> np.ndarray:
      ids = self._encode(np.asarray(text).item().decode())
      return np.asarray(ids, np.int32)

    return tf.ensure_shape(tf.numpy_function(encode, [s], tf.int32), [None])

  def _decode_tf(self, ids: tf.Tensor) -> tf.Tensor:
    def decode(rows: np.ndarray) -> np.ndarray:
      texts = map(self._decode, rows.reshape(-1, rows.shape[-1]).tolist())
      return np.asarray([*texts], object).reshape(rows.shape[:-1])

    texts = tf.numpy_function(decode, [ids], tf.string)
    return tf.ensure_shape(texts, ids.shape[:-1])

  def __eq__(self, other: object) -> bool:
    if not isinstance(other, SeqioTokenizer):
      return False
    one, two = self.vocabulary, other.vocabulary
    return vocabularies.fingerprint(one) == vocabularies.fingerprint(two)


def of(vocabulary: seqio.Vocabulary) -> vocabularies.Vocabulary:
  """Return the vocabulary of a seqio task for models to use."""
  if isinstance(vocabulary, SeqioTokenizer):
    return vocabulary.vocabulary
  if isinstance(vocabulary, seqio.ByteVocabulary):
    return vocabularies.ByteVocabulary().within(vocabulary.vocab_size)
  if isinstance(vocabulary, seqio.SentencePieceVocabulary):
    path = vocabulary.sentencepiece_model_file
    return _of_file(path, vocabulary.vocab_size)
  return TaskVocabulary(vocabulary)


@functools.cache  # as seqio, which reads a path once
def _of_file(path: str, num_ids: int) -> vocabularies.Vocabulary:
  """Return a SentencePiece model without sentinels that the task lacks."""
  return vocabularies.load(path).within(num_ids)


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
      vocabularies.check_same(of(self), of(other))
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

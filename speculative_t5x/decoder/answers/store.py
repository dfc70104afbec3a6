# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs, found by the vectors of their inputs."""

from collections.abc import Sequence
import dataclasses
import hashlib
import io
import json
from typing import Any, NamedTuple
import zipfile

from etils import epath
import numpy as np

from speculative_t5x.decoder.answers import embedding
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_lines
from speculative_t5x.loading.files import whole_files
from speculative_t5x.speculation import ranges

MAX_ANSWERS = 10_000
# With the embedded target, 198 of the 200 second paraphrases are at least this
# similar to an input in a store of the first ones, and 3 of 200 if the store
# has only other topics.
MIN_SIMILARITY = 0.7
FILE = 'answers.npz'  # in the folder of a store
# What reading a damaged archive raises, and what means nothing in it.
_DAMAGES = (
    zipfile.BadZipFile, EOFError, LookupError, OSError, RuntimeError, TypeError,
    ValueError,
)  # fmt: skip


class StoreError(ValueError):
  """A store that is missing, damaged, empty, or of another model."""


class Answer(NamedTuple):
  """An output for an input.

  Attributes:
    text: The input.
    output: Its output.
    tokens: Token ids of the output, without the end of sequence.
  """

  text: str
  output: str
  tokens: tuple[int, ...]


class Match(NamedTuple):
  """An answer that was found.

  Attributes:
    answer: An answer to an input like the one that was asked for.
    similarity: Cosine of the vectors of both inputs.
  """

  answer: Answer
  similarity: float


class Store:
  """Answers to earlier inputs, at most a given number.

  One more answer takes the place of the oldest one, and a new answer to an
  equal input that of the answer before.

  Attributes:
    embedder: Computes the vectors of inputs.
    max_answers: The most answers to keep.
  """

  def __init__(
      self, embedder: embedding.Embedder, max_answers: int = MAX_ANSWERS
  ):
    """Makes an empty store.

    Args:
      embedder: Computes the vectors of inputs.
      max_answers: The most answers to keep, at least 1.
    Raises:
      ModuleNotFoundError: if usearch is not installed.
      ValueError: for a number of answers below 1.
    """
    ranges.check_settings(ranges.COUNT, max_answers=max_answers)
    self.max_answers = max_answers
    self.embedder = embedder
    self._answers: dict[int, Answer] = {}  # by their keys, the oldest first
    self._index = None
    self._saved: str | None = None  # digest of the file, None for no file
    _index_class()

  @classmethod
  def load(
      cls,
      path: epath.PathLike,
      embedder: embedding.Embedder,
      max_answers: int | None = None,
  ) -> 'Store':
    """Returns the store in a folder, local or remote.

    Args:
      path: Folder of the store.
      embedder: Computes the vectors of inputs.
      max_answers: The most answers to keep; None for the number that the store
        was saved with.
    Raises:
      StoreError: if there is no store, if it is damaged, or if it is of another
        encoder or vocabulary.
      ModuleNotFoundError: if usearch is not installed.
    """
    if not exists(path):
      raise StoreError(
          f'There is no store of answers in {path}. Correct the path, or make a'
          ' store: by an infer job with --gin.ANSWERS_APPEND=True, or by'
          ' Store.save in Python.'
      )
    data = (epath.Path(path) / FILE).read_bytes()
    try:
      # The file is a zip archive: a part whose checksum is wrong is an error.
      parts = {k: v.tobytes() for k, v in np.load(io.BytesIO(data)).items()}
      manifest = json.loads(parts['manifest'])
      fingerprint = embedding.Fingerprint(**manifest['encoder'])
      keyed = map(json.loads, parts['answers'].splitlines())
      answers = {key: Answer(x, y, tuple(z)) for key, x, y, z in keyed}
      index = _index_class().restore(parts['index']) if answers else None
      if max_answers is None:
        max_answers = manifest['max_answers']
    except _DAMAGES as e:
      raise StoreError(
          f'The store of answers {path} is damaged ({e}). Remove {FILE} there,'
          ' or copy it again.'
      ) from e
    # An empty store holds nothing of any encoder.
    if answers and (difference := fingerprint.difference(embedder.fingerprint)):
      raise StoreError(
          f'The store of answers {path} is of {difference}. Give the target'
          ' that it was made with, or another folder.'
      )
    store = cls(embedder, max_answers)
    store._index, store._answers = index, answers
    store._saved = _digest(data)
    store._drop_oldest()
    return store

  def __len__(self) -> int:
    return len(self._answers)

  def add(
      self,
      texts: Sequence[str],
      outputs: Sequence[str],
      tokens: Sequence[Sequence[int]] | None = None,
  ) -> None:
    """Adds answers; later ones count as newer.

    Args:
      texts: Inputs, none empty.
      outputs: One output per input.
      tokens: Token ids of the outputs as they were decoded, without the end of
        sequence; None to encode the outputs.
    Raises:
      ValueError: for an empty input, one text in place of a list, or if the
        numbers differ.
    """
    if tokens is None:
      tokens = [self.embedder.vocabulary.encode(each) for each in outputs]
    newest = {
        text: Answer(text, output, tuple(map(int, ids)))
        for text, output, ids in zip(texts, outputs, tokens, strict=True)
    }
    answers = list(newest.values())[-self.max_answers :]
    if not answers:
      return
    vectors = self.embedder.embed([each.text for each in answers])
    # Keys grow, and none is used twice while its answer is kept.
    first = 1 + max(self._answers, default=-1)
    keys = range(first, first + len(answers))
    self._remove([k for k, x in self._answers.items() if x.text in newest])
    if self._index is None:
      self._index = _index_class()(ndim=vectors.shape[1], dtype='f32')
    # In one thread the same answers always give the same index.
    self._index.add(np.asarray(keys), vectors, threads=1)
    self._answers |= zip(keys, answers, strict=True)
    self._drop_oldest()

  def nearest(
      self,
      texts: Sequence[str],
      count: int = 1,
      min_similarity: float = MIN_SIMILARITY,
  ) -> list[list[Match]]:
    """Returns the answers to the most similar inputs, the most similar first.

    The search is approximate, as that of usearch is.

    Args:
      texts: Inputs, none empty.
      count: The most answers per input, at least 1.
      min_similarity: Least similarity of the inputs, in [-1, 1].
    Returns:
      A list per input, which is empty if no input is similar enough.
    Raises:
      StoreError: if the store is empty.
      ValueError: for an empty input, one text in place of a list, or a number
        out of range.
    """
    check(count=count, min_similarity=min_similarity)
    self.check_not_empty()
    vectors = self.embedder.embed(texts)
    return [self.nearest_to(each, count, min_similarity) for each in vectors]

  def nearest_to(
      self,
      vector: np.ndarray,
      count: int = 1,
      min_similarity: float = MIN_SIMILARITY,
  ) -> list[Match]:
    """Returns the answers to the inputs whose vectors are most similar.

    Args:
      vector: [embed] float32, normalized, see `embedding.pool`.
      count: See `nearest`.
      min_similarity: See `nearest`.
    """
    found = self._index.search(vector, min(count, len(self)), threads=1)
    matches = [
        Match(self._answers[key], 1 - distance)
        for key, distance in zip(found.keys.tolist(), found.distances.tolist())
    ]
    return [each for each in matches if each.similarity >= min_similarity]

  @property
  def digest(self) -> str:
    """Hash of the answers."""
    return _digest(self._lines())

  def check_not_empty(self) -> None:
    """Raises StoreError if there is no answer."""
    if not self._answers:
      raise StoreError(
          'The store of answers is empty, so that no request can have hints'
          ' from it. Add answers first, or decode without the store.'
      )

  def save(self, path: epath.PathLike) -> None:
    """Writes the store to a folder, which is made if it is missing.

    One file is replaced as a whole: a reader sees the store as it was before or
    after, also if the process is killed meanwhile.

    Args:
      path: Folder, local or remote.
    Raises:
      StoreError: if another process has written there since the store was
        loaded from it or saved to it.
      folder_lock.FolderInUseError: if another process is writing there.
      OSError: if the folder cannot be written to.
    """
    folder = epath.Path(path)
    manifest = {
        'max_answers': self.max_answers,
        'encoder': dataclasses.asdict(self.embedder.fingerprint),
    }
    buffer = io.BytesIO()
    parts = {
        'manifest': json.dumps(manifest, allow_nan=False).encode(),
        'answers': self._lines(),
        'index': bytes(self._index.save()) if self._answers else b'',
    }
    np.savez(buffer, **{k: np.frombuffer(v, 'u1') for k, v in parts.items()})
    data = buffer.getvalue()
    with folder_lock.hold(folder):
      before = (folder / FILE).read_bytes() if exists(folder) else None
      if self._saved != (None if before is None else _digest(before)):
        raise StoreError(
            f'The store of answers {path} was written by another process. Load'
            ' it again and add the new answers, or save to another folder.'
        )
      whole_files.replace(folder, FILE, data)
    self._saved = _digest(data)

  def _lines(self) -> bytes:
    lines = (json_lines.dumps([k, *x]) for k, x in self._answers.items())
    return ''.join(f'{line}\n' for line in lines).encode()

  def _drop_oldest(self) -> None:
    self._remove(list(self._answers)[: -self.max_answers])

  def _remove(self, keys: Sequence[int]) -> None:
    for key in keys:
      self._index.remove(key)
      del self._answers[key]


def exists(folder: epath.PathLike) -> bool:
  """Returns whether a folder has a store."""
  return (epath.Path(folder) / FILE).is_file()


def check(*, count: int, min_similarity: float) -> None:
  """Raises ValueError for arguments of `Store.nearest` out of range."""
  ranges.check_settings(ranges.COUNT, count=count)
  ranges.check_settings(ranges.COSINE, min_similarity=min_similarity)


def _digest(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()


def _index_class() -> Any:
  """Returns usearch's index, which is imported only where a store is used."""
  try:
    from usearch import index
  except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        'A store of answers needs the package usearch, which is not installed.'
        " Install it: pip install 'speculative_t5x[answers]'."
    ) from error
  return index.Index

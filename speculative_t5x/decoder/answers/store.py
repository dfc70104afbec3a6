# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs, found by the vectors of their inputs.

Legend: texts, embed (width of the encoder).
"""

from collections.abc import Sequence
import dataclasses
import hashlib
import json
from typing import Any, NamedTuple

from etils import epath
import numpy as np

from speculative_t5x.decoder.answers import embedding
from speculative_t5x.decoder.answers import versions
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import json_lines
from speculative_t5x.speculation import ranges

MAX_ANSWERS = 10_000
# With the embedded target, 198 of the 200 second paraphrases are at least this
# similar to an input in a store of the first ones, and 3 of 200 if the store
# has only other topics.
MIN_SIMILARITY = 0.7
_ANSWERS, _INDEX = 'answers.jsonl', 'inputs.usearch'


class Answer(NamedTuple):
  """An output for an input.

  Attributes:
    text: the input.
    output: its output.
    tokens: ids of the output, without the end of sequence.
  """

  text: str
  output: str
  tokens: tuple[int, ...]


class Match(NamedTuple):
  """An answer that was found.

  Attributes:
    answer: to an input like the one that was asked for.
    similarity: of both inputs, the cosine of their vectors.
  """

  answer: Answer
  similarity: float


class Store:
  """Answers to earlier inputs, at most a given number.

  One more answer takes the place of the oldest one, and a new answer to an
  equal input that of the answer before. Reading changes nothing, so that any
  number of processes may read a folder while one writes to it.

  Attributes:
    embedder: of the target.
    max_answers: the most answers to keep.
  """

  def __init__(
      self, embedder: embedding.Embedder, max_answers: int = MAX_ANSWERS
  ):
    """Makes an empty store.

    Args:
      embedder: of the target.
      max_answers: the most answers to keep, at least 1.
    Raises:
      ModuleNotFoundError: if usearch is not installed.
      ValueError: for a number of answers below 1.
    """
    ranges.check_settings(ranges.COUNT, max_answers=max_answers)
    self.max_answers = max_answers
    self.embedder = embedder
    self._answers: dict[int, Answer] = {}  # the oldest first
    self._keys: dict[str, int] = {}  # by the input
    self._next_key = 0
    self._index = None
    self._version: int | None = None
    _index_class()

  @classmethod
  def load(
      cls,
      path: epath.PathLike,
      embedder: embedding.Embedder,
      max_answers: int | None = None,
  ) -> 'Store':
    """Returns the store in a folder.

    Args:
      path: of the folder, local or remote.
      embedder: of the target.
      max_answers: None for the number that it was saved with.
    Raises:
      versions.StoreError: if there is no store, if it is damaged, or if it is
        of another encoder or vocabulary.
      ModuleNotFoundError: if usearch is not installed.
    """
    folder = epath.Path(path)
    _index_class()
    if (number := versions.newest(folder)) is None:
      raise versions.StoreError(
          f'There is no store of answers in {path}. Correct the path, or make a'
          ' store: by an infer job with --gin.ANSWERS_APPEND=True, or by'
          ' Store.save in Python.'
      )
    saved = versions.read(folder, number)
    try:
      fingerprint = embedding.Fingerprint(**saved.manifest['encoder'])
      if max_answers is None:
        max_answers = saved.manifest['max_answers']
      lines = saved.files[_ANSWERS].splitlines()
      keyed = [
          (key, Answer(x, y, tuple(z)))
          for key, x, y, z in map(json.loads, lines)
      ]
      index = _index_class().restore(saved.files[_INDEX]) if keyed else None
    except (KeyError, TypeError, ValueError) as error:
      raise saved.damaged(str(error)) from error
    # An empty store holds nothing of any encoder.
    if keyed and (difference := fingerprint.difference(embedder.fingerprint)):
      raise versions.StoreError(
          f'The store of answers {path} is of {difference}. Give the target'
          ' that it was made with, or another folder.'
      )
    store = cls(embedder, max_answers)
    store._answers = dict(keyed)
    store._keys = {answer.text: key for key, answer in keyed}
    store._next_key = 1 + max(store._answers, default=-1)
    store._index = index
    store._version = number
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
      texts: inputs, none empty.
      outputs: one per input.
      tokens: ids of the outputs as they were decoded, without the end of
        sequence; None to encode the outputs.
    Raises:
      ValueError: for an empty input, one text in place of a list, or if the
        numbers differ.
    """
    _check_lists(texts=texts, outputs=outputs)
    if tokens is None:
      tokens = [self.embedder.vocabulary.encode(each) for each in outputs]
    if not len(texts) == len(outputs) == len(tokens):
      raise ValueError(
          f'There are {len(texts)} inputs, {len(outputs)} outputs and'
          f' {len(tokens)} lists of tokens. Give one of each per answer.'
      )
    newest = {
        text: Answer(text, output, tuple(map(int, ids)))
        for text, output, ids in zip(texts, outputs, tokens, strict=True)
    }
    answers = list(newest.values())[-self.max_answers :]
    if not answers:
      return
    vectors = self.embedder.embed([each.text for each in answers])
    self._remove([self._keys[x.text] for x in answers if x.text in self._keys])
    keys = range(self._next_key, self._next_key + len(answers))
    self._next_key += len(answers)
    if self._index is None:
      self._index = _index_class()(ndim=vectors.shape[1], dtype='f32')
    # In one thread the same answers always give the same index.
    self._index.add(np.asarray(keys), vectors, threads=1)
    self._answers |= zip(keys, answers, strict=True)
    self._keys |= {x.text: k for k, x in zip(keys, answers, strict=True)}
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
      texts: inputs, none empty.
      count: the most answers per input, at least 1.
      min_similarity: of their inputs, in [-1, 1].
    Returns:
      A list per input, which is empty if no input is similar enough.
    Raises:
      versions.StoreError: if the store is empty.
      ValueError: for an empty input, one text in place of a list, or a number
        out of range.
    """
    check(count=count, min_similarity=min_similarity)
    _check_lists(texts=texts)
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
      count: see `nearest`.
      min_similarity: see `nearest`.
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
    return hashlib.sha256(self._lines()).hexdigest()

  def _lines(self) -> bytes:
    lines = [
        json_lines.dumps([key, *answer])
        for key, answer in self._answers.items()
    ]
    return ''.join(f'{line}\n' for line in lines).encode()

  def check_not_empty(self) -> None:
    """Raises versions.StoreError if there is no answer."""
    if not self._answers:
      raise versions.StoreError(
          'The store of answers is empty, so that no request can have hints'
          ' from it. Add answers first, or decode without the store.'
      )

  def save(self, path: epath.PathLike) -> None:
    """Writes the store to a folder, which is made if it is missing.

    A reader sees the store as it was before or after, also if the process is
    killed meanwhile.

    Args:
      path: of the folder, local or remote.
    Raises:
      versions.StoreError: if somebody else has written there since the store
        was loaded from it or saved to it.
      folder_lock.FolderInUseError: if somebody else is writing there.
      OSError: if the folder cannot be written to.
    """
    folder = epath.Path(path)
    files = {
        _ANSWERS: self._lines(),
        _INDEX: bytes(self._index.save()) if self._answers else b'',
    }
    manifest = {
        'max_answers': self.max_answers,
        'encoder': dataclasses.asdict(self.embedder.fingerprint),
    }
    with folder_lock.hold(folder):
      if versions.newest(folder) != self._version:
        raise versions.StoreError(
            f'The store of answers {path} was written by somebody else. Load it'
            ' again and add the new answers to that, or save to another folder.'
        )
      number = versions.next_number(folder)
      versions.write(folder, number, manifest, files)
    self._version = number

  def _drop_oldest(self) -> None:
    surplus = len(self._answers) - self.max_answers
    self._remove(list(self._answers)[: max(surplus, 0)])

  def _remove(self, keys: Sequence[int]) -> None:
    for key in keys:
      self._index.remove(key)
      del self._keys[self._answers.pop(key).text]


def check(*, count: int, min_similarity: float) -> None:
  """Raises ValueError for arguments of `Store.nearest` out of range."""
  ranges.check_settings(ranges.COUNT, count=count)
  ranges.check_settings(ranges.COSINE, min_similarity=min_similarity)


def _check_lists(**texts: Sequence[str]) -> None:
  """Raises ValueError for one text where a list is needed."""
  for name, given in texts.items():
    if isinstance(given, str):
      raise ValueError(f'{name} must be a list of texts, got {given!r}.')


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

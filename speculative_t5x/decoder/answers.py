# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Earlier answers: outputs for inputs like the present ones, as hints.

An `Embedder` turns inputs into vectors by the target's own encoder. A `Store`
keeps inputs, outputs and vectors, finds the answers to the nearest inputs, and
lies in a folder between runs. A `Finder` adds the answers to requests. Finding
needs the package usearch, which the extra `answers` installs.
"""

from collections.abc import Iterable, Sequence
import dataclasses
import functools
import hashlib
import io
import json
from typing import Any, NamedTuple

from etils import epath
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.loading import errors
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

__all__ = ['Answer', 'Embedder', 'Finder', 'Store', 'StoreError']

MAX_ANSWERS = 10_000
# With the embedded target, 198 of the 200 second paraphrases are at least this
# similar to an input in a store of the first ones, and 3 of 200 if the store
# has only other topics.
MIN_SIMILARITY = 0.7

_FILE = 'answers.npz'  # in the folder of a store
_PROBE_LENGTH = 32
# The probes of one encoder in float32 and in bfloat16, or on two devices, are
# more similar than this; those of two encoders are far less similar.
_MIN_PROBE_SIMILARITY = 0.999
_MAX_BATCH = 64  # inputs that are embedded together


def __dir__() -> list[str]:
  return __all__


class StoreError(ranges.ArgumentError):
  """A store that is missing, damaged, empty, or of another model."""


@dataclasses.dataclass(eq=False)
class Embedder:
  """Computes vectors of inputs by the encoder of a decoder's target.

  A vector is the mean output of the encoder, normalized.

  Attributes:
    decoder: Decodes the inputs whose answers are looked for.
    vocabulary: Vocabulary of the target.
    inputs_length: Inputs are cut to this many tokens, end included.
  Raises:
    vocabularies.VocabularyError: if the vocabulary is not the target's.
    ValueError: for a length below 1.
  """

  decoder: bound_pair.BoundPair
  vocabulary: vocabularies.Vocabulary
  inputs_length: int

  def __post_init__(self):
    ranges.check_settings(ranges.COUNT, inputs_length=self.inputs_length)
    target = self.decoder.target
    self.vocabulary = models.fit_vocabulary(self.vocabulary, target)

  @functools.cached_property
  def fingerprint(self) -> dict[str, np.ndarray]:
    """Marks of vocabulary and encoder that no others have, as arrays to store.

    `vocabulary` is a hash, and `probe` the vector of a fixed row of ids. Paths
    and the target's decoder are left out: a checkpoint may be converted.
    """
    vocabulary = vocabularies.fingerprint(self.vocabulary)
    ids = np.linspace(1, vocabulary.num_pieces - 1, _PROBE_LENGTH, dtype=int)
    (probe,) = self._embed_ids([ids.tolist()], _PROBE_LENGTH)
    return {'vocabulary': np.asarray(vocabulary.sha256), 'probe': probe}

  def embed(self, texts: Sequence[str]) -> np.ndarray:
    """Return the vectors of inputs, [texts, embed] float32."""
    request_lib.check_several('texts', texts, 'a list of texts')
    form = inputs_form.of(self.vocabulary, self.decoder.target)
    encoded = map(self.vocabulary.encode, texts)
    rows = [form.cut(ids, self.inputs_length)[0] for ids in encoded]
    return self._embed_ids(rows, self.inputs_length)

  def read(
      self, batch: input_batch.InputBatch
  ) -> tuple[jax.Array, np.ndarray]:
    """Return the features of a batch, and the vectors of its inputs.

    The vectors are [examples, embed] float32, zero without tokens.
    """
    batch = self.decoder.place(batch)
    features = self.decoder.encode(batch)
    return features, np.asarray(_pool(features, batch.inputs))

  def _embed_ids(self, rows: list[list[int]], length: int) -> np.ndarray:
    # Powers of two, so that few shapes are compiled.
    size = min(batching.power_of_two(len(rows)), _MAX_BATCH)
    size = sharding.round_up(self.decoder.mesh, size)
    settings = request_lib.Settings(max_tokens=1)
    # Without rows, a batch of padding still shows the width of the vectors.
    batches = input_batch.whole_batches(
        [settings.request(ids, 0) for ids in rows or [[]]],
        settings,
        size=size,
        inputs_length=length,
    )
    vectors = [self.read(batch)[1] for batch in batches]
    return np.concatenate(vectors)[: len(rows)]


@jax.jit
def _pool(features: jax.Array, tokens: jax.Array) -> jax.Array:
  """Return the mean features of each row's tokens, normalized."""
  is_token = (tokens >= 0)[..., None]
  features = jnp.where(is_token, features.astype(jnp.float32), 0.0)
  total = jnp.sum(features, axis=1)
  # The mean has the direction of the sum. A row without tokens has neither.
  norm = jnp.linalg.norm(total, axis=-1, keepdims=True)
  return total / jnp.where(norm > 0, norm, 1)


class Answer(NamedTuple):
  """An earlier answer that was found for an input.

  Attributes:
    text: The earlier input.
    output: Its output.
    similarity: Cosine of the vectors of both inputs.
  """

  text: str
  output: str
  similarity: float


@dataclasses.dataclass(eq=False)
class Store:
  """Answers to earlier inputs, at most a given number; empty when it is made.

  One more answer takes the place of the oldest one, and a new answer to an
  equal input that of the answer before.

  Attributes:
    embedder: Computes the vectors of inputs.
    max_answers: The most answers to keep, at least 1.
  """

  embedder: Embedder
  max_answers: int = MAX_ANSWERS

  def __post_init__(self):
    ranges.check_settings(ranges.COUNT, max_answers=self.max_answers)
    self._saved: str | None = None  # hash of the file; None for no file
    width = len(self.embedder.fingerprint['probe'])
    self._keep([], np.zeros((0, width), np.float32))

  @classmethod
  def load(
      cls,
      path: epath.PathLike,
      embedder: Embedder,
      max_answers: int | None = None,
  ) -> 'Store':
    """Return the store in a folder.

    Args:
      path: Folder of the store, local or remote.
      embedder: Computes the vectors of inputs.
      max_answers: The most answers to keep; None for the number that the store
        was saved with.
    Raises:
      StoreError: if there is no store, if it is damaged, or if it is of another
        encoder or vocabulary, or of an earlier version.
    """
    file = user_paths.expand(path) / _FILE
    if not file.is_file():
      raise StoreError(
          f'There is no store of answers in {file.parent}. Correct the path, or'
          ' make a store (docs/python.md#earlier-answers).'
      )
    own = embedder.fingerprint
    data = file.read_bytes()
    with errors.reading(f'The store of answers {path}', StoreError):
      # An array whose checksum in the archive is wrong raises an error.
      arrays = dict(np.load(io.BytesIO(data)))
      if (
          arrays.get('vocabulary') != own['vocabulary']
          or arrays['probe'].shape != own['probe'].shape
          or arrays['probe'] @ own['probe'] < _MIN_PROBE_SIMILARITY
      ):
        raise StoreError(
            f'The store of answers {path} is of another encoder, vocabulary or'
            ' version. Give the target that it was made with, or fill a store'
            ' in another folder.'
        )
      pairs = json.loads(arrays['answers'].item())
      # If a damaged header states too small a shape, no checksum is compared.
      vectors = arrays['vectors'].reshape(len(pairs), len(own['probe']))
    if max_answers is None:
      max_answers = arrays['max_answers'].item()
    store = cls(embedder, max_answers)
    store._keep(pairs, vectors)
    store._saved = _hash(data)
    return store

  def __len__(self) -> int:
    return len(self._pairs)

  def add(self, texts: Sequence[str], outputs: Sequence[str]) -> None:
    """Add answers, one output per input; later ones count as newer.

    Raises:
      ValueError: if the numbers differ.
    """
    for name, column in ('texts', texts), ('outputs', outputs):
      request_lib.check_several(name, column, 'a list of texts')
    new = dict(zip(texts, outputs, strict=True))
    kept = [i for i, (text, _) in enumerate(self._pairs) if text not in new]
    self._keep(
        [*(self._pairs[i] for i in kept), *new.items()],
        np.concatenate([self._vectors[kept], self.embedder.embed(list(new))]),
    )

  def nearest(
      self,
      texts: Sequence[str],
      count: int = 1,
      min_similarity: float = MIN_SIMILARITY,
  ) -> list[list[Answer]]:
    """Return the answers to the most similar inputs, the most similar first.

    Args:
      texts: Inputs.
      count: The most answers per input, at least 1.
      min_similarity: Least similarity of the inputs.
    Returns:
      A list per input, which is empty if no input is similar enough.
    Raises:
      StoreError: if the store is empty.
      ModuleNotFoundError: if usearch is not installed.
    """
    vectors = self.embedder.embed(texts)
    return [self.nearest_to(each, count, min_similarity) for each in vectors]

  def nearest_to(
      self, vector: np.ndarray, count: int, min_similarity: float
  ) -> list[Answer]:
    """Return the answers to the inputs nearest to a vector, see `nearest`."""
    from usearch import index  # of the extra `answers`

    if not self._pairs:
      raise StoreError(
          'The store of answers is empty, so that no request can have hints'
          ' from it. Add answers first, or decode without the store.'
      )
    # Comparing with 10,000 vectors takes 2 ms; an index would be more state.
    count = min(count, len(self))
    found = index.search(self._vectors, vector, count, exact=True).to_list()
    answers = [Answer(*self._pairs[i], 1 - distance) for i, distance in found]
    return [each for each in answers if each.similarity >= min_similarity]

  def to_json(self) -> bytes:
    """Return the pairs of input and output, the oldest first."""
    return json.dumps(self._pairs).encode()

  def save(self, path: epath.PathLike) -> None:
    """Write the store to a folder, local or remote, which is made if missing.

    One file is replaced as a whole: a reader sees the store as it was before or
    after, also if the process is killed meanwhile.

    Raises:
      StoreError: if another process has written there since the store was
        loaded from it or saved to it.
      folder_lock.FolderInUseError: if another process is writing there.
      OSError: if the folder cannot be written to.
    """
    file, buffer = user_paths.expand(path) / _FILE, io.BytesIO()
    np.savez(
        buffer,
        answers=self.to_json(),
        vectors=self._vectors,
        max_answers=self.max_answers,
        **self.embedder.fingerprint,
    )
    with folder_lock.hold(path):
      if self._saved != (_hash(file.read_bytes()) if file.is_file() else None):
        raise StoreError(
            f'The store of answers {path} was written by another process. Load'
            ' it again and add the new answers, or save to another folder.'
        )
      whole_files.replace(file.parent, _FILE, buffer.getvalue())
    self._saved = _hash(buffer.getvalue())

  def _keep(self, pairs: list[Sequence[str]], vectors: np.ndarray) -> None:
    """Keep the newest inputs and outputs, the last ones, and their vectors."""
    self._pairs = pairs[-self.max_answers :]
    self._vectors = vectors[-self.max_answers :]


def _hash(data: bytes) -> str:
  return hashlib.sha256(data).hexdigest()


@dataclasses.dataclass(frozen=True)
class Finder:
  """Adds earlier answers to the hints of inputs.

  The encoder runs once per request: its output serves the search, and then
  decoding. Hints are as wide as answers may be, so that they compile once. An
  answer is cut to the decoder's length, which no output exceeds.

  Attributes:
    store: Has the answers; the requests are those of its embedder's decoder.
    count: The most answers per example, see `Store.nearest`.
    min_similarity: See `Store.nearest`.
  Raises:
    ValueError: for a decoder whose drafter does not read hints, or a number out
      of range.
  """

  store: Store
  count: int = 1
  min_similarity: float = MIN_SIMILARITY

  def __post_init__(self):
    ranges.check_settings(ranges.COUNT, count=self.count)
    ranges.check_settings(ranges.COSINE, min_similarity=self.min_similarity)
    self.store.embedder.decoder.check_reads_hints()

  @property
  def decoder(self) -> bound_pair.BoundPair:
    """Decoder whose encoder the answers are found by."""
    return self.store.embedder.decoder

  @property
  def hints_length(self) -> int:
    """The most tokens of the answers of an input, one between two of them."""
    return self.count * (self.decoder.options.max_tokens + 1) - 1

  def check_target(self, target: models.Model) -> None:
    """Raise ValueError unless the target's encoder finds the answers."""
    # The features that are added to a batch are those of the own encoder.
    if target is not self.decoder.target:
      raise ValueError(
          'The answers are found by the encoder of another target. Make the'
          ' Embedder of their store with this decoder.'
      )

  @property
  def identity(self) -> list[Any]:
    """All that the answers that are found depend on, as JSON."""
    return [_hash(self.store.to_json()), self.count, self.min_similarity]

  def __call__(self, batch: input_batch.InputBatch) -> input_batch.InputBatch:
    """Return a batch with features, and with answers behind its hints."""
    embedder = self.store.embedder
    length = embedder.decoder.options.max_tokens
    end = embedder.vocabulary.eos_id
    features, vectors = embedder.read(batch)
    found = batch.hint_ids()
    for own, vector in zip(found, vectors, strict=True):
      near = self.store.nearest_to(vector, self.count, self.min_similarity)
      encoded = (embedder.vocabulary.encode(each.output) for each in near)
      own += [[*ids, end][:length] for ids in encoded]
    hints = hints_lib.stack(found, self.hints_length)
    return batch.replace(features=features, hints=hints)


@dataclasses.dataclass(frozen=True)
class Folder:
  """A folder with a store, and what a job does with it.

  Attributes:
    path: Folder, local or remote.
    count: The most answers that an input gets as hints, see `Store.nearest`.
    min_similarity: See `Store.nearest`.
    append: Whether the job adds its predictions at its end, and makes the store
      if there is none.
    max_answers: The most answers to keep; None for the number of the store, or
      `MAX_ANSWERS` for a new one.
  """

  path: str
  count: int = 1
  min_similarity: float = MIN_SIMILARITY
  append: bool = False
  max_answers: int | None = None

  def finder(self, embedder: Embedder) -> Finder | None:
    """Return what adds answers of the store to requests.

    None if the job appends, and its drafter does not read hints, or the store
    has no answers yet.
    """
    store = self._open(embedder)
    if self.append and not (embedder.decoder.reads_hints and len(store)):
      return None
    return Finder(store, self.count, self.min_similarity)

  def add(self, embedder: Embedder, answers: Iterable[tuple[str, str]]) -> None:
    """Add pairs of an input and its output to the store in the folder."""
    store = self._open(embedder)
    for part in batching.parts(answers, store.max_answers):
      store.add(*zip(*part, strict=True))
    store.save(self.path)

  def _open(self, embedder: Embedder) -> Store:
    if self.append and not (user_paths.expand(self.path) / _FILE).is_file():
      is_default = self.max_answers is None
      return Store(embedder, MAX_ANSWERS if is_default else self.max_answers)
    return Store.load(self.path, embedder, self.max_answers)

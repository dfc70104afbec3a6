# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The chunks of the infer job, planned by the driver and decoded by workers."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import functools
import json
import sys
from typing import Any, Protocol

from speculative_t5x.decoder import batching
from speculative_t5x.jobs.cluster import isolation
from speculative_t5x.jobs.cluster import ray_cluster
from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import json_files
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.tasks import inputs as inputs_lib

ERROR = 'error'  # the key of a row without a prediction
_MOST_SHOWN = 10  # lines on what was not decoded
# Counts of the inputs of a chunk, under their names in a record.
COUNTED = 'num_examples', 'truncated_inputs', 'unknown_inputs'

Part = Sequence[inputs_lib.Input]


class Source(Protocol):
  """The inputs of a job."""

  read: Callable[[], Iterator[Any]]
  inputs_of: Callable[[Iterator[Any], int], Iterator[inputs_lib.Input]]

  def inputs(self) -> Iterator[inputs_lib.Input]:
    """Yield all inputs."""


class Inference(Protocol):
  """What decodes inputs."""

  def identity(self, part: Part) -> list[Any]:
    """Return what the predictions of inputs depend on, as JSON."""

  def decode(
      self, numbered: Iterator[tuple[int, inputs_lib.Input]]
  ) -> Iterator[chunks_lib.Content]:
    """Yield the contents of parts of the inputs; see `Chunks.take_all`."""


class Setup(Protocol):
  """An infer job that can be pickled; see `infer`."""

  paths: Sequence[str] | None
  chunk_batches: int

  def source(self) -> Source:
    """Find the inputs and the target."""

  def inputs(self, source: Source) -> Iterator[inputs_lib.Input]:
    """Yield the inputs that the job decodes."""

  def settings(self) -> tuple[run_record.RunRecord, dict[str, Any]]:
    """Return the record before anything is decoded, and options of chunks."""

  def open(
      self, source: Source
  ) -> contextlib.AbstractContextManager[Inference]:
    """Load the model."""


@dataclasses.dataclass(frozen=True)
class InferChunks:
  """An infer job for workers; a `ray_worker.Job`."""

  setup: Setup

  def describe(self) -> tuple[Mapping[str, Any], Any]:
    """Find inputs and models, and choose what suits the machine."""
    next(self.setup.source().inputs())  # the files can be read here
    record, options = self.setup.settings()
    # Nodes may differ in their device, and decode alike up to rounding.
    same = dataclasses.replace(record, device=None, host=None, mesh={})
    values = resumption.identity_of(same) | options
    return values, (record, options)

  @contextlib.contextmanager
  def open(self) -> Iterator[ray_worker.Decode]:
    """Load the model; yield what decodes a chunk."""
    source = self.setup.source()
    reader = inputs_lib.PartReader(source.read, source.inputs_of)
    with self.setup.open(source) as job:
      yield functools.partial(_decode, job, reader)


def _decode(
    job: Inference, reader: inputs_lib.PartReader, chunk: ray_worker.Chunk
) -> chunks_lib.Content:
  """Decode what can be of a chunk."""
  part = reader.part(chunk.first, chunk.count)
  if chunks_lib.digest_of(job.identity(part)) != chunk.digest:
    raise ValueError(
        f'The {chunk.count} inputs from number {chunk.first} on are not those'
        ' that the driver has read. Give all nodes the same files.'
    )
  return _joined(
      isolation.isolated(
          lambda some: next(job.decode(enumerate(some))),
          part,
          lambda one, error: failed([one], errors.first_line(error)),
      )
  )


def failed(part: Part, error: str) -> chunks_lib.Content:
  """Return the content of a chunk of which nothing was decoded."""
  rows = [
      {
          'example_id': each.example_id,
          'input': each.text,
          'prediction': None,
          ERROR: error,
          **each.fields,
      }
      for each in part
  ]
  return chunks_lib.Content(
      [json_files.dumps(row) for row in rows],
      {**counted(part), chunks_lib.FAILED: len(part)},
  )


def counted(part: Part) -> dict[str, int]:
  """Return the counts of inputs, by the names of `COUNTED`."""
  counts = (
      len(part),
      sum(each.is_truncated for each in part),
      sum(not each.is_known for each in part),
  )
  return dict(zip(COUNTED, counts, strict=True))


def _joined(contents: Sequence[chunks_lib.Content]) -> chunks_lib.Content:
  """Return the content of a chunk that was decoded in pieces."""
  if len(contents) == 1:
    return contents[0]
  # As a chunk file would give them.
  values = [json.loads(json.dumps(each.values)) for each in contents]
  sums = {
      name: sum(each.get(name, 0) for each in values)
      for name in (*COUNTED, chunks_lib.FAILED)
  }
  if runs := [each['run'] for each in values if 'run' in each]:
    sums['run'] = interleaved.join(runs).stored()
  return chunks_lib.Content([x for each in contents for x in each.rows], sums)


class Driver:
  """Has the workers decode what is missing of an output folder.

  Attributes:
    num_failed: Inputs without a prediction, so far.
    part_size: Inputs of a chunk.
    shown: Shows how many inputs are done.
  """

  def __init__(
      self,
      setup: Setup,
      batch_size: int,
      shown: progress.Progress,
  ):
    """Take the setup of the job; do nothing yet."""
    self.num_failed = 0
    self.part_size = batch_size * setup.chunk_batches
    self.shown = shown
    self._setup = setup
    self._errors: dict[int, str] = {}  # of whole chunks
    self._num_said = 0

  def decode_missing(
      self,
      workers: ray_cluster.Workers,
      source: Source,
      chunks: chunks_lib.Chunks,
  ) -> None:
    """Have chunks decoded that are not finished, and write them."""
    progress.say('reading the inputs')
    num_done, planned = 0, {}
    parts = batching.parts(self._setup.inputs(source), self.part_size)
    for number, part in enumerate(parts):
      digest = chunks_lib.digest_of(self.identity(part))
      chunk = chunks.find(number, digest)
      if chunk is None:
        is_of_lines = self._setup.paths is not None
        first = part[0].example_id if is_of_lines else number * self.part_size
        planned[number] = ray_worker.Chunk(number, first, len(part), digest)
      else:
        num_done += len(part)
    for decoded in workers.decode([*planned.values()]):
      chunk = planned[decoded.number]
      if decoded.error is None:
        content = chunks_lib.Content(decoded.rows, decoded.values)
        chunks.put(chunk.number, chunk.digest, content)
        self._say_rows(content)
      else:
        self._errors[chunk.number] = decoded.error
        self._say(
            f'the {chunk.count} inputs from number {chunk.first} on are not'
            f' decoded: {decoded.error}'
        )
        self.num_failed += chunk.count
      num_done += chunk.count
      self.shown.show(num_done)

  def identity(self, part: Part) -> list[Any]:
    """Return what the predictions of inputs depend on, as JSON."""
    return inputs_lib.identity(part)

  def decode(
      self, numbered: Iterator[tuple[int, inputs_lib.Input]]
  ) -> Iterator[chunks_lib.Content]:
    """Yield what stands for chunks that no worker could decode."""
    for part in batching.parts(numbered, self.part_size):
      error = self._errors[part[0][0] // self.part_size]
      yield failed([each for _, each in part], error)

  def _say_rows(self, content: chunks_lib.Content) -> None:
    """Say which rows of a chunk are not decoded."""
    if count := content.values.get(chunks_lib.FAILED):
      self.num_failed += count
      for row in map(json.loads, content.rows):
        if ERROR in row and row['prediction'] is None:
          self._say(f'input {row["example_id"]} is not decoded: {row[ERROR]}')

  def _say(self, text: str) -> None:
    """Print the first lines of many."""
    self._num_said += 1
    if self._num_said <= _MOST_SHOWN:
      print(f'infer: {text}', file=sys.stderr)
    elif self._num_said == _MOST_SHOWN + 1:
      print(f'infer: rows of others have the key {ERROR!r}', file=sys.stderr)

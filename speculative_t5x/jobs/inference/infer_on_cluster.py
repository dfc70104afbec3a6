# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Has a cluster decode the inputs of an infer job, a chunk at a time."""

from collections.abc import Iterator, Mapping
import dataclasses
import functools

from speculative_t5x.decoder import batching
from speculative_t5x.jobs.cluster import ray_cluster
from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.jobs.inference import infer_output
from speculative_t5x.jobs.inference import infer_setup
from speculative_t5x.jobs.inference import inference
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.tasks import inputs as inputs_lib
from speculative_t5x.tasks import predictions


class Decoding:
  """An infer job on one node; see `ray_worker.Shipment`."""

  def __init__(self, setup: infer_setup.InferSetup):
    """Find inputs and models, and choose what suits the machine."""
    source = infer_setup.find_source(setup)
    next(source.inputs())  # the files can be read here
    shown = progress.Progress('infer', None, 'inputs')
    self._job = inference.find(setup, source, shown)
    record, options = self._job.record(), self._job.options()
    # Nodes may differ in their device, and decode alike up to rounding.
    same = dataclasses.replace(record, device=None, host=None, mesh={})
    self.values = resumption.identity_of(same) | options
    self.for_driver = record, options
    self._reader = inputs_lib.PartReader(source.read, source.inputs_of)

  def decode(self, chunk: ray_worker.Chunk) -> chunks_lib.Content:
    """Decode a chunk."""
    part = self._reader.part(chunk.first, chunk.count)
    if chunks_lib.digest_of(inputs_lib.identity(part)) != chunk.digest:
      raise ValueError(
          f'The {chunk.count} inputs from number {chunk.first} on are not those'
          ' that the driver has read. Give all nodes the same files.'
      )
    return next(self._job.decode(enumerate(part)))


def write(setup: infer_setup.InferSetup) -> run_record.RunRecord:
  """Have the cluster of a setup decode its inputs into its output folder.

  Raises:
    ValueError: for inputs that cannot be decoded, once all others are written.
  """
  source = infer_setup.find_source(setup)
  with progress.Progress('infer', None, 'inputs') as shown:
    with setup.cluster.connect(functools.partial(Decoding, setup)) as workers:
      settings, options = workers.asked.for_driver
      size = settings.batch_size * setup.chunk_batches
      parts = lambda: (
          (inputs_lib.identity(part), part)
          for part in batching.parts(source.inputs(), size)
      )
      chunks = infer_output.chunks_in(setup.output_dir, settings, options)
      errors = _decode_missing(workers, setup, parts(), chunks, shown)
    if errors:
      number, error = min(errors.items())
      raise ValueError(
          f'{len(errors)} chunks of {size} inputs could not be decoded, as'
          f' number {number}: {error}. The others are kept; the same command'
          ' decodes these again.'
      )
    # All chunks are there, and are taken as a job that resumes takes them.
    taken = [*chunks.take_all(parts(), iter)]
    record = infer_output.write_all(
        taken, shown, settings, setup.output_dir, chunks
    )
  if num_failed := sum(x.values.get(chunks_lib.FAILED, 0) for x in taken):
    raise ValueError(
        f'{num_failed} of {record.num_examples} inputs have no prediction:'
        f' their rows have the key {predictions.ERROR!r}. The same command'
        ' decodes their chunks again.'
    )
  return record


def _decode_missing(
    workers: ray_cluster.Workers,
    setup: infer_setup.InferSetup,
    parts: Iterator[tuple[list, list[inputs_lib.Input]]],
    chunks: chunks_lib.Chunks,
    shown: progress.Progress,
) -> Mapping[int, str]:
  """Write chunks that are not finished; return why some are not, by number."""
  progress.say('reading the inputs')
  first, num_done, missing, errors = 0, 0, {}, {}
  for number, (identity, part) in enumerate(parts):
    digest = chunks_lib.digest_of(identity)
    if chunks.find(number, digest) is None:
      # Lines are numbered with those that are left out, and examples are not.
      begin = first if setup.inputs is None else part[0].example_id
      missing[number] = ray_worker.Chunk(number, begin, len(part), digest)
    else:
      num_done += len(part)
    first += len(part)
  for decoded in workers.decode([*missing.values()]):
    chunk = missing[decoded.number]
    if decoded.content is None:
      errors[chunk.number] = decoded.error
    else:
      chunks.put(chunk.number, chunk.digest, decoded.content)
    num_done += chunk.count
    shown.show(num_done)
  return errors

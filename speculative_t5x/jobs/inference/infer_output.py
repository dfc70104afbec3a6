# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes what is decoded to an output folder, or prints it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import sys
from typing import Any

from speculative_t5x.decoder import counts
from speculative_t5x.jobs.inference import inference
from speculative_t5x.jobs.inference import text_rows
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import readings


def print_all(job: inference.Inference, inputs: Iterator[Any]) -> None:
  """Decode the inputs and print each prediction when it is there."""
  tell = functools.partial(print, flush=True)
  _ = job.engine  # before standard input is waited for
  values = [each.values for each in job.decode(enumerate(inputs), tell)]
  job.shown.end()
  settings = job.record()
  record = dataclasses.replace(settings, **_counted(values))
  for line in _notes(record, values):
    print(line, file=sys.stderr)


def write_all(
    taken: Iterable[chunks_lib.Chunk],
    shown: progress.Progress,
    settings: run_record.RunRecord,
    output_dir: str,
    chunks: chunks_lib.Chunks,
    files: inference.Files = text_rows.TextRows.files,
) -> run_record.RunRecord:
  """Write all chunks, which are taken one by one, and return the record."""
  folder = output_folder.OutputFolder(output_dir, 'infer')
  origins, values, num_done = [], [], 0
  for chunk in taken:
    origins.append(chunk.origin)
    values.append(chunk.values)
    num_done += chunk.values['num_examples']
    shown.show(num_done)
  shown.end()
  record = dataclasses.replace(settings, **origins[0], **_counted(values))
  folder.add(record)
  for name, is_there in files.items():
    folder.add_rows(name, filter(is_there, chunks))
  results = folder.finish()
  for line in _notes(record, values):
    print(line)
  for name in files:
    print(f'{name.partition(".")[0].capitalize()}: {results.parent / name}')
  return record


def chunks_in(
    output_dir: str, settings: run_record.RunRecord, options: dict[str, Any]
) -> chunks_lib.Chunks:
  """Return the chunks of an output folder, which has no others."""
  # A job may resume on another machine, or on a mesh of other devices: its
  # texts are then those of both. {} is the mesh of a single device.
  identity = dataclasses.replace(settings, device=None, host=None, mesh={})
  if settings.split is None:  # of files, whose inputs each chunk has
    identity = dataclasses.replace(identity, task=None)
  paths = resumption.paths_of(settings)
  chunks = chunks_lib.Chunks(output_dir, identity, options, 'infer', paths)
  chunks.check_alone()
  return chunks


def _notes(
    record: run_record.RunRecord, chunks: Sequence[Mapping[str, Any]]
) -> list[str]:
  """Return lines on inputs, and on how fast rows and tokens were decoded.

  The rate is that of all chunks, whichever process decoded them, without
  compiling.
  """
  notes = readings.input_notes([record])
  if num_errors := _num_errors(chunks):
    notes.append(f'{num_errors} of {record.num_examples} requests have errors.')
  run = record.speculative or record.baseline
  if run is None:
    return notes
  inputs, seconds = record.num_examples, run.walltime_s
  line = (
      f'{inputs} inputs, {run.tokens} tokens in {seconds:.3g} s:'
      f' {inputs / seconds:.3g} inputs and {run.tokens_per_s:.4g} tokens per'
      ' second'
  )
  what, per_call = readings.per_target_call(record)
  if per_call is not None:
    line += f', {per_call:.2f} {what} per target call'
  if (accepted := record.draft_acceptance_rate) is not None:
    line += f', {accepted:.0%} of draft tokens accepted'
  return [*notes, f'{line}.', *readings.draft_notes(record)]


def _counted(chunks: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
  """Return what the values of chunks amount to, as values of the record."""
  # A batch has no other counts than that of its lines.
  names = [x for x in text_rows.COUNTED if any(x in each for each in chunks)]
  sums = {name: sum(each[name] for each in chunks) for name in names}
  runs = [each['run'] for each in chunks if 'run' in each]
  if not runs and _num_errors(chunks):
    return sums
  if not runs:
    raise ValueError('No input could be decoded.')
  run = interleaved.join(runs)
  is_speculative = run.counts.speculation is not None
  name = 'speculative' if is_speculative else 'baseline'
  described = walltimes.run_of(run)
  seconds = {'baseline': None, 'speculative': None, name: run.compile_s}
  return {
      **sums,
      'padded_share': run.counts.idle_share,
      'warmup': interleaved.WARMUP,
      'compile_s': run_record.BothRuns(**seconds),
      name: described,
      **(counts.acceptance_rates(vars(described)) if is_speculative else {}),
  }


def _num_errors(chunks: Sequence[Mapping[str, Any]]) -> int:
  return sum(each.get(text_rows.NUM_ERRORS, 0) for each in chunks)

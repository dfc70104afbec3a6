# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times the paper's pairs on an accelerator, at the paper's alphas and gammas.

The models are T5 1.1 of the sizes in Tables 2 and 4, or drafts by any name of
`simulate` (see `research.simulation.by_name`) at T5-small's rows, with random
weights and random inputs. Both models run, and draft tokens are accepted at the
paper's alpha by simulated acceptance. Needs only JAX and the package's core: no
TensorFlow, seqio, gin or matplotlib.

  python -m benchmarks.simulated_pairs --target xxl \\
    --draft shared_encoder_2_small small --batch_size 1 8 \\
    --output_dir runs/simulated_pairs

Of each target, plain and speculative runs of all rows come first, and then the
parts of every row, which compile several more programs per gamma. Whatever is
timed is written at once: a record per row, results.jsonl with all records, and
walltime.md, which has the table of the walltime jobs and a line per row beside
the paper. A line on stderr estimates the time left; `--time_limit` ends the
benchmark before a row that would take longer. The same command resumes. Without
git, the variable SPECULATIVE_T5X_COMMIT names the commit in the records.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import os
import sys
import time

import jax

from benchmarks import running
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs.command_line import process
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.jobs.outputs import resumption
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import cells
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.research.simulation import random_models
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.research.simulation import t5_published

_NOTE = (
    'Each line gives the time of a plain decoding step, without the encoder,'
    ' over the read floor: the time to read the bytes that a step must read, at'
    ' the fastest read speed measured in the same run (compare it with the data'
    ' sheet). The paper measured XXL on a TPU-v4 at batch 1, on text of its'
    ' tasks.'
)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
  """Parse the options; the functions that use them check lengths."""
  parser = running.parser('simulated_pairs', __doc__)
  sizes, drafts = list(t5_published.SIZES), list(published.DRAFT_NUM_PARAMS)
  parser.add_argument(
      '--target', nargs='+', choices=sizes, default=['xxl', 'xl']
  )
  parser.add_argument('--draft', nargs='+', default=drafts, metavar='DRAFT')
  parser.add_argument(
      '--task', nargs='+', choices=('EnDe', 'CNNDM'), default=['EnDe', 'CNNDM']
  )
  parser.add_argument(
      '--batch_size', type=running.positive, nargs='+', default=[1, 8]
  )
  parser.add_argument(
      '--dtype', choices=('bfloat16', 'float32'), default='bfloat16'
  )
  # Common lengths for fine-tuning T5 on translation; the paper's are unknown.
  parser.add_argument('--inputs_length', type=running.positive, default=512)
  parser.add_argument('--targets_length', type=running.positive, default=128)
  parser.add_argument(
      '--batches', type=running.positive, default=16, help='per row'
  )
  parser.add_argument(
      '--rounds',
      type=running.positive,
      default=simulated_walltimes.Shapes.rounds,
      help='number of times that the parts are timed',
  )
  parser.add_argument(
      '--time_limit', type=running.positive, metavar='SECONDS', help='of it all'
  )
  parser.add_argument(
      '--output_dir', default='runs/simulated_pairs', metavar='DIR'
  )
  return parser.parse_args(arguments)


def make_shapes(
    options: argparse.Namespace,
) -> list[simulated_walltimes.Shapes]:
  """Return the shapes to decode, one per batch size."""
  # bfloat16 products have only one precision on a GPU, and requesting the
  # highest could exclude some of XLA's kernels.
  precision = None if options.dtype == 'bfloat16' else 'highest'
  return [
      simulated_walltimes.Shapes(
          num_examples=options.batches * batch_size,
          batch_size=batch_size,
          inputs_length=options.inputs_length,
          targets_length=options.targets_length,
          dtype=options.dtype,
          rounds=options.rounds,
          matmul_precision=precision,
      )
      for batch_size in options.batch_size
  ]


def pairings_of(
    draft: str, task: Sequence[str]
) -> list[tuple[simulated_walltimes.Pairing, published.Row]]:
  """Return a draft at the rows of the paper, of T5-small if it has none."""
  size = draft if draft in published.DRAFT_NUM_PARAMS else 'small'
  return [
      (
          simulated_walltimes.Pairing(
              draft, row.alpha, row.gamma, float(row.temperature)
          ),
          row,
      )
      for row in published.TABLES_2_AND_4
      if row.draft == size and row.task in task
  ]


class _Clock:
  """The time that has passed, and that a row has taken at most."""

  def __init__(self, total: int, limit_s: float | None):
    self._left, self._limit_s = total, limit_s
    self._start = self._last = time.monotonic()
    self._spans: list[float] = []

  def has_time(self) -> bool:
    """Return whether a row as long as the longest so far ends in time.

    One row is measured whatever the limit.
    """
    self._last = time.monotonic()
    if self._limit_s is None or not self._spans:
      return True
    return self._last - self._start + max(self._spans) <= self._limit_s

  def end_row(self, is_new: bool) -> None:
    """Say how long the rest takes, by the mean of the rows timed so far."""
    self._left -= 1
    if is_new:
      self._spans.append(time.monotonic() - self._last)
    if self._left and self._spans:
      left_s = self._left * sum(self._spans) / len(self._spans)
      progress.say(f'{self._left} measurements to go, about {left_s:.0f} s')


def measure(
    target: str,
    pairs: Sequence[tuple[simulated_walltimes.Pairing, published.Row]],
    all_shapes: Sequence[simulated_walltimes.Shapes],
    folder: output_folder.OutputFolder,
    clock: _Clock,
) -> Iterator[tuple[run_record.RunRecord, str]]:
  """Measure a target with all pairs at all shapes: runs first, parts after.

  Args:
    target: Size of T5 1.1 that replaces XXL.
    pairs: Pairings and the rows of the paper that they stand beside.
    all_shapes: Shapes to decode, which differ in the number of rows only.
    folder: Gets the records; those of an earlier run are reused.
    clock: Ends the measurement.
  Yields:
    Each record when it is measured, and its line; a row twice, with its parts
    the second time.
  Raises:
    ValueError: if the target does not fit into memory.
  """
  pairs = sorted(pairs, key=lambda pair: simulated_walltimes.PROGRAM(pair[0]))
  largest = max(all_shapes, key=lambda shapes: shapes.batch_size)
  drafts = sorted({pairing.draft for pairing, _ in pairs})
  gamma = max(pairing.gamma for pairing, _ in pairs)
  simulated_walltimes.choose_target(target, drafts, gamma, largest)
  bench = simulated_walltimes.Bench(target, largest)
  for with_parts, shapes in itertools.product((False, True), all_shapes):
    at_shapes = bench.at(shapes)
    measured = at_shapes.measure if with_parts else at_shapes.time_runs
    num_bytes = count_step_bytes(target, shapes)
    for pairing, row in pairs:
      if not clock.has_time():
        return
      name = f'{at_shapes.name(pairing)}, batch {shapes.batch_size}'
      settings = at_shapes.settings(pairing)
      if not with_parts:
        settings = dataclasses.replace(settings, rounds=0)
      found = folder.find(settings, name, 2 * len(pairs) * len(all_shapes))
      record = found or measured(pairing, settings, name)
      folder.add(record)
      clock.end_row(is_new=found is None)
      yield record, describe(record, row, num_bytes)


def _write(
    rows: Mapping[tuple[str, ...], tuple[run_record.RunRecord, str]],
    output_dir: str | os.PathLike[str],
) -> str:
  """Write what was measured so far, and return the table."""
  folder = output_folder.OutputFolder(output_dir, 'walltime')
  for record, _ in rows.values():
    folder.add(record)
  folder.finish()
  by_target = itertools.groupby(
      (record for record, _ in rows.values()), key=lambda x: x.target.name
  )
  texts = [str(walltime_summary.render([*x])) for _, x in by_target]
  texts += [_NOTE, '\n'.join(line for _, line in rows.values())]
  if stats := jax.local_devices()[0].memory_stats():
    peak = stats['peak_bytes_in_use'] / 2**30
    texts.append(f'Peak memory of the process: {peak:.1f} GiB.')
  text = '\n\n'.join(texts)
  folder.add_text('walltime.md', text)
  return text


def count_step_bytes(size: str, shapes: simulated_walltimes.Shapes) -> int:
  """Return the bytes that a target step must read, without allocating them."""
  config = t5_published.make_config(size, shapes.dtype)
  params = jax.eval_shape(
      functools.partial(random_models.random_params, config)
  )
  model = models.Model(
      config, params, num_params=models.count_params(config)
  )
  decoder = token_decoder.TokenDecoder(
      model,
      model_drafting.of_model(model),
      gamma=1,
      max_tokens=shapes.targets_length,
  )
  return read_floor.step_bytes(decoder, shapes.batch_size, shapes.inputs_length)


def describe(
    record: run_record.RunRecord, row: published.Row, num_bytes: int
) -> str:
  """Describe plain decoding and the read floor, and both speedups, in a line.

  Args:
    record: The record of a pair at the row's alpha and gamma.
    row: The row of the paper's tables.
    num_bytes: Bytes that a target step must read.
  """
  name = (
      f'- {record.target.name} and {record.drafter.name}, batch'
      f' {record.batch_size}, T={row.temperature}, gamma {row.gamma}, alpha'
      f' {row.alpha:g}'
  )
  if reason := judgement.objection(record):
    return f'{name}: {reason}'
  plain = record.baseline
  speedup = f'speedup {cells.speedup(record)}'
  if record.drafter.name == f't5_1_1_{row.draft}':
    speedup += f', the paper {row.measured:g}'
  if record.floor_ms is None:
    batches = record.num_examples / record.batch_size
    times = [x.walltime_s / batches for x in (plain, record.speculative)]
    return (
        f'{name}: plain {times[0]:.3g} s and speculative {times[1]:.3g} s per'
        f' batch; {speedup}'
    )
  decode_s = plain.walltime_s - record.encoder_s.target
  token_ms = decode_s / plain.loop_steps * 1e3
  floor_ms = record.floor_ms
  return (
      f'{name}: plain {token_ms:.3g} ms per step,'
      f' {token_ms / floor_ms:.2f} x the floor of {floor_ms:.3g} ms'
      f' ({num_bytes / 1e9:.3g} GB at {num_bytes / floor_ms / 1e6:.0f} GB/s);'
      f' {speedup}'
  )


def main(arguments: Sequence[str] | None = None) -> int:
  """Run the benchmark; return 1, after a line on stderr, for bad input."""
  options = parse_arguments(arguments)
  process.keep_libtpu_from_searching()
  compilation_cache.enable(options.output_dir)
  pairs = [x for d in options.draft for x in pairings_of(d, options.task)]
  all_shapes = make_shapes(options)
  total = 2 * len(pairs) * len(all_shapes) * len(options.target)
  clock = _Clock(total, options.time_limit)
  rows, text = {}, 'Nothing was measured.'
  try:
    with folder_lock.hold(options.output_dir):
      folder = output_folder.OutputFolder(options.output_dir, 'walltime')
      for target in options.target:
        for record, line in measure(
            target, pairs, all_shapes, folder, clock
        ):
          print(line, flush=True)
          without_parts = dataclasses.replace(record, rounds=0)
          rows[resumption.name_of(without_parts)] = record, line
          text = _write(rows, options.output_dir)
  except (ValueError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 1
  print(text)
  return 0


if __name__ == '__main__':
  running.run(main)

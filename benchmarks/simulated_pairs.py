# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Times the paper's pairs on an accelerator, at the paper's alphas and gammas.

The models are T5 1.1 of the sizes in Tables 2 and 4, with random weights and
random inputs. Both models run, and draft tokens are accepted at the paper's
alpha by simulated acceptance (see `speculative_t5x.jobs.simulate`). Each target
is measured at each batch size, for every row of the tables with one of the
drafts. Needs only JAX and the package's core: no TensorFlow, seqio, gin or
matplotlib.

  python -m benchmarks.simulated_pairs --target xxl xl \\
    --draft small base large --batch_size 1 8 --output_dir runs/simulated_pairs

Writes one record per row, results.jsonl with all records, and walltime.md. The
latter is also printed; it has the table of the walltime jobs, and the time of a
plain step beside the time to read the bytes that a step must read. After an
interruption, the same command resumes.
"""

import argparse
from collections.abc import Sequence
import functools
import os
import sys

import jax

from benchmarks import running
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import token_decoder
from speculative_t5x.jobs.command_line import process
from speculative_t5x.jobs.outputs import output_folder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.paper import published
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
  parser.add_argument('--draft', nargs='+', choices=drafts, default=drafts)
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
  parser.add_argument('--output_dir', required=True, metavar='DIR')
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


def measure(
    targets: Sequence[str],
    rows: Sequence[published.Row],
    all_shapes: Sequence[simulated_walltimes.Shapes],
    output_dir: str | os.PathLike[str],
) -> list[run_record.RunRecord]:
  """Measure every target with all rows of the tables at all shapes.

  Args:
    targets: Sizes of T5 1.1 that replace XXL.
    rows: Rows of the tables.
    all_shapes: Shapes to decode, all with the same dtype.
    output_dir: Output folder; its finished measurements are reused.
  Returns:
    The records, which are also written to the folder with a table.
  Raises:
    ValueError: if a target does not fit into memory.
  """
  pairings = [
      simulated_walltimes.Pairing(
          r.draft, r.alpha, r.gamma, float(r.temperature)
      )
      for r in rows
  ]
  with folder_lock.hold(output_dir):
    records, texts, lines = [], [], []
    for size in targets:
      of_size = []
      for shapes in all_shapes:
        found, _ = simulated_walltimes.measure_pairings(
            size,
            pairings,
            shapes,
            lambda: output_folder.OutputFolder(output_dir, 'walltime'),
        )
        num_bytes = count_step_bytes(size, shapes)
        lines += [describe(*each, num_bytes) for each in zip(found, rows)]
        of_size += found
      texts.append(walltime_summary.render(of_size))
      records += of_size
    folder = output_folder.OutputFolder(output_dir, 'walltime')
    for record in records:
      folder.add(record)
    text = '\n\n'.join([*texts, _NOTE, '\n'.join(lines)])
    folder.add_text('walltime.md', text)
    print(text)
    print(f'Records: {folder.finish()}')
  return records


def count_step_bytes(size: str, shapes: simulated_walltimes.Shapes) -> int:
  """Return the bytes that a target step must read, without allocating them."""
  config = t5_published.make_config(size, shapes.dtype)
  params = jax.eval_shape(
      functools.partial(random_models.random_params, config)
  )
  model = models.Model(config, params, models.count_params(config))
  decoder = token_decoder.TokenDecoder(
      model,
      draft_model_source.from_model(model),
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
      f'- {record.target.name} and {row.draft}, batch {record.batch_size},'
      f' T={row.temperature}, gamma {row.gamma}, alpha {row.alpha:g}'
  )
  if reason := judgement.objection(record):
    return f'{name}: {reason}'
  plain = record.baseline
  decode_s = plain.walltime_s - record.encoder_s.target
  token_ms = decode_s / plain.loop_steps * 1e3
  floor_ms = record.floor_ms
  return (
      f'{name}: plain {token_ms:.3g} ms per step,'
      f' {token_ms / floor_ms:.2f} x the floor of {floor_ms:.3g} ms'
      f' ({num_bytes / 1e9:.3g} GB at {num_bytes / floor_ms / 1e6:.0f} GB/s);'
      f' speedup {record.speedup:.2f}, the paper {row.measured:g}'
  )


def main(arguments: Sequence[str] | None = None) -> int:
  """Run the benchmark; return 1, after a line on stderr, for bad input."""
  options = parse_arguments(arguments)
  process.keep_libtpu_from_searching()
  compilation_cache.enable(options.output_dir)
  try:
    measure(
        options.target,
        [x for x in published.TABLES_2_AND_4 if x.draft in options.draft],
        make_shapes(options),
        options.output_dir,
    )
  except (ValueError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())

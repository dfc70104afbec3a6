# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper's pairs on an accelerator, at the paper's alphas and gammas.

T5 1.1 of the sizes of Tables 2 and 4 with random weights on random inputs; both
models run, and guesses are kept at the alpha that the paper found (see
`speculative_t5x.jobs.simulate`). Each target is measured at each batch size
with every row of the tables that has one of the drafts. Needs JAX and the
package's core alone: no TensorFlow, seqio, gin or matplotlib.

  python -m benchmarks.dialled_pairs --target xxl xl \\
    --draft small base large --batch_size 1 8 --output_dir runs/dialled_pairs

Writes a record a row there, results.jsonl with all of them, and walltime.md,
which it prints too: the table of the walltime jobs, and plain decoding beside
the time of reading what a step must read. Interrupted, it goes on where it was.
"""

import argparse
from collections.abc import Sequence
import functools
import os
import sys

import jax

from speculative_t5x import compilation_cache
from speculative_t5x import dialled
from speculative_t5x import loading
from speculative_t5x import quiet
from speculative_t5x import run_record
from speculative_t5x import token_decoder
from speculative_t5x.jobs import counts
from speculative_t5x.jobs import folder_lock
from speculative_t5x.jobs import output_folder
from speculative_t5x.jobs import simulate
from speculative_t5x.paper import published
from speculative_t5x.paper import tables
from speculative_t5x.walltime import read_floor

_NOTE = (
    'A step of plain decoding, its encoder left out, over the floor: the time'
    ' of reading what a step must read, at the fastest speed of reading that'
    ' was measured beside it (to be held against the data sheet). The paper'
    ' measured XXL on a TPU-v4 at batch 1, on text of its tasks.'
)


class _HelpFormatter(
    argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter
):
  """The text above as it is, and every default."""


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
  """The options; sizes and counts are checked by what they are given to."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.dialled_pairs',
      description=__doc__,
      formatter_class=_HelpFormatter,
  )
  several = dict(nargs='+', metavar='SIZE')
  parser.add_argument('--target', default=['xxl', 'xl'], **several)
  drafts = list(published.DRAFT_NUM_PARAMS)
  parser.add_argument('--draft', default=drafts, **several)
  parser.add_argument('--batch_size', type=int, nargs='+', default=[1, 8])
  parser.add_argument('--dtype', default='bfloat16', help='or float32')
  # Those that T5 is fine-tuned with for translation. The paper's are unknown.
  parser.add_argument('--inputs_length', type=int, default=512)
  parser.add_argument('--targets_length', type=int, default=128)
  parser.add_argument('--batches', type=int, default=16, help='of each row')
  parser.add_argument(
      '--rounds',
      type=int,
      default=simulate.Shapes.rounds,
      help='how often the parts are timed',
  )
  parser.add_argument('--output_dir', required=True, metavar='DIR')
  return parser.parse_args(arguments)


def choose_rows(drafts: Sequence[str]) -> list[published.Row]:
  """The rows of Tables 2 and 4 with one of these drafts.

  Raises:
    ValueError: for a draft that the tables do not have.
  """
  known = list(published.DRAFT_NUM_PARAMS)
  for draft in drafts:
    if draft not in known:
      raise ValueError(
          f'Tables 2 and 4 have no draft {draft!r}. Choose of'
          f' {", ".join(known)}.'
      )
  return [row for row in published.TABLES_2_AND_4 if row.draft in drafts]


def make_shapes(options: argparse.Namespace) -> list[simulate.Shapes]:
  """What is decoded, for each batch size.

  Raises:
    ValueError: for counts below 1.
  """
  # Of bfloat16 products a GPU has one precision, and asking for the highest
  # could only keep XLA from some of its kernels.
  precision = None if options.dtype == 'bfloat16' else 'highest'
  for batch_size in options.batch_size:
    counts.check(batch_size=batch_size, batches=options.batches)
  return [
      simulate.Shapes(
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
    all_shapes: Sequence[simulate.Shapes],
    output_dir: str | os.PathLike[str],
) -> list[run_record.Record]:
  """Measures every target at the rows of the tables, at all shapes in turn.

  Args:
    targets: sizes of T5 1.1, in the place of XXL.
    rows: drafts, and how their guesses fare.
    all_shapes: of one dtype.
    output_dir: what it has of an earlier run is not measured again.
  Returns:
    The records, which the folder has too, and as a table.
  Raises:
    ValueError: for unknown sizes, or for a target that does not fit the memory.
  """
  for size in targets:  # all, before the first is measured
    dialled.make_config(size, all_shapes[0].dtype)
  pairings = [
      simulate.Pairing(r.draft, r.alpha, r.gamma, float(r.temperature))
      for r in rows
  ]
  with folder_lock.hold(output_dir):
    records, texts, lines = [], [], []
    for size in targets:
      of_size = []
      for shapes in all_shapes:
        found, _ = simulate.measure_pairings(size, pairings, shapes, output_dir)
        num_bytes = count_step_bytes(size, shapes)
        lines += [describe(*each, num_bytes) for each in zip(found, rows)]
        of_size += found
      texts.append(tables.summary(of_size))
      records += of_size
    _write(records, [*texts, _NOTE, '\n'.join(lines)], output_dir)
  return records


def _write(records, texts, output_dir) -> None:
  """All records in one file, though they were measured a target at a time."""
  folder = output_folder.OutputFolder(output_dir, 'walltime')
  for record in records:
    folder.add(record)
  text = '\n\n'.join(texts)
  folder.add_text('walltime.md', text)
  print(text)
  print(f'Records: {folder.finish()}')


def count_step_bytes(size: str, shapes: simulate.Shapes) -> int:
  """Bytes that a step of a target must read; nothing is allocated."""
  config = dialled.make_config(size, shapes.dtype)
  params = jax.eval_shape(functools.partial(dialled.random_params, config))
  model = loading.Model(config, params, dialled.count_params(config))
  decoder = token_decoder.TokenDecoder(
      model, model, gamma=1, length=shapes.targets_length
  )
  return read_floor.step_bytes(
      decoder, shapes.batch_size, shapes.inputs_length
  )


def describe(
    record: run_record.Record, row: published.Row, num_bytes: int
) -> str:
  """Plain decoding beside the floor, and the speedup beside the paper's.

  Args:
    record: of a pair at the row's alpha and gamma.
    row: of the paper.
    num_bytes: that a step of the target must read.
  """
  plain = record['baseline']
  decode_s = plain['walltime_s'] - record['encoder_s']['target']
  token_ms = decode_s / plain['loop_steps'] * 1e3
  floor_ms = record['floor_ms']
  return (
      f'- {record["target"]["name"]} and {row.draft}, batch'
      f' {record["batch_size"]}, T={row.temperature}, gamma {row.gamma}, alpha'
      f' {row.alpha:g}: plain {token_ms:.3g} ms a step,'
      f' {token_ms / floor_ms:.2f} x the floor of {floor_ms:.3g} ms'
      f' ({num_bytes / 1e9:.3g} GB at {num_bytes / floor_ms / 1e6:.0f} GB/s);'
      f' speedup {record["speedup"]:.2f}, the paper {row.measured:g}'
  )


def main(arguments: Sequence[str] | None = None) -> int:
  """Returns the status: 1, after a line on stderr, for bad input."""
  options = parse_arguments(arguments)
  quiet.keep_libtpu_from_searching()
  compilation_cache.enable(options.output_dir)
  try:
    measure(
        options.target,
        choose_rows(options.draft),
        make_shapes(options),
        options.output_dir,
    )
  except (ValueError, OSError) as error:
    print(f'error: {error}', file=sys.stderr)
    return 1
  return 0


if __name__ == '__main__':
  sys.exit(main())

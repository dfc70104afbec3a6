# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares the training speed of T5X's trainer with this package's.

Both train the same network on the same tokens, with the same batches, lengths,
dtype and cross entropy, by Adafactor with float32 parameters. T5X's way is the
trainer of its train script, on one device; this package's is the train steps of
its train and distill jobs. Each is in a process of its own, and they are timed
interleaved, in a random order per repeat, after compilation. The sequences are
random tokens without padding, so that neither gains by packing or by sorting
examples by length.

  python -m benchmarks.training_throughput --size=small --batch_size=16

Prints a line of JSON with the target tokens per second of both, and the ratio
of this package's to T5X's with its 95 percent interval over rounds (null for
less than six rounds).
"""

import argparse
import contextlib
import dataclasses
import sys
from typing import Any

import numpy as np

from benchmarks import running
from benchmarks.side_by_side import measuring
from benchmarks.training_throughput import case as case_lib
from benchmarks.training_throughput import worker
from speculative_t5x.research.simulation import t5_published


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('training_throughput', __doc__)
  parser.add_argument('--size', choices=t5_published.SIZES, default='small')
  parser.add_argument('--layers', type=running.positive, help='default: all')
  parser.add_argument('--dtype', choices=case_lib.DTYPES, default='float32')
  parser.add_argument('--dropout_rate', type=float, default=0.0)
  for name, default, text in (
      ('batch_size', 16, None),
      ('inputs_length', 64, None),
      ('targets_length', 64, None),
      ('steps', 10, 'that are timed together'),
      ('rounds', 8, None),
      ('repeats', 2, 'per round'),
  ):
    parser.add_argument(
        f'--{name}', type=running.positive, default=default, help=text
    )
  return parser.parse_args(arguments)


def read_case(options: argparse.Namespace) -> case_lib.Case:
  """Return what is trained."""
  fields = [field.name for field in dataclasses.fields(case_lib.Case)]
  return case_lib.Case(**{name: getattr(options, name) for name in fields})


def run(case: case_lib.Case, rounds: int, repeats: int) -> dict[str, Any]:
  """Measure both ways, and return their part of the line of JSON."""
  rng = np.random.default_rng(0)
  timings = {way: measuring.Timings() for way in worker.WAYS}
  with contextlib.ExitStack() as stack:
    started = {
        way: stack.enter_context(running.process()) for way in worker.WAYS
    }
    for way, process in started.items():
      process.submit(worker.load, way, case).result()
    turns = {
        way: lambda process=process: process.submit(worker.turn).result()
        for way, process in started.items()
    }
    for number in range(rounds):
      measuring.time_round(turns, timings, repeats, rng)
      print(f'{number + 1} of {rounds} rounds', file=sys.stderr)
  return summarize(timings, case.num_target_tokens)


def summarize(
    timings: dict[str, measuring.Timings], num_target_tokens: int
) -> dict[str, Any]:
  """Return the speeds, and the ratio of this package's to T5X's.

  Args:
    timings: Timings by way.
    num_target_tokens: Number of target tokens that are timed together.
  """
  # More tokens per second is less time: the ratio of speeds is T5X's time over
  # this package's.
  ratio = measuring.summarize(timings, [worker.OURS])[worker.T5X]
  return {
      'target_tokens_per_second': {
          way: num_target_tokens / float(np.mean(each.seconds))
          for way, each in timings.items()
      },
      'speculative_t5x_over_t5x': ratio[f'over_{worker.OURS}'],
  }


def main():
  options = parse_arguments()
  case = read_case(options)
  line = running.line(
      'training_throughput',
      **dataclasses.asdict(case),
      rounds=options.rounds,
      repeats=options.repeats,
      **run(case, options.rounds, options.repeats),
  )
  print(line)


if __name__ == '__main__':
  main()

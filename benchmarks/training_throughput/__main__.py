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
import json
import sys
from typing import Any

import numpy as np

from benchmarks import processes
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import options as side_by_side
from benchmarks.training_throughput import cases
from benchmarks.training_throughput import worker
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.simulation import t5_published


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
  """Parses the options."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.training_throughput',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  positive = side_by_side.positive
  parser.add_argument('--size', choices=t5_published.SIZES, default='small')
  parser.add_argument(
      '--layers', type=positive, help='of encoder and decoder; default: all'
  )
  parser.add_argument('--batch_size', type=positive, default=16)
  parser.add_argument('--inputs_length', type=positive, default=64)
  parser.add_argument('--targets_length', type=positive, default=64)
  parser.add_argument('--dtype', choices=cases.DTYPES, default='float32')
  parser.add_argument('--dropout_rate', type=float, default=0.0)
  parser.add_argument(
      '--steps', type=positive, default=10, help='that are timed together'
  )
  parser.add_argument('--rounds', type=positive, default=8)
  parser.add_argument('--repeats', type=positive, default=2, help='per round')
  return parser.parse_args(arguments)


def read_case(options: argparse.Namespace) -> cases.Case:
  """Returns what is trained."""
  fields = [field.name for field in dataclasses.fields(cases.Case)]
  return cases.Case(**{name: getattr(options, name) for name in fields})


def run(case: cases.Case, rounds: int, repeats: int) -> dict[str, Any]:
  """Measures both ways, and returns their part of the line of JSON."""
  rng = np.random.default_rng(0)
  timings = {way: measuring.Timings() for way in worker.WAYS}
  with contextlib.ExitStack() as stack:
    started = {
        way: stack.enter_context(
            processes.Process(way, worker.__name__, way, case.to_json())
        )
        for way in worker.WAYS
    }
    turns = {way: _turn(process) for way, process in started.items()}
    for number in range(rounds):
      measuring.time_round(turns, timings, repeats, rng)
      print(f'{number + 1} of {rounds} rounds', file=sys.stderr)
  return summarize(timings, case.num_target_tokens)


def _turn(process: processes.Process) -> measuring.Turn:
  # Many steps, of which the first, with cold caches, takes little longer.
  return lambda: [process.ask()]


def summarize(
    timings: dict[str, measuring.Timings], num_target_tokens: int
) -> dict[str, Any]:
  """Returns the speeds, and the ratio of this package's to T5X's.

  Args:
    timings: by way.
    num_target_tokens: of the steps that are timed together.
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
  print(
      json.dumps(
          {
              'benchmark': 'training_throughput',
              **dataclasses.asdict(case),
              'rounds': options.rounds,
              'repeats': options.repeats,
              **run(case, options.rounds, options.repeats),
              'host': dataclasses.asdict(provenance.describe_host()),
              'device': dataclasses.asdict(provenance.describe_device()),
          },
          allow_nan=False,
      )
  )


if __name__ == '__main__':
  main()

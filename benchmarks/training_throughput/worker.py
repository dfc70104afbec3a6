# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The process of one way of training, which trains whenever it is told to.

  python -m benchmarks.training_throughput.worker <way> <case as JSON>

It answers with the seconds that the steps took.
"""

import importlib
import sys

from benchmarks import processes
from benchmarks.side_by_side import measuring
from benchmarks.training_throughput import cases

OURS, T5X = 'speculative_t5x', 't5x'
WAYS = {OURS: 'ours', T5X: 't5x_trainer'}


def main() -> None:
  way, case = sys.argv[1:]
  module = importlib.import_module(
      f'benchmarks.training_throughput.{WAYS[way]}'
  )
  train = module.make_train(cases.from_json(case))
  train()  # compiles
  processes.answer(lambda: measuring.seconds(train))


if __name__ == '__main__':
  main()

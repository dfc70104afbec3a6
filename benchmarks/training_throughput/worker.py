# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The process of one way of training, which trains whenever it is told to.

  python -m benchmarks.training_throughput.worker <way> <case as JSON>

It writes a line when it is ready, and one after the steps that each line of its
input asks for.
"""

import importlib
import sys

from benchmarks.training_throughput import cases

OURS, T5X = 'speculative_t5x', 't5x'
WAYS = {OURS: 'ours', T5X: 't5x_trainer'}
READY, TRAIN, DONE = 'ready', 'train', 'done'


def main() -> None:
  way, case = sys.argv[1:]
  module = importlib.import_module(
      f'benchmarks.training_throughput.{WAYS[way]}'
  )
  train = module.make_train(cases.from_json(case))
  train()  # compiles
  print(READY, flush=True)
  for _ in sys.stdin:
    train()
    print(DONE, flush=True)


if __name__ == '__main__':
  main()

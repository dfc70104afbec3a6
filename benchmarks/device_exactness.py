# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks on a device that speculative decoding keeps the distribution.

The embedded pair translates texts greedily, plainly and speculatively, in
float32. Then all outputs of small tables are enumerated under each rule, and
with a draft model alone and after lookup, as the tests do on a CPU.

  python -m benchmarks.device_exactness [--texts=128] [--output=<file>]

Prints a line of JSON per check, and ends with status 1 if one fails.
"""

import argparse
from collections.abc import Iterator, Sequence
import json
import pathlib
from typing import Any

import numpy as np

from benchmarks import running
from speculative_t5x import embedded
from speculative_t5x import testing
from speculative_t5x.rules import block
from speculative_t5x.rules import exact_match
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import verification
from speculative_t5x.tasks import bulletins

_RULES = {
    'tokenwise': verification.Tokenwise(),
    'block': block.BlockVerification(),
    'exact_match': exact_match.ExactMatch(),
}


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('device_exactness', __doc__)
  parser.add_argument('--texts', type=running.positive, default=128)
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(arguments)


def checks(num_texts: int) -> Iterator[str]:
  """Yield a line per check, the longest last."""
  yield running.line('device_exactness', check='greedy', **_greedy(num_texts))
  for name, rule in _RULES.items():
    yield _enumerated(f'rule {name}', lambda r=rule: testing.check_rule(r))
  fixed = draft_length.Fixed()
  yield _enumerated('draft model', lambda: testing.check_policy(fixed))


def _enumerated(name: str, check) -> str:
  try:
    check()
  except AssertionError as error:
    return running.line(
        'device_exactness', check=name, passed=False, reason=str(error)
    )
  return running.line('device_exactness', check=name, passed=True)


def _greedy(num_texts: int) -> dict[str, Any]:
  """Compare greedy translations of both ways, token by token."""
  # Accelerators are given bfloat16 where no dtype is named.
  decoder = embedded.load_decoder(gamma=7, dtype='float32')
  texts = [text for text, _ in bulletins.read_pairs('test')[:num_texts]]
  outputs = [
      decode(texts).best
      for decode in (decoder.decode_plain, decoder.decode)
  ]
  identical = sum(x == y for x, y in zip(*outputs, strict=True))
  return {
      'texts': len(texts),
      'identical': identical,
      'passed': identical == len(texts),
  }


def main(arguments: Sequence[str] | None = None) -> int:
  """Run all checks; return 1 if one fails."""
  options = parse_arguments(arguments)
  lines = []

  def noted() -> Iterator[str]:
    for line in checks(options.texts):
      lines.append(line)
      yield line

  running.write(noted(), options.output)
  return int(not np.all([json.loads(line)['passed'] for line in lines]))


if __name__ == '__main__':
  running.run(main)

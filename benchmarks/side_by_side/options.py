# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The options, which each system's process gets too."""

import argparse
from collections.abc import Sequence
import pathlib

from benchmarks.side_by_side import cases
from speculative_t5x.research.simulation import t5_published

_NUM_RANDOM_INPUTS = 8
_NUM_TEXT_INPUTS = 64


def parse(
    given: Sequence[str] | None, description: str | None = None
) -> argparse.Namespace:
  """Parses the options and sets the default number of inputs."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.side_by_side',
      description=description,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  case = parser.add_mutually_exclusive_group(required=True)
  case.add_argument('--size', choices=t5_published.SIZES)
  case.add_argument('--oracle', type=pathlib.Path, metavar='FOLDER')
  case.add_argument('--multi30k', type=pathlib.Path, metavar='FOLDER')
  for name in ('target', 'draft', 'assistant'):
    parser.add_argument(
        f'--{name}', type=pathlib.Path, metavar='CHECKPOINT',
        help='for --multi30k',
    )  # fmt: skip
  parser.add_argument('--gamma', type=positive, default=4)
  parser.add_argument('--inputs', type=positive, help='default: 64, or 8')
  parser.add_argument('--repeats', type=positive, default=5)
  parsed = parser.parse_args(given)
  if parsed.multi30k and not (parsed.target and parsed.draft):
    parser.error('--multi30k needs --target and --draft')
  if not parsed.multi30k and (
      parsed.target or parsed.draft or parsed.assistant
  ):
    parser.error('--target, --draft and --assistant need --multi30k')
  if parsed.inputs is None:
    parsed.inputs = _NUM_RANDOM_INPUTS if parsed.size else _NUM_TEXT_INPUTS
  return parsed


def positive(text: str) -> int:
  """Parses an option that is a whole number and at least 1."""
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'must be at least 1, got {value}')
  return value


def read_case(options: argparse.Namespace) -> cases.Case:
  """Returns what all systems decode."""
  common = options.inputs, options.gamma
  if options.size:
    return cases.make_random(options.size, *common)
  if options.oracle:
    return cases.read_oracle(options.oracle, *common)
  checkpoints = options.target, options.draft, options.assistant
  return cases.read_multi30k(options.multi30k, *checkpoints, *common)

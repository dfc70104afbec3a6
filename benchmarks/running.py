# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What benchmarks share: options, processes, and lines of JSON."""

import argparse
from collections.abc import Callable, Iterable
from concurrent import futures
import dataclasses
import json
import multiprocessing
import pathlib
import sys
from typing import Any, NoReturn

from speculative_t5x.research.measurement import provenance


def run(main: Callable[[], int | None]) -> NoReturn:
  """Run the main function of a benchmark, and end the process."""
  sys.exit(main())


def parser(name: str, description: str | None) -> argparse.ArgumentParser:
  """Return a parser of a benchmark's options, of which none can be cut short.

  Args:
    name: The benchmark.
    description: The docstring of its module, which `--help` shows.
  """
  return argparse.ArgumentParser(
      prog=f'python -m benchmarks.{name}',
      description=description,
      formatter_class=argparse.RawDescriptionHelpFormatter,
      allow_abbrev=False,
  )


def positive(text: str) -> int:
  """Parse an option that is a whole number and at least 1."""
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'must be at least 1, got {value}')
  return value


def add_counts(parser: argparse.ArgumentParser, **defaults: int) -> None:
  """Add options that are whole numbers and at least 1, with their defaults."""
  for name, default in defaults.items():
    parser.add_argument(f'--{name}', type=positive, default=default)


def several(kind: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
  """Return a parser of values of a kind that are separated by commas."""
  return lambda text: tuple(map(kind, text.split(',')))


def process() -> futures.ProcessPoolExecutor:
  """Return a process of its own, which ends with the context.

  In one process the thread pools of several systems hinder each other, so a
  benchmark times each system in its own.
  """
  spawn = multiprocessing.get_context('spawn')
  return futures.ProcessPoolExecutor(max_workers=1, mp_context=spawn)


def line(benchmark: str, **values: Any) -> str:
  """Return a record as a line of JSON, with the machine that made it."""
  machine = {
      **provenance.origin(),
      'host': dataclasses.asdict(provenance.describe_host()),
      'device': dataclasses.asdict(provenance.describe_device()),
  }
  return json.dumps(
      {'benchmark': benchmark, **values, **machine}, allow_nan=False
  )


def write(lines: Iterable[str], output: pathlib.Path | None) -> None:
  """Print each line when it is measured, and keep all so far in a file.

  Args:
    lines: Without their ends.
    output: The file; None to print only.
  """
  written = []
  for each in lines:
    print(each, flush=True)
    written.append(each + '\n')
    if output is not None:  # after each, as all of them take long
      output.write_text(''.join(written))

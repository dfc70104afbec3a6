# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The process of one system, which decodes when it is asked to.

  python -m benchmarks.side_by_side.worker <system> <threads> \\
    <options of the benchmark>
"""

from collections.abc import Sequence
import importlib
import os
import sys
from typing import Any

from benchmarks import processes
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import options

SYSTEMS = {
    'speculative_t5x': 'ours',
    'ctranslate2': 'ctranslate2_ways',
    't5x': 't5x_ways',
    'transformers': 'hugging_face_ways',
}


class System:
  """The ways of one system to decode the inputs of a case."""

  def __init__(self, name: str, case: cases.Case):
    """Loads the case's weights into the system.

    Raises:
      ModuleNotFoundError: if the system is not installed.
    """
    module = importlib.import_module(f'benchmarks.side_by_side.{SYSTEMS[name]}')
    self._inputs = case.inputs
    self._ways = module.make_ways(case)
    self._versions = module.versions()
    self._decodes: dict[tuple[str, str], list[measuring.Decode]] = {}

  def describe(self) -> dict[str, Any]:
    """Returns the versions, and each way's places to start from."""
    return {
        'versions': self._versions,
        'ways': {
            name: [p for p in measuring.PLACES if getattr(way, p) is not None]
            for name, way in self._ways.items()
        },
    }

  def prepare(
      self, way: str, place: str, numbers: Sequence[int]
  ) -> list[list[int]]:
    """Decodes inputs without timing them, and returns their token ids."""
    start = getattr(self._ways[way], place)
    decodes = [start(self._inputs[number]) for number in numbers]
    self._decodes[way, place] = decodes
    return [[int(token) for token in decode()] for decode in decodes]

  def time(self, way: str, place: str) -> list[float]:
    """Decodes the inputs that were prepared; see `measuring.take_turn`."""
    return measuring.take_turn(self._decodes[way, place])


def use_cores(count: int) -> None:
  """Keeps this process to some cores, from which systems take their threads.

  JAX has no other setting. It is called before the first computation.
  """
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def main() -> None:
  name, threads, *given = sys.argv[1:]
  use_cores(int(threads))
  case = options.read_case(options.parse(given))
  try:
    system = System(name, case)
  except ModuleNotFoundError as error:
    message = str(error)
    processes.answer(lambda *_: {'missing': message})
    return
  processes.answer(lambda method, *rest: getattr(system, method)(*rest))


if __name__ == '__main__':
  main()

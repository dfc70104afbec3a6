# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the process of one system does: it decodes when it is asked to."""

from collections.abc import Sequence
import importlib
import os
from typing import Any

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring

SYSTEMS = {
    'speculative_t5x': 'ours',
    'ctranslate2': 'ctranslate2_ways',
    't5x': 't5x_ways',
    'transformers': 'hugging_face_ways',
}


_system: 'System | None' = None  # of this process


class System:
  """The ways of one system to decode the inputs of a case."""

  def __init__(self, name: str, case: cases.Case):
    """Load the case's weights into the system.

    Raises:
      ModuleNotFoundError: if the system is not installed.
    """
    module = importlib.import_module(f'benchmarks.side_by_side.{SYSTEMS[name]}')
    self._inputs = case.inputs
    self._ways = module.make_ways(case)
    self._versions = module.versions()
    self._decodes: dict[tuple[str, str], list[measuring.Decode]] = {}

  def describe(self) -> dict[str, Any]:
    """Return the versions, and each way's places to start from."""
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
    """Decode inputs without timing them, and return their token ids."""
    start = getattr(self._ways[way], place)
    decodes = [start(self._inputs[number]) for number in numbers]
    self._decodes[way, place] = decodes
    return [[int(token) for token in decode()] for decode in decodes]

  def time(self, way: str, place: str) -> list[float]:
    """Decode the inputs that were prepared; see `measuring.take_turn`."""
    return measuring.take_turn(self._decodes[way, place])


def use_cores(count: int) -> None:
  """Keep this process to some cores, from which systems take their threads.

  JAX has no other setting. It is called before the first computation.
  """
  os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def load(name: str, threads: int, given: Sequence[str]) -> dict[str, Any]:
  """Load a system into this process, and describe it.

  Args:
    name: Name of the system.
    threads: How many it may use.
    given: The command line of the benchmark.
  Raises:
    ModuleNotFoundError: if the system is not installed.
  """
  global _system
  use_cores(threads)
  _system = System(name, cases.read(cases.parse(given)))
  return _system.describe()


def ask(method: str, *args: Any) -> Any:
  """Call a method of the system that was loaded."""
  return getattr(_system, method)(*args)

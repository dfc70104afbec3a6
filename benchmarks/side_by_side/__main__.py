# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares greedy decoding by this package with other systems.

All systems decode the same inputs with the same weights, in float32 on the CPU,
at batch 1, with 64 input tokens and at most 64 output tokens. Each is in a
process of its own. They take turns in a random order per repeat, without
compilation. In its turn a system decodes several inputs, of which the first is
not timed: its weights are not yet in the caches. Each system is timed as a
whole (from token ids to token ids), and from the output of the encoders on.

Each way of decoding is first tried with one thread and with as many as there
are cores, as the fewer are often faster. The better number counts, also for
this package, and the record says which (`threads`).

  python -m benchmarks.side_by_side --oracle=<folder of t5x_oracle>
  python -m benchmarks.side_by_side --multi30k=<folder> --target=<checkpoint> \\
    --draft=<checkpoint> [--assistant=<checkpoint>]
  python -m benchmarks.side_by_side --size=base

The oracle is a pair that T5X trained on Multi30k, with inputs; it is not
published. With --multi30k, inputs are the first ones of its validation split
(configs/tasks/multi30k_ende.gin says which files); a draft without an encoder
shares the target's, and the assistant is the draft of the other systems, which
need one with an encoder. A size has random weights and no draft, and outputs
exactly 64 tokens.

The names of the systems: plain and speculative are this package. t5x is T5X's
own `temperature_sample`; plain_in_t5x and speculative_in_t5x are this package's
samplers in a T5X model. transformers is Hugging Face's `generate`, and
transformers_assisted the same with the draft as the assistant model.
ctranslate2 is CTranslate2's greedy search. The last three get inputs without
padding.

Prints a line of JSON with, per system: the time; its ratios to this package's
plain and speculative decoding, with 95 percent intervals; and the number of
inputs with other tokens than plain decoding by this package (near ties can
differ). An entry is null if a system cannot start from encoded inputs. Systems
that are not installed are listed. The supported versions are

  pip install torch==2.13.0 'transformers>=4.57,<5' ctranslate2==4.8.5

(transformers 5 ties the head of every T5 to its embedding) and T5X at cc342d4,
see requirements-t5x.txt. They need Linux, which tells a process its cores.
"""

import collections
from collections.abc import Mapping, Sequence
from concurrent import futures
import contextlib
import dataclasses
import functools
import sys
from typing import Any

import numpy as np

from benchmarks import running
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import worker
from speculative_t5x.decoder import batching
from speculative_t5x.research.measurement import provenance

REFERENCES = ('plain', 'speculative')

_TRIALS = 2  # of each number of threads, the better of which counts

Start = tuple[str, str]  # a way, and the place that it starts from
Timings = Mapping[str, Mapping[str, measuring.Timings]]


@dataclasses.dataclass(frozen=True)
class Tried:
  """What a system is, and how fast its ways are by the number of threads.

  Attributes:
    name: Name of the system.
    versions: Versions of its packages.
    ways: The places, by name, that they can start from.
    seconds: Seconds by way and number of threads.
  """

  name: str
  versions: Mapping[str, str]
  ways: Mapping[str, list[str]]
  seconds: Mapping[str, Mapping[int, float]]

  def threads(self, way: str) -> int:
    """Return the number of threads with which a way is fastest."""
    return min(self.seconds[way], key=self.seconds[way].get)


def try_threads(
    name: str, numbers: Sequence[int], arguments: Sequence[str]
) -> Tried | str:
  """Decode a round of inputs with one thread, and with one per core.

  Args:
    name: Name of the system.
    numbers: Numbers of the inputs.
    arguments: Arguments of the command line, for the processes.
  Returns:
    The times; why there are none if the system is not installed.
  """
  seconds = collections.defaultdict(dict)
  for threads in sorted({1, provenance.describe_host().cores}):
    with running.process() as process:
      try:
        load = process.submit(worker.load, name, threads, arguments)
        described = load.result()
      except ModuleNotFoundError as error:
        return str(error)
      for way in described['ways']:
        ask(process, 'prepare', way, measuring.PLACES[0], numbers)
        turn = functools.partial(ask, process, 'time', way, measuring.PLACES[0])
        seconds[way][threads] = min(sum(turn()) for _ in range(_TRIALS))
        print(
            f'{way}, threads: {threads}, {seconds[way][threads]:.3f} s',
            file=sys.stderr,
        )
  return Tried(name, described['versions'], described['ways'], seconds)


def ask(process: futures.Executor, *request: Any) -> Any:
  """Return what the system in a process answers."""
  return process.submit(worker.ask, *request).result()


def time_ways(
    found: Mapping[Start, futures.Executor], num_inputs: int, repeats: int
) -> Timings:
  """Time all ways on all inputs, with and without the encoders.

  Args:
    found: Processes that decode, by way and place to start from.
    num_inputs: How many inputs are decoded.
    repeats: How often each input is timed.
  Returns:
    The timings by place and way.
  """
  rng = np.random.default_rng(0)
  timings = {
      place: {way: measuring.Timings() for way, p in found if p == place}
      for place in measuring.PLACES
  }
  for numbers in batching.parts(range(num_inputs), measuring.ROUND_INPUTS):
    for place, timed in timings.items():
      turns = {}
      for way, each in timed.items():
        of_way = functools.partial(ask, found[way, place])
        each.written += map(
            measuring.until_end, of_way('prepare', way, place, numbers)
        )
        turns[way] = functools.partial(of_way, 'time', way, place)
      measuring.time_round(turns, timed, repeats, rng)
    print(f'{numbers[-1] + 1} of {num_inputs} inputs', file=sys.stderr)
  return timings


def run(
    num_inputs: int, repeats: int, arguments: list[str]
) -> dict[str, Any]:
  """Measure a case and return the systems' part of the line of JSON.

  Args:
    num_inputs: How many inputs are decoded.
    repeats: How often each input is timed.
    arguments: Arguments of the command line, for the processes.
  """
  first = range(min(num_inputs, measuring.ROUND_INPUTS))
  tried = {name: try_threads(name, first, arguments) for name in worker.SYSTEMS}
  systems = [each for each in tried.values() if isinstance(each, Tried)]
  with contextlib.ExitStack() as stack:
    started = {
        (each.name, threads): stack.enter_context(running.process())
        for each in systems
        for threads in sorted(set(map(each.threads, each.ways)))
    }
    for (name, threads), process in started.items():
      process.submit(worker.load, name, threads, arguments).result()
    found = {
        (way, place): started[each.name, each.threads(way)]
        for each in systems
        for way, places in each.ways.items()
        for place in places
    }
    timings = time_ways(found, num_inputs, repeats)
  names = [way for each in systems for way in each.ways]
  return {
      'versions': {k: v for each in systems for k, v in each.versions.items()},
      'not_installed': {k: v for k, v in tried.items() if isinstance(v, str)},
      'round_inputs': measuring.ROUND_INPUTS,
      'threads': {
          way: {'used': each.threads(way), 'trial_s': each.seconds[way]}
          for each in systems
          for way in each.ways
      },
      'outputs': measuring.compare_tokens([*timings.values()], REFERENCES[0]),
      **{
          place: dict.fromkeys(names) | measuring.summarize(timed, REFERENCES)
          for place, timed in timings.items()
      },
  }


def main(given: list[str] | None = None) -> None:
  given = sys.argv[1:] if given is None else given
  options = cases.parse(given, __doc__)
  case = cases.read(options)  # fails before processes are started
  line = running.line(
      'side_by_side',
      case=case.name,
      num_inputs=len(case.inputs),
      dtype='float32',
      batch_size=1,
      gamma=case.gamma if case.draft else None,
      temperature=0.0,
      inputs_length=cases.LENGTH,
      targets_length=cases.LENGTH,
      repeats=options.repeats,
      **run(len(case.inputs), options.repeats, given),
  )
  print(line)


if __name__ == '__main__':
  running.run(main)

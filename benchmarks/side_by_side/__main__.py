# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares greedy decoding by this package with other systems.

All systems decode the same inputs with the same weights, in float32 on the CPU,
at batch 1, with 64 input tokens and at most 64 output tokens. Each is in a
process of its own. They are timed interleaved for each input, in a random order
per repeat, without compilation. Each is timed as a whole (from token ids to
token ids), and from the output of the encoders on.

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
see requirements-t5x.txt.
"""

from collections.abc import Mapping
import contextlib
import dataclasses
import functools
import json
import sys
from typing import Any

import numpy as np

from benchmarks import processes
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import options as options_lib
from benchmarks.side_by_side import worker
from speculative_t5x.measurement import provenance

REFERENCES = ('plain', 'speculative')

Timings = Mapping[str, Mapping[str, measuring.Timings]]


def time_ways(
    systems: Mapping[str, processes.Process],
    ways: Mapping[str, Mapping[str, list[str]]],
    num_inputs: int,
    repeats: int,
) -> Timings:
  """Times all ways on all inputs, with and without the encoders.

  Args:
    systems: processes by name.
    ways: of each system, by name, the places that they can start from.
    num_inputs: how many inputs are decoded.
    repeats: how often each input is timed.
  Returns:
    The timings by place and way.
  """
  rng = np.random.default_rng(0)
  found = {
      (way, place): systems[name]
      for name, of_system in ways.items()
      for way, places in of_system.items()
      for place in places
  }
  timings = {
      place: {way: measuring.Timings() for way, p in found if p == place}
      for place in measuring.PLACES
  }
  for number in range(num_inputs):
    for place, timed in timings.items():
      interleaved = {
          way: measuring.Interleaved(
              functools.partial(
                  found[way, place].ask, 'prepare', way, place, number
              ),
              functools.partial(found[way, place].ask, 'time', way, place),
          )
          for way in timed
      }
      measuring.time_interleaved(interleaved, timed, repeats, rng)
    print(f'{number + 1} of {num_inputs} inputs', file=sys.stderr)
  return timings


def run(
    num_inputs: int, repeats: int, arguments: list[str]
) -> dict[str, Any]:
  """Measures a case and returns the systems' part of the line of JSON.

  Args:
    num_inputs: how many inputs are decoded.
    repeats: how often each input is timed.
    arguments: of the command line, for the processes.
  """
  with contextlib.ExitStack() as stack:
    systems = {
        name: stack.enter_context(
            processes.Process(name, worker.__name__, name, *arguments)
        )
        for name in worker.SYSTEMS
    }
    described = {name: each.ask('describe') for name, each in systems.items()}
    missing = {
        name: found['missing']
        for name, found in described.items()
        if 'missing' in found
    }
    ways = {
        name: found['ways']
        for name, found in described.items()
        if name not in missing
    }
    timings = time_ways(systems, ways, num_inputs, repeats)
  names = [way for of_system in ways.values() for way in of_system]
  return {
      'versions': {
          package: version
          for name in ways
          for package, version in described[name]['versions'].items()
      },
      'not_installed': missing,
      'outputs': measuring.compare_tokens([*timings.values()], REFERENCES[0]),
      **{
          place: dict.fromkeys(names) | measuring.summarize(timed, REFERENCES)
          for place, timed in timings.items()
      },
  }


def main(given: list[str] | None = None) -> None:
  given = sys.argv[1:] if given is None else given
  options = options_lib.parse(given, __doc__)
  case = options_lib.read_case(options)  # fails before processes are started
  print(
      json.dumps(
          {
              'benchmark': 'side_by_side',
              'case': case.name,
              'num_inputs': len(case.inputs),
              'dtype': 'float32',
              'batch_size': 1,
              'gamma': case.gamma if case.draft else None,
              'temperature': 0.0,
              'inputs_length': cases.LENGTH,
              'targets_length': cases.LENGTH,
              'repeats': options.repeats,
              **run(len(case.inputs), options.repeats, given),
              'host': dataclasses.asdict(provenance.describe_host()),
              'device': dataclasses.asdict(provenance.describe_device()),
          }
      )
  )


if __name__ == '__main__':
  main()

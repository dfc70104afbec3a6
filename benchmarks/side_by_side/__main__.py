# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares greedy decoding by this package with other systems.

All systems decode in one process, with the same weights and inputs, in float32
on the CPU, at batch 1, with 64 input tokens and at most 64 output tokens. They
are timed interleaved for each input, in a random order per repeat, without
compilation. Each is timed as a whole (from token ids to token ids), and from
the output of the encoders on.

  python -m benchmarks.side_by_side --oracle=<folder of t5x_oracle>
  python -m benchmarks.side_by_side --size=base

The oracle is a pair that T5X trained on Multi30k, with inputs; it is not
published. A size has random weights and no draft, and outputs exactly 64
tokens.

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

import argparse
import dataclasses
import importlib
import json
import pathlib
import sys
import types
from typing import Any

import numpy as np

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from speculative_t5x.measurement import provenance
from speculative_t5x.networks import t5_published

# In the order of imports. CTranslate2 is imported before torch: each has its
# own OpenMP library, and CTranslate2 took over four times as long when torch's
# was loaded first. OpenMP's settings are not changed: without active waiting
# (OMP_WAIT_POLICY=PASSIVE) CTranslate2 took over three times as long.
SYSTEMS = {
    'speculative_t5x': 'ours',
    'ctranslate2': 'ctranslate2_ways',
    't5x': 't5x_ways',
    'transformers': 'hugging_face_ways',
}
REFERENCES = ('plain', 'speculative')
_NUM_RANDOM_INPUTS = 8
_NUM_ORACLE_INPUTS = 64


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
  """Parses the options and sets the default number of inputs."""
  parser = argparse.ArgumentParser(
      prog='python -m benchmarks.side_by_side',
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  case = parser.add_mutually_exclusive_group(required=True)
  case.add_argument('--size', choices=t5_published.SIZES)
  case.add_argument('--oracle', type=pathlib.Path, metavar='FOLDER')
  parser.add_argument('--gamma', type=positive, default=4)
  parser.add_argument('--inputs', type=positive, help='default: all, or 8')
  parser.add_argument('--repeats', type=positive, default=5)
  parsed = parser.parse_args(arguments)
  if parsed.inputs is None:
    parsed.inputs = _NUM_ORACLE_INPUTS if parsed.oracle else _NUM_RANDOM_INPUTS
  return parsed


def positive(text: str) -> int:
  """Parses an option that is a whole number and at least 1."""
  value = int(text)
  if value < 1:
    raise argparse.ArgumentTypeError(f'must be at least 1, got {value}')
  return value


def import_systems() -> tuple[dict[str, types.ModuleType], dict[str, str]]:
  """Returns the modules of installed systems, and the errors of the others."""
  found, missing = {}, {}
  for name, module in SYSTEMS.items():
    try:
      found[name] = importlib.import_module(f'benchmarks.side_by_side.{module}')
    except ModuleNotFoundError as error:
      missing[name] = str(error)
  return found, missing


def time_ways(
    ways: dict[str, measuring.Way], inputs: np.ndarray, repeats: int
) -> dict[str, dict[str, measuring.Timings]]:
  """Times all systems on all inputs, with and without the encoders."""
  rng = np.random.default_rng(0)
  starts = {
      place: {
          name: getattr(way, place)
          for name, way in ways.items()
          if getattr(way, place)
      }
      for place in ('whole', 'from_encoded')
  }
  timings = {
      place: {name: measuring.Timings() for name in names}
      for place, names in starts.items()
  }
  for number, tokens in enumerate(inputs):
    for place, names in starts.items():
      decodes = {name: start(tokens) for name, start in names.items()}
      measuring.take_turns(decodes, timings[place], repeats, rng)
    print(f'{number + 1} of {len(inputs)} inputs', file=sys.stderr)
  return timings


def run(case: cases.Case, repeats: int) -> dict[str, Any]:
  """Measures a case and returns the systems' part of the line of JSON."""
  systems, not_installed = import_systems()
  ways, versions = {}, {}
  for system in systems.values():
    ways |= system.make_ways(case)
    versions |= system.versions()
  timings = time_ways(ways, case.inputs, repeats)
  summaries = {
      place: dict.fromkeys(ways) | measuring.summarize(timed, REFERENCES)
      for place, timed in timings.items()
  }
  outputs = measuring.compare_tokens([*timings.values()], REFERENCES[0])
  return {
      'versions': versions,
      'not_installed': not_installed,
      'outputs': outputs,
      **summaries,
  }


def main():
  arguments = parse_arguments()
  options = arguments.inputs, arguments.gamma
  if arguments.oracle:
    case = cases.read_oracle(arguments.oracle, *options)
  else:
    case = cases.make_random(arguments.size, *options)
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
              'repeats': arguments.repeats,
              **run(case, arguments.repeats),
              'host': dataclasses.asdict(provenance.describe_host()),
              'device': dataclasses.asdict(provenance.describe_device()),
          }
      )
  )


if __name__ == '__main__':
  main()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles a decoder alone for a TPU that is not there, and counts its cycles.

  python -m benchmarks.tpu_network --config=<folder>/config.json \\
    [--topology=v4:1x1x1]

The file is a Hugging Face config.json; weights are not needed. Prints a line of
JSON, at batch 1 on one chip in bfloat16: `target` has a step, with the keys of
the record of `speculative-t5x preflight`, which is for T5.
"""

import argparse
from collections.abc import Iterator, Sequence
import dataclasses
import json
import pathlib

from etils import epath

from benchmarks import running
from speculative_t5x.loading import families
from speculative_t5x.research.ahead_of_time import bench as bench_lib
from speculative_t5x.research.ahead_of_time import topology


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('tpu_network', __doc__)
  parser.add_argument('--config', type=epath.Path, required=True)
  parser.add_argument('--topology', default='v4:1x1x1')
  running.add_counts(parser, inputs_length=512, targets_length=128)
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(given)


def describe(options: argparse.Namespace) -> Iterator[str]:
  """Yield the line of a network."""
  given = json.loads(options.config.read_text())
  kind = given['model_type']
  family = families.of_model_type(options.config, kind)
  complete = families.complete(
      options.config, given, family.FIELDS[kind], family.NAME
  )
  config = family.of_config(options.config, complete)
  config = dataclasses.replace(config, dtype='bfloat16')
  bench = bench_lib.Bench(
      topology.describe(options.topology).with_mesh(None),
      bench_lib.Sizes(
          inputs_length=options.inputs_length,
          targets_length=options.targets_length,
      ),
      family.NAME,
      config,
  )
  yield running.line(
      'tpu_network',
      network=dataclasses.asdict(config),
      topology=options.topology,
      batch_size=1,
      inputs_length=options.inputs_length,
      targets_length=options.targets_length,
      target=bench.describe_target(),
  )


def main(given: Sequence[str] | None = None) -> None:
  options = parse(given)
  running.write(describe(options), options.output)


if __name__ == '__main__':
  running.run(main)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles a decoder alone for a TPU that is not there, and counts its cycles.

  python -m benchmarks.tpu_network --config=<folder>/config.json \\
    [--topology=v4:1x1x1] [--gamma=7]

The file is a Hugging Face config.json; weights are not needed. Prints a line of
JSON: of a step in both forms and of the verification of gamma draft tokens, at
batch 1 on one chip in bfloat16, the time by the compiler's estimate of cycles
and the time in which the chip reads what each must read. For T5 see
`speculative-t5x tpu-preflight`, whose record explains the keys.
"""

import argparse
from collections.abc import Iterator, Sequence
import dataclasses
import json
import pathlib
from typing import Any

from etils import epath

from benchmarks import running
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import families
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import roofline
from speculative_t5x.research.tpu_aot import topology
from speculative_t5x.speculation import state as state_lib


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('tpu_network', __doc__)
  parser.add_argument('--config', type=epath.Path, required=True)
  parser.add_argument('--topology', default='v4:1x1x1')
  running.add_counts(parser, gamma=7, inputs_length=512, targets_length=128)
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
  config = family.of_config(options.config, complete, 'bfloat16')
  place = topology.describe(options.topology).with_mesh(None)
  batch = abstract_pair.make_batch(place, 1, options.inputs_length)

  def compiled(make: programs.Compile, min_block: int | None, block: int):
    model = abstract_pair.make_model(place, config, min_block=min_block)
    decoder = token_decoder.TokenDecoder(
        model, model, gamma=options.gamma, max_tokens=options.targets_length
    )
    call = roofline.count(
        model,
        rows=1,
        block=block,
        slots=state_lib.cache_slots(options.targets_length, block - 1),
        inputs_length=options.inputs_length,
    )
    return _times(place, programs.compile_decoding(make, decoder, batch), call)

  plain = token_decoder.TokenDecoder.compile_plain
  yield running.line(
      'tpu_network',
      network=dataclasses.asdict(config),
      topology=options.topology,
      batch_size=1,
      gamma=options.gamma,
      inputs_length=options.inputs_length,
      targets_length=options.targets_length,
      one_row=compiled(plain, 1, 1),
      padded=compiled(plain, None, 1),
      verify=compiled(programs.compile_verify, None, options.gamma + 1),
  )


def _times(
    place: topology.Topology, program: programs.Program, call: roofline.Call
) -> dict[str, Any]:
  seconds = place.chip.seconds(program.step.cycles)
  reading = call.seconds(place.chip)
  return {
      'step_s': seconds,
      'reading_s': reading,
      'over_reading': seconds / reading,
      **dataclasses.asdict(program),
  }


def main(given: Sequence[str] | None = None) -> None:
  options = parse(given)
  running.write(describe(options), options.output)


if __name__ == '__main__':
  running.run(main)

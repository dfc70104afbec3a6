# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of measuring a pair on a mesh, and of the limits."""

import math

import pytest

from speculative_t5x.networks import sharding
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import walltimes
from tests import compilation
from tests.mesh import pairs


def _measure(shape):
  decoder = pairs.decoder(shape)
  with compilation.unchecked_types():  # it lowers programs
    found = walltimes.measure(
        part_programs.PartPrograms(decoder),
        [decoder.place(pairs.request())],
        run_record.RunRecord(gamma=decoder.gamma, repeats=1, rounds=1),
        'a pair',
    )
  return found.record


def test_no_read_floor_on_several_devices():
  spread, alone = _measure((4, 2)), _measure(None)
  floors = {'floor_ms', 'floor_ratio'}
  # Times decide whether there is a decode_speedup.
  unknown, expected = (
      {key for key, value in vars(record).items() if value is None}
      - {'decode_speedup'}
      for record in (spread, alone)
  )
  assert unknown == expected | floors
  assert all(getattr(alone, key) > 0 for key in floors)
  assert math.isclose(
      spread.tokens_per_target_call, alone.tokens_per_target_call
  )


@pytest.mark.parametrize('is_spread', [False, True])
def test_each_encoder_is_sharded_by_its_own_rules(is_spread):
  """A replicated draft model is encoded without communication."""
  rules = sharding.MODEL_PARALLEL if is_spread else sharding.REPLICATED
  decoder = pairs.decoder((4, 2), rules=rules)
  programs = part_programs.PartPrograms(decoder).bind_encoders(
      decoder.place(pairs.request())
  )

  def exchanges(name):
    program = programs[name]
    with decoder.scope(), compilation.unchecked_types():
      compiled = program.func.lower(*program.args).compile()
    return 'all-reduce' in compiled.as_text()

  assert exchanges('encoder_target')
  assert exchanges('encoder_draft') == is_spread

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of measuring a pair on a mesh."""

import pytest

from speculative_t5x.networks import sharding
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import walltimes
from tests import compilation
from tests.mesh import pairs


def test_no_read_floor_on_several_devices():
  decoder = pairs.decoder((4, 2))
  with compilation.unchecked_types():  # it lowers programs
    record, *_ = walltimes.measure(
        part_programs.PartPrograms(decoder),
        [decoder.place(pairs.request())],
        run_record.RunRecord(gamma=decoder.gamma, repeats=1, rounds=1),
        'a pair',
    )
  assert record.floor_ms is record.floor_ratio is None
  assert record.tokens_per_target_call > 1


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

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of lower bounds of times, against counts of bytes and operations."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.networks import sharding
from speculative_t5x.research.measurement import operations
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.paper import published
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.research.tpu_aot import roofline
from speculative_t5x.research.tpu_aot import topology
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import theory
from tests import tiny

LENGTH, INPUTS_LENGTH, GAMMA = 20, 12, 3
# So wide that norms and biases are negligible.
CONFIG = tiny.config(
    vocab_size=4096, emb_dim=256, num_heads=4, head_dim=64, mlp_dim=512,
    dtype='bfloat16',
)  # fmt: skip


def _place(mesh=None) -> abstract_pair.Place:
  devices = jax.devices()[:1]
  chip = chips.CHIPS['v4']
  return abstract_pair.Place(topology.Topology('v4', chip, devices), mesh)


def _model(mesh=None, rules=sharding.MODEL_PARALLEL, **changes):
  config = dataclasses.replace(CONFIG, **changes)
  return abstract_pair.make_model(config, _place(mesh), rules, min_block=1)


def _mesh(data: int, model: int) -> jax.sharding.AbstractMesh:
  return jax.sharding.AbstractMesh((data, model), ('data', 'model'))


def _decoder(model) -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(
      model, draft_model_source.from_model(model), gamma=GAMMA, length=LENGTH
  )


def _count(
    model, rows=1, block=1, gamma=0, inputs_length=INPUTS_LENGTH
) -> roofline.Call:
  return roofline.count(
      model,
      rows=rows,
      block=block,
      slots=state_lib.cache_slots(LENGTH, gamma),
      inputs_length=inputs_length,
  )


class TestCount:

  @pytest.mark.parametrize('rows', [1, 3])
  @pytest.mark.parametrize(
      'changes',
      [{}, {'dtype': 'float32'}, {'logits_via_embedding': True},
       {'num_decoder_layers': 3}],
  )  # fmt: skip
  def test_bytes_equal_the_read_floor(self, changes, rows):
    model = _model(**changes)
    call = _count(model, rows)
    assert call.weight_bytes + call.cache_bytes == read_floor.step_bytes(
        _decoder(model), rows, INPUTS_LENGTH
    )

  def test_bytes_per_row(self):
    """Weights are read once for all rows and for all positions of a block."""
    one, three = _count(_model()), _count(_model(), rows=3, block=4)
    assert three.weight_bytes == one.weight_bytes
    assert three.cache_bytes == 3 * one.cache_bytes
    kept = 2 * 2 * 2 * 256 * (LENGTH + 1 + INPUTS_LENGTH)
    assert one.cache_bytes == kept + INPUTS_LENGTH  # which inputs are tokens

  @pytest.mark.parametrize('rows', [1, 3])
  def test_operations_equal_the_programs(self, rows):
    model, inputs_length = _model(), 512  # so long that attention counts
    request = abstract_pair.make_request(_place(), rows, inputs_length)
    tokens = jnp.ones((rows, inputs_length), jnp.int32)
    counted = operations.count(
        _decoder(model), request.replace(inputs=tokens)
    )
    for block, theirs in ((1, counted.target), (GAMMA + 1, counted.verify)):
      ours = _count(model, rows, block, GAMMA, inputs_length)
      assert ours.operations == pytest.approx(theirs, rel=0.02)

  def test_four_devices_have_a_quarter_each(self):
    """Everything is partitioned except for norms and biases."""
    whole, part = _count(_model()), _count(_model(_mesh(1, 4)))
    assert part.cache_bytes == pytest.approx(whole.cache_bytes / 4, rel=0.01)
    whole_params = 2 * 7 * 256  # norms, two bytes per number
    divided = (whole.weight_bytes - whole_params) / 4
    assert part.weight_bytes == divided + whole_params
    assert part.operations == pytest.approx(whole.operations / 4, rel=0.01)

  def test_data_axis_does_not_partition(self):
    """The rows are already those of one device."""
    assert _count(_model(_mesh(4, 1)), rows=2) == _count(_model(), rows=2)


class TestSpeedup:

  @pytest.mark.parametrize('row', published.TABLES_2_AND_4)
  def test_is_theorem_3_8(self, row):
    """Scoring gamma + 1 tokens takes the time of one."""
    found = roofline.speedup(row, plain_s=2.0, draft_s=0.5, verify_s=2.0)
    expected = theory.walltime_factor(row.alpha, row.gamma, 0.25)
    assert found == pytest.approx(expected)
    assert isinstance(found, float)

  def test_cost_of_verification(self):
    row = published.TABLES_2_AND_4[0]
    tokens = theory.expected_tokens(row.alpha, row.gamma)
    found = roofline.speedup(row, plain_s=10.0, draft_s=1.0, verify_s=13.0)
    assert found == pytest.approx(tokens * 10 / (7 + 13))

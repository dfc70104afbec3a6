# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of a tiny pair compiled for a TPU v4, against counts by hand.

The encoders are not analysed.
"""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import reading
from tests.research.tpu_aot import libtpu

GAMMA, LENGTH, INPUTS_LENGTH = 3, 32, 32  # two widths of the encoder
SLOTS = LENGTH + GAMMA + 1
# All widths differ, so that sizes identify arrays.
TARGET = t5.T5Config(
    vocab_size=3072, emb_dim=512, num_heads=8, head_dim=64,
    num_encoder_layers=1, num_decoder_layers=2, mlp_dim=640,
    dtype='bfloat16',
)  # fmt: skip
DRAFT = dataclasses.replace(
    TARGET, emb_dim=256, num_heads=4, num_decoder_layers=1, mlp_dim=384
)


def _bytes_per_position(config: t5.T5Config) -> int:
  """Returns the bytes of all keys and values of a position."""
  joined = config.num_heads * config.head_dim
  return 2 * 2 * joined * config.num_decoder_layers


def _compile(
    loop, topology='v4:1x1x1', batch=1, gamma=GAMMA, min_block=None,
    draft_rules=sharding.MODEL_PARALLEL,
) -> programs.Program:  # fmt: skip
  place = abstract_pair.make_place(libtpu.describe(topology), None)
  make = abstract_pair.make_model
  decoder = token_decoder.TokenDecoder(
      make(TARGET, place, min_block=min_block),
      draft_model_source.from_model(make(DRAFT, place, draft_rules, min_block)),
      gamma=gamma,
      length=LENGTH,
  )
  request = abstract_pair.make_request(place, batch, INPUTS_LENGTH)
  return programs.compile_decoding(loop, decoder, request)


@pytest.fixture(scope='module')
def one_row():
  return _compile(programs.Loop.PLAIN, min_block=1)


@pytest.fixture(scope='module')
def padded():
  return _compile(programs.Loop.PLAIN)


@pytest.fixture(scope='module')
def verify():
  return _compile(programs.Loop.VERIFY)


@pytest.fixture(scope='module')
def loop():
  return _compile(programs.Loop.SPECULATIVE)


@pytest.fixture(scope='module')
def rows_loop():
  return _compile(programs.Loop.SPECULATIVE, batch=8)


@pytest.fixture(scope='module')
def mesh_loop():
  """Compiles the loop on a mesh with a partitioned draft model."""
  return _compile(programs.Loop.SPECULATIVE, topology='v4:2x2x1')


@libtpu.needed
class TestOneDevice:

  def test_one_position_is_multiplied_by_vectors(self, one_row):
    # All products except those with the head and the cache: 6 per layer.
    assert one_row.step.vector_products >= 6 * TARGET.num_decoder_layers

  def test_four_positions_are_multiplied_by_matrices(self, one_row, padded):
    assert padded.step.vector_products == 0
    assert padded.step.cycles < 0.7 * one_row.step.cycles

  def test_padding_is_not_written(self, one_row, padded):
    position = _bytes_per_position(TARGET)
    assert one_row.step.cache_bytes_written == position
    assert padded.step.cache_bytes_written == position

  def test_verification(self, padded, verify, loop):
    written = (GAMMA + 1) * _bytes_per_position(TARGET)
    assert verify.step.cache_bytes_written == written
    assert verify.step.vector_products == 0
    assert padded.step.cycles < verify.step.cycles < loop.step.cycles

  def test_loop_writes_positions_in_place(self, loop):
    """The target writes gamma + 1, the draft model 2 and then 1 per call."""
    drafted = 2 + (GAMMA - 1)
    assert loop.step.cache_bytes_written == (
        (GAMMA + 1) * _bytes_per_position(TARGET)
        + drafted * _bytes_per_position(DRAFT)
    )
    assert loop.step.cache_bytes_remade == 0

  def test_loop_copies_nothing_else(self, loop):
    step = loop.step
    assert step.host_transfers == 0
    assert step.weight_bytes_copied == 0
    assert step.scatter_trips == 0
    assert step.vector_products == 0
    assert step.float32_products == 0
    collectives = step.all_reduces + step.all_gathers + step.other_collectives
    assert collectives == 0

  def test_later_draft_token(self, loop, verify):
    """The inner loop runs gamma - 1 times, after the first draft token."""
    later = loop.draft_step
    assert later.cache_bytes_written == _bytes_per_position(DRAFT)
    assert 0 < (GAMMA - 1) * later.cycles < loop.step.cycles
    assert verify.draft_step is None


@libtpu.needed
class TestSeveralRows:

  def test_no_scatter(self, rows_loop):
    assert rows_loop.step.scatter_trips == 0
    assert rows_loop.step.host_transfers == 0
    assert rows_loop.step.weight_bytes_copied == 0

  def test_every_call_rewrites_the_caches(self, rows_loop):
    remade = (
        8
        * SLOTS
        * (_bytes_per_position(TARGET) + GAMMA * _bytes_per_position(DRAFT))
    )
    assert rows_loop.step.cache_bytes_remade == remade
    assert rows_loop.step.cache_bytes_written == 0


@libtpu.needed
class TestMesh:

  def test_parameters_are_partitioned(self):
    one_row = _compile(programs.Loop.PLAIN, topology='v4:2x2x1', min_block=1)
    assert one_row.step.vector_products > 0

  def test_all_reduces(self, mesh_loop):
    """Each call of either model has 3 per layer and one for the embedding."""
    target = 3 * TARGET.num_decoder_layers + 1
    draft = 3 * DRAFT.num_decoder_layers + 1
    assert mesh_loop.step.all_reduces == target + GAMMA * draft
    assert mesh_loop.draft_step.all_reduces == draft

  def test_logits_are_gathered_once_per_call(self, mesh_loop):
    assert mesh_loop.step.all_gathers == 1 + GAMMA
    assert mesh_loop.draft_step.all_gathers == 1

  def test_each_device_writes_its_heads(self, mesh_loop):
    written = (GAMMA + 1) * sum(map(_bytes_per_position, (TARGET, DRAFT)))
    assert mesh_loop.step.cache_bytes_written == written / 4
    assert mesh_loop.step.cache_bytes_remade == 0

  def test_replicated_draft_model_has_no_collectives(self):
    loop = _compile(
        programs.Loop.SPECULATIVE,
        topology='v4:2x2x1',
        draft_rules=sharding.REPLICATED,
    )
    assert loop.step.all_reduces == 3 * TARGET.num_decoder_layers + 1
    assert loop.step.all_gathers == 1
    assert loop.step.other_collectives == 0
    assert loop.draft_step.all_reduces == loop.draft_step.all_gathers == 0


class TestCompileLoop:

  SHAPES = reading.make_shapes([], [], vocab_size=3)

  @libtpu.needed
  def test_program_that_does_not_fit(self):
    place = abstract_pair.make_place(libtpu.describe('v4:1x1x1'), None)
    large = jax.ShapeDtypeStruct(
        (2**34,), jnp.float32, sharding=place.replicated()
    )
    make = jax.jit(lambda x: x + 1).lower(large).compile
    with pytest.raises(programs.DoesNotFitError) as error:
      programs.compile_loop(make, self.SHAPES)
    message = str(error.value)
    assert 'memory' in message and '\n' not in message

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a tiny pair becomes on a TPU v4, counted by hand beside it.

The encoders, which are not read, have no layers.
"""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5
from speculative_t5x.tpu_aot import abstract_pair
from speculative_t5x.tpu_aot import programs
from speculative_t5x.tpu_aot import reading
from tests.tpu_aot import libtpu

GAMMA, LENGTH, INPUTS_LENGTH = 3, 32, 16
SLOTS = LENGTH + GAMMA + 1
# No width is another's, so that arrays are known by their sizes.
TARGET = t5.T5Config(
    vocab_size=3072, emb_dim=512, num_heads=8, head_dim=64,
    num_encoder_layers=0, num_decoder_layers=2, mlp_dim=640,
    dtype='bfloat16',
)  # fmt: skip
DRAFT = dataclasses.replace(
    TARGET, emb_dim=256, num_heads=4, num_decoder_layers=1, mlp_dim=384
)


def _bytes_a_position(config: t5.T5Config) -> int:
  """A key and a value of every head, in every layer, in bfloat16."""
  joined = config.num_heads * config.head_dim
  return 2 * 2 * joined * config.num_decoder_layers


def _compile(
    compile_program, topology='v4:1x1x1', batch=1, gamma=GAMMA, min_block=None,
    draft_rules=sharding.MODEL_PARALLEL,
) -> programs.Program:  # fmt: skip
  place = abstract_pair.make_place(libtpu.describe(topology), None)
  make = abstract_pair.make_model
  decoder = token_decoder.TokenDecoder(
      make(TARGET, place, min_block=min_block),
      draft_model.from_model(make(DRAFT, place, draft_rules, min_block)),
      gamma=gamma,
      length=LENGTH,
  )
  request = abstract_pair.make_request(place, batch, INPUTS_LENGTH)
  return compile_program(decoder, request)


@pytest.fixture(scope='module')
def one_row():
  return _compile(programs.compile_plain, min_block=1)


@pytest.fixture(scope='module')
def padded():
  return _compile(programs.compile_plain)


@pytest.fixture(scope='module')
def verify():
  return _compile(programs.compile_verify)


@pytest.fixture(scope='module')
def loop():
  return _compile(programs.compile_speculative)


@pytest.fixture(scope='module')
def rows_loop():
  return _compile(programs.compile_speculative, batch=8)


@pytest.fixture(scope='module')
def mesh_loop():
  """The draft is divided too."""
  return _compile(programs.compile_speculative, topology='v4:2x2x1')


@libtpu.needed
class TestOneDevice:

  def test_one_position_is_multiplied_by_vectors(self, one_row):
    # All products but those with the head and the cache: 6 a layer.
    assert one_row.step.vector_products >= 6 * TARGET.num_decoder_layers

  def test_four_are_multiplied_by_matrices(self, one_row, padded):
    assert padded.step.vector_products == 0
    assert padded.step.cycles < 0.7 * one_row.step.cycles

  def test_what_pads_is_not_written(self, one_row, padded):
    position = _bytes_a_position(TARGET)
    assert one_row.step.cache_bytes_written == position
    assert padded.step.cache_bytes_written == position

  def test_verifying(self, padded, verify, loop):
    written = (GAMMA + 1) * _bytes_a_position(TARGET)
    assert verify.step.cache_bytes_written == written
    assert verify.step.vector_products == 0
    assert padded.step.cycles < verify.step.cycles < loop.step.cycles

  def test_the_loop_writes_positions_in_place(self, loop):
    """Of the target gamma + 1; of the draft 2, then one a later guess."""
    drafted = 2 + (GAMMA - 1)
    assert loop.step.cache_bytes_written == (
        (GAMMA + 1) * _bytes_a_position(TARGET)
        + drafted * _bytes_a_position(DRAFT)
    )
    assert loop.step.cache_bytes_remade == 0

  def test_the_loop_moves_nothing_else(self, loop):
    step = loop.step
    assert step.host_transfers == 0
    assert step.weight_bytes_copied == 0
    assert step.scatter_trips == 0
    assert step.vector_products == 0
    assert step.float32_products == 0
    collectives = step.all_reduces + step.all_gathers + step.other_collectives
    assert collectives == 0

  def test_a_later_guess(self, loop, verify):
    """The inner loop runs gamma - 1 times, beside a first guess and a call."""
    later = loop.draft_step
    assert later.cache_bytes_written == _bytes_a_position(DRAFT)
    assert 0 < (GAMMA - 1) * later.cycles < loop.step.cycles
    assert verify.draft_step is None

  def test_every_call_of_the_draft_reads_the_vocabulary(self, loop, verify):
    later = (GAMMA - 1) * loop.draft_step.vocabulary_passes
    assert loop.draft_step.vocabulary_passes > 0
    assert loop.step.vocabulary_passes > later + verify.step.vocabulary_passes

  def test_memory(self, loop):
    """Parameters of both are arguments, 2 bytes each, and little besides."""
    place = abstract_pair.make_place(libtpu.describe('v4:1x1x1'), None)
    params = sum(
        2 * abstract_pair.make_model(config, place).num_params
        for config in (TARGET, DRAFT)
    )
    memory = loop.memory
    assert params <= memory.arguments < 1.05 * params
    assert memory.total == sum(dataclasses.astuple(memory))
    assert min(memory.temporaries, memory.outputs, memory.code) > 0

  def test_time_was_spent(self, loop):
    assert loop.compile_s > 0


@libtpu.needed
class TestSeveralRows:

  def test_no_scatter(self, rows_loop):
    assert rows_loop.step.scatter_trips == 0
    assert rows_loop.step.host_transfers == 0
    assert rows_loop.step.weight_bytes_copied == 0

  def test_caches_are_selected_anew_in_every_call(self, rows_loop):
    remade = (
        8
        * SLOTS
        * (_bytes_a_position(TARGET) + GAMMA * _bytes_a_position(DRAFT))
    )
    assert rows_loop.step.cache_bytes_remade == remade
    assert rows_loop.step.cache_bytes_written == 0


@libtpu.needed
class TestMesh:

  def test_parameters_are_known_by_their_parts(self):
    one_row = _compile(programs.compile_plain, topology='v4:2x2x1', min_block=1)
    assert one_row.step.vector_products > 0

  def test_sums(self, mesh_loop):
    """3 a layer and one for the embedding: in each call of either model."""
    target = 3 * TARGET.num_decoder_layers + 1
    draft = 3 * DRAFT.num_decoder_layers + 1
    assert mesh_loop.step.all_reduces == target + GAMMA * draft
    assert mesh_loop.draft_step.all_reduces == draft

  def test_logits_are_gathered_once_a_call(self, mesh_loop):
    assert mesh_loop.step.all_gathers == 1 + GAMMA
    assert mesh_loop.draft_step.all_gathers == 1

  def test_nothing_else_is_sent(self, mesh_loop):
    assert mesh_loop.step.other_collectives == 0
    assert mesh_loop.step.host_transfers == 0
    assert mesh_loop.step.weight_bytes_copied == 0

  def test_each_device_writes_its_heads(self, mesh_loop):
    written = (GAMMA + 1) * sum(map(_bytes_a_position, (TARGET, DRAFT)))
    assert mesh_loop.step.cache_bytes_written == written / 4
    assert mesh_loop.step.cache_bytes_remade == 0

  def test_a_draft_that_lies_whole_sends_nothing(self):
    loop = _compile(
        programs.compile_speculative,
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
  def test_what_does_not_fit(self):
    place = abstract_pair.make_place(libtpu.describe('v4:1x1x1'), None)
    large = jax.ShapeDtypeStruct(
        (2**34,), jnp.float32, sharding=place.replicated()
    )
    make = jax.jit(lambda x: x + 1).lower(large).compile
    with pytest.raises(programs.DoesNotFitError) as error:
      programs.compile_loop(make, self.SHAPES)
    message = str(error.value)
    assert 'memory' in message and '\n' not in message

  def test_other_errors_pass(self):
    def make():
      raise RuntimeError('INTERNAL: a bug')

    with pytest.raises(RuntimeError, match='a bug') as error:
      programs.compile_loop(make, self.SHAPES)
    assert not isinstance(error.value, programs.DoesNotFitError)


def test_total_memory():
  assert programs.Memory(1, 20, 300, 4000).total == 4321

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of programs compiled for a TPU v4, against counts by hand.

The encoders of the tiny pair are not analysed.
"""

import collections
import dataclasses
import functools
import importlib.util

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.policies import schedule
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import hlo
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.research.tpu_aot import t5x_step
from speculative_t5x.speculation import state
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
  """Return the bytes of all keys and values of a position."""
  joined = config.num_heads * config.head_dim
  return 2 * 2 * joined * config.num_decoder_layers


def _compile(
    make, topology='v4:1x1x1', batch=1, min_block=None,
    draft_rules=sharding.MODEL_PARALLEL,
) -> programs.Program:  # fmt: skip
  place = libtpu.describe(topology).with_mesh(None)
  target = abstract_pair.make_model(place, TARGET, min_block=min_block)
  draft = abstract_pair.make_model(place, DRAFT, draft_rules, min_block)
  decoder = token_decoder.TokenDecoder(
      target,
      model_drafting.of_model(draft),
      gamma=GAMMA,
      max_tokens=LENGTH,
  )
  batch = abstract_pair.make_batch(place, batch, INPUTS_LENGTH)
  return programs.compile_decoding(make, decoder, batch)


_compile_loop = functools.partial(
    _compile, token_decoder.TokenDecoder.compile_speculative
)


@libtpu.needed
class TestOneDevice:

  @pytest.mark.exhaustive
  def test_steps_of_one_position_and_of_four(self):
    """Padding turns products with a vector into those with a matrix."""
    plain = token_decoder.TokenDecoder.compile_plain
    one_row, padded = _compile(plain, min_block=1).step, _compile(plain).step
    # All products except those with the head and the cache: 6 per layer.
    assert one_row.vector_products >= 6 * TARGET.num_decoder_layers
    assert padded.vector_products == 0
    assert padded.cycles < 0.7 * one_row.cycles
    position = _bytes_per_position(TARGET)  # padding is not written
    assert one_row.cache_bytes_written == position
    assert padded.cache_bytes_written == position

  @pytest.mark.exhaustive
  def test_verification(self):
    verify = _compile(programs.compile_verify)
    written = (GAMMA + 1) * _bytes_per_position(TARGET)
    assert verify.step.cache_bytes_written == written
    assert verify.step.vector_products == 0
    assert verify.draft_step is None

  def test_loop(self):
    """The target writes gamma + 1, the draft model 2 and then 1 per call."""
    loop = _compile_loop()
    step = loop.step
    assert step.cache_bytes_written == (
        (GAMMA + 1) * _bytes_per_position(TARGET)
        + (2 + GAMMA - 1) * _bytes_per_position(DRAFT)
    )
    others = (
        step.cache_bytes_remade, step.host_transfers, step.weight_bytes_copied,
        step.scatter_trips, step.vector_products, step.float32_products,
        step.all_reduces, step.all_gathers, step.other_collectives,
    )  # fmt: skip
    assert set(others) == {0}
    # The inner loop runs gamma - 1 times, after the first draft token.
    later = loop.draft_step
    assert later.cache_bytes_written == _bytes_per_position(DRAFT)
    assert 0 < (GAMMA - 1) * later.cycles < step.cycles
    assert loop.memory['arguments'] > loop.memory['temporaries'] > 0

  @pytest.mark.exhaustive
  def test_several_rows_rewrite_the_caches(self):
    step = _compile_loop(batch=8).step
    draft = GAMMA * _bytes_per_position(DRAFT)
    remade = 8 * SLOTS * (_bytes_per_position(TARGET) + draft)
    assert step.cache_bytes_remade == remade
    assert step.cache_bytes_written == step.scatter_trips == 0
    assert step.host_transfers == step.weight_bytes_copied == 0


@pytest.mark.exhaustive
@libtpu.needed
def test_memory_of_scoring_whole_texts():
  """Before it measures alpha, a job counts what the compiler allocates."""
  rows, length = 8, 128
  # As wide as T5's: the logits of the texts outweigh the weights.
  configs = [dataclasses.replace(x, vocab_size=32_128) for x in (TARGET, DRAFT)]
  place = libtpu.describe('v4:1x1x1').with_mesh(None)
  decoder = token_decoder.TokenDecoder(
      *(abstract_pair.make_model(place, each) for each in configs),
      gamma=1,
      max_tokens=length,
  )
  batch = abstract_pair.make_batch(place, rows, INPUTS_LENGTH)
  texts = jax.ShapeDtypeStruct(
      (rows, length), jnp.int32, sharding=batch.inputs.sharding
  )
  with decoder.scope():
    compiled = acceptance._read_along.lower(
        decoder.target_model,
        decoder.make_drafter(1),
        decoder.target.params,
        decoder.loaded_drafter.params,
        batch,
        texts,
    ).compile()
  stats = compiled.memory_analysis()
  found = stats.argument_size_in_bytes + stats.temp_size_in_bytes
  workload = memory.Workload(rows, 1, INPUTS_LENGTH, length, gamma=1)
  counted = (
      memory.target_bytes(configs[0], workload, scores=True).total
      + memory.draft_bytes(configs[1], workload, 32_128).total
  )
  # Activations are not counted; a second copy of the logits would be noticed.
  assert abs(found - counted) < 0.2 * (4 * rows * length * 32_128)


@pytest.mark.exhaustive
@libtpu.needed
def test_drafts_of_changing_length_copy_no_cache():
  """Catching up writes the cache of the last layer and never reads it."""
  length = 128  # with more slots than lanes, the compiler prefers other layouts
  place = libtpu.describe('v4:1x1x1').with_mesh(None)
  draft = dataclasses.replace(DRAFT, num_heads=6)
  decoder = token_decoder.TokenDecoder(
      abstract_pair.make_model(place, TARGET),
      model_drafting.of_model(abstract_pair.make_model(place, draft)),
      gamma=GAMMA,
      max_tokens=length,
      policy=schedule.Schedule((GAMMA, 1)),
  )
  batch = abstract_pair.make_batch(place, 1, INPUTS_LENGTH)
  program = hlo.parse(decoder.compile_speculative(batch).as_text())
  slots = state.cache_slots(length, GAMMA)
  shapes = reading.Shapes(
      [(x.num_heads, x.head_dim, slots) for x in (TARGET, draft)], [], -1
  )
  made = collections.Counter(
      part.opcode
      for loop in program.loops(program.entry)
      for part in program.within(loop.called['body'][0])
      if any(map(shapes.is_cache, part.arrays))
  )
  assert made['dynamic-update-slice'] and not made['copy']


@pytest.mark.exhaustive
@libtpu.needed
class TestMesh:

  def test_partitioned_draft_model(self):
    """Each call has 3 sums per layer, one for the embedding, and a gather."""
    loop = _compile_loop('v4:2x2x1')
    target = 3 * TARGET.num_decoder_layers + 1
    draft = 3 * DRAFT.num_decoder_layers + 1
    assert loop.step.all_reduces == target + GAMMA * draft
    assert loop.draft_step.all_reduces == draft
    assert loop.step.all_gathers == 1 + GAMMA
    assert loop.draft_step.all_gathers == 1
    # Each device writes its heads.
    written = (GAMMA + 1) * sum(map(_bytes_per_position, (TARGET, DRAFT)))
    assert loop.step.cache_bytes_written == written / 4
    assert loop.step.cache_bytes_remade == 0

  def test_replicated_draft_model_has_no_collectives(self):
    loop = _compile_loop('v4:2x2x1', draft_rules=sharding.REPLICATED)
    assert loop.step.all_reduces == 3 * TARGET.num_decoder_layers + 1
    assert loop.step.all_gathers == 1
    assert loop.step.other_collectives == 0
    assert loop.draft_step.all_reduces == loop.draft_step.all_gathers == 0


def test_t5x_is_found_if_installed():
  is_there = importlib.util.find_spec('t5x') is not None
  assert t5x_step.IS_IMPORTABLE == is_there


@libtpu.needed
@pytest.mark.skipif(not t5x_step.IS_IMPORTABLE, reason='T5X cannot be imported')
def test_step_of_t5x_multiplies_by_vectors():
  place = libtpu.describe('v4:1x1x1')
  found = t5x_step.compile_plain(
      TARGET, place, examples=1, inputs_length=16, length=32
  )
  assert found.step.cycles > 0
  assert found.step.vector_products > 0
  assert found.step.host_transfers == 0

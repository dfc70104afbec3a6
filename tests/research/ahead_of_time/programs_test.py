# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of programs compiled for a TPU v4.

The encoders of the tiny pair are not analysed.
"""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from speculative_t5x.policies import schedule
from speculative_t5x.research import whole_batches
from speculative_t5x.research.ahead_of_time import bench
from speculative_t5x.research.ahead_of_time import program_reading
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import state
from tests.optimized import compiled_loop
from tests.research.ahead_of_time import libtpu

GAMMA, LENGTH, INPUTS_LENGTH = 3, 32, 32  # two widths of the encoder
TARGET = t5.T5Config(
    vocab_size=3072, emb_dim=512, num_heads=8, head_dim=64,
    num_encoder_layers=1, num_decoder_layers=2, mlp_dim=640,
    dtype='bfloat16',
)  # fmt: skip
DRAFT = dataclasses.replace(
    TARGET, emb_dim=256, num_heads=4, num_decoder_layers=1, mlp_dim=384
)


def _compile(make, topology='v4:1x1x1') -> program_reading.Program:
  place = libtpu.describe(topology).with_mesh(None)
  target = bench.make_model(place, TARGET)
  draft = bench.make_model(place, DRAFT)
  decoder = token_decoder.TokenDecoder(
      target,
      model_drafting.of_model(draft),
      gamma=GAMMA,
      max_tokens=LENGTH,
  )
  batch = bench.make_batch(place, 1, INPUTS_LENGTH)
  return program_reading.compile_loop(place, make, decoder, batch, gamma=GAMMA)


_compile_loop = functools.partial(_compile, whole_batches.compiled)


@libtpu.needed
class TestOneDevice:

  def test_loop(self):
    """The inner loop runs gamma - 1 times, after the first draft token."""
    loop = _compile_loop()
    assert loop.step.host_transfers == 0
    assert 0 < (GAMMA - 1) * loop.draft_step.cycles < loop.step.cycles
    assert 0 < loop.draft_step.num_operations < loop.step.num_operations
    assert loop.memory['arguments'] > loop.memory['temporaries'] > 0

  @pytest.mark.exhaustive
  def test_four_devices_hold_a_quarter_each(self):
    one, four = _compile_loop(), _compile_loop('v4:2x2x1')
    assert four.memory['arguments'] < 0.3 * one.memory['arguments']
    assert four.step.cycles < one.step.cycles


@pytest.mark.exhaustive
@libtpu.needed
def test_memory_of_scoring_whole_texts():
  """Before it measures alpha, a job counts what the compiler allocates."""
  rows, length = 8, 128
  # As wide as T5's: the logits of the texts outweigh the weights.
  configs = [dataclasses.replace(x, vocab_size=32_128) for x in (TARGET, DRAFT)]
  place = libtpu.describe('v4:1x1x1').with_mesh(None)
  decoder = token_decoder.TokenDecoder(
      *(bench.make_model(place, each) for each in configs),
      gamma=1,
      max_tokens=length,
  )
  batch = bench.make_batch(place, rows, INPUTS_LENGTH)
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
@pytest.mark.parametrize(
    ('batch', 'policy'),
    [
        (1, draft_length.Fixed()),
        # Catching up writes the cache of the last layer and never reads it.
        (1, schedule.Schedule((GAMMA, 1))),
        (8, draft_length.Fixed()),
    ],
)
def test_caches_are_written_in_place(batch, policy):
  """Neither copied nor, for several rows, written one row at a time."""
  length = 128  # with more slots than lanes, the compiler prefers other layouts
  place = libtpu.describe('v4:1x1x1').with_mesh(None)
  draft = dataclasses.replace(DRAFT, num_heads=6)
  decoder = token_decoder.TokenDecoder(
      bench.make_model(place, TARGET),
      model_drafting.of_model(bench.make_model(place, draft)),
      gamma=GAMMA,
      max_tokens=length,
      policy=policy,
  )
  request = bench.make_batch(place, batch, INPUTS_LENGTH)
  inside = compiled_loop.loop_instructions(
      whole_batches.compiled(decoder, request).as_text()
  )
  slots = batch * state.cache_slots(length, GAMMA)
  sizes = {x.num_heads * x.head_dim * slots for x in (TARGET, draft)}
  assert {math.prod(x.arrays[0].shape) for x in inside if x.arrays} >= sizes
  assert compiled_loop.copies(inside, sizes) == []
  scopes = [x.op_name for x in inside if x.opcode == 'while']
  assert not any(each.endswith('scatter') for each in scopes)

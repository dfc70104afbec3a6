# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the compiled loop does not copy a cache.

One copy of a cache per step would take a good part of the time of the step, and
only the compiled program shows it. Copies of it before the loop do not matter.
"""

from collections.abc import Iterable, Iterator
import dataclasses
import functools
import itertools
import math

import jax
from jax import lax
import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.policies import schedule
from speculative_t5x.research import whole_batches
from speculative_t5x.research.ahead_of_time import hlo
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from tests import exhaustive
from tests import tiny

GAMMA = 3
INPUTS_LENGTH = 37  # a prime; the first half of it is another width
PLAIN_LENGTH, LENGTH = 52, 49  # 53 slots, a prime, for either
HEAD_DIM = 64
FIXED, CHANGING = draft_length.Fixed(), schedule.Schedule((GAMMA, 1))


def loop_instructions(text: str) -> list[hlo.Instruction]:
  """Return what runs inside any loop, including nested calls and fusions."""
  program = hlo.parse(text)
  bodies = [
      body
      for each in program.instructions.values()
      if each.opcode == 'while'
      for body in each.called['body']
  ]
  found = {x.name: x for body in bodies for x in _within(program, body)}
  return list(found.values())


def outside_loops(text: str) -> list[hlo.Instruction]:
  """Return what runs before and after all loops, fusions included."""
  program = hlo.parse(text)
  is_loop = lambda name: program.instructions[name].opcode == 'while'
  without = {
      computation: [name for name in names if not is_loop(name)]
      for computation, names in program.computations.items()
  }
  program = dataclasses.replace(program, computations=without)
  return list(_within(program, program.entry))


def _within(
    program: hlo.Program, computation: str
) -> Iterator[hlo.Instruction]:
  """Yield the instructions of a computation and of all that it calls."""
  seen, todo = set(), [computation]
  while todo:
    name = todo.pop()
    if name in seen:
      continue
    seen.add(name)
    for instruction in program.of(name):
      yield instruction
      for names in instruction.called.values():
        todo.extend(names)


def copies(
    instructions: Iterable[hlo.Instruction], sizes: set[int]
) -> list[hlo.Instruction]:
  """Return copies and transposes with as many elements as one of the sizes."""
  return [
      each
      for each in instructions
      if each.opcode in ('copy', 'transpose', 'copy-start')
      and math.prod(each.arrays[0].shape) in sizes
  ]


@functools.cache
def decoder(length: int, policy=FIXED) -> token_decoder.TokenDecoder:
  sizes = dict(num_encoder_layers=1, num_decoder_layers=1, head_dim=HEAD_DIM)
  target, draft = tiny.config(num_heads=3, **sizes), tiny.config(**sizes)
  return token_decoder.TokenDecoder(
      tiny.model(target),
      model_drafting.of_model(tiny.model(draft)),
      gamma=GAMMA,
      max_tokens=length,
      policy=policy,
  )


def request(batch: int) -> input_batch.InputBatch:
  inputs_length = INPUTS_LENGTH if batch == 1 else 11
  return tiny.batch(tiny.encoder_tokens(batch, inputs_length), LENGTH, 1.0)


@functools.cache
def speculative(batch: int, policy=FIXED) -> jax.stages.Compiled:
  return whole_batches.compiled(decoder(LENGTH, policy), request(batch))


pytestmark = pytest.mark.usefixtures('unchecked_types')


class TestNoCacheIsCopied:
  """For one row, which has no batch axis, and for several."""

  @pytest.mark.parametrize('batch', exhaustive.all_but([1], [1, 8]))
  def test_plain_decoding(self, batch):
    """Blocks have one token."""
    slots = state_lib.cache_slots(PLAIN_LENGTH, 0)
    compiled = whole_batches.compiled(
        decoder(PLAIN_LENGTH).alone, request(batch)
    )
    assert_no_copies(compiled, {batch * 3 * HEAD_DIM * slots})

  @pytest.mark.parametrize(
      ('batch', 'policy'),
      exhaustive.all_but(
          [(1, FIXED)],  # `test_bounded_steps` has the other loop
          itertools.product([1, 8], [FIXED, CHANGING]),
      ),
      ids=str,
  )
  def test_speculative_decoding(self, batch, policy):
    """Blocks have up to gamma + 1 tokens, and 2 or 1 for the draft model."""
    slots = state_lib.cache_slots(LENGTH, GAMMA)
    sizes = {batch * heads * HEAD_DIM * slots for heads in (2, 3)}
    assert_no_copies(speculative(batch, policy), sizes)

  def test_inputs(self):
    """What attention reads of inputs is made in the layout that it reads."""
    text = speculative(1).as_text()
    sizes = {heads * HEAD_DIM * INPUTS_LENGTH for heads in (2, 3)}
    inside = loop_instructions(text)
    for size in sizes:
      assert any(has_size(each, size) for each in inside)
    found = copies(outside_loops(text), sizes)
    # Zeros before the first width are copied from one array of them.
    is_zeros = lambda each: 'broadcast' in f'{each.operands} {each.op_name}'
    assert [each for each in found if not is_zeros(each)] == []

  def test_bounded_steps(self):
    """`advance` continues a run."""
    it, batch = decoder(LENGTH, CHANGING), 8
    run = begun(it, batch)
    advance = lambda run, until: loop.advance(
        setup(it), run, 5, until, fold=outcome.COUNTING
    )
    lowered = jax.jit(advance, donate_argnums=0).lower(run, jnp.int32(1))
    slots = state_lib.cache_slots(LENGTH, GAMMA)
    sizes = {batch * heads * HEAD_DIM * slots for heads in (2, 3)}
    assert_no_copies(lowered.compile(), sizes)

  def test_new_requests(self):
    """`admit` writes new requests in place, also outside of a loop."""
    it, batch = decoder(LENGTH), 8
    run = begun(it, batch)
    admit = jax.jit(loop.admit, donate_argnums=0)
    places = jax.ShapeDtypeStruct((batch,), jnp.int32)
    compiled = admit.lower(run, run, places).compile()
    slots = state_lib.cache_slots(LENGTH, GAMMA)
    sizes = {batch * heads * HEAD_DIM * slots for heads in (2, 3)}
    program = hlo.parse(compiled.as_text())
    assert copies(program.instructions.values(), sizes) == []


def setup(it: token_decoder.TokenDecoder) -> state_lib.Setup:
  return state_lib.Setup(
      it.target_model,
      it.target.params,
      it.drafter,
      it.loaded_drafter.params,
      policy=it.options.policy,
  )


def begun(it: token_decoder.TokenDecoder, batch: int) -> loop.Run:
  """Return the shapes of a run that has read its inputs."""

  def begin(asked):
    keys = state_lib.row_keys(asked.seed, asked.example_ids)
    rows = state_lib.begin(
        setup(it),
        asked.inputs,
        keys,
        asked.limits,
        sampling.Sampling(1.0),
        length=LENGTH,
    )
    return loop.start(rows, outcome.COUNTING)

  return jax.eval_shape(begin, request(batch))


def assert_no_copies(compiled: jax.stages.Compiled, sizes: set[int]) -> None:
  inside = loop_instructions(compiled.as_text())
  for size in sizes:  # the loop is there and works on caches of this size
    assert any(has_size(each, size) for each in inside)
  assert copies(inside, sizes) == []


def has_size(instruction: hlo.Instruction, size: int) -> bool:
  """Return whether its output is one array of a size in float32."""
  arrays = instruction.arrays
  if len(arrays) != 1 or arrays[0].dtype != 'f32':
    return False
  return math.prod(arrays[0].shape) == size


def test_copies_in_a_nested_loop_are_found():
  """Both versions of a cache are read, so that the write needs a copy."""
  shape = 3, 64, 53

  def step(_, carry):
    index, total, cache = carry
    new = jnp.full((3, 64, 1), total)
    new = lax.dynamic_update_slice(cache, new, (0, 0, index))
    read = jnp.einsum('hd,hdl->hl', jnp.full((3, 64), total), new)
    return index + 1, total + jnp.tanh(read).sum() + (cache * new).sum(), new

  def program(cache):
    is_unfinished = lambda carry: carry[0] < 40
    body = lambda carry: lax.fori_loop(0, 5, step, carry)
    return lax.while_loop(is_unfinished, body, (0, jnp.float32(0), cache))

  compiled = jax.jit(program).lower(jnp.zeros(shape)).compile()
  inside = loop_instructions(compiled.as_text())
  assert copies(inside, {math.prod(shape)})

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Counts the predicates of a step, in compiled programs.

A GPU waits for the host at every conditional, and at every turn of a loop whose
number of turns is not known.
"""

from collections.abc import Iterator
import dataclasses

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import nothing
from speculative_t5x.policies import confidence
from speculative_t5x.research.ahead_of_time import hlo
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import table_model
from tests import exhaustive
from tests.research.ahead_of_time import libtpu

VOCAB, GAMMA, LENGTH, ROWS = 300, 4, 12, 3


@dataclasses.dataclass(frozen=True)
class Bigrams:
  """A model without a cache, whose writes could be loops: [vocab, vocab]."""

  vocab_size: int = VOCAB
  special_ids = table_model.SPECIAL_IDS

  def start(self, params, inputs, rows, slots):
    zeros = jnp.zeros((rows,), jnp.int32)
    return contracts.Started(None, None, zeros, zeros)

  def decode(self, params, memory, cache, tokens, positions, at):
    if at is not None:
      tokens = jnp.take_along_axis(tokens, at[:, None], axis=1)
    return params[tokens], cache


MODEL = Bigrams()
DRAFT_MODEL = draft_model.ModelDrafter(MODEL, GAMMA, VOCAB)
# A drafter and a policy; conditionals per step: one per distribution in the
# program; and loops. A block has the widths 1, 2, 4 and 5.
STEPS = {
    'plain': (nothing.NoDrafter(), draft_length.Fixed(), 1, 0),
    # The first draft token and the later ones; these are a loop.
    'fixed': (DRAFT_MODEL, draft_length.Fixed(), 3, 1),
    # What was missed and the first draft token are loops too, as is each width.
    'policy': (DRAFT_MODEL, confidence.Confidence(), 2 + 4, 3 + 4),
}


def lower(drafter, policy, device=None):
  """Return the lowered loop; see `arguments` for what it takes."""

  def decode(params, values, limits):
    drawn_from = sampling.Sampling(*values)
    setup = state_lib.Setup(
        MODEL, params, drafter, params, policy=policy
    )
    keys = state_lib.row_keys(0, jnp.arange(ROWS, dtype=jnp.int32))
    begun = state_lib.begin(
        setup, None, keys, limits, drawn_from, length=LENGTH
    )
    state, _, kept = loop.decode(setup, begun, outcome.COUNTING)
    return state.sequences, state.num_calls, state.log_probs, kept

  where = device and jax.sharding.SingleDeviceSharding(device)
  shape = lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where)
  return jax.jit(decode).lower(*jax.tree.map(shape, arguments()))


def arguments():
  """Return logits, the values of a sampling, and the limits of the rows."""
  logits = np.random.default_rng(0).normal(size=(VOCAB, VOCAB))
  values = jax.tree.leaves(sampling.Sampling(0.9).as_arrays())
  limits = np.array([LENGTH, 5, 1], np.int32)
  return np.float32(logits), values, limits


def step_of(program: hlo.Program) -> list[hlo.Instruction]:
  """Return what a step passes, without what lies in conditionals' branches."""

  def within(computation: str) -> Iterator[hlo.Instruction]:
    for each in program.of(computation):
      yield each
      for role in ('body', 'to_apply') if each.opcode != 'conditional' else ():
        for name in each.called.get(role, ()):
          yield from within(name)

  # XLA of JAX 0.12 puts loops into computations of their own, which are called.
  loops = [x for x in within(program.entry) if x.opcode == 'while']
  bodies = [[*within(*each.called['body'])] for each in loops]
  return max(bodies, key=len)  # the others only begin


def counts_turns(program: hlo.Program, loop: hlo.Instruction) -> bool:
  """Return whether a loop looks at a counter and a constant alone."""
  (condition,) = loop.called['condition']
  opcodes = [each.opcode for each in program.of(condition)]
  compares = {'compare', 'fusion'}  # of which XLA may make a computation
  carried = {'parameter', 'constant', 'get-tuple-element'}
  is_compared = 'constant' in opcodes and not compares.isdisjoint(opcodes)
  is_alone = opcodes.count('get-tuple-element') == 1
  return is_compared and is_alone and {*opcodes} <= compares | carried


def predicates(text: str) -> list[int]:
  """Return how many conditionals and loops of unknown length a step has."""
  program = hlo.parse(text)
  step = step_of(program)
  loops = [x for x in step if x.opcode == 'while']
  return [
      sum(each.opcode == 'conditional' for each in step),
      sum(program.num_trips(each) is None for each in loops),
  ]


@pytest.mark.parametrize('name', STEPS)
def test_of_a_cpu(name):
  drafter, policy, *expected = STEPS[name]
  assert predicates(lower(drafter, policy).compile().as_text()) == expected


@libtpu.needed
@pytest.mark.parametrize('name', exhaustive.all_but(['fixed'], STEPS))
def test_of_a_tpu(name):
  drafter, policy, *expected = STEPS[name]
  with libtpu.environment():
    device = libtpu.describe('v4:1x1x1').devices[0]
    text = lower(drafter, policy, device).compile().as_text()
  assert predicates(text) == expected


def test_of_a_gpu(monkeypatch):
  """Its loop of draft tokens has a known number of turns, and drafts alike."""
  drafter, policy, *_ = STEPS['fixed']
  expected = lower(drafter, policy).compile()(*arguments())
  monkeypatch.setattr(
      lax,
      'platform_dependent',
      lambda *args, default, cuda=None, **_: (cuda or default)(*args),
  )
  compiled = lower(drafter, policy).compile()
  program = hlo.parse(compiled.as_text())
  loops = [x for x in step_of(program) if x.opcode == 'while']
  assert any(counts_turns(program, loop) for loop in loops)
  assert predicates(compiled.as_text())[0] == 3
  jax.tree.map(np.testing.assert_array_equal, compiled(*arguments()), expected)

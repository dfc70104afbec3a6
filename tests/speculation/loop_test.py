# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decoding loop: forced steps, accounting and keys."""

import dataclasses
import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.networks import t5
from speculative_t5x.rules import lenience
from speculative_t5x.rules import typical_acceptance
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import loop as loop_lib
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import simulated_acceptance
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.testing import step_programs

EOS = t5.SPECIAL_IDS.end
A, B, C = 2, 3, 0
# An end as a model with one of them has it, and with several.
ONE_OF_SEVERAL = contracts.SpecialIds(
    end=8, padding=0, start=0, other_ends=(9, EOS)
)
ENDS = {'one end': t5.SPECIAL_IDS, 'one of several': ONE_OF_SEVERAL}


@dataclasses.dataclass(frozen=True)
class Constant:
  """A model with one distribution everywhere: logits [vocab]."""

  vocab_size: int
  special_ids: contracts.SpecialIds = t5.SPECIAL_IDS

  def start(self, params, inputs, rows, slots):
    zeros = jnp.zeros((rows,), jnp.int32)
    return contracts.Started(None, None, zeros, zeros)

  def decode(self, params, memory, cache, tokens, positions, at):
    block = tokens.shape[1] if at is None else 1
    shape = (tokens.shape[0], block, self.vocab_size)
    return jnp.broadcast_to(params[None, None], shape), cache


@dataclasses.dataclass(frozen=True)
class Scripted:
  """A drafter of given tokens and given distributions."""

  form: forms.Chain

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, view):
    tokens, probs = params
    rows = view.num_tokens.shape[0]
    shape = (rows, self.form.gamma)
    draft = contracts.Draft(
        jnp.broadcast_to(tokens[None], shape),
        view.num_wanted,
        jnp.broadcast_to(probs[None, None], (*shape, probs.shape[-1])),
        jnp.zeros(shape, bool),
    )
    return draft, state


UNIFORM = (0.25, 0.25, 0.25, 0.25)


def scripted_step(
    draft_tokens,
    *,
    limit=9,
    accept=0.9,
    last=0.6,
    draft_probs=UNIFORM,
    special_ids=t5.SPECIAL_IDS,
):
  """Make one step of one row with a uniform target distribution."""
  gamma = len(draft_tokens)
  coins = np.broadcast_to(accept, (gamma,))
  uniforms = step_programs.words([[*[0.5] * gamma, *coins, last]])
  draft = np.array(draft_tokens, np.int32), np.array(draft_probs, np.float32)
  state, kept = jit_step(
      special_ids, draft, np.array([limit], np.int32), uniforms
  )
  return types.SimpleNamespace(**vars(state), num_steps=1, statistics=kept)


@functools.partial(jax.jit, static_argnums=0)
def jit_step(special_ids, draft, limits, uniforms):
  setup = state_lib.Setup(
      Constant(4, special_ids),
      jnp.log(jnp.array(UNIFORM)),
      Scripted(forms.Chain(draft[0].size, num_uniforms=draft[0].size)),
      draft,
  )
  drawn_from = sampling_lib.Sampling(1.0)
  begun = state_lib.begin(setup, None, None, limits, drawn_from, length=9)
  run = loop_lib.start(begun, outcome_lib.COUNTING)
  state, outcome = step_lib.step(setup, run.batch, run.state, uniforms)
  return state, outcome_lib.COUNTING.update(run.kept, outcome)


def committed(state):
  tokens = state.sequences[0].tolist()
  num_tokens = int(state.num_tokens[0])
  assert tokens[num_tokens:] == [0] * (len(tokens) - num_tokens)
  return tokens[:num_tokens]


def counts(state):
  """Return the numbers of draft tokens by fate, and of calls cut short."""
  sums = jax.tree.map(lambda x: x[0].tolist(), state.statistics)
  record = counts_lib.count_speculation(counts_lib.Counts(speculation=sums))
  keys = ('drafted', 'drafted_computed', 'tested', 'accepted', 'cut_short')
  return tuple(record[key] for key in keys)


# With these probabilities, draft tokens 1 and 2 are accepted below 0.42 and
# 0.5, 0 always; the residual is on 0, 2 or 3.
OTHER = dict(draft_probs=(0.1, 0.6, 0.2, 0.1))
LESS = dict(draft_probs=(0.2, 0.1, 0.5, 0.2))
# The draft tokens and further arguments; the tokens committed, counts (drafted,
# computed, tested, accepted, cut short), and whether the row has ended.
FORCED = {
    # The run record's worked block: a b end c, without c.
    'end inside the draft': (
        [A, B, EOS, C], {}, [A, B, EOS], (3, 4, 3, 3, 1), True,
    ),
    'limit after the end': (
        [A, B, EOS, C], dict(limit=4), [A, B, EOS], (3, 4, 3, 3, 1), True,
    ),
    'limit at the end': (
        [A, B, EOS, C], dict(limit=3), [A, B, EOS], (3, 3, 3, 3, 1), True,
    ),
    'end as the bonus token': (
        [A, B, A, B], dict(last=0.3), [A, B, A, B, EOS], (4, 4, 4, 4, 0), True,
    ),
    'bonus token': (
        [A, B, A, B], dict(last=0.9), [A, B, A, B, B], (4, 4, 4, 4, 0), False,
    ),
    'rejected end is not an end': (
        [A, EOS, B], dict(accept=[0.1, 0.9, 0.1], last=0.99, **OTHER),
        [A, B], (2, 3, 2, 1, 0), False,
    ),
    'end as the resampled token': (
        [A, B, A], dict(last=0.4, **LESS), [EOS], (3, 3, 1, 0, 0), True,
    ),
    # The token after the end would be rejected.
    'tokens past the end are not tested': (
        [EOS, A, B],
        dict(accept=[0.1, 0.99, 0.99], draft_probs=(0.01, 0.01, 0.97, 0.01)),
        [EOS], (1, 3, 1, 1, 1), True,
    ),
    'limit inside the draft': (
        [A, B, A, B], dict(limit=2), [A, B], (2, 2, 2, 2, 1), True,
    ),
    'limit at the end of the draft': (
        [A, B, A, B], dict(limit=4), [A, B, A, B], (4, 4, 4, 4, 1), True,
    ),
    'limit leaves room for the bonus': (
        [A, B, A, B], dict(limit=5, last=0.9),
        [A, B, A, B, B], (4, 4, 4, 4, 0), True,
    ),
    'limit of one': ([A, B, A], dict(limit=1), [A], (1, 1, 1, 1, 1), True),
    'limit of one and a rejection': (
        [A, B, A], dict(limit=1, last=0.99, **LESS),
        [B], (1, 1, 1, 0, 0), True,
    ),
    'rejection at the limit': (
        [B, A, B], dict(limit=2, last=0.99, **LESS),
        [B, B], (2, 2, 2, 1, 0), True,
    ),
}  # fmt: skip


@pytest.mark.usefixtures('strict_types')
@pytest.mark.parametrize('special_ids', ENDS.values(), ids=ENDS)
@pytest.mark.parametrize('name', FORCED)
def test_forced_step(name, special_ids):
  """Tier 2: given uniforms; equal distributions accept every draft token."""
  draft_tokens, arguments, tokens, expected, has_ended = FORCED[name]
  state = scripted_step(draft_tokens, special_ids=special_ids, **arguments)
  assert committed(state) == tokens
  assert counts(state) == expected
  assert state.has_ended.tolist() == [has_ended]
  assert state.num_calls.tolist() == [1]
  drafted, _, _, accepted, _ = expected
  bins = np.arange(len(draft_tokens) + 1)
  stats = state.statistics
  assert stats.drafted_histogram.tolist() == [(bins == drafted).tolist()]
  assert stats.accepted_histogram.tolist() == [(bins == accepted).tolist()]
  np.testing.assert_allclose(
      state.log_probs, len(tokens) * math.log(0.25), rtol=1e-6
  )


LOSSY = (
    lenience.make_rule(0.0),
    typical_acceptance.make_rule(),
    simulated_acceptance.make_rule(1.0),
)


@pytest.mark.parametrize('rule', LOSSY, ids=lambda rule: rule.name)
def test_scores_of_rules_that_are_not_lossless(rule):
  """They are the model's: a token that argmax rules out has one too."""
  logits = jnp.array([0.0, -9.0, 3.0, 2.0])
  greedy = sampling_lib.Sampling(0.0)
  setup = state_lib.Setup(
      Constant(4),
      logits,
      Scripted(forms.Chain(2, num_uniforms=2)),
      (jnp.array([B, A]), jnp.array(UNIFORM)),
      rule=rule,
  )
  keys = state_lib.row_keys(0, jnp.arange(1, dtype=jnp.int32))
  limits = jnp.array([5])
  begun = state_lib.begin(setup, None, keys, limits, greedy, length=9)
  state, *_ = jax.jit(lambda begun: loop_lib.decode(setup, begun))(begun)
  tokens = np.array(committed(state))
  assert (B in tokens) == (rule.name != 'typical_acceptance')
  expected = np.sum(jax.nn.log_softmax(logits)[tokens])
  np.testing.assert_allclose(state.log_probs, expected, rtol=1e-6)


def test_keys_are_threefry_whatever_the_default():
  make = lambda: state_lib.row_keys(jnp.int32(5), jnp.arange(3), 2)
  expected = make()
  before = jax.config.jax_default_prng_impl
  jax.config.update('jax_default_prng_impl', 'unsafe_rbg')
  try:
    keys = make()
    uniforms = noise.uniform_table(keys, jnp.arange(6), 2, 4)
  finally:
    jax.config.update('jax_default_prng_impl', before)
  np.testing.assert_array_equal(
      jax.random.key_data(keys), jax.random.key_data(expected)
  )
  np.testing.assert_array_equal(
      uniforms, noise.uniform_table(expected, jnp.arange(6), 2, 4)
  )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A drafter and a policy that use everything their contracts allow."""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling

NUM_KEYS = 2


class Tables(NamedTuple):
  """What is drafted after a token, given a key in [0, NUM_KEYS).

  Attributes:
    lengths: [vocab, keys] int32 in [0, gamma], draft tokens.
    is_point_mass: [vocab, keys, gamma] bool.
    chosen: [vocab, keys, gamma] int32, the draft tokens that are point masses.
    probs: [vocab, keys, gamma, vocab], of a draft token that is drawn, by the
      token before it.
  """

  lengths: np.ndarray
  is_point_mass: np.ndarray
  chosen: np.ndarray
  probs: np.ndarray


@functools.cache
def random_tables(seed: int, vocab_size: int, gamma: int) -> Tables:
  """Return random tables; some probabilities are 0."""
  rng = np.random.default_rng(seed)
  shape = vocab_size, NUM_KEYS, gamma
  weights = rng.uniform(size=(*shape, vocab_size)) + 0.01
  weights *= rng.uniform(size=weights.shape) < 0.8
  weights[..., 0] += 0.1
  return Tables(
      rng.integers(0, gamma + 1, shape[:2], np.int32),
      rng.uniform(size=shape) < 0.4,
      rng.integers(0, vocab_size, shape, np.int32),
      weights / weights.sum(axis=-1, keepdims=True),
  )


def key_of(outcome: outcome_lib.Outcome) -> jax.Array:
  """Return a number in [0, NUM_KEYS) that the last step decided, [rows]."""
  rejected = outcome.is_rejected.astype(jnp.int32)
  return (outcome.num_accepted + rejected) % NUM_KEYS


@dataclasses.dataclass(frozen=True)
class KeyPolicy(draft_length.DraftsOn):
  """Wants one draft token fewer after some steps."""

  name = 'key'
  is_constant = False

  def init(self, rows):
    return jnp.zeros((rows,), jnp.int32)

  def num_wanted(self, state, num_remaining, gamma):
    return gamma - state

  def update(self, state, outcome):
    return jnp.where(outcome.is_active, key_of(outcome), state)


@dataclasses.dataclass(frozen=True)
class MixedDrafts:
  """Drafts 0 to gamma tokens, some drawn and some chosen.

  The number and kind of the draft tokens depend on the last token and on the
  last outcome. What must not matter is poisoned: the probabilities of a point
  mass are NaN, and the tokens that only fill a block are ends of sequence.
  """

  vocab_size: int
  gamma: int
  seed: int = 0

  @property
  def form(self):
    return forms.Chain(self.gamma, num_uniforms=self.gamma + 2)

  @property
  def tables(self) -> Tables:
    """What it drafts."""
    return random_tables(self.seed, self.vocab_size, self.gamma)

  def init(self, params, context, rows, slots):
    """See `contracts.Drafter.init`; the state is the calls of each row."""
    return None, jnp.zeros((rows,), jnp.int32)

  def propose(self, params, memory, state, view):
    tables = jax.tree.map(jnp.asarray, self.tables)
    at = jnp.maximum(view.num_tokens - 1, 0)[:, None]
    last = jnp.take_along_axis(view.sequences, at, axis=1)[:, 0]
    last = jnp.where(view.num_tokens > 0, last, 0)
    key = key_of(view.last_outcome)
    (uniforms,) = view.uniforms.split(self.form.num_uniforms)
    num_drawn = jnp.zeros_like(last)
    before, tokens, probs = last, [], []
    for i in range(self.gamma):
      q = tables.probs[before, key, i]
      at = num_drawn[:, None, None]
      drawn = sampling.draw(q, jnp.take_along_axis(uniforms, at, axis=1)[:, 0])
      is_chosen = tables.is_point_mass[last, key, i]
      num_drawn += ~is_chosen
      before = jnp.where(is_chosen, tables.chosen[last, key, i], drawn)
      tokens.append(before)
      probs.append(jnp.where(is_chosen[:, None], jnp.nan, q))
    lengths = jnp.minimum(tables.lengths[last, key], view.num_wanted)
    is_filling = jnp.arange(self.gamma) >= lengths[:, None]
    draft = contracts.Draft(
        jnp.where(is_filling, 1, jnp.stack(tokens, axis=1)),
        lengths,
        jnp.where(is_filling[..., None], jnp.nan, jnp.stack(probs, axis=1)),
        tables.is_point_mass[last, key],
    )
    return draft, state + 1

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam search beside T5X's function itself, on tables, with every option."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from t5x import decoding

from speculative_t5x import t5x_guest
from speculative_t5x.drafters import draft_model
from speculative_t5x.t5x_guest import samplers
from speculative_t5x.testing import table_model
from tests import exhaustive

END = table_model.SPECIAL_IDS.end
LENGTH, GAMMA = 6, 2


def t5xs(table, beams, **options):
  """Return what T5X finds in [vocab + 1, vocab + 1, vocab]."""

  def tokens_to_logits(state):
    tokens = state.cur_token[:, 0]
    logits = jnp.asarray(table)[state.cache['before'][:, 0], tokens]
    return logits, {'before': state.cur_token}

  return decoding.beam_search(
      np.zeros((1, LENGTH), np.int32),
      {'before': jnp.zeros((1, 1), jnp.int32)},
      tokens_to_logits,
      END,
      beams,
      **options,
  )


def ours(table, beams, **options):
  """Return what is found there, with drafts of a similar table."""
  vocab_size = table.shape[-1]
  model = table_model.Model(vocab_size)
  noise = table_model.random_logits(2, 1, vocab_size)
  draft = draft_model.ModelDrafter(model, GAMMA, vocab_size)
  tokens, scores, _ = t5x_guest.speculative_beam_search(
      samplers.Target(model, jnp.asarray(table)[None], jnp.zeros(1, jnp.int32)),
      samplers.BoundDrafter(draft, jnp.float32(table + noise)),
      np.zeros(1, np.int32),
      LENGTH,
      beams,
      **options,
  )
  return tokens, scores


def check(tables, beams, **options):
  """Return the hypotheses of each table, which are T5X's."""
  expect, find = (
      jax.jit(functools.partial(search, beams=beams, **options))
      for search in (t5xs, ours)
  )
  all_found = []
  for table in np.float32(tables):
    (expected, expected_scores), (found, scores) = expect(table), find(table)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(scores, expected_scores, rtol=2e-6)
    all_found.append(np.asarray(found)[0])
  return np.stack(all_found)


@pytest.mark.parametrize(
    ('beams', 'alpha'),
    exhaustive.all_but(
        [(1, 0.6), (3, 1.0)],
        [(beams, alpha) for beams in (1, 2, 3, 4) for alpha in (0.0, 0.6, 1.0)],
    ),
)
def test_random_tables(beams, alpha):
  tables = table_model.random_logits(1, 3, 5)
  tables[..., END] += np.reshape([-30, 0, 2], (3, 1, 1))
  check(tables, beams, alpha=alpha)


def test_chain_of_two_equal_paths():
  """A Markov chain of A and B, of which two of 32 paths have the best score.

  A step costs 1 or gains 1, by turns for a change and for none, as in the chain
  that T5X tests its search with.
  """
  steps = LENGTH - 1
  state = lambda step, which: 2 + 2 * step + which
  vocab_size = 2 + 2 * steps
  table = np.full((vocab_size + 1, vocab_size + 1, vocab_size), -1e9)
  table[:, 0, [state(0, 0), state(0, 1)]] = 0
  for step in range(1, steps):
    for before in (0, 1):
      for after in (0, 1):
        gains = (before == after) == (step % 2 == 1)
        table[:, state(step - 1, before), state(step, after)] = 2 * gains - 1
  table[:, [state(steps - 1, 0), state(steps - 1, 1)], END] = 0
  (found,) = check(table[None], 2, alpha=0.0)
  paths = [''.join('AB'[token % 2] for token in row[:-1]) for row in found]
  assert sorted(paths) == ['AABBA', 'BBAAB']
  assert (found[:, -1] == END).all()


@pytest.mark.parametrize('steps', [1, 3, LENGTH + 1])
def test_max_decode_step(steps):
  tables = table_model.random_logits(1, 3, 5)
  found = check(tables, 3, max_decode_step=steps)
  assert found[..., :steps].any() and not found[..., steps:].any()


def test_min_log_prob():
  tables = table_model.random_logits(1, 3, 5)
  at_once = check(tables, 3, min_log_prob=-0.05)
  assert not at_once[..., 1:].any()
  later = check(tables, 3, min_log_prob=-1.0)
  assert (later != at_once).any()
  assert (later != check(tables, 3)).any()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A row has the tokens, counts and scores that it has alone.

Drafters in order, where one falls behind another in some rows only; every
policy and several samplings, each in a row of its own; ragged limits; batches
of several sizes. Counts are those of the tokens, and nothing follows an end.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import table_model
from tests import combinations
from tests import exhaustive
from tests import mixed_drafts
from tests import repeat_last

VOCAB, GAMMA, LENGTH, NUM_TABLES = 5, 4, 16, 3
ROWS = len(combinations.POLICIES)
MODEL = table_model.Model(VOCAB)
DRAFT_MODEL = draft_model.ModelDrafter(MODEL, GAMMA, VOCAB)
MIXED = mixed_drafts.MixedDrafts(VOCAB, GAMMA)
REPEAT = repeat_last.RepeatLast(MODEL, GAMMA)


@dataclasses.dataclass(frozen=True)
class Likeliest:
  """Drafts the likeliest tokens by a table: none, some or all of a block."""

  form: forms.Chain

  def init(self, params, context, rows, slots):
    return context.inputs, None

  def propose(self, params, memory, state, view):
    read = lambda ago: jnp.take_along_axis(
        jnp.pad(view.sequences, ((0, 0), (2, 0))),
        view.num_tokens[:, None] + 2 - ago,
        axis=1,
    )[:, 0]
    before, last = read(2), read(1)
    lengths = (view.num_tokens + last) % (self.form.gamma + 1)
    tokens = []
    for _ in range(self.form.gamma):
      logits = params[memory, before, last]
      before, last = last, jnp.argmax(logits, axis=-1).astype(jnp.int32)
      tokens.append(last)
    lengths = jnp.minimum(lengths, view.num_wanted)
    draft = contracts.Draft(jnp.stack(tokens, axis=1), lengths)
    return draft, state


LIKELIEST = Likeliest(forms.Chain(GAMMA))
ORDERS = {
    'likeliest, model': (LIKELIEST, DRAFT_MODEL),
    'model, repeat': (DRAFT_MODEL, REPEAT),
    'model, mixed, model': (DRAFT_MODEL, MIXED, DRAFT_MODEL),
}
HAS_TABLES = DRAFT_MODEL, LIKELIEST


def tables(seed):
  """Return logits of the target and of a draft model that resembles it."""
  target, other = (
      table_model.random_logits(2 * seed + i, NUM_TABLES, VOCAB)
      for i in range(2)
  )
  target[..., table_model.SPECIAL_IDS.end] -= 3.0  # long outputs
  draft = 0.8 * target + 0.2 * other
  return target.astype(np.float32), draft.astype(np.float32)


def program(drafters):
  """Return a function that decodes some rows of a batch.

  It takes the tables, the seed, and the numbers, samplings and limits of the
  rows; it returns tokens with counts, and scores.
  """

  @jax.jit
  def decode(params, seed, rows, samplings, limits):
    target, draft = params
    setup = state_lib.Setup(
        MODEL,
        target,
        in_order.DraftersInOrder(drafters, MODEL),
        tuple(draft if x in HAS_TABLES else None for x in drafters),
        policy=combinations.PolicyOfRow(),
    )
    keys = state_lib.row_keys(seed, rows)
    batch, state = state_lib.begin(
        setup,
        rows % NUM_TABLES,
        keys,
        limits,
        *samplings,
        length=LENGTH,
    )
    state = state.replace(policy_state=state.policy_state._replace(index=rows))
    state, _, counts = loop.decode(setup, (batch, state), outcome.COUNTING)
    own = state.sequences, state.num_tokens, state.num_calls, counts
    return own, state.log_probs

  return decode


# Of temperature, top-k, top-p, min-p and typical-p.
SAMPLINGS = (
    (0.0, 0, 0.0, 0.0, 0.0),
    (1.0, 0, 0.0, 0.0, 0.0),
    (0.7, 3, 0.0, 0.0, 0.0),
    (1.3, 0, 0.8, 0.0, 0.0),
    (1.0, 0, 0.0, 0.2, 0.0),
    (0.9, 4, 0.9, 0.1, 0.7),
)


def samplings(seed):
  """Return samplings of target and drafter, arrays [ROWS].

  All alike in some seeds, so that each choice of `standardize` is made.
  """
  kinds = np.array(SAMPLINGS, np.float32)
  if seed % 4 < 2:
    kinds = kinds[seed % 4 : seed % 4 + 1]
  make = lambda at: sampling.Sampling(*kinds[at % len(kinds)].T).as_arrays()
  every = np.arange(ROWS) + seed
  return make(every), make(every // 2)


def check_rows(drafters, num_seeds=12):
  """Decode rows together, and each alone and beside padding."""
  decode = program(drafters)
  every = np.arange(ROWS, dtype=np.int32)
  for seed in range(num_seeds):
    limits = np.random.default_rng(seed).integers(1, LENGTH + 1, ROWS, np.int32)
    limits[seed % ROWS] = LENGTH
    setting = tables(seed), seed
    drawn_from = samplings(seed)
    whole = jax.device_get(decode(*setting, every, drawn_from, limits))
    check_counts(whole, limits)
    for row in range(ROWS):
      only = slice(row, row + 1)
      take = lambda tree, at: jax.tree.map(lambda x: x[at], tree)
      alone = decode(
          *setting, every[only], take(drawn_from, only), limits[only]
      )
      among_padding = decode(
          *setting, every, drawn_from, np.where(every == row, limits, 0)
      )
      where = f'seed {seed}, row {row}'
      check_equal(take(alone, 0), take(whole, row), where)
      check_equal(take(among_padding, row), take(whole, row), where)


def check_counts(found, limits):
  """Check counts that belong together, and where each row ends."""
  (sequences, num_tokens, num_calls, counts), _ = found
  accepted = counts.num_accepted
  np.testing.assert_array_equal(
      num_tokens, accepted + num_calls - counts.num_cut_short
  )
  ordered = accepted, counts.num_tested, counts.num_drafted, counts.num_computed
  assert np.all(np.diff(np.array([*ordered, GAMMA * num_calls]), axis=0) >= 0)
  for histogram in (counts.accepted_histogram, counts.drafted_histogram):
    np.testing.assert_array_equal(histogram.sum(axis=1), num_calls)
  end = table_model.SPECIAL_IDS.end
  for tokens, count, limit in zip(sequences, num_tokens, limits):
    assert end not in tokens[: count - 1]
    assert count == limit or (count < limit and tokens[count - 1] == end)
    assert not np.any(tokens[count:])  # padding


def check_equal(found, expected, where):
  """Check that a row is the same in two batches, its score up to rounding."""
  (found, score), (expected, expected_score) = found, expected
  leaves = jax.tree.leaves(found), jax.tree.leaves(expected)
  for one, other in zip(*leaves, strict=True):
    np.testing.assert_array_equal(one, other, where)
  np.testing.assert_allclose(score, expected_score, atol=1e-5, err_msg=where)


@pytest.mark.parametrize(
    'order', exhaustive.all_but(['model, mixed, model'], ORDERS)
)
def test_rows_are_their_own(order):
  check_rows(ORDERS[order])

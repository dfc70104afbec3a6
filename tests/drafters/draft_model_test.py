# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of drafting with a smaller model."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model

VOCAB, GAMMA, SLOTS = 5, 3, 16
TARGET_CACHE = np.arange(7)


def table_drafter(width=VOCAB, gamma=GAMMA) -> draft_model.DraftModel:
  return draft_model.DraftModel(table_model.Model(width), gamma, VOCAB)


def memory_of(tables):
  """Returns the drafter's memory: the table of each row."""
  zeros = jnp.zeros(len(tables), jnp.int32)
  return draft_model.DraftModelMemory(jnp.asarray(tables), zeros, zeros)


def seen(sequences, num_tokens, uniforms, gamma, **rules):
  """Returns the arrays of a view."""
  return (
      sequences,
      num_tokens,
      jnp.full_like(num_tokens, gamma),
      uniforms_lib.Uniforms(uniforms[:, :gamma], 'The drafter'),
      sampling_lib.make_sampling(**rules),
      contracts.TargetView(None, None, TARGET_CACHE),
      None,
  )


@functools.cache
def compiled_propose(width, gamma):
  drafter = table_drafter(width, gamma)

  def run(params, memory, state, seen):
    return drafter.propose(params, memory, state, contracts.View(*seen))

  return jax.jit(run)


def prefixes():
  """Returns rows of 0, 2 and 5 committed tokens, and their uniforms."""
  sequences = jnp.array([[0] * 6, [3, 2, 0, 0, 0, 0], [4, 2, 2, 0, 3, 0]])
  num_tokens = jnp.array([0, 2, 5])
  uniforms = step_programs.words(np.random.default_rng(0).random((3, GAMMA)))
  return sequences, num_tokens, jnp.asarray(uniforms)


def propose(tables, *, num_behind=(0, 0, 0), gamma=GAMMA, **rules):
  """Drafts after the prefixes; the drafter was fed fewer tokens before."""
  sequences, num_tokens, uniforms = prefixes()
  num_fed = num_tokens - jnp.array(num_behind)
  fed = jnp.pad(sequences, ((0, 0), (1, SLOTS - 7)))
  is_fed = jnp.arange(SLOTS)[None] < num_fed[:, None]
  cache = jnp.where(is_fed, fed, table_model.STALE)
  return compiled_propose(tables.shape[-1], gamma)(
      jnp.asarray(tables),
      memory_of([0, 0, 0]),
      draft_model.DraftModelState(cache, num_fed),
      seen(sequences, num_tokens, uniforms, gamma, **rules),
  )


def teacher_forced(tables, draft, **rules):
  """Returns the distribution of each draft token, read off the tables."""
  sequences, num_tokens, _ = jax.device_get(prefixes())
  rules = sampling_lib.make_sampling(**rules)
  rows = []
  for prefix, num, draft_tokens in zip(sequences, num_tokens, draft.tokens):
    fed = [0, 0, *prefix[:num], *draft_tokens.tolist()]
    rows.append(
        [
            tables[0, fed[num + i], fed[num + i + 1]]
            for i in range(len(draft_tokens))
        ]
    )
  return sampling_lib.standardize(jnp.asarray(np.array(rows)), rules)


class TestWidths:

  def test_narrower_draft_model_pads_probabilities_with_zeros(self):
    tables = np.float32(table_model.random_logits(1, 1, VOCAB, width=4))
    draft, _, _ = propose(tables)
    assert draft.probs.shape == (3, GAMMA, VOCAB)
    assert not draft.probs[..., 4].any()
    assert draft.tokens.max() < 4
    distribution = teacher_forced(tables, draft)
    np.testing.assert_allclose(draft.probs[..., :4], distribution, rtol=1e-6)

  def test_wider_draft_model_is_cut_and_renormalised(self):
    tables = np.float32(table_model.random_logits(2, 1, VOCAB, width=8))
    tables[..., VOCAB:] += 3  # most of its mass is beyond the target's width
    draft, _, _ = propose(tables)
    assert draft.probs.shape == (3, GAMMA, VOCAB)
    assert draft.tokens.max() < VOCAB
    np.testing.assert_allclose(draft.probs.sum(-1), 1, rtol=1e-6)
    distribution = teacher_forced(tables[..., :VOCAB], draft)
    np.testing.assert_allclose(draft.probs, distribution, rtol=1e-6)


class TestPropose:

  tables = np.float32(table_model.random_logits(3, 1, VOCAB))

  @pytest.mark.parametrize(
      'rules',
      [
          dict(),
          dict(temperature=0.4),
          dict(temperature=2.0, topk=3),
          dict(topp=0.7),
          dict(temperature=0.0),
      ],
      ids=str,
  )
  def test_reports_the_distribution_it_draws_from(self, rules):
    draft, _, _ = propose(self.tables, **rules)
    distribution = teacher_forced(self.tables, draft, **rules)
    np.testing.assert_allclose(draft.probs, distribution, rtol=1e-6)
    drawn = sampling_lib.draw(draft.probs, prefixes()[2])
    np.testing.assert_array_equal(draft.tokens, drawn)

  @pytest.mark.parametrize('num_behind', [(0, 1, 1), (0, 0, 1), (0, 1, 0)])
  def test_catches_up(self, num_behind):
    """The last draft token is not yet fed if all were accepted."""
    draft, state, _ = propose(self.tables, num_behind=num_behind)
    caught_up, _, _ = propose(self.tables)
    np.testing.assert_array_equal(draft.tokens, caught_up.tokens)
    np.testing.assert_array_equal(draft.probs, caught_up.probs)
    sequences, num_tokens, _ = prefixes()
    for row, num in enumerate(num_tokens.tolist()):
      fed = [0, *sequences[row, :num].tolist(), *draft.tokens[row].tolist()]
      assert state.cache[row, : num + GAMMA].tolist() == fed[:-1]
      assert state.num_fed[row] == num + GAMMA

  def test_rejected_draft_tokens_are_overwritten(self):
    """A row that was rewound starts from its last committed token."""
    draft, state, _ = propose(self.tables)
    sequences, num_tokens, uniforms = prefixes()
    again, after, _ = compiled_propose(VOCAB, GAMMA)(
        jnp.asarray(self.tables),
        memory_of([0, 0, 0]),
        state,
        seen(sequences, num_tokens, uniforms, GAMMA),
    )
    assert np.all(state.num_fed > num_tokens)
    np.testing.assert_array_equal(again.probs, draft.probs)
    np.testing.assert_array_equal(after.num_fed, state.num_fed)

  def test_targets_cache_is_unchanged(self):
    draft, _, target_cache = propose(self.tables, gamma=1)
    np.testing.assert_array_equal(target_cache, TARGET_CACHE)
    assert draft.tokens.shape == (3, 1)
    assert draft.lengths.tolist() == [1, 1, 1]
    assert draft.is_point_mass is None

  @pytest.mark.parametrize('gamma', [0, -1])
  def test_gamma_below_one(self, gamma):
    with pytest.raises(ValueError, match='gamma must be at least 1'):
      table_drafter(gamma=gamma)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for guessing with a smaller model."""

import dataclasses
import functools
import inspect
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_decoding
from tests import tabular
from tests import tiny

VOCAB, GAMMA, SLOTS = 5, 3, 16
TARGET_CACHE = np.arange(7)


def table_drafter(width=VOCAB, gamma=GAMMA) -> draft_model.DraftModel:
  return draft_model.DraftModel(
      tabular.decoder(width), lambda params, tokens: tokens, gamma, VOCAB
  )


@functools.cache
def compiled_propose(width, gamma):
  return jax.jit(table_drafter(width, gamma).propose)


def prefixes():
  """Three rows of 0, 2 and 5 committed tokens, and uniforms for each."""
  sequences = jnp.array([[0] * 6, [3, 2, 0, 0, 0, 0], [4, 2, 2, 0, 3, 0]])
  num_tokens = jnp.array([0, 2, 5])
  uniforms = np.random.default_rng(0).random((3, GAMMA)).astype(np.float32)
  return sequences, num_tokens, jnp.asarray(uniforms)


def propose(tables, *, num_behind=(0, 0, 0), gamma=GAMMA, **rules):
  """Guesses after the prefixes; rows were last fed that many tokens less."""
  sequences, num_tokens, uniforms = prefixes()
  num_fed = num_tokens - jnp.array(num_behind)
  fed = jnp.pad(sequences, ((0, 0), (1, SLOTS - 7)))
  is_fed = jnp.arange(SLOTS)[None] < num_fed[:, None]
  cache = jnp.where(is_fed, fed, tabular.STALE)
  return compiled_propose(tables.shape[-1], gamma)(
      jnp.asarray(tables),
      jnp.zeros((3,), jnp.int32),
      draft_model.DraftModelState(cache, num_fed),
      TARGET_CACHE,
      sequences,
      num_tokens,
      uniforms[:, :gamma],
      sampling_lib.make_sampling(**rules),
  )


def teacher_forced(tables, draft, **rules):
  """The law of each guess, read off the tables."""
  sequences, num_tokens, _ = jax.device_get(prefixes())
  rules = sampling_lib.make_sampling(**rules)
  rows = []
  for prefix, num, guesses in zip(sequences, num_tokens, draft.tokens):
    fed = [0, 0, *prefix[:num], *guesses.tolist()]
    rows.append([
        tables[0, fed[num + i], fed[num + i + 1]] for i in range(len(guesses))
    ])
  return sampling_lib.standardize(jnp.asarray(np.array(rows)), rules)


class TestWidths:

  def test_narrower_draft_gives_the_rest_no_probability(self):
    tables = np.float32(tabular.random_tables(1, 1, VOCAB, width=4))
    draft, _, _ = propose(tables)
    assert draft.probs.shape == (3, GAMMA, VOCAB)
    assert not draft.probs[..., 4].any()
    assert draft.tokens.max() < 4
    law = teacher_forced(tables, draft)
    np.testing.assert_allclose(draft.probs[..., :4], law, rtol=1e-6)

  def test_wider_draft_is_cut_and_renormalised(self):
    tables = np.float32(tabular.random_tables(2, 1, VOCAB, width=8))
    tables[..., VOCAB:] += 3  # most of its mass is beyond the target's width
    draft, _, _ = propose(tables)
    assert draft.probs.shape == (3, GAMMA, VOCAB)
    assert draft.tokens.max() < VOCAB
    np.testing.assert_allclose(draft.probs.sum(-1), 1, rtol=1e-6)
    law = teacher_forced(tables[..., :VOCAB], draft)
    np.testing.assert_allclose(draft.probs, law, rtol=1e-6)


class TestPropose:

  tables = np.float32(tabular.random_tables(3, 1, VOCAB))

  @pytest.mark.parametrize(
      'rules',
      [dict(), dict(temperature=0.4), dict(temperature=2.0, topk=3),
       dict(topp=0.7), dict(temperature=0.0)],
      ids=str,
  )
  def test_reports_the_law_it_draws_from(self, rules):
    draft, _, _ = propose(self.tables, **rules)
    law = teacher_forced(self.tables, draft, **rules)
    np.testing.assert_allclose(draft.probs, law, rtol=1e-6)
    drawn = sampling_lib.draw(draft.probs, prefixes()[2])
    np.testing.assert_array_equal(draft.tokens, drawn)

  @pytest.mark.parametrize('num_behind', [(0, 1, 1), (0, 0, 1), (0, 1, 0)])
  def test_catches_up(self, num_behind):
    """After a full acceptance the last guess has not been fed yet."""
    draft, state, _ = propose(self.tables, num_behind=num_behind)
    caught_up, _, _ = propose(self.tables)
    np.testing.assert_array_equal(draft.tokens, caught_up.tokens)
    np.testing.assert_array_equal(draft.probs, caught_up.probs)
    sequences, num_tokens, _ = prefixes()
    for row, num in enumerate(num_tokens.tolist()):
      fed = [0, *sequences[row, :num].tolist(), *draft.tokens[row].tolist()]
      assert state.cache[row, : num + GAMMA].tolist() == fed[:-1]
      assert state.num_fed[row] == num + GAMMA

  def test_rejected_guesses_are_fed_over(self):
    """A row rewound below what was fed starts from its last token."""
    draft, state, _ = propose(self.tables)
    sequences, num_tokens, uniforms = prefixes()
    again, after, _ = compiled_propose(VOCAB, GAMMA)(
        jnp.asarray(self.tables), jnp.zeros((3,), jnp.int32), state,
        TARGET_CACHE, sequences, num_tokens, uniforms,
        sampling_lib.make_sampling(),
    )
    assert np.all(state.num_fed > num_tokens)
    np.testing.assert_array_equal(again.probs, draft.probs)
    np.testing.assert_array_equal(after.num_fed, state.num_fed)

  def test_leaves_the_targets_cache_alone(self):
    draft, _, target_cache = propose(self.tables, gamma=1)
    np.testing.assert_array_equal(target_cache, TARGET_CACHE)
    assert draft.tokens.shape == (3, 1)
    assert draft.lengths.tolist() == [1, 1, 1]
    assert not draft.is_point_mass.any()

  @pytest.mark.parametrize('gamma', [0, -1])
  def test_gamma_below_one(self, gamma):
    with pytest.raises(ValueError, match='gamma must be at least 1'):
      table_drafter(gamma=gamma)


class TestLaws:
  """What given texts would have been guessed from."""

  tables = np.float32(tabular.random_tables(4, 3, VOCAB))
  # Any text: what the draft itself would hardly write, and padding.
  sequences = np.array([[3, 0, 0, 4, 2], [2, 2, 2, 1, 0], [0, 4, 4, 3, 1]])

  def laws(self, tables, sampling):
    return table_drafter(tables.shape[-1]).laws(
        jnp.asarray(tables),
        jnp.arange(3),  # each text has a table of its own
        jnp.asarray(self.sequences, jnp.int32),
        sampling,
    )

  def expected(self, tables, sampling):
    rows = []
    for table, tokens in zip(tables, self.sequences.tolist()):
      fed = [0, 0, *tokens]
      rows.append([table[fed[i], fed[i + 1]] for i in range(len(tokens))])
    return sampling_lib.standardize(jnp.asarray(np.array(rows)), sampling)

  @pytest.mark.parametrize(
      'rules', [dict(), dict(temperature=0.0), dict(topk=2)], ids=str
  )
  def test_each_given_the_text_before_it(self, rules):
    sampling = sampling_lib.make_sampling(**rules)
    found = self.laws(self.tables, sampling)
    expected = self.expected(self.tables, sampling)
    assert found.shape == (3, 5, VOCAB)
    np.testing.assert_allclose(found, expected, rtol=1e-6)

  def test_of_a_narrower_draft(self):
    tables = self.tables[..., :4]
    sampling = sampling_lib.make_sampling()
    found = self.laws(tables, sampling)
    np.testing.assert_allclose(
        found[..., :4], self.expected(tables, sampling), rtol=1e-6
    )
    assert found.shape == (3, 5, VOCAB) and not found[..., 4].any()

  def test_of_a_wider_draft(self):
    tables = np.concatenate([self.tables, self.tables + 3], axis=-1)
    sampling = sampling_lib.make_sampling()
    found = self.laws(tables, sampling)
    expected = self.expected(tables[..., :VOCAB], sampling)
    np.testing.assert_allclose(found, expected, rtol=1e-6)

  def test_is_what_guesses_are_drawn_from(self):
    """The laws that `propose` reports, for the text that it guessed."""
    draft, _, _ = propose(self.tables[:1])
    sequences, num_tokens, _ = jax.device_get(prefixes())
    texts = np.zeros((3, 6 + GAMMA), np.int32)
    for text, prefix, num, guesses in zip(
        texts, sequences, num_tokens, draft.tokens
    ):
      text[: num + GAMMA] = [*prefix[:num], *guesses]
    laws = table_drafter().laws(
        jnp.asarray(self.tables[:1]), jnp.zeros((3,), jnp.int32),
        jnp.asarray(texts), sampling_lib.make_sampling(),
    )  # fmt: skip
    for law, num, probs in zip(laws, num_tokens, draft.probs):
      np.testing.assert_allclose(law[num : num + GAMMA], probs, rtol=1e-6)


@struct.dataclass
class SpyState:
  """The drafter's state and its last draft."""

  inner: Any
  draft: Any


@dataclasses.dataclass(frozen=True)
class Spy:
  """Keeps the last draft in the state."""

  drafter: draft_model.DraftModel

  @property
  def gamma(self) -> int:
    return self.drafter.gamma

  def propose(self, params, context, state, *rest):
    draft, inner, cache = self.drafter.propose(
        params, context, state.inner, *rest
    )
    return draft, SpyState(inner, draft), cache


BATCH, LENGTH, CALLS = 6, 16, 6
NETWORK_GAMMA = 2
DRAFT_TEMPERATURE = 0.8  # the target's is 1


def network_calls(config, inputs):
  """Each state and the draft made in it, and all counts at the end."""
  model = tiny.model(config)
  draft = tiny.model(config, noise=0.15)
  target = t5_decoding.block_decoder(model.config)
  drafter = tiny.drafter(draft, NETWORK_GAMMA)
  rows = speculation.Rows(
      speculation.row_keys(jnp.int32(3), jnp.arange(BATCH)),
      jnp.full((BATCH,), LENGTH, jnp.int32),
  )

  @jax.jit
  def begin():
    _, context = t5_decoding.encode(model.config, model.params, inputs)
    slots = speculation.cache_slots(LENGTH, NETWORK_GAMMA)
    draft_context, inner = drafter.init(
        draft.params, inputs, None, BATCH, slots
    )
    state = speculation.init_state(
        target, context, rows, inner, length=LENGTH, gamma=NETWORK_GAMMA
    )
    return context, draft_context, state

  @jax.jit
  def step(context, draft_context, state):
    setup = speculation.Speculation(
        target,
        model.params,
        context,
        Spy(drafter),
        draft.params,
        draft_context,
        sampling_lib.make_sampling(1.0),
        sampling_lib.make_sampling(DRAFT_TEMPERATURE),
    )
    uniforms = speculation.call_uniforms(
        rows, state.num_calls, 2 * NETWORK_GAMMA + 1
    )
    state = state.replace(draft_state=SpyState(state.draft_state, None))
    state = speculation.speculative_step(setup, rows, state, uniforms)
    made = state.draft_state.draft
    return state.replace(draft_state=state.draft_state.inner), made

  calls = []
  with jax.default_matmul_precision('highest'):
    context, draft_context, state = begin()
    for _ in range(CALLS):
      after, made = step(context, draft_context, state)
      calls.append(jax.device_get((state, made)))
      state = after
  return calls, jax.device_get(state.statistics)


class TestDraftOfANetwork:
  """The draft's cache is right at every call; a wrong one only costs speed."""

  def test_every_guess_has_the_teacher_forced_law(self):
    config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
    inputs = tiny.encoder_tokens(BATCH, 9)
    calls, stats = network_calls(config, inputs)
    # Both kinds of call came up, many times.
    assert stats.num_rejections.sum() > 5
    assert stats.accepted_histogram[:, NETWORK_GAMMA].sum() > 5

    params = tiny.params(config, noise=0.15)
    rules = sampling_lib.make_sampling(DRAFT_TEMPERATURE)

    @jax.jit
    def laws(tokens):
      fed = jnp.pad(tokens, ((0, 0), (1, 0)))
      logits = t5.Transformer(config).apply(
          {'params': params}, inputs, fed, jnp.ones_like(fed),
          enable_dropout=False,
      )
      return sampling_lib.standardize(logits, rules)

    for state, draft in calls:
      tokens = np.pad(state.sequences, ((0, 0), (0, NETWORK_GAMMA)))
      at = state.num_tokens[:, None] + np.arange(NETWORK_GAMMA)
      np.put_along_axis(tokens, at, draft.tokens, axis=1)
      with jax.default_matmul_precision('highest'):
        law = np.asarray(laws(tokens))
      expected = np.take_along_axis(law, at[..., None], axis=1)
      is_open = ~state.has_ended
      np.testing.assert_allclose(
          draft.probs[is_open], expected[is_open], atol=2e-5
      )


@pytest.mark.parametrize('method', ['init', 'propose'])
def test_fits_the_seam(method):
  names = lambda cls: list(inspect.signature(getattr(cls, method)).parameters)
  assert names(draft_model.DraftModel) == names(seam.Drafter)

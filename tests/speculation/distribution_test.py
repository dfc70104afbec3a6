# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the distribution of outputs over all settings, and by mutants.

The target and the draft model are tables. One program has all lossless rules;
everything else but gamma and the width of the draft model is data.
"""

import functools
import itertools

import jax.numpy as jnp
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import chain_step
from speculative_t5x.speculation import committing
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import proposing
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import rules as rules_lib
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model
from tests import combinations
from tests import exhaustive

VOCAB = 3
WIDTHS = {1: 5, 2: 3, 3: 2}  # logits of the draft model, by gamma
FACTORS = (
    tuple(WIDTHS),
    (0.0, 0.7, 1.0),  # temperature
    (0, 2),  # top_k
    (('top_p', 0.0), ('top_p', 0.8), ('min_p', 0.4), ('typical_p', 0.7)),
    (None, 0.0, 1.6),  # temperature of the draft model
    tuple(combinations.RULES),
)


def make_program(gamma: int) -> step_programs.Program:
  """Return the program of a draft model that resembles the target."""
  width = WIDTHS[gamma]
  logits = 0.5 * table_model.random_logits(2, 2, VOCAB, width)
  common = min(width, VOCAB)
  logits[..., :common] += pairs.target_logits(VOCAB)[..., :common]
  drafter = draft_model.ModelDrafter(table_model.TextModel(width), gamma, VOCAB)
  pair = pairs.of_tables(
      drafter, logits, vocab_size=VOCAB, tolerance=1e-12, hints=None
  )
  return step_programs.Program(pair, draft_length.Fixed())


unmutated_program = functools.cache(make_program)


@pytest.mark.usefixtures('float64')
class TestEnumeratedDistribution:
  """Tier 3, exact: every path of the production step, weighted."""

  @pytest.mark.parametrize(
      ('gamma', 'temperature', 'top_k', 'cut', 'draft_temperature', 'rule'),
      exhaustive.all_but(
          combinations.pairwise(*FACTORS), itertools.product(*FACTORS)
      ),
      ids=str,
  )
  def test_each_pair_of_values(
      self, gamma, temperature, top_k, cut, draft_temperature, rule
  ):
    own = temperature if draft_temperature is None else draft_temperature
    program = unmutated_program(gamma).with_sampling(
        *(
            sampling_lib.Sampling(each, top_k, **dict([cut]))
            for each in (temperature, own)
        )
    )
    found = reachable.reach(
        program, combinations.rule_number(rule), combinations.enumerator(rule)
    )
    assert combinations.error(program, found) < program.pair.tolerance
    # The draft model draws from its own distribution, cut or padded.
    tables = program.pair.draft_params
    find_logits = lambda example, tokens: tables[
        example, *table_model.place(tokens)
    ]
    assert combinations.draft_error(program, find_logits) < 1e-12


def find_error() -> float:
  """Return how far outputs are from the target's, in a program of its own."""
  program, rule = make_program(gamma=2), verification.TOKENWISE
  found = reachable.reach(program, rule, rules_lib.Enumerator(rule))
  return combinations.error(program, found)


def _mutant_residual(target_probs, draft_probs):
  return target_probs


def _shared_uniforms(original):
  def accept(target_probs, draft, uniforms):
    shared = jnp.broadcast_to(uniforms[:, :1], uniforms.shape)
    return original(target_probs, draft, shared)

  return accept


def _counted_past_rejection(target_probs, draft, uniforms):
  tokens = draft.tokens[..., None]
  take = lambda probs: jnp.take_along_axis(probs, tokens, axis=-1)[..., 0]
  is_kept = verification.acceptance(
      take(target_probs[:, :-1]), take(draft.probs), uniforms
  )
  index = jnp.arange(is_kept.shape[1])
  return jnp.sum(
      is_kept & (index < draft.lengths[:, None]), axis=1, dtype=jnp.int32
  )


def _bonus_from_draft(original):
  def verify(target_probs, draft, accept_uniforms):
    probs = target_probs.at[:, -1].set(draft.probs[:, -1])
    return original(probs, draft, accept_uniforms)

  return verify


def _limit_ignored(setup, batch, state):
  return jnp.full_like(state.num_tokens, setup.drafter.form.gamma)


def _never_cut_short(original):
  """Patch the first of two calls per step, about the accepted tokens."""
  calls = itertools.count()

  def is_last(tokens, count, remaining, end):
    found = original(tokens, count, remaining, end)
    return jnp.zeros_like(found) if next(calls) % 2 == 0 else found

  return is_last


def _last_token_off_by_one(original):
  def inputs(sequences, first_tokens, index, block):
    return original(sequences, first_tokens, jnp.maximum(index - 1, 0), block)

  return inputs


MUTANTS = {
    'residual is p': (verification, 'residual', lambda _: _mutant_residual),
    'one uniform for all tests': (
        verification, '_accepted_prefix', _shared_uniforms,
    ),
    'accepts past a rejection': (
        verification, '_accepted_prefix', lambda _: _counted_past_rejection,
    ),
    'bonus token from the draft': (verification, 'verify', _bonus_from_draft),
    'the limit does not cut': (
        proposing, '_num_wanted', lambda _: _limit_ignored,
    ),
    'a token is drawn after the end': (
        committing, '_is_last', _never_cut_short,
    ),
    'last token one off': (state_lib, 'decoder_inputs', _last_token_off_by_one),
}  # fmt: skip


@pytest.mark.usefixtures('float64')
class TestMutantsFail:
  """Tier 4: every wrong rule, patched into production, must be detected."""

  @pytest.mark.parametrize(
      'name',
      exhaustive.all_but(
          [
              'residual is p',
              'accepts past a rejection',
              'a token is drawn after the end',
          ],
          MUTANTS,
      ),
  )
  def test_enumeration_detects(self, name, monkeypatch):
    module, attribute, mutate = MUTANTS[name]
    monkeypatch.setattr(module, attribute, mutate(getattr(module, attribute)))
    assert find_error() > 1e-3

  @pytest.mark.exhaustive
  def test_draft_tokens_past_the_end(self, monkeypatch):
    """A drafter may draft on after the end, and the step cuts the draft."""
    monkeypatch.setattr(
        proposing,
        '_continues',
        lambda setup, state, progress, logits, tokens: (
            jnp.ones(tokens.shape, bool), progress
        ),
    )  # fmt: skip
    assert find_error() < 1e-12
    monkeypatch.setattr(
        chain_step, '_count_draft_tokens', lambda draft, *_: draft.lengths
    )
    assert find_error() > 1e-3

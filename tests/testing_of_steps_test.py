# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the public checks of drafters and of draft length policies."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import testing
from speculative_t5x.loading import drafters
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.testing import table_model
from tests import repeat_last

# What follows each token.
BIGRAMS = np.array(
    [[0.2, 0.3, 0.5], [0.4, 0.2, 0.4], [0.45, 0.45, 0.1]], np.float32
)


@dataclasses.dataclass(frozen=True)
class Bigrams:
  """Draws each token by the one before it; its state counts the calls."""

  target: contracts.Model
  gamma: int

  @property
  def form(self):
    return forms.Chain(self.gamma, num_uniforms=self.gamma)

  def init(self, params, context, rows, slots):
    return None, jnp.zeros((rows,), jnp.int32)

  def first(self, view):
    """Return the last token of each row."""
    at = jnp.maximum(view.num_tokens - 1, 0)[:, None]
    last = jnp.take_along_axis(view.sequences, at, axis=1)[:, 0]
    return jnp.where(view.num_tokens > 0, last, 0)

  def propose(self, params, memory, state, view):
    last, tokens, probs = self.first(view), [], []
    (uniforms,) = view.uniforms.split(self.form.num_uniforms)
    for i in range(self.gamma):
      q = jnp.asarray(params)[last]
      last = sampling.draw(q, uniforms[:, i])
      tokens.append(last)
      probs.append(q)
    draft = contracts.Draft(
        jnp.stack(tokens, axis=1), view.num_wanted, jnp.stack(probs, axis=1)
    )
    return self.finish(draft), state + 1

  def finish(self, draft):
    return draft


def faulty(**methods) -> type[Bigrams]:
  return type('Faulty', (Bigrams,), methods)


def _drops_improbable_tokens(self, draft):
  """End its draft before a token of low probability."""
  q = jnp.take_along_axis(draft.probs, draft.tokens[..., None], axis=-1)
  is_sure = jnp.cumprod(q[..., 0] > 0.3, axis=1)
  lengths = jnp.minimum(draft.lengths, jnp.sum(is_sure, axis=1))
  return draft.replace(lengths=lengths)


class StatesAllTokens(Bigrams):
  """Draws with top-k, and states what it would draw from without."""

  def propose(self, params, memory, state, view):
    draft, state = super().propose(params, memory, state, view)
    (uniforms,) = view.uniforms.split(self.form.num_uniforms)
    logits = jnp.log(draft.probs)
    tokens = sampling.draw(
        sampling.standardize(logits, view.sampling), uniforms
    )
    off = view.sampling.replace(top_k=jnp.int32(0))
    probs = sampling.standardize(logits, off)
    return draft.replace(tokens=tokens, probs=probs), state


class TossesACoin(Bigrams):
  """Drafts nothing in a tenth of all calls, by a uniform of its own."""

  @property
  def form(self):
    return forms.Chain(self.gamma, num_uniforms=self.gamma + 1)

  def propose(self, params, memory, state, view):
    words = view.uniforms.values
    own = view._replace(
        uniforms=uniforms_lib.Uniforms(words[:, :-1], 'Bigrams')
    )
    inner = Bigrams(self.target, self.gamma)
    draft, state = inner.propose(params, memory, state, own)
    coin = uniforms_lib.coins(words[:, -1], jnp.float32)
    is_off = (coin < 0.1) & self.may_drop(draft)
    return draft.replace(lengths=jnp.where(is_off, 0, draft.lengths)), state

  def may_drop(self, draft):
    return draft.lengths > 0


class TossesACoinForSome(TossesACoin):

  def may_drop(self, draft):
    return draft.tokens[:, 0] == 2


class TossesTheSameCoin(Bigrams):
  """Drafts nothing where the uniform of the first token is small."""

  def propose(self, params, memory, state, view):
    draft, state = super().propose(params, memory, state, view)
    is_off = uniforms_lib.coins(view.uniforms.values[:, 0], jnp.float32) < 0.05
    return draft.replace(lengths=jnp.where(is_off, 0, draft.lengths)), state


class HintsUndeclared(Bigrams):

  def init(self, params, context, rows, slots):
    assert context.hints is None, 'there are hints'
    return super().init(params, context, rows, slots)


class HintsDeclared(HintsUndeclared):

  @property
  def form(self):
    return dataclasses.replace(super().form, reads_hints=True)


class CountsTheRows(Bigrams):
  """Drafts nothing where the rows are long on average."""

  def propose(self, params, memory, state, view):
    is_long = jnp.mean(view.num_tokens.astype(jnp.float32)) > 2
    draft, state = super().propose(params, memory, state, view)
    shorter = jnp.where(is_long, 0, draft.lengths)
    return draft.replace(lengths=shorter), state


def _spoils_the_target(self, *args):
  draft, state = Bigrams.propose(self, *args)
  spoilt = jnp.zeros_like(args[-1].target.cache)
  return draft.replace(target_cache=spoilt), state


def _grows(self, *args):
  draft, state = Bigrams.propose(self, *args)
  return draft, jnp.concatenate([state, state])


class TestCheckDrafter:

  def test_of_drawn_tokens(self):
    testing.check_drafter(Bigrams, BIGRAMS)

  @pytest.mark.exhaustive
  def test_of_tokens_that_are_not_drawn(self):
    testing.check_drafter(repeat_last.RepeatLast, gamma=3)
    assert not jax.config.jax_enable_x64

  @pytest.mark.parametrize(
      ('kind', 'message'),
      [
          (
              faulty(
                  finish=lambda self, draft: draft.replace(
                      probs=jnp.roll(draft.probs, 1, axis=-1)
                  )
              ),
              r'drew \(.*where the distributions that it stat',
          ),
          (StatesAllTokens, 'where the distributions that it states'),
          (TossesACoinForSome, 'drawn and left untested'),
          (TossesTheSameCoin, 'drawn and left untested'),
          (
              faulty(
                  first=lambda self, view: Bigrams.first(self, view)[::-1]
              ),
              'depend on the other rows of its batch',
          ),
          (CountsTheRows, 'depend on the other rows of its batch'),
          (
              faulty(init=lambda self, *args: (None, jnp.int32(0))),
              'one entry per row',
          ),
          (
              faulty(propose=_spoils_the_target),
              r'temperature 1, example \d, does not keep .* is 0\.\d+, and '
              r'0\.0001 is allowed',
          ),
      ],
      ids=str,
  )
  def test_of_a_fault(self, kind, message):
    with pytest.raises(AssertionError, match=message) as error:
      testing.check_drafter(kind, BIGRAMS)
    assert f'The drafter {kind.__name__} with the policy fixed' in str(
        error.value
    )

  @pytest.mark.parametrize(
      ('drafter', 'params'),
      [
          (Bigrams(table_model.TextModel(3), 1), BIGRAMS),
          (drafters.Drafting(Bigrams, params=BIGRAMS), None),
          (drafters.Lookup(2), None),
      ],
      ids=['a drafter', 'a drafting', 'a choice'],
  )
  def test_of_what_decoders_take(self, drafter, params):
    testing.check_drafter(drafter, params, temperatures=(0.0,))

  def test_of_a_drafter_that_is_made(self):
    faults = faulty(finish=_drops_improbable_tokens)
    drafter = faults(table_model.TextModel(3), 2)
    with pytest.raises(AssertionError, match='drawn and left untested'):
      testing.check_drafter(drafter, BIGRAMS, temperatures=(1.0,))
    with pytest.raises(ValueError, match='has gamma 2'):
      testing.check_drafter(drafter, BIGRAMS, gamma=3)
    with pytest.raises(ValueError, match='EarlyExit.*check_pair'):
      testing.check_drafter(drafters.EarlyExit(1))

  def test_of_a_coin_that_knows_no_token(self):
    testing.check_drafter(TossesACoin, BIGRAMS, temperatures=(1.0,))

  def test_has_hints_only_if_it_reads_them(self):
    testing.check_drafter(HintsUndeclared, BIGRAMS, temperatures=(0.0,))
    with pytest.raises(AssertionError, match='there are hints'):
      testing.check_drafter(HintsDeclared, BIGRAMS, temperatures=(0.0,))

  def test_state_of_another_shape(self):
    with pytest.raises(ValueError, match='Faulty returned its state wit'):
      testing.check_drafter(faulty(propose=_grows), BIGRAMS)


@dataclasses.dataclass(frozen=True)
class Alternating(draft_length.DraftsOn):
  """Wants one and two draft tokens alternately, by its state."""

  name = 'alternating'
  is_constant = False

  def init(self, rows):
    return jnp.ones((rows,), jnp.int32)

  def num_wanted(self, state, num_remaining, gamma):
    return state

  def update(self, state, outcome):
    return jnp.where(outcome.is_active, 3 - state, state)


class OfTheOtherRow(Alternating):

  def update(self, state, outcome):
    return jnp.where(jnp.roll(outcome.num_accepted, 1) > 0, 2, 1)


class EndsWithOthers(Alternating):
  """Wants fewer once any row of the batch has ended."""

  def init(self, rows):
    return jnp.full((rows,), 2)

  def update(self, state, outcome):
    return jnp.where(jnp.any(outcome.has_ended), 1, state)


class OfManyRows(Alternating):
  """Begins with fewer in a large batch."""

  def init(self, rows):
    return jnp.full((rows,), 1 if rows > 8 else 2)


class StopsForOtherTokens(Alternating):
  """Asks about the token of the first row."""

  def continues(self, state, progress, logits, tokens, gamma):
    return jnp.full(tokens.shape, tokens[0] == 2), progress

  def num_wanted(self, state, num_remaining, gamma):
    return jnp.full_like(num_remaining, gamma)


class OneNumber(Alternating):

  def init(self, rows):
    return jnp.int32(1)

  def num_wanted(self, state, num_remaining, gamma):
    return jnp.full_like(num_remaining, gamma)

  def update(self, state, outcome):
    return state


class SaysConstant(Alternating):
  is_constant = True


class TestCheckPolicy:
  """`readme_test.py` has an exact policy."""

  @pytest.mark.parametrize(
      ('kind', 'message'),
      [
          (OfTheOtherRow, 'depend on the other rows of its batch'),
          (EndsWithOthers, 'depend on the other rows of its batch'),
          (OfManyRows, 'in every batch and place'),
          (StopsForOtherTokens, 'depend on the other rows of its batch'),
          (OneNumber, 'one entry per row'),
          (SaysConstant, r'is_constant = True, .* drafts of \[1, 2\] tokens'),
      ],
      ids=lambda value: getattr(value, '__name__', ''),
  )
  def test_of_a_fault(self, kind, message):
    with pytest.raises(AssertionError, match=message):
      testing.check_policy(kind())

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Acceptance on given text, beside the laws one by one and the loop itself."""

import dataclasses
import functools

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.measurement import acceptance
from speculative_t5x.measurement import intervals
from speculative_t5x.networks import t5_model
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import theory
from tests import tiny

ROWS, LENGTH, GAMMA, OTHER_GAMMA = 32, 12, 3, 5
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
INPUTS = tiny.encoder_tokens(ROWS, 9)


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(
      tiny.model(CONFIG),
      draft_model.from_model(tiny.model(CONFIG, noise=0.15)),
      gamma=GAMMA,
      length=LENGTH,
      matmul_precision='highest',
  )


def request(
    seed=0, temperature=1.0, topk=0, limits=LENGTH, draft_temperature=None
):
  law = draft_law = sampling_lib.make_sampling(temperature, topk)
  if draft_temperature is not None:
    draft_law = sampling_lib.make_sampling(draft_temperature)
  return token_decoder.Request(
      INPUTS,
      jnp.arange(ROWS, dtype=jnp.int32),
      jnp.broadcast_to(jnp.asarray(limits, jnp.int32), (ROWS,)),
      jnp.int32(seed),
      law,
      draft_law,
  )


def plain_texts(**options):
  """What the target writes, and its scores."""
  asked = request(**options)
  decoded = jax.device_get(decoder().plain(asked))
  return decoded, acceptance.score(decoder(), asked, decoded)


def recorded(**options):
  """A speculative run, its scores, and at which tokens blocks began."""
  asked = request(**options)
  decoded = jax.device_get(decoder().speculative(asked))
  trace = jax.device_get(decoder().traced(asked))
  starts = [
      row[:num].tolist()
      for row, num in zip(trace.outcomes.num_before.T, decoded.num_calls)
  ]
  return decoded, acceptance.score(decoder(), asked, decoded), starts


@functools.partial(jax.jit, static_argnums=0)
def _one_by_one(config, params, sequences, sampling):
  """The law of each token by a call of its own, [rows, length, vocab]."""
  _, context = t5_model.encode(config, params, INPUTS)
  network = t5_model.T5Model(config)

  def step(carry, token):
    cache, fed, position = carry
    logits, cache = network.decode(
        params, context, cache, fed[:, None], position, None
    )
    law = sampling_lib.standardize(logits[:, 0], sampling)
    return (cache, token, position + 1), law

  start = jnp.zeros((ROWS,), jnp.int32)
  cache = network.init_cache(ROWS, LENGTH)
  _, laws = lax.scan(step, (cache, start, start), sequences.T)
  return jnp.moveaxis(laws, 0, 1)


def laws_of(model, decoded, sampling):
  with jax.default_matmul_precision('highest'):
    return np.asarray(
        _one_by_one(
            model.config, model.params, jnp.asarray(decoded.sequences), sampling
        )
    )


def expected_calls(texts, gamma=GAMMA):
  return np.array(
      [theory.expected_calls(t.acceptance_probs, gamma) for t in texts]
  )


class TestScore:

  @pytest.mark.parametrize(
      'law',
      [dict(temperature=0.0), dict(), dict(topk=4, draft_temperature=0.6)],
      ids=['greedy', 'sampled', 'two samplings'],
  )
  def test_is_that_of_the_laws_token_by_token(self, law):
    asked = request(**law)
    decoded, texts = plain_texts(**law)
    target = laws_of(decoder().target, decoded, asked.sampling)
    (model,) = decoder().loaded_drafter.models
    draft = laws_of(model, decoded, asked.draft_sampling)
    betas = theory.acceptance_probability(target, draft)
    take = lambda laws: np.take_along_axis(
        laws, decoded.sequences[..., None], axis=-1
    )[..., 0]
    written, guessed = take(target), take(draft)
    assert len(texts) == ROWS
    for row, text in enumerate(texts):
      at = np.s_[row, : decoded.num_tokens[row]]
      acceptance_probs = np.minimum(guessed[at] / written[at], 1)
      assert text.betas.shape == acceptance_probs.shape
      np.testing.assert_allclose(text.betas, betas[at], atol=2e-5)
      np.testing.assert_allclose(
          text.acceptance_probs, acceptance_probs, atol=1e-4
      )
    # Neither nothing nor everything is kept, or this would show little.
    assert 0.1 < np.concatenate([t.betas for t in texts]).mean() < 0.95

  def test_a_draft_that_is_the_target(self):
    """Probabilities add up to a little more than 1 now and then."""
    same = decoder().with_drafter(
        draft_model.from_model(decoder().target), GAMMA
    )
    asked = request()
    decoded = jax.device_get(same.plain(asked))
    betas = [text.betas for text in acceptance.score(same, asked, decoded)]
    np.testing.assert_allclose(np.concatenate(betas), 1, atol=1e-6)
    assert intervals.estimate_alpha(betas).value <= 1

  def test_greedy_texts_are_kept_or_not(self):
    _, texts = plain_texts(temperature=0.0)
    betas = np.concatenate([text.betas for text in texts])
    assert set(betas.tolist()) == {0.0, 1.0}
    acceptance_probs = np.concatenate([text.acceptance_probs for text in texts])
    np.testing.assert_array_equal(betas, acceptance_probs)

  def test_rows_that_only_fill_the_batch_have_no_text(self):
    decoded, texts = plain_texts(limits=np.where(np.arange(ROWS) < 3, 5, 0))
    assert [len(text.betas) for text in texts] == decoded.num_tokens[
        :3
    ].tolist()


class TestTheLoop:
  """What is scored is what happens when guesses are made."""

  def test_greedy_guesses_are_kept_where_it_says_so(self):
    decoded, texts, starts = recorded(temperature=0.0)
    tested = list(_tested(decoded, texts, starts))
    assert {kept for kept, _ in tested} == {True, False}
    assert all(kept == beta for kept, beta in tested)

  def test_sampled_guesses_are_kept_as_often(self):
    """Each tested guess is kept with its beta, whatever came before."""
    tested = []
    for seed in range(20):
      tested += _tested(*recorded(seed=seed))
    kept, betas = np.array(tested, float).T
    deviation = np.sqrt(np.sum(betas * (1 - betas)))
    assert len(kept) > 2000
    assert abs(np.sum(kept - betas)) < 5 * deviation
    # Beta and alpha are told apart from one another, and from no beta at all.
    assert abs(np.sum(kept - betas**2)) > 5 * deviation

  @pytest.mark.parametrize('gamma', [GAMMA, OTHER_GAMMA])
  def test_greedy_calls_are_known_exactly(self, gamma):
    asked = request(temperature=0.0)
    written, texts = plain_texts(temperature=0.0)
    found = _speculative(gamma)(asked)
    np.testing.assert_array_equal(found.sequences, written.sequences)
    np.testing.assert_array_equal(found.num_calls, expected_calls(texts, gamma))
    assert len(set(found.num_calls.tolist())) > 3

  def test_sampled_calls_given_the_text(self):
    """The mean over runs that wrote these very texts."""
    differences, others = [], []
    for seed in range(20):
      decoded, texts, _ = recorded(seed=seed)
      differences.append(decoded.num_calls - expected_calls(texts))
      others.append(decoded.num_calls - expected_calls(texts, GAMMA - 1))
    assert _sigmas(np.concatenate(differences)) < 5
    assert _sigmas(np.concatenate(others)) > 5

  def test_sampled_calls_of_other_texts_of_the_target(self):
    """What a job knows: texts of plain decoding, not those of the run."""
    expected, calls = [], []
    for seed in range(20):
      expected.append(expected_calls(plain_texts(seed=seed)[1]))
      calls.append(recorded(seed=100 + seed)[0].num_calls)
    expected, calls = np.concatenate(expected), np.concatenate(calls)
    error = np.sqrt((expected.var() + calls.var()) / calls.size)
    assert abs(expected.mean() - calls.mean()) < 5 * error
    assert error < 0.02 * calls.mean()


def _tested(decoded, texts, starts):
  """Whether each tested guess was kept, and its beta."""
  for row, text in enumerate(texts):
    num_tokens = int(decoded.num_tokens[row])
    for start, end in zip(starts[row], [*starts[row][1:], num_tokens]):
      # Kept guesses and one token drawn, but where the row ended before.
      is_cut_short = end == num_tokens and decoded.statistics.num_cut_short[row]
      num_kept = end - start - (not is_cut_short)
      for position in range(start, start + num_kept):
        yield True, text.betas[position]
      is_rejected = num_kept < GAMMA and start + num_kept < end
      if is_rejected:
        yield False, text.betas[start + num_kept]


@functools.cache
def _speculative(gamma):
  other = decoder().with_drafter(decoder().loaded_drafter, gamma)
  return lambda asked: jax.device_get(other.speculative(asked))


def _sigmas(differences):
  error = differences.std() / np.sqrt(differences.size)
  return abs(differences.mean()) / error


class TestCollect:

  def test_stops_when_there_are_enough(self):
    asked = []

    def requests():
      for seed in range(10):
        asked.append(seed)
        yield request(seed=seed)

    first = sum(len(t.betas) for t in plain_texts()[1])
    found = acceptance.collect(decoder(), requests(), first + 1)
    # Whole batches, and none that is not needed.
    assert asked == [0, 1]
    assert len(found) == 2 * ROWS
    np.testing.assert_array_equal(found[0].betas, plain_texts()[1][0].betas)

  def test_ends_with_the_requests(self):
    found = acceptance.collect(decoder(), [request()], 10**6)
    assert len(found) == ROWS

  def test_logits_that_are_not_finite(self):
    model = decoder().target
    broken = token_decoder.TokenDecoder(
        dataclasses.replace(
            model, params=jax.tree.map(lambda x: x * jnp.nan, model.params)
        ),
        decoder().loaded_drafter,
        gamma=GAMMA,
        length=LENGTH,
        matmul_precision='highest',
    )
    with pytest.raises(ValueError, match='logits are not finite'):
      acceptance.collect(broken, [request()], 1)

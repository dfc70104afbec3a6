# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of acceptance on given text."""

import dataclasses
import functools

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import theory
from tests import tiny

ROWS, LENGTH, GAMMA, OTHER_GAMMA = 32, 12, 3, 5
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
INPUTS = tiny.encoder_tokens(ROWS, 9)


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return tiny.decoder(
      CONFIG, gamma=GAMMA, length=LENGTH, matmul_precision='highest'
  )


def request(
    seed=0, temperature=1.0, topk=0, limits=LENGTH, draft_temperature=None
):
  sampling = draft_sampling = sampling_lib.Sampling(temperature, topk)
  if draft_temperature is not None:
    draft_sampling = sampling_lib.Sampling(draft_temperature)
  return requests_lib.Request(
      INPUTS,
      jnp.arange(ROWS, dtype=jnp.int32),
      jnp.broadcast_to(jnp.asarray(limits, jnp.int32), (ROWS,)),
      jnp.int32(seed),
      sampling,
      draft_sampling,
  )


def plain_texts(**options):
  """Returns the plain outputs of the target, and their scores."""
  asked = request(**options)
  decoded = jax.device_get(decoder().plain(asked))
  return decoded, acceptance.score(decoder(), asked, decoded)


def recorded(**options):
  """Returns a speculative run, its scores, and where blocks began."""
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
  """Returns the distribution of each token, one call per token."""
  _, context = tiny.encode(config, params, INPUTS)
  network = network_lib.NetworkModel(config, t5.SPECIAL_IDS)

  def step(carry, token):
    cache, fed, position = carry
    logits, cache = network.decode(
        params, context, cache, fed[:, None], position, None
    )
    distribution = sampling_lib.standardize(logits[:, 0], sampling)
    return (cache, token, position + 1), distribution

  start = jnp.zeros((ROWS,), jnp.int32)
  cache = config.init_cache(ROWS, LENGTH)
  _, distributions = lax.scan(step, (cache, start, start), sequences.T)
  return jnp.moveaxis(distributions, 0, 1)


def distributions_of(model, decoded, sampling):
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
      'settings',
      [dict(temperature=0.0), dict(), dict(topk=4, draft_temperature=0.6)],
      ids=['greedy', 'sampled', 'two samplings'],
  )
  def test_scores_match_distributions_per_token(self, settings):
    asked = request(**settings)
    decoded, texts = plain_texts(**settings)
    target = distributions_of(decoder().target, decoded, asked.sampling)
    (model,) = decoder().loaded_drafter.models
    draft = distributions_of(model, decoded, asked.draft_sampling)
    betas = theory.acceptance_probability(target, draft)
    take = lambda distributions: np.take_along_axis(
        distributions, decoded.sequences[..., None], axis=-1
    )[..., 0]
    written, drafted = take(target), take(draft)
    assert len(texts) == ROWS
    for row, text in enumerate(texts):
      at = np.s_[row, : decoded.num_tokens[row]]
      acceptance_probs = np.minimum(drafted[at] / written[at], 1)
      assert text.betas.shape == acceptance_probs.shape
      np.testing.assert_allclose(text.betas, betas[at], atol=2e-5)
      np.testing.assert_allclose(
          text.acceptance_probs, acceptance_probs, atol=1e-4
      )
    # Some draft tokens are accepted and some rejected.
    assert 0.1 < np.concatenate([t.betas for t in texts]).mean() < 0.95

  def test_padding_rows_have_no_text(self):
    decoded, texts = plain_texts(limits=np.where(np.arange(ROWS) < 3, 5, 0))
    assert [len(text.betas) for text in texts] == decoded.num_tokens[
        :3
    ].tolist()


class TestTheLoop:
  """Scores predict the acceptance of draft tokens in the loop."""

  def test_greedy_acceptance_in_the_loop(self):
    decoded, texts, starts = recorded(temperature=0.0)
    tested = list(_tested(decoded, texts, starts))
    assert {accepted for accepted, _ in tested} == {True, False}
    assert all(accepted == beta for accepted, beta in tested)

  @pytest.mark.parametrize('gamma', [GAMMA, OTHER_GAMMA])
  def test_greedy_calls(self, gamma):
    asked = request(temperature=0.0)
    written, texts = plain_texts(temperature=0.0)
    found = _speculative(gamma)(asked)
    np.testing.assert_array_equal(found.sequences, written.sequences)
    np.testing.assert_array_equal(found.num_calls, expected_calls(texts, gamma))
    assert len(set(found.num_calls.tolist())) > 3


def _tested(decoded, texts, starts):
  """Returns whether each tested draft token was accepted, and its beta."""
  for row, text in enumerate(texts):
    num_tokens = int(decoded.num_tokens[row])
    for start, end in zip(starts[row], [*starts[row][1:], num_tokens]):
      # A block is its accepted tokens and one more, unless it was cut short.
      is_cut_short = end == num_tokens and decoded.statistics.num_cut_short[row]
      num_accepted = end - start - (not is_cut_short)
      for position in range(start, start + num_accepted):
        yield True, text.betas[position]
      is_rejected = num_accepted < GAMMA and start + num_accepted < end
      if is_rejected:
        yield False, text.betas[start + num_accepted]


@functools.cache
def _speculative(gamma):
  other = decoder().with_drafter(decoder().loaded_drafter, gamma)
  return lambda asked: jax.device_get(other.speculative(asked))


class TestCollect:

  def test_stops_after_enough_tokens(self):
    asked = []

    def requests():
      for seed in range(10):
        asked.append(seed)
        yield request(seed=seed)

    first = sum(len(t.betas) for t in plain_texts()[1])
    found = acceptance.collect(decoder(), requests(), first + 1)
    # Batches are complete, and no unneeded batch is decoded.
    assert asked == [0, 1]
    assert len(found) == 2 * ROWS
    np.testing.assert_array_equal(found[0].betas, plain_texts()[1][0].betas)

  def test_non_finite_logits(self):
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

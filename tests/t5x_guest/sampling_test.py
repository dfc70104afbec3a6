# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that samples in T5X follow T5X's own logits, for various arguments.

The logits of both models for the sampled texts come from T5X's networks, and
top-k and top-p from T5X's masks.
"""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from t5x import binary_search
from t5x import decoding

from speculative_t5x import t5x_guest
from tests import tiny
from tests.t5x_guest import limits
from tests.t5x_guest import tiny_pair

EXAMPLES, DECODES, LENGTH = 24, 8, tiny_pair.LENGTH
TARGET = tiny.config()
# Unlike its target. With more draft tokens per block than a text has tokens,
# each token of a text is either an accepted draft token or a resampled one.
DRAFT = tiny.config(
    vocab_size=80, emb_dim=24, num_heads=3, head_dim=8, mlp_dim=40,
    num_encoder_layers=1, num_decoder_layers=1,
    mlp_activations=('tanh', 'linear'),
)  # fmt: skip
GAMMA = LENGTH
BASE = dict(temperature=0.9, topk=0, topp=0.0, draft_temperature=0.9, seed=0)
SIGMAS = 5


@functools.cache
def params():
  return {'target': tiny.params(TARGET), 'draft': tiny.params(DRAFT)}


@functools.cache
def sampled(**changes):
  """Returns texts [rows, length], and auxiliary values [rows]."""
  found = jax.device_get(_compiled()(params(), BASE | changes))
  return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), found)


@functools.cache
def _compiled():
  model = tiny_pair.model(
      pair=tuple(map(tiny_pair.transformer, (TARGET, DRAFT))),
      gamma=GAMMA,
  )
  return jax.jit(
      lambda params, options: model.predict_batch_with_aux(
          params,
          tiny_pair.batch(EXAMPLES),
          decoder_params=options,
          num_decodes=DECODES,
          return_all_decodes=True,
      )
  )


@functools.cache
def t5xs_logits(role, config):
  """Returns the function from texts to logits of T5X's network of a role."""
  network = tiny_pair.transformer(config)
  inputs = tiny_pair.batch(EXAMPLES)['encoder_input_tokens']
  inputs = jnp.repeat(inputs, DECODES, axis=0)

  @jax.jit
  def logits(params, texts):
    fed = jnp.pad(texts[:, :-1], ((0, 0), (1, 0)))
    # This only marks padding; token 0 can be sampled like any other.
    not_padding = jnp.ones_like(texts)
    return network.apply(
        {'params': params}, inputs, fed, not_padding, enable_dropout=False
    )

  return functools.partial(logits, params()[role])


def probabilities(logits, temperature, topk, topp):
  """Returns probabilities by T5X's masks."""
  logits = logits / temperature
  if topk:
    logits = binary_search.topk_mask(logits, topk, decoding.NEG_INF)
  if topp:
    logits = binary_search.topp_mask(logits, topp, decoding.NEG_INF)
  return np.asarray(jax.nn.softmax(logits), np.float64)


def both_probabilities(texts, draft_temperature, temperature, topk, topp):
  """Returns probabilities of target and draft model, [rows, length, vocab]."""
  of_target = t5xs_logits('target', TARGET)(texts)
  of_draft = t5xs_logits('draft', DRAFT)(texts)[..., : TARGET.vocab_size]
  return (
      probabilities(of_target, temperature, topk, topp),
      probabilities(of_draft, draft_temperature, topk, topp),
  )


def is_written(texts, num_tokens):
  return np.arange(texts.shape[1]) < num_tokens[:, None]


def deviation(hits, chances, is_counted):
  """Returns a count's distance from its mean, in standard deviations."""
  chances = chances[is_counted]
  variance = np.sum(chances * (1 - chances))
  return (np.sum(hits) - np.sum(chances)) / np.sqrt(variance)


@pytest.mark.parametrize(
    'changes',
    [
        {}, {'temperature': 0.4}, {'topk': 4}, {'topp': 0.6},
        {'draft_temperature': 3.0}, {'seed': 5},
    ],
    ids=lambda changes: '-'.join(changes) or 'none',
)  # fmt: skip
class TestSampling:

  def test_texts_follow_the_targets_distribution(self, changes):
    """Tokens fall into any set of them with the frequency of its mass."""
    rules = {k: v for k, v in (BASE | changes).items() if k != 'seed'}
    texts, aux = sampled(**changes)
    written = is_written(texts, aux['tokens'])
    target, _ = both_probabilities(texts, **rules)
    chances = np.take_along_axis(target, texts[..., None], -1)[..., 0]
    assert (chances[written] > 0).all()
    np.testing.assert_allclose(
        aux['scores'],
        np.sum(np.log(np.where(written, chances, 1)), axis=1),
        atol=2e-3,
    )
    likelier = chances[..., None] < target
    sets = np.random.default_rng(1).random((6, TARGET.vocab_size)) < 0.5
    for each in sets:
      hits = each[texts[written]]
      assert abs(deviation(hits, target @ each, written)) < SIGMAS
    # Sorted by rank, because a temperature moves mass between ranks.
    first = likelier.sum(-1) == 0
    largest = target.max(-1)
    assert abs(deviation(first[written], largest, written)) < SIGMAS

  def test_number_of_accepted_draft_tokens(self, changes):
    """The probability of acceptance is the sum of min(p, q)."""
    rules = {k: v for k, v in (BASE | changes).items() if k != 'seed'}
    texts, aux = sampled(**changes)
    np.testing.assert_array_equal(aux['tested'], aux['tokens'])
    target, draft = both_probabilities(texts, **rules)
    alpha = np.minimum(target, draft).sum(-1)
    written = is_written(texts, aux['tokens'])
    assert abs(deviation(aux['accepted'], alpha, written)) < SIGMAS
    if 'draft_temperature' in changes:
      # The target's temperature would give a very different number.
      _, other = both_probabilities(texts, **rules | {'draft_temperature': 0.9})
      alpha = np.minimum(target, other).sum(-1)
      assert abs(deviation(aux['accepted'], alpha, written)) > 2 * SIGMAS


def test_defaults_are_t5xs():
  theirs = inspect.signature(decoding.temperature_sample).parameters
  ours = inspect.signature(t5x_guest.speculative_sample).parameters
  shared = ours.keys() & theirs.keys() - {'num_decodes', 'eos_id'}
  assert len(shared) == 8
  for name in shared:
    assert ours[name].default == theirs[name].default, name


@pytest.mark.parametrize(('max_steps', 'hard_limit', 'tokens'), limits.CASES)
def test_limits_are_t5xs(max_steps, hard_limit, tokens):
  """The decode functions take T5X's limits, see `samplers_test`."""
  shape = limits.EXAMPLES, limits.LENGTH

  @jax.jit
  def decode(steps):
    return decoding.temperature_sample(
        jnp.zeros(shape, jnp.int32),
        {},
        lambda state: (jnp.tile(jnp.arange(4.0), (shape[0], 1)), state.cache),
        eos_id=1,
        max_decode_steps=steps,
        max_decode_steps_hard_limit=hard_limit,
    )[0]

  texts = decode(max_steps)
  np.testing.assert_array_equal(np.sum(texts[:, 0] > 0, axis=-1), tokens)

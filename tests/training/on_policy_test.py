# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the draft's own decodes as training data."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import t5
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import feed
from speculative_t5x.training import on_policy
from tests import exhaustive
from tests import tiny

_CONFIG = tiny.config(vocab_size=9, num_encoder_layers=1, num_decoder_layers=2)
_LENGTH = 7


def _params(seed):
  return tiny.params(_CONFIG, noise=float(seed))


def _own_encoder():
  return _objective(_CONFIG), _params(1), _params(1)


def _targets_encoder():
  # The draft has embeddings of its own, which the encoder must not read.
  embedder = jax.tree.map(lambda x: -x, _params(0)['token_embedder'])
  params = {'decoder': _params(1)['decoder'], 'token_embedder': embedder}
  return _objective(_CONFIG.on_features(_CONFIG.emb_dim)), params, None


def _exit_head():
  config = _CONFIG.first_layers(2).with_own_head()
  head = _CONFIG.take_head(_params(1))
  whole = {**_params(0), **_decoder(head)}
  return _objective(config, exit_layer=2), head, whole


def _decoder(head):
  return {'decoder': {**_params(0)['decoder'], **head['decoder']}}


def _inputs(count):
  rng = np.random.default_rng(0)
  return rng.integers(2, 9, (count, 5)).astype(np.int32)


def _objective(draft, exit_layer=None):
  return distillation.Distillation(
      _params(0), _CONFIG, draft, divergences.forward_kl, exit_layer
  )


def _samples(objective, temperature=1.0):
  return on_policy.Samples(
      objective,
      on_policy.Settings(share=0.5, period=2, temperature=temperature),
      t5.SPECIAL_IDS,
      batch_size=4,
      seed=3,
  )


def _plain(params, inputs, ids, temperature):
  """Return the decoder's outputs for a whole network, as targets."""
  target = models.make_model(_CONFIG, params)
  special_ids = dataclasses.replace(target.special_ids, forbidden=(0,))
  decoder = token_decoder.TokenDecoder(
      dataclasses.replace(target, special_ids=special_ids),
      drafting.Drafting(),
      gamma=1,
      max_tokens=_LENGTH,
  )
  (request,) = tiny.batches(
      inputs, length=_LENGTH, example_ids=ids, seed=3,
      sampling=sampling_lib.Sampling(temperature),
  )  # fmt: skip
  decoded = whole_batches.decode(decoder.alone, request)
  is_token = np.arange(_LENGTH) < decoded.num_tokens[:, None]
  return np.where(is_token, decoded.sequences, contracts.NO_TOKEN)


class TestSamples:

  @pytest.mark.parametrize(
      ('make', 'temperature'),
      exhaustive.all_but(
          [(_own_encoder, 1.0), (_exit_head, 0.0)],
          itertools.product([_own_encoder, _exit_head], [0.0, 1.0]),
      ),
  )
  def test_are_outputs_of_the_network(self, make, temperature):
    objective, params, whole = make()
    inputs, ids = _inputs(6), np.arange(20, 26, dtype=np.int32)
    found = _samples(objective, temperature).draw(params, inputs, ids, _LENGTH)
    np.testing.assert_array_equal(
        found, _plain(whole, inputs, ids, temperature)
    )

  def test_reads_the_encoder_of_the_target(self):
    """Greedy tokens are the argmax of the draft's teacher-forced logits."""
    objective, params, _ = _targets_encoder()
    samples = _samples(objective, temperature=0.0)
    inputs = _inputs(4)
    found = samples.draw(params, inputs, np.arange(4, dtype=np.int32), _LENGTH)
    _, logits = objective.logits(params, batches.TokenPairs(inputs, found))
    is_token = found >= 0
    np.testing.assert_array_equal(
        found[is_token], 1 + np.asarray(logits[..., 1:].argmax(-1))[is_token]
    )
    assert is_token.sum() > 8


class _Eights:
  """Samples that consist of 8, which no example has."""

  period = 4
  num_per_batch = 3

  def __init__(self):
    self.ids = []

  def draw(self, params, inputs, sample_ids, length):
    del params
    self.ids.append(sample_ids.tolist())
    return np.full((len(inputs), length), 8, np.int32)


def test_a_share_of_each_batch_is_replaced():
  """Samples take the place of targets of the same inputs, drawn once."""
  first = np.arange(40, dtype=np.int32) + 1
  examples = batches.TokenPairs(
      np.stack([first, first], axis=1), np.full((40, 8), 2, np.int32)
  )
  settings = dict(train_steps=10, batch_size=8, steps_per_call=3, seed=0)
  samples = _Eights()
  plain = feed.Feed(examples, **settings)
  sampling = feed.Feed(examples, **settings, samples=samples)
  calls = [(0, 3), (3, 4), (4, 6), (6, 8), (8, 10)]
  for call in calls:
    one, expected = (
        given.take(indices)
        for given, indices in (
            each.batches(*call, params=None) for each in (plain, sampling)
        )
    )
    np.testing.assert_array_equal(expected.inputs, one.inputs)
    is_sample = (expected.targets == 8).all(axis=-1)
    assert is_sample.tolist() == [[True] * 3 + [False] * 5] * len(one.inputs)
  # Steps 0 to 3, 4 to 7, and 8 to 9, three samples each.
  assert samples.ids == [[*range(12)], [*range(12, 24)], [*range(24, 30)]]

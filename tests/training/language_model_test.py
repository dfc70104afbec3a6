# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of decoders alone that are trained, with id 0 as a token of texts."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from speculative_t5x.speculation import contracts
from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from speculative_t5x.training import on_policy
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from tests import tiny_decoders

_CONFIG = dataclasses.replace(
    tiny_decoders.CONFIGS['gpt2'], vocab_size=8, emb_dim=16, num_layers=1,
    num_heads=2, num_kv_heads=2, head_dim=8, mlp_dim=32, max_positions=16,
)  # fmt: skip
# The end is 1. Prompts have unequal lengths.
_PROMPTS = [[2], [2, 3], [3, 0, 4]]
_TEXTS = [[0, 4, 0, 0, 5, 1], [0, 1], [6, 0, 7, 1]]
_LENGTH = 6


def _examples():
  return batches.pad(_PROMPTS, _TEXTS, _CONFIG, 'it')


def _train(objective, params, num_steps):
  """Return the parameters after some steps on all examples."""
  optimizer = adafactor.make(
      schedules.linear_decay(
          train_steps=num_steps, learning_rate=0.1, warmup_steps=5
      )
  )
  state, _ = steps.make_train_steps(seed=0)(
      objective,
      adafactor.start(optimizer, params),
      jax.device_put(_examples()),
      np.tile(np.arange(3, dtype=np.int32), (num_steps, 1)),
  )
  return state.params


@functools.cache
def _trained():
  objective = cross_entropy.CrossEntropy(_CONFIG)
  return objective, _train(objective, steps.init_params(_CONFIG, 0), 150)


def _distillation():
  return distillation.Distillation(
      _trained()[1], _CONFIG, _CONFIG, divergences.forward_kl
  )


_score = jax.jit(_CONFIG.score)


def test_writes_the_texts_that_it_was_trained_on():
  """As samples of a draft at temperature 0, which are texts to train on."""
  samples = on_policy.Samples(
      _distillation(),
      on_policy.Settings(share=1.0, temperature=0.0),
      # As in checkpoints that pad with the end of sequence.
      dataclasses.replace(_CONFIG.special_ids, end=1, padding=1),
      batch_size=2,  # so that the last batch is filled up
      seed=0,
  )
  found = samples.draw(
      _trained()[1], _examples().inputs, np.arange(3, dtype=np.int32), _LENGTH
  )
  np.testing.assert_array_equal(found, _examples().targets)
  assert (found == contracts.NO_TOKEN).sum() == 6


def test_every_token_counts():
  objective, params = _trained()
  validate = cross_entropy.validation(
      objective, batches.in_order(_examples(), 2)
  )
  found = validate(params)
  assert found['accuracy'] == 1
  assert found['loss'] < 0.5
  loss = jax.jit(type(objective).loss)
  _, metrics = loss(objective, params, _examples(), jax.random.key(0))
  assert metrics.num_tokens == sum(map(len, _TEXTS))


def test_draft_learns_the_target():
  objective = _distillation()
  validate = draft_acceptance.validation(
      objective, {t: batches.in_order(_examples(), 3) for t in (0, 1)}
  )
  fresh = steps.init_params(_CONFIG, 1)
  before, after = map(validate, (fresh, _train(objective, fresh, 150)))
  assert before['acceptance_t0'] < 0.7 < after['acceptance_t0']
  assert before['acceptance_t1'] < 0.7 < after['acceptance_t1']
  assert after['divergence_t1'] < 0.5 * before['divergence_t1']


@pytest.mark.parametrize('prompt', [[2], [2, 3, 4, 5]])
def test_padding_has_no_part(prompt):
  """Neither behind a prompt nor behind a text."""
  _, params = _trained()
  alone = batches.pad([prompt], [[0, 1]], _CONFIG, 'it')
  beside = batches.pad([prompt, [6] * 5], [[0, 1], [7] * 5], _CONFIG, 'it')
  one, both = (
      _score(params, x.inputs, x.targets) for x in (alone, beside)
  )
  np.testing.assert_allclose(one[0], both[0, :2], rtol=1e-5, atol=1e-5)

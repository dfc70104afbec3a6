# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distillation in T5X: the loss, and what is trained."""

import dataclasses
import functools

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import tensorflow as tf

from speculative_t5x import t5x_guest
from speculative_t5x.loading import checkpoints
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from tests import tiny
from tests.t5x_guest import tiny_pair

PARAMS = flax.core.unfreeze(tiny_pair.params())
CONFIGS = tiny_pair.configs(dropout_rate=0.0)
# A draft that reads the output of the target's encoder.
DECODER = dataclasses.replace(
    CONFIGS[1],
    num_encoder_layers=0,
    encoder_dim=CONFIGS[0].emb_dim,
    emb_dim=16,
)
ON_TARGET = tuple(map(tiny_pair.transformer, (CONFIGS[0], DECODER)))
RATE = 'acceptance_rate/temperature_'


def objective(divergence=divergences.forward_kl, draft=CONFIGS[1]):
  """Return the objective of this package's own training."""
  target = CONFIGS[0]
  return distillation.Distillation(
      PARAMS['target'], target, draft, divergence
  )


def examples(batch):
  read = lambda name: jnp.where(batch[name] > 0, batch[name], -1)
  return batches.TokenPairs(
      read('encoder_input_tokens'), read('decoder_target_tokens')
  )


def loss_of(model, batch, key=None, params=PARAMS):
  return jax.jit(model.loss_fn)(params, batch, key)


class TestLoss:

  @pytest.mark.parametrize(
      ('divergence', 'draft', 'pair'),
      [
          (divergences.forward_kl, CONFIGS[1], None),
          (divergences.total_variation, CONFIGS[1], None),
          (divergences.forward_kl, DECODER, ON_TARGET),
      ],
      ids=['forward_kl', 'total_variation', 'shared encoder'],
  )
  def test_and_gradient_are_those_of_this_packages_training(
      self, divergence, draft, pair
  ):
    batch = tiny_pair.batch(4)
    model = tiny_pair.distillation(divergence=divergence, pair=pair)
    own = tiny.params(draft, noise=0.5)
    found, gradient = jax.value_and_grad(
        lambda params: model.loss_fn(params, batch, None)[0]
    )({**PARAMS, 'draft': own})
    expected, expected_gradient = jax.value_and_grad(
        lambda params: objective(divergence, draft).loss(
            params, examples(batch), jax.random.key(0)
        )[0]
    )(own)
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=2e-3, atol=2e-4),
        gradient['draft'],
        expected_gradient,
    )
    assert all(x.any() for x in jax.tree.leaves(gradient['draft']))
    assert not any(x.any() for x in jax.tree.leaves(gradient['target']))

  def test_metrics_are_of_the_draft_model_against_the_target(self):
    batch = tiny_pair.batch(16)  # the draft agrees with the target in 2 tokens
    _, metrics = loss_of(tiny_pair.distillation(), batch)
    validation = draft_acceptance.validation(
        objective(),
        {t: jax.tree.map(lambda x: x[None], examples(batch)) for t in (0, 1)},
    )(PARAMS['draft'])
    found = {
        name: metric.compute()
        for name, metric in metrics.items()
        if 'timing' not in name
    }
    num_tokens = int((batch['decoder_target_tokens'] > 0).sum())
    near = functools.partial(pytest.approx, rel=1e-5)
    assert found[f'{RATE}0'] == near(validation['acceptance_t0'])
    assert found[f'{RATE}1'] == near(validation['acceptance_t1'])
    assert 0 < found[f'{RATE}0'] < found[f'{RATE}1'] < 1
    assert found['accuracy'] == near(validation['acceptance_t0'])
    assert found['loss_per_nonpadding_target_token'] == near(
        validation['divergence_t0']
    )
    assert found['non_padding_fraction/loss_weights'] == near(
        num_tokens / batch['decoder_target_tokens'].size
    )
    assert found['z_loss_per_all_target_tokens'] == 0

  @pytest.mark.parametrize('role, has_dropout', [(0, False), (1, True)])
  def test_only_the_draft_model_has_dropout(self, role, has_dropout):
    pair = [*tiny_pair.modules(dropout_rate=0.0)]
    pair[role] = tiny_pair.modules(dropout_rate=0.5)[role]
    model = tiny_pair.distillation(pair=pair)
    batch = tiny_pair.batch(4)
    plain = float(loss_of(model, batch)[0])
    one, other = (
        float(loss_of(model, batch, jax.random.PRNGKey(i))[0]) for i in (0, 1)
    )
    assert (one != other) == (abs(one - plain) > 1e-3 * plain) == has_dropout


class TestPackedExamples:

  @pytest.fixture(scope='class')
  @classmethod
  def converted(cls):
    """Return six examples packed into few rows, and one per row."""
    rows = [
        {
            'inputs': np.trim_zeros(np.asarray(x)),
            'targets': np.trim_zeros(np.asarray(y)),
        }
        for x, y in zip(
            tiny.t5x_tokens(6, 9), tiny.t5x_tokens(6, 7), strict=True
        )
    ]
    lengths = {'inputs': 20, 'targets': 16}
    spec = {name: tf.TensorSpec([None], tf.int32) for name in lengths}
    dataset = tf.data.Dataset.from_generator(
        lambda: rows, output_signature=spec
    )

    def convert(pack):
      converter = t5x_guest.ExampleIdConverter(pack=pack)
      found = converter(dataset, lengths).batch(6).as_numpy_iterator()
      return jax.tree.map(jnp.asarray, dict(next(found)))

    return convert(True), convert(False)

  @pytest.mark.parametrize(
      ('factor', 'pair'),
      [(None, None), ('AVERAGE_PER_SEQUENCE', None), (None, ON_TARGET)],
      ids=['sum', 'average', 'shared encoder'],
  )
  def test_have_the_loss_and_the_rates_of_unpacked_ones(
      self, converted, factor, pair
  ):
    packed, _ = converted
    assert len(packed['decoder_target_tokens']) < 6
    assert packed['decoder_segment_ids'].max() > 1
    model = tiny_pair.distillation(loss_normalizing_factor=factor, pair=pair)
    draft = tiny.params(DECODER if pair else CONFIGS[1], noise=0.5)
    (one, one_metrics), (other, other_metrics) = (
        loss_of(model, batch, params={**PARAMS, 'draft': draft})
        for batch in converted
    )
    np.testing.assert_allclose(one, other, rtol=1e-5)
    for name in (f'{RATE}0', f'{RATE}1'):
      np.testing.assert_allclose(
          one_metrics[name].compute(), other_metrics[name].compute(), rtol=1e-5
      )
    counted = one_metrics['effective_batch_size/decoder'].total
    assert int(counted) == 6


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('pair')
  checkpoints.save(folder / 'target', 1500, PARAMS['target'])
  checkpoints.save(folder / 'pair', 40, PARAMS)
  return folder


def initializer(model, target, draft=None):
  return tiny_pair.initializer(
      model,
      t5x_guest.PairInitializer,
      model.optimizer_def,
      checkpoint_path=target,
      draft_checkpoint_path=draft,
  )


def started(model, target, draft=None):
  """Return the state before the first step."""
  key = jax.random.PRNGKey(0)
  return initializer(model, target, draft).from_scratch(key)


def assert_equal(one, other):
  one, other = map(flax.core.unfreeze, (one, other))
  jax.tree.map(np.testing.assert_array_equal, one, other)


class TestTraining:

  @pytest.mark.parametrize('is_model_parallel', [False, True])
  def test_step_is_that_of_training_the_draft_model_alone(
      self, folder, is_model_parallel
  ):
    """The optimizer is T5X's, with parameters factored as T5X does."""
    model = tiny_pair.distillation(is_model_parallel=is_model_parallel)
    state = started(model, folder / 'pair', folder / 'pair')
    alone = tiny_pair.factored_adafactor()
    optimizer = alone.create(flax.core.freeze(PARAMS['draft']))

    @jax.jit
    def step(state, optimizer):
      loss = lambda params: model.loss_fn(params, tiny_pair.batch(4), None)[0]
      gradient = jax.grad(loss)(state.params)
      return (
          state.apply_gradient(gradient, learning_rate=0.1),
          optimizer.apply_gradient(gradient['draft'], learning_rate=0.1),
      )

    for _ in range(2):
      state, optimizer = step(state, optimizer)
    jax.tree.map(
        functools.partial(np.testing.assert_allclose, rtol=1e-5, atol=1e-6),
        flax.core.unfreeze(state.params['draft']),
        flax.core.unfreeze(optimizer.target),
    )
    # A row per unit of the feed-forward layer, and no full second moments.
    one = optimizer.state.param_states['decoder']['layers_0']['mlp']['wo']
    assert one['kernel'].v.size == 1 < one['kernel'].v_row.size


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        (
            {'pair': (
                tiny_pair.modules()[0], tiny_pair.modules(vocab_size=128)[1]
            )},
            '64 tokens and the draft model of 12',
        ),
        (
            {'optimizer_def': tiny_pair.OPTIMIZER},
            'optimizer_def is a OptaxWrapper',
        ),
    ],
    ids=['vocabulary', 'optimizer'],
)  # fmt: skip
def test_what_cannot_be_distilled(changes, message):
  with pytest.raises(ValueError, match=message):
    tiny_pair.distillation(**changes)

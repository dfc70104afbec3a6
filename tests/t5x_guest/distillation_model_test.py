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
from t5x import adafactor
from t5x import trainer
from t5x import utils
import tensorflow as tf

from speculative_t5x import t5x_guest
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.t5x_guest import freezing
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


def logits(batch):
  """Return the logits of target and draft, in this package's networks."""
  return objective().logits(PARAMS['draft'], examples(batch))


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

  def test_no_gradient_reaches_the_target_whatever_the_divergence(self):
    squared = lambda p, q, tokens: jnp.sum((p - q) ** 2, axis=-1)
    model = tiny_pair.distillation(divergence=squared)
    gradient = jax.grad(
        lambda params: model.loss_fn(params, tiny_pair.batch(2), None)[0]
    )(PARAMS)
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

  def test_tokens_of_weight_0_have_no_loss(self):
    batch = tiny_pair.batch(4)
    chosen = np.zeros_like(batch['decoder_loss_weights'])
    chosen[1, 2] = chosen[3, 0] = 1
    loss, metrics = loss_of(
        tiny_pair.distillation(), batch | {'decoder_loss_weights': chosen}
    )
    per_token = divergences.forward_kl(*logits(batch))
    expected = per_token[1, 2] + per_token[3, 0]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)
    rate = 1 - divergences.total_variation(*logits(batch))
    np.testing.assert_allclose(
        metrics[f'{RATE}1'].compute(), (rate[1, 2] + rate[3, 0]) / 2, rtol=1e-5
    )

  def test_normalizing_factor(self):
    """Without weights, padding has no loss."""
    batch = tiny_pair.batch(4)
    num_tokens = (batch['decoder_target_tokens'] > 0).sum()
    summed = loss_of(tiny_pair.distillation(), batch)[0]
    del batch['decoder_loss_weights']
    model = tiny_pair.distillation(
        loss_normalizing_factor='NUM_REAL_TARGET_TOKENS'
    )
    np.testing.assert_allclose(
        loss_of(model, batch)[0], summed / num_tokens, rtol=1e-5
    )

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


def trained(model, state, steps=3, num_microbatches=None):
  """Return the state after some steps of T5X's trainer."""
  step = jax.jit(
      functools.partial(
          trainer.train_with_lr, model=model, num_microbatches=num_microbatches
      )
  )
  for i in range(steps):
    state, _ = step(
        state,
        tiny_pair.batch(4, first=4 * i),
        jnp.float32(0.1),
        jax.random.PRNGKey(i),
    )
  return state


class TestOnTheTargetsEncoder:

  def test_has_no_encoder_and_decodes_as_it_is_trained(self, folder):
    model = tiny_pair.distillation(pair=ON_TARGET)
    state = started(model, folder / 'target')
    shapes = lambda tree: jax.tree.map(lambda x: x.shape, tree)
    assert shapes(flax.core.unfreeze(state.params['draft'])) == shapes(
        models.abstract_params(DECODER)
    )
    params = trained(model, state).params
    assert_equal(params['target'], PARAMS['target'])
    batch = tiny_pair.batch(3)
    found, aux = jax.jit(model.predict_batch_with_aux)(params, batch)
    greedy = tiny_pair.of_target().predict_batch(params['target'], batch)
    np.testing.assert_array_equal(found, greedy)
    assert aux['drafted'].sum() > 0


class TestTraining:

  def test_begins_with_the_target_and_a_random_draft_model(self, folder):
    model = tiny_pair.distillation()
    state = started(model, folder / 'target')
    assert_equal(state.params['target'], PARAMS['target'])
    assert int(state.step) == 0
    random = tiny_pair.initializer(
        model, optimizer_def=model.optimizer_def
    ).from_scratch(jax.random.PRNGKey(0))
    assert_equal(state.params['draft'], random.params['draft'])

  def test_parameters_are_float32_whatever_the_checkpoints_hold(self, tmp_path):
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), PARAMS)
    checkpoints.save(tmp_path, 40, half)
    made = started(tiny_pair.distillation(), tmp_path, tmp_path)
    assert {str(x.dtype) for x in jax.tree.leaves(made.params)} == {'float32'}

  def test_a_wrong_path_is_told_before_t5x_begins(self, folder, monkeypatch):
    """T5X compiles for minutes what initializes a large state."""
    began = lambda *_: pytest.fail('T5X began')
    monkeypatch.setattr(utils.TrainStateInitializer, 'from_scratch', began)
    with pytest.raises(checkpoints.CheckpointError, match='typo'):
      started(tiny_pair.distillation(), folder / 'typo')

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


def test_optimizer_without_rules_of_factoring_is_taken():
  optimizer = freezing.DraftOptimizer(adafactor.Adafactor())
  state = optimizer.init_state(flax.core.freeze(PARAMS))
  assert not jax.tree.leaves(state.param_states['target'])

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of training."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.training import adafactor
from speculative_t5x.training import batches
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import on_policy
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from tests import tiny

_CONFIG = tiny.config(
    vocab_size=12, num_encoder_layers=1, num_decoder_layers=1, mlp_dim=64,
    dropout_rate=0.1,
)  # fmt: skip


_OBJECTIVE = cross_entropy.CrossEntropy(_CONFIG)


def _logits(shape=(2, 3, 7)):
  return jnp.asarray(np.random.default_rng(0).normal(0, 2, shape), jnp.float32)


def _log_probs(logits):
  logits = np.asarray(logits, np.float64)
  return logits - np.log(np.exp(logits).sum(-1, keepdims=True))


def _copies(num_examples, length=6, seed=7):
  """Return sequences of tokens 2 to 11 ended by 1, to be copied."""
  rng = np.random.default_rng(seed)
  tokens = np.full((num_examples, length + 1), -1, np.int32)
  for row in tokens:
    used = rng.integers(2, length + 1)
    row[:used] = rng.integers(2, 12, used)
    row[used] = 1
  return batches.TokenPairs(tokens, tokens)


@pytest.mark.usefixtures('strict_types')
class TestCrossEntropy:

  @pytest.mark.parametrize('bad', [np.nan, np.inf])
  @pytest.mark.parametrize('vocab', [7, 5000])
  def test_one_bad_logit_is_never_a_loss(self, vocab, bad):
    logits = jnp.linspace(-1.0, 1.0, vocab).at[vocab // 2].set(bad)
    loss = jax.jit(cross_entropy.per_token)(logits, jnp.array(4))
    assert not np.isfinite(loss)

  def test_value_and_gradient(self):
    logits, z_weight = _logits((7,)), 0.25
    loss = lambda x: cross_entropy.per_token(x, jnp.array(4), z_weight)
    probs = np.exp(_log_probs(logits))
    log_z = np.log(np.exp(np.asarray(logits, np.float64)).sum())
    value, gradient = jax.value_and_grad(loss)(logits)
    expected = z_weight * log_z**2 - np.log(probs[4])
    assert value == pytest.approx(expected, rel=1e-5)
    expected = (1 + 2 * z_weight * log_z) * probs - np.eye(7)[4]
    np.testing.assert_allclose(gradient, expected, rtol=1e-5)


def test_losses_of_tokens_are_summed():
  logits, targets = _logits(), jnp.array([[0, 2, -1], [4, -1, -1]])
  each = cross_entropy.per_token(logits, targets, 0.3)
  found = steps.sums(logits, targets, each)
  is_real = np.asarray(targets) >= 0
  np.testing.assert_allclose(found.loss, each[is_real].sum(), rtol=1e-6)
  assert found.num_tokens == 3


@pytest.mark.parametrize(
    ('schedule', 'expected'),
    [
        (
            schedules.linear_decay(
                train_steps=100, learning_rate=2.0, warmup_steps=10,
                decay_steps=40,
            ),
            {0: 0, 5: 1, 10: 2, 60: 2, 80: 1, 99: 0.05},
        ),
        (
            schedules.linear_decay(
                train_steps=4, learning_rate=1.0, warmup_steps=2
            ),
            {0: 0, 1: 0.5, 2: 1, 3: 0.5, 4: 0},
        ),
        (
            schedules.linear_decay(train_steps=4, warmup_steps=0),
            {0: 0.01, 1: 0.01, 2: 0.01, 3: 0.005},
        ),
        (  # the warmup of a long training does not fit
            schedules.linear_decay(
                train_steps=20, learning_rate=1.0, warmup_steps=300
            ),
            {0: 0, 1: 0.5, 2: 1, 10: 1, 15: 0.5, 20: 0},
        ),
    ],
)  # fmt: skip
def test_learning_rates(schedule, expected):
  rates = [schedule(jnp.int32(step)) for step in expected]
  np.testing.assert_allclose(rates, [*expected.values()], rtol=1e-6)


@pytest.mark.parametrize(
    ('make', 'options', 'name'),
    [
        (schedules.linear_decay, {'train_steps': 9, 'decay_steps': 10},
         'decay_steps'),
        (schedules.linear_decay, {'train_steps': 9, 'warmup_steps': -1},
         'warmup_steps'),
        (schedules.linear_decay,
         {'train_steps': 9, 'learning_rate': float('nan')}, 'nan'),
        (on_policy.Settings, {'share': 1.5}, 'share'),
    ],
)  # fmt: skip
def test_settings_out_of_range(make, options, name):
  with pytest.raises(ValueError, match=name):
    make(**options)


class TestAdafactor:

  def _updated(self, param, grads):
    optimizer = adafactor.make(lambda step: jnp.float32(0.1))
    params = {'kernel': jnp.asarray(param)}
    state = optimizer.init(params)
    for grad in grads:
      updates, state = optimizer.update({'kernel': grad}, state, params)
    return updates['kernel'], adafactor.to_param_states(state)['kernel']

  @pytest.mark.parametrize('growth', [1, 3])
  def test_factored(self, growth):
    rng = np.random.default_rng(1)
    param = rng.normal(0, 0.5, (128, 160)).astype(np.float32)
    grads = rng.normal(0, 1, (2, 128, 160)).astype(np.float32)
    grads[1] *= growth  # so that the update is clipped
    update, state = self._updated(param, grads)
    # The decay is 1 - t^-0.8 at step t: 0 at the first step.
    new = 2.0**-0.8
    squares = (1 - new) * grads[0] ** 2 + new * grads[1] ** 2
    rows, columns = squares.mean(1), squares.mean(0)
    np.testing.assert_allclose(state['v_row'], rows, rtol=1e-5)
    np.testing.assert_allclose(state['v_col'], columns, rtol=1e-5)
    assert state['v'].shape == state['m'].shape == (1,)
    scaled = grads[1] / np.sqrt(np.outer(rows, columns) / rows.mean())
    size = np.sqrt((scaled**2).mean())
    assert size < 1.1 if growth == 1 else size > 1.2
    scaled /= max(1.0, size)
    rms = np.sqrt((param**2).mean())
    np.testing.assert_allclose(update, -0.1 * rms * scaled, rtol=1e-4)

  def test_small_parameters_are_not_factored(self):
    grad = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    update, state = self._updated(np.zeros((2, 3), np.float32), [grad])
    np.testing.assert_allclose(state['v'], grad**2, rtol=1e-6)
    assert state['v_row'].shape == state['v_col'].shape == (1,)
    # A parameter of zeros counts as one of size 0.001.
    np.testing.assert_allclose(update, -0.1 * 1e-3, rtol=1e-5)


@functools.cache
def _training():
  """Return the optimizer, 40 steps and the examples, compiled once."""
  optimizer = adafactor.make(
      schedules.linear_decay(
          train_steps=240, learning_rate=0.02, warmup_steps=20
      )
  )
  run = steps.make_train_steps(seed=5)
  run = functools.partial(run, _OBJECTIVE)
  return optimizer, run, jax.device_put(_copies(1920))


@functools.cache
def _fresh_state():
  return adafactor.start(_training()[0], steps.init_params(_CONFIG, seed=5))


def _shuffle(seed):
  return batches.Shuffle(np.full((1920,), 8, np.int32), 64, 10, seed)


def _start():
  # A step donates the state's memory.
  return jax.tree.map(jnp.array, _fresh_state())


class TestTrainSteps:

  def test_learns_to_copy(self):
    _, run, examples = _training()
    held_out = batches.in_order(_copies(100, seed=8), batch_size=40)
    shuffle = _shuffle(5)
    state = _start()
    evaluate = cross_entropy.validation(_OBJECTIVE, held_out)
    before = evaluate(state.params)
    for step in range(0, 240, 40):
      state, metrics = run(state, examples, shuffle.indices(step, step + 40))
    after = evaluate(state.params)
    assert metrics.loss.shape == (40,)
    assert int(state.step) == 240
    assert before['accuracy'] < 0.3 and after['accuracy'] > 0.9
    assert after['loss'] < before['loss'] / 4
    assert evaluate.score(after) == -after['loss']

  def test_evaluation_is_the_cross_entropy_of_the_next_token(self):
    """The result does not depend on the batches."""
    examples = _copies(100, seed=8)
    params = _fresh_state().params
    found = cross_entropy.validation(
        _OBJECTIVE, batches.in_order(examples, batch_size=40)
    )(params)
    logits = jax.jit(_CONFIG.score)(params, examples.inputs, examples.targets)
    of_targets = np.take_along_axis(
        _log_probs(logits), examples.targets[..., None], -1
    )[..., 0]
    is_real = examples.targets >= 0
    assert found['loss'] == pytest.approx(-of_targets[is_real].mean(), rel=1e-5)

  def test_dropout_depends_on_seed_and_step(self):
    _, run, examples = _training()
    same = np.tile(np.arange(64, dtype=np.int32), (40, 1))
    one, two = (run(_start(), examples, same)[1].loss for _ in range(2))
    # The rate of the first step is 0, so only the masks of the second differ.
    assert one[0] != one[1]
    np.testing.assert_array_equal(one, two)

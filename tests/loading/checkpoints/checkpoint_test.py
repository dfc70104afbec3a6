# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of opening, checking and reading checkpoints."""


import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.checkpoints import zarr_arrays
from tests import checkpoints_by_hand as by_hand
from tests import tiny
from tests.loading.checkpoints import steps


def assert_equal(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


def restore(path, *arguments):
  return checkpoints.open(path).restore_params(steps.expected(), *arguments)


def dtypes(tree):
  return {str(x.dtype) for x in jax.tree.leaves(tree)}


class TestRestore:

  def test_values_of_a_step_and_of_the_newest_step(self, folder, params):
    assert_equal(restore(folder / 'checkpoint_9'), params)
    assert_equal(restore(folder), jax.tree.map(lambda x: -x, params))

  def test_optimizer_state_is_not_read(self, tmp_path, params):
    """NaN in the state does not matter."""
    nan = jax.tree.map(lambda x: x * jnp.nan, steps.with_states(params))
    checkpoints.save(tmp_path, 1, params, nan)
    assert_equal(restore(tmp_path), params)

  def test_whole_state(self, folder, params):
    states = steps.with_states(params)
    step, restored, restored_states = checkpoints.open(
        folder / 'checkpoint_9'
    ).restore_state(params, states)
    assert step == 9
    assert_equal(restored, params)
    assert_equal(restored_states, states)

  @pytest.mark.parametrize('broken', [0, 1], ids=['params', 'states'])
  def test_state_that_is_not_finite(self, tmp_path, params, broken):
    """A training that resumed from it would go on without a word."""
    whole = [params, steps.with_states(params)]
    saved = list(whole)
    saved[broken] = jax.tree.map(lambda x: x * jnp.nan, whole[broken])
    checkpoints.save(tmp_path, 1, *saved)
    with pytest.raises(checkpoints.CheckpointError, match='are not finite'):
      checkpoints.open(tmp_path).restore_state(*whole)

  @pytest.mark.parametrize(
      'change',
      [
          lambda x: {'m': x['m'], 'v': x['v'][:1]},
          lambda x: {'m': x['m']},
      ],
  )
  def test_state_of_another_optimizer(self, folder, params, change):
    states = steps.with_states(params)
    states['token_embedder']['embedding'] = change(
        states['token_embedder']['embedding']
    )
    for step in (9, 10):  # the second is saved without one
      with pytest.raises(checkpoints.CheckpointError, match='this optimizer'):
        checkpoints.open(folder / f'checkpoint_{step}').restore_state(
            params, states
        )


@pytest.mark.parametrize(
    'overrides, message',
    [
        (dict(num_decoder_layers=1), 'also holds decoder/layers_1/'),
        (dict(num_encoder_layers=2), 'lacks encoder/layers_1/'),
        (dict(emb_dim=24), r'decoder_norm/scale \(32,\) instead of \(24,\)'),
    ],
)
def test_another_network(folder, monkeypatch, overrides, message):
  """The error names the difference, before weights are read."""

  def refuse(*_):
    raise AssertionError('weights were read')

  monkeypatch.setattr(zarr_arrays.ZarrCheckpoint, '_read_arrays', refuse)
  with pytest.raises(checkpoints.CheckpointError, match=message) as error:
    checkpoints.open(folder).restore_params(steps.expected(**overrides))
  assert 'Set the sizes of the network' in str(error.value)
  assert len(str(error.value).splitlines()) == 1


@pytest.fixture(scope='module', params=checkpoints.Layout)
def written(request, tmp_path_factory):
  """Return the tiny network in each layout; tests must not write to it."""
  path = tmp_path_factory.mktemp('layout')
  params = by_hand.cast(tiny.params(steps.CONFIG), jnp.float32)
  steps.write(request.param, path, params)
  assert checkpoints.open(path).layout is request.param
  return path


class TestAnyLayout:
  """Behaviour that all layouts share."""

  @pytest.mark.parametrize('dtype', ['float32', jnp.bfloat16, None])
  def test_values(self, written, params, dtype):
    restored = restore(written, dtype)
    assert dtypes(restored) == {str(jnp.dtype(dtype or 'float32'))}
    assert_equal(restored, jax.tree.map(lambda x: x.astype(dtype), params))


class TestIsFinite:

  @pytest.mark.parametrize('dtype', [jnp.float32, jnp.bfloat16])
  @pytest.mark.parametrize('number', [np.nan, np.inf, -np.inf, 3.0])
  def test_one_number(self, number, dtype):
    """In NumPy, and in a program, as on an accelerator."""
    x = jnp.ones((3, 50), dtype).at[1, 7].set(number)
    assert bool(trees.is_finite(x)) == np.isfinite(number)
    assert bool(trees._is_finite(x)) == np.isfinite(number)

  def test_other_arrays(self):
    assert trees.is_finite(jnp.ones((0, 3)))
    assert trees.is_finite(jnp.arange(4))
    assert trees.is_finite(jax.device_put(np.float32(2)))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: found, checked before they are read, and read."""

import dataclasses
import shutil
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import checkpoints
from speculative_t5x import loading
from tests import tiny

CONFIG = tiny.config(num_encoder_layers=1)


def with_states(params):
  """An optimizer's state, one mapping a parameter."""
  return jax.tree.map(lambda x: {'m': 2 * x, 'v': x**2}, params)


@pytest.fixture(scope='module')
def params():
  return tiny.params(CONFIG)


@pytest.fixture(scope='module')
def folder(tmp_path_factory, params):
  """Steps 9 and 10, whose parameters differ; not to be written to."""
  folder = tmp_path_factory.mktemp('model')
  checkpoints.save(folder, 9, params, with_states(params))
  checkpoints.save(folder, 10, jax.tree.map(lambda x: -x, params))
  return folder


@pytest.fixture
def copied(folder, tmp_path):
  """A copy that a test may damage."""
  return shutil.copytree(folder, tmp_path / 'model')


def expected(**overrides):
  """Names and shapes of CONFIG's network, but for the overrides."""
  return loading.abstract_params(dataclasses.replace(CONFIG, **overrides))


def assert_equal(a, b):
  jax.tree.map(np.testing.assert_array_equal, a, b)


def dtypes(tree):
  return {str(x.dtype) for x in jax.tree.leaves(tree)}


class TestFind:

  def test_a_step_folder_is_itself(self, folder):
    assert checkpoints.find(folder / 'checkpoint_9').name == 'checkpoint_9'

  def test_newest_by_number_and_not_by_name(self, folder):
    """'checkpoint_9' sorts behind 'checkpoint_10'."""
    assert checkpoints.find(folder).name == 'checkpoint_10'

  def test_a_save_that_was_cut_off_is_no_step(self, copied):
    """Orbax writes under a temporary name and renames at the end."""
    unfinished = 'checkpoint_11.orbax-checkpoint-tmp-1234'
    shutil.copytree(copied / 'checkpoint_10', copied / unfinished)
    assert checkpoints.find(copied).name == 'checkpoint_10'

  def test_missing_folder(self, tmp_path):
    with pytest.raises(checkpoints.CheckpointError, match='no such folder'):
      checkpoints.find(tmp_path / 'mistyped')

  def test_folder_without_checkpoints(self, tmp_path):
    with pytest.raises(checkpoints.CheckpointError, match='checkpoint_<step>'):
      checkpoints.find(tmp_path)

  def test_half_written(self, copied):
    (copied / 'checkpoint_10' / 'state' / '_METADATA').unlink()
    with pytest.raises(
        checkpoints.CheckpointError, match='checkpoint_10 is unfinished'
    ):
      checkpoints.find(copied)

  def test_a_mistyped_path_leaves_no_folder(self, tmp_path):
    for read in (
        checkpoints.find,
        checkpoints.read_shapes,
        lambda path: checkpoints.check_shapes(path, expected()),
        lambda path: checkpoints.restore_params(path, expected()),
        lambda path: checkpoints.restore_state(path, expected(), {}),
    ):
      with pytest.raises(checkpoints.CheckpointError, match='mistyped'):
        read(tmp_path / 'mistyped' / 'checkpoint_1')
    assert list(tmp_path.iterdir()) == []


class TestRestore:

  def test_values(self, folder, params):
    """From a step's folder, and from the newest of several."""
    one = checkpoints.restore_params(folder / 'checkpoint_9', expected())
    assert_equal(one, params)
    newest = checkpoints.restore_params(folder, expected())
    assert_equal(newest, jax.tree.map(lambda x: -x, params))

  def test_text_path(self, folder, params):
    path = str(folder / 'checkpoint_9')
    assert_equal(checkpoints.restore_params(path, expected()), params)

  def test_parameters_only(self, tmp_path, params):
    """The optimizer's state is not even looked at: NaN there is no matter."""
    nan = jax.tree.map(lambda x: x * jnp.nan, with_states(params))
    checkpoints.save(tmp_path, 1, params, nan)
    assert_equal(checkpoints.restore_params(tmp_path, expected()), params)

  def test_only_the_parameters_are_asked_for(
      self, folder, params, monkeypatch
  ):
    asked = []
    restore = checkpoints._restore
    monkeypatch.setattr(
        checkpoints,
        '_restore',
        lambda path, tree: asked.append(tree) or restore(path, tree),
    )
    checkpoints.restore_params(folder / 'checkpoint_9', expected())
    assert [set(tree) for tree in asked] == [{'target'}]

  def test_dtype_is_cast_on_load(self, folder, params):
    restored = checkpoints.restore_params(
        folder / 'checkpoint_9', expected(), jnp.bfloat16
    )
    assert dtypes(restored) == {'bfloat16'}
    assert_equal(
        restored, jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    )

  def test_dtype_is_widened_on_load(self, tmp_path, params):
    """A checkpoint saved in bfloat16."""
    narrow = jax.tree.map(lambda x: x.astype(jnp.bfloat16), params)
    checkpoints.save(tmp_path, 1, narrow)
    restored = checkpoints.restore_params(tmp_path, expected())
    assert dtypes(restored) == {'float32'}
    assert_equal(restored, jax.tree.map(jnp.float32, narrow))

  def test_whole_state(self, folder, params):
    states = with_states(params)
    step, restored, restored_states = checkpoints.restore_state(
        folder / 'checkpoint_9', params, states
    )
    assert step == 9
    assert_equal(restored, params)
    assert_equal(restored_states, states)

  def test_state_of_no_optimizer(self, folder, params):
    with pytest.raises(checkpoints.CheckpointError, match='optimizer'):
      checkpoints.restore_state(folder, params, with_states(params))

  def test_numpy_parameters(self, tmp_path, params):
    """Saved from host arrays, of which Orbax keeps less metadata."""
    checkpoints.save(tmp_path, 1, jax.tree.map(np.asarray, params))
    assert_equal(checkpoints.restore_params(tmp_path, expected()), params)

  def test_sharded_parameters(self, tmp_path):
    """Shapes are those of the whole, also where a device saved a shard."""
    script = f'''
import jax, jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec
from speculative_t5x import checkpoints
sharding = NamedSharding(
    jax.make_mesh((2,), ('model',)), PartitionSpec(None, 'model'))
kernel = jax.device_put(jnp.arange(32.0).reshape(4, 8), sharding)
checkpoints.save({str(tmp_path)!r}, 1, {{'wo': {{'kernel': kernel}}}})
'''
    subprocess.run(
        [sys.executable, '-c', script],
        check=True,
        env=dict(
            PYTHONPATH=':'.join(path or '.' for path in sys.path),
            XLA_FLAGS='--xla_force_host_platform_device_count=2',
            JAX_PLATFORMS='cpu',
        ),
    )
    assert checkpoints.read_shapes(tmp_path) == {'wo/kernel': (4, 8)}
    wanted = {'wo': {'kernel': jax.ShapeDtypeStruct((4, 8), jnp.float32)}}
    restored = checkpoints.restore_params(tmp_path, wanted)
    np.testing.assert_array_equal(
        restored['wo']['kernel'], np.arange(32.0).reshape(4, 8)
    )


class TestAnotherNetwork:
  """Each difference is one error that names it, before weights are read."""

  @pytest.mark.parametrize(
      'overrides, message',
      [
          (dict(num_decoder_layers=1), 'also holds decoder/layers_1/'),
          (dict(num_decoder_layers=3), 'lacks decoder/layers_2/'),
          (dict(num_encoder_layers=2), 'lacks encoder/layers_1/'),
          (dict(emb_dim=24), r'decoder_norm/scale \(32,\) instead of \(24,\)'),
          (dict(mlp_dim=40), r'\(32, 48\) instead of \(32, 40\)'),
          (dict(vocab_size=80), r'\(32, 64\) instead of \(32, 80\)'),
          (dict(num_heads=4, head_dim=8), r'\(2, 32\) instead of \(4, 32\)'),
          (dict(mlp_activations=('relu',)), 'lacks .*mlp/wi/kernel'),
      ],
  )
  def test_is_named(self, folder, monkeypatch, overrides, message):
    def refuse(*_):
      raise AssertionError('weights were read')

    monkeypatch.setattr(checkpoints, '_restore', refuse)
    with pytest.raises(checkpoints.CheckpointError, match=message) as error:
      checkpoints.restore_params(folder, expected(**overrides))
    assert 'Set the sizes of the network' in str(error.value)
    assert len(str(error.value).splitlines()) == 1

  def test_heads_of_another_width_at_equal_product(self, folder):
    """4 heads of 8 make kernels like 2 of 16: only the bias tells."""
    with pytest.raises(checkpoints.CheckpointError) as error:
      checkpoints.check_shapes(folder, expected(num_heads=4, head_dim=8))
    assert str(error.value).count('instead of') == 2

  def test_both_ways_at_once(self, folder):
    config = dict(num_decoder_layers=1, num_encoder_layers=2)
    with pytest.raises(checkpoints.CheckpointError) as error:
      checkpoints.check_shapes(folder, expected(**config))
    assert 'lacks' in str(error.value) and 'also holds' in str(error.value)

  def test_same_network_passes(self, folder):
    checkpoints.check_shapes(folder, expected())


class TestDamage:

  def read(self, path):
    return checkpoints.restore_params(path, expected())

  def test_metadata_that_is_no_json(self, copied):
    file = copied / 'checkpoint_10' / 'state' / '_METADATA'
    file.write_text(file.read_text()[:100])
    with pytest.raises(checkpoints.CheckpointError, match='damaged'):
      self.read(copied)

  def test_data_that_is_missing(self, copied):
    shutil.rmtree(copied / 'checkpoint_10' / 'state' / 'd')
    with pytest.raises(checkpoints.CheckpointError) as error:
      self.read(copied)
    assert 'checkpoint_10' in str(error.value)
    assert 'save' in str(error.value)

  @pytest.mark.parametrize('bad', [np.nan, np.inf])
  def test_numbers_that_are_not_finite(self, tmp_path, params, bad):
    kernel = params['decoder']['layers_1']['mlp']['wo']['kernel']
    layer = {**params['decoder']['layers_1']['mlp']}
    layer['wo'] = {'kernel': kernel.at[3, 4].set(bad)}
    broken = jax.tree.map(lambda x: x, params)
    broken['decoder']['layers_1']['mlp'] = layer
    checkpoints.save(tmp_path, 1, broken)
    with pytest.raises(
        checkpoints.CheckpointError,
        match='not finite .* in decoder/layers_1/mlp/wo/kernel',
    ):
      self.read(tmp_path)


class TestRelativePath:

  def test_a_checkpoint_is_found_and_read_from_here(
      self, tmp_path, monkeypatch
  ):
    params = {'layer': {'kernel': np.ones((2, 3), np.float32)}}
    monkeypatch.chdir(tmp_path)
    checkpoints.save('here', 7, params)
    restored = checkpoints.restore_params('here', params)
    np.testing.assert_array_equal(restored['layer']['kernel'], np.ones((2, 3)))

  def test_a_remote_one_is_not_taken_for_relative(self):
    path = checkpoints._absolute('gs://bucket/model')
    assert str(path) == 'gs://bucket/model'

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that two checkpoints are restored where T5X asks for one."""

import functools

import flax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from t5x import models as t5x_models
from t5x import utils

from speculative_t5x import t5x_guest
from speculative_t5x.jobs import convert
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.t5x_guest import restoring
from tests.t5x_guest import tiny_pair

PARAMS = tiny_pair.params()
ORBAX = pytest.mark.parametrize('use_orbax', [True, False])


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  folder = tmp_path_factory.mktemp('pair')
  checkpoints.save(folder / 'target', 1500, PARAMS['target'])
  checkpoints.save(folder / 'draft', 7, PARAMS['draft'])
  return folder


def model_of(draft, pair=None, **kwargs):
  """Return a model whose draft model is in a checkpoint."""
  target, module = pair or tiny_pair.modules()
  drafter = t5x_guest.DraftModule(module, checkpoint_path=draft, **kwargs)
  return tiny_pair.model(module=target, drafter=drafter)


def prepared(draft):
  """Return the parameters of a draft model that its target decodes with."""
  return models.make_model(tiny_pair.configs()[1], draft).params


def restore(
    target,
    draft,
    *,
    use_orbax=True,
    model=None,
    step_in_path=False,
    **settings,
):
  """Restore like T5X's eval and infer jobs."""
  model = model or model_of(draft)
  restorer = functools.partial(
      t5x_guest.PairRestorer, model=model, step_in_path=step_in_path
  )
  config = utils.RestoreCheckpointConfig(
      path=str(target),
      mode='specific',
      checkpoint_manager_cls=restorer,
      checkpointer_cls=restorer,
      **settings,
  )
  return tiny_pair.restore(model, config, use_orbax)


def assert_equal(found, expected):
  found, expected = map(flax.core.unfreeze, (found, expected))
  jax.tree.map(np.testing.assert_array_equal, found, expected)


class TestRestore:

  @ORBAX
  def test_both_are_loaded_onto_the_mesh(self, folder, use_orbax):
    state = restore(
        folder / 'target/checkpoint_1500',
        folder / 'draft/checkpoint_7',
        use_orbax=use_orbax,
    )
    assert_equal(state.params['target'], PARAMS['target'])
    assert_equal(state.params['draft'], prepared(PARAMS['draft']))
    assert int(state.step) == 1500
    # The mesh has one device here, and a parameter's axes on it nevertheless.
    axes = lambda role: {
        axis
        for x in jax.tree.leaves(state.params[role])
        for axis in x.sharding.spec
    }
    assert axes('target') == {'model', None} and axes('draft') == {None}

  @pytest.mark.parametrize('role', ['target', 'draft'])
  def test_checkpoint_of_a_pair_for_either(self, folder, tmp_path, role):
    other = dict(tiny_pair.params(noise=0.1))
    checkpoints.save(tmp_path, 30, other)
    paths = {'target': folder / 'target', 'draft': folder / 'draft'}
    state = restore(**{**paths, role: tmp_path})
    expected = {**PARAMS, role: other[role]}
    expected['draft'] = prepared(expected['draft'])
    assert_equal(state.params, expected)
    assert int(state.step) == (30 if role == 'target' else 1500)

  @pytest.mark.parametrize(
      ('dtype', 'expected'),
      [('float32', 'float32'), (None, 'bfloat16')],
  )
  def test_dtype(self, folder, tmp_path, dtype, expected):
    """None is the dtype stored. It changes neither the draft nor the step.

    1500 is not a bfloat16 number: the next are 1496 and 1504.
    """
    half = jax.tree.map(lambda x: x.astype(jnp.bfloat16), PARAMS['target'])
    checkpoints.save(tmp_path, 1500, half)
    state = restore(tmp_path, folder / 'draft', dtype=dtype)
    assert int(state.step) == 1500
    for role, name in (('target', expected), ('draft', 'float32')):
      leaves = jax.tree.leaves(state.params[role])
      assert {x.dtype.name for x in leaves} == {name}


class TestRefusals:

  @pytest.mark.parametrize(
      ('target', 'draft', 'message'),
      [
          ('typo', 'draft', 'The target: .*typo'),
          ('target', 'typo', 'The draft: .*typo'),
          # A complete job needs none until its drafter turns out to be one.
          ('target', None, 'The draft: the path'),
      ],
  )
  def test_missing_path(self, folder, target, draft, message):
    with pytest.raises(checkpoints.CheckpointError, match=message):
      restore(folder / target, draft and folder / draft)
    assert not (folder / 'typo').exists()

  def test_path_without_the_step_that_an_eval_job_needs(
      self, folder, monkeypatch
  ):
    named, unnamed = folder / 'target/checkpoint_1500', folder / 'target'
    restore(named, folder / 'draft', step_in_path=True)
    monkeypatch.setattr(restoring, '_read', pytest.fail)
    with pytest.raises(ValueError, match='checkpoint_1000'):
      restore(unnamed, folder / 'draft', step_in_path=True)

  def test_sizes_that_differ_from_the_checkpoint(self, folder):
    """Orbax itself would not report them."""
    target, _ = tiny_pair.modules(num_encoder_layers=1)
    with pytest.raises(checkpoints.CheckpointError, match='encoder/layers_1'):
      restore(folder / 'target', None, model=tiny_pair.model(module=target))

  def test_transformations(self, folder):
    with pytest.raises(NotImplementedError, match='assignment_map'):
      restore(folder / 'target', folder / 'draft', assignment_map=[('a', 'b')])


@pytest.mark.parametrize('use', ['restorer', 'initializer'])
def test_model_of_t5x_alone(folder, use):
  """A model file of T5X, given last, sets it silently."""
  model = tiny_pair.of_target()
  with pytest.raises(ValueError, match='before configs/t5x/speculative.gin'):
    if use == 'restorer':
      restore(folder / 'target', folder / 'draft', model=model)
    tiny_pair.initializer(
        model, t5x_guest.PairInitializer, checkpoint_path=folder / 'target'
    )


def test_t5x_itself_restores_what_convert_writes(shared, tmp_path):
  source = shared / 't5x_oracle/draft/hf'
  convert.convert(checkpoint_path=source, output_dir=tmp_path)
  (written,) = tmp_path.iterdir()
  config = checkpoints.open(source).network()
  model = t5x_models.EncoderDecoderModel(
      tiny_pair.transformer(config), None, None, None
  )
  state = tiny_pair.restore(
      model, utils.RestoreCheckpointConfig(path=str(written), mode='specific')
  )
  assert int(state.step) == checkpoints.open(source).step
  expected = models.abstract_params(config)
  assert_equal(state.params, checkpoints.open(source).restore_params(expected))

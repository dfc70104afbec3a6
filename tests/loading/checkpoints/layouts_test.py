# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of finding checkpoints and rejecting other folders."""

import shutil

import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.checkpoints import layouts
from tests.loading.checkpoints import steps


class TestFind:

  def test_other_folders_are_ignored(self, copied):
    """Orbax writes under a temporary name and renames the folder at the end."""
    unfinished = 'checkpoint_11.orbax-checkpoint-tmp-1234'
    shutil.copytree(copied / 'checkpoint_10', copied / unfinished)
    (copied / 'checkpoint').mkdir()
    assert checkpoints.open(copied).folder.name == 'checkpoint_10'

  def test_remote_path_is_not_relative(self):
    assert str(layouts._absolute('gs://bucket/model')) == 'gs://bucket/model'


@pytest.mark.parametrize(
    'lost, left',
    [
        ('state/_METADATA', None),
        ('state', 'state.orbax-checkpoint-tmp-9'),
        ('.', '../checkpoint_10.tmp-1'),
    ],
)
def test_unfinished(copied, lost, left):
  if lost == '.':  # otherwise the earlier step must not stand in
    shutil.rmtree(copied / 'checkpoint_9')
  path = copied / 'checkpoint_10' / lost
  path.rename(copied / 'checkpoint_10' / left) if left else path.unlink()
  steps.refuse(checkpoints.open, copied, 'finished')


@pytest.mark.parametrize(
    'names',
    [
        [],
        ['model.safetensors'],
        ['checkpoint', 'model.ckpt-900.index'],
        None,
    ],
)
def test_other_folders(tmp_path, names):
  path = tmp_path / 'model'
  if names is not None:
    path.mkdir()
  for name in names or ():
    (path / name).write_text('')
  named = ['nothing'] if names == [] else names or ['no such folder']
  steps.refuse(checkpoints.open, path, *named)


class TestStep:

  def test_stored_step(self, folder, copied):
    assert checkpoints.open(folder).step == 10
    (copied / 'checkpoint_9').rename(copied / 'best')
    assert checkpoints.open(copied / 'best').step == 9

  @pytest.mark.parametrize('step', [0, np.int64(2**31 - 1)])
  def test_saved_step_is_found(self, tmp_path, step):
    params = {'wo': jnp.ones(3)}
    checkpoints.save(tmp_path, step, params)
    assert checkpoints.step_folders(tmp_path).keys() == {int(step)}
    assert checkpoints.open(tmp_path).step == int(step)

  def write_step(self, folder, step):
    state = {'state': {'step': step}, 'target': {'wo': jnp.ones(3)}}
    with ocp.PyTreeCheckpointer() as checkpointer:
      checkpointer.save(folder / 'checkpoint_3' / 'state', state)

  def test_stored_step_of_a_resumed_training(self, tmp_path):
    """T5X casts it to the dtype of the parameters."""
    self.write_step(tmp_path, jnp.float32(7))
    step = checkpoints.open(tmp_path).step
    assert step == 7 and type(step) is int

  @pytest.mark.parametrize(
      'step', [jnp.zeros(2, jnp.int32), jnp.float32(jnp.nan)]
  )
  def test_stored_step_is_no_number(self, tmp_path, step):
    self.write_step(tmp_path, step)
    with pytest.raises(checkpoints.CheckpointError, match='step'):
      _ = checkpoints.open(tmp_path).step


@pytest.mark.parametrize(
    ('read', 'others'),
    [
        (['checkpoint', 'target.a/.zarray', 'target.a/0'],
         ['state.param_states.a/0']),
        (['state/_METADATA', 'state/target.a/0', 'state/state.step/0'],
         ['state/state.param_states.a/0']),
        (['config.json', 'generation_config.json', 'model.safetensors'],
         ['pytorch_model.bin', 'tokenizer.json', 'onnx/model.onnx']),
        (['config.json', 'pytorch_model-1.bin', 'pytorch_model.bin.index.json'],
         ['tf_model.h5', '.git/objects/1']),
    ],
)  # fmt: skip
def test_files_that_are_read(tmp_path, read, others):
  """Without those of an optimizer, and of other programs."""
  for name in (*read, *others):
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text('')
  found = checkpoints.files_in(tmp_path)
  assert [str(x.relative_to(tmp_path)) for x in found] == sorted(read)

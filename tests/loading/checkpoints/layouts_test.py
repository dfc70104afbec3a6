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


class TestPathsThatOrbaxMisreads:
  """TensorStore wrote to a/b, and what Orbax wrote in [a] could not be read."""

  @pytest.mark.parametrize('name', ['a\\b', '[a]'])
  def test_nothing_is_written(self, tmp_path, name):
    for save in (checkpoints.save, checkpoints.save_each):
      with pytest.raises(checkpoints.CheckpointError, match='The path .* has'):
        save(tmp_path / name, 1, {})
    assert not list(tmp_path.iterdir())

  def test_copied(self, folder, tmp_path):
    shutil.copytree(folder, tmp_path / '[a]')
    assert checkpoints.open(tmp_path / '[a]').step == 10
    shutil.copytree(folder, tmp_path / 'a\\b')
    with pytest.raises(checkpoints.CheckpointError, match='Rename'):
      checkpoints.open(tmp_path / 'a\\b')


class TestRefused:
  """An error names folders that are no checkpoints, or of an unknown layout."""

  def refuse(self, path, *named):
    steps.refuse(checkpoints.open, path, *named)

  @pytest.mark.parametrize(
      'lost, left',
      [
          ('state/_METADATA', None),
          ('state', 'state.orbax-checkpoint-tmp-9'),
          ('.', '../checkpoint_10.tmp-1'),
      ],
  )
  def test_unfinished(self, copied, lost, left):
    if lost == '.':  # otherwise the earlier step must not stand in
      shutil.rmtree(copied / 'checkpoint_9')
    path = copied / 'checkpoint_10' / lost
    path.rename(copied / 'checkpoint_10' / left) if left else path.unlink()
    self.refuse(copied, 'unfinished')

  def test_a_name_of_an_unfinished_save(self, copied):
    name = 'checkpoint_10.orbax-checkpoint-tmp-9'
    (copied / 'checkpoint_10').rename(copied / name)
    self.refuse(copied / name, 'unfinished')

  @pytest.mark.parametrize(
      'names, named',
      [
          ([], 'is empty'),
          ([f'notes{i}.txt' for i in range(9)], ' and 3 more'),
          (['model.safetensors'], 'without a config.json'),
          (['pytorch_model.bin'], 'without a config.json'),
          (
              ['checkpoint', 'model.ckpt-900.index', 'operative_config.gin'],
              'Mesh TensorFlow',
          ),
      ],
  )
  def test_other_files(self, tmp_path, names, named):
    for name in names:
      (tmp_path / name).write_text('')
    self.refuse(tmp_path, named)

  def test_no_folder(self, tmp_path):
    (tmp_path / 'file').write_bytes(b'')
    self.refuse(tmp_path / 'file', 'not a folder')
    self.refuse(tmp_path / 'mistyped', 'no such folder')
    # The prefix that T5's tools use.
    self.refuse(tmp_path / 'model.ckpt-900', 'Mesh TensorFlow')


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
      'step',
      [
          jnp.int32(-3), jnp.zeros(2, jnp.int32), jnp.float32(jnp.nan)
      ],
  )  # fmt: skip
  def test_stored_step_is_no_number(self, tmp_path, step):
    self.write_step(tmp_path, step)
    with pytest.raises(checkpoints.CheckpointError, match='training step'):
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

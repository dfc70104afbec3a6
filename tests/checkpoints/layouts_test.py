# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checkpoints are found, and told from what is none."""

import shutil

import pytest

from speculative_t5x import checkpoints
from speculative_t5x.checkpoints import layouts
from tests.checkpoints import steps


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

  def test_a_folder_named_checkpoint_is_none(self, copied):
    (copied / 'checkpoint').mkdir()
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
        checkpoints.read_specs,
        lambda path: checkpoints.check_shapes(path, steps.expected()),
        lambda path: checkpoints.restore_params(path, steps.expected()),
        lambda path: checkpoints.restore_state(path, steps.expected(), {}),
    ):
      with pytest.raises(checkpoints.CheckpointError, match='mistyped'):
        read(tmp_path / 'mistyped' / 'checkpoint_1')
    assert list(tmp_path.iterdir()) == []

  def test_a_remote_path_is_not_taken_for_relative(self):
    assert str(layouts._absolute('gs://bucket/model')) == 'gs://bucket/model'


class TestRefused:
  """What is no checkpoint, or none that is read here, is named."""

  def refuse(self, path, match):
    for read in (checkpoints.find, checkpoints.detect, checkpoints.read_step):
      with pytest.raises(checkpoints.CheckpointError, match=match) as error:
        read(path)
      assert len(str(error.value).splitlines()) == 1
      assert str(path) in str(error.value)

  def test_mesh_tensorflow(self, tmp_path):
    """By its folder, and by the prefix that T5's tools take."""
    for name in ('checkpoint', 'model.ckpt-900.index', 'operative_config.gin'):
      (tmp_path / name).write_text('')
    self.refuse(tmp_path, 'Mesh TensorFlow.*convert_tf_checkpoint')
    self.refuse(tmp_path / 'model.ckpt-900', 'Mesh TensorFlow')

  def test_a_name_of_an_unfinished_save(self, copied):
    for name in ('checkpoint_10.orbax-checkpoint-tmp-9', 'checkpoint_9.tmp-1'):
      shutil.copytree(copied / 'checkpoint_10', copied / name)
      self.refuse(copied / name, 'unfinished')

  def test_nothing_but_unfinished_saves(self, copied):
    (copied / 'checkpoint_10').rename(copied / 'checkpoint_10.tmp-1')
    shutil.rmtree(copied / 'checkpoint_9')
    self.refuse(copied, 'unfinished.*holds checkpoint_10.tmp-1 alone')

  def test_a_step_without_a_state(self, copied):
    step = copied / 'checkpoint_10'
    (step / 'state').rename(step / 'state.orbax-checkpoint-tmp-9')
    with pytest.raises(checkpoints.CheckpointError, match='10 is unfinished'):
      checkpoints.find(copied)

  def test_a_folder_of_anything_else(self, tmp_path):
    self.refuse(tmp_path, 'It is empty')
    for i in range(9):
      (tmp_path / f'notes{i}.txt').write_text('')
    self.refuse(tmp_path, 'It holds notes0.txt, .* and 3 more')

  def test_pickles_alone(self, tmp_path):
    (tmp_path / 'pytorch_model.bin').write_bytes(b'')
    self.refuse(tmp_path, 'pytorch_model.bin alone')

  def test_a_file(self, tmp_path):
    (tmp_path / 'model.safetensors').write_bytes(b'')
    self.refuse(tmp_path / 'model.safetensors', 'there is no such folder')


class TestStep:

  def test_is_the_stored_one(self, folder, copied):
    assert checkpoints.read_step(folder) == 10
    (copied / 'checkpoint_9').rename(copied / 'best')
    assert checkpoints.read_step(copied / 'best') == 9

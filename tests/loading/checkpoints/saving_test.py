# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a checkpoint is saved completely or not at all."""

import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from tests import full_disk

_MANY = np.random.default_rng(0).random((100, 100), np.float32)


def save(path, step):
  params = {'a': _MANY, 'b': {'c': _MANY}}
  checkpoints.save(path, step, params, {'a': {'m': _MANY}})


class TestFullDisk:

  def test_earlier_checkpoints_remain(self, tmp_path):
    save(tmp_path, 1)
    before = sorted(tmp_path.rglob('*'))
    with full_disk.full_disk(1000) as reason:
      with pytest.raises(checkpoints.CheckpointError) as caught:
        save(tmp_path, 2)
    message = str(caught.value)
    assert f'{tmp_path / "checkpoint_2"} cannot be written' in message
    assert reason in message and len(message.splitlines()) == 1
    assert sorted(checkpoints.step_folders(tmp_path)) == [1]
    assert {*before} <= {*tmp_path.rglob('*')}
    with pytest.raises(checkpoints.CheckpointError, match='is a checkpoint at'):
      save(tmp_path, 1)
    save(tmp_path, 2)
    assert sorted(checkpoints.step_folders(tmp_path)) == [1, 2]


def test_files_of_a_killed_process_are_removed(tmp_path):
  for name in ('orbax-checkpoint-tmp', 'partial_save.x'):
    (tmp_path / f'checkpoint_2.{name}' / 'state').mkdir(parents=True)
  save(tmp_path, 2)
  assert [path.name for path in tmp_path.iterdir()] == ['checkpoint_2']


@pytest.mark.parametrize('left', ['_CHECKPOINT_METADATA', 'state/a/.zarray'])
def test_step_that_a_killed_process_left_in_a_bucket(tmp_path, left):
  """There the files are written under their final names."""
  save(tmp_path, 1)
  file = tmp_path / 'checkpoint_2' / left
  file.parent.mkdir(parents=True)
  file.write_text('')
  save(tmp_path, 2)
  assert checkpoints.open(tmp_path).step == 2


@pytest.mark.parametrize('other', ['notes.txt', 'target/a'])
def test_folder_of_a_step_with_other_files_remains(tmp_path, other):
  file = tmp_path / 'checkpoint_2' / other
  file.parent.mkdir(parents=True)
  file.write_text('mine')
  with pytest.raises(checkpoints.CheckpointError, match='is a checkpoint at'):
    save(tmp_path, 2)
  assert file.read_text() == 'mine'


@pytest.mark.parametrize('error', [ValueError, KeyboardInterrupt])
def test_other_errors_are_raised_unchanged(tmp_path, error):
  def params():
    yield 'a', _MANY
    raise error('mine')

  with pytest.raises(error, match='^mine$') as caught:
    checkpoints.save_each(tmp_path / 'new', 2, params())
  assert caught.type is error
  assert not list((tmp_path / 'new').iterdir())

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of paths that people write."""

import os
import pathlib
import re

import pytest
import tensorflow as tf

import speculative_t5x as st
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.tasks import multi30k
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import text_files

_PACKAGE = pathlib.Path(st.__file__).parent
_NOT_UTF8 = os.fsdecode(b'caf\xe9')


def _read_lines(path):
  return list(text_files.read([str(path)], field='inputs'))


# Each opens a path of a person, which is missing.
_BORDERS = {
    'checkpoint': checkpoints.open,
    'vocabulary': vocabularies.load,
    'table': token_counts.load,
    'lines': _read_lines,
    'checked lines': lambda path: text_files.check([str(path)], None, ''),
    'rows': lambda path: text_files.read_rows(path, dict, 'a row', ''),
    'data set': lambda path: multi30k.read_pairs(path, 'test'),
    'vocabulary of a task': lambda path: (
        seqio_tasks.load_vocabulary(path).vocab_size
    ),
}


class TestExpand:

  def test_tilde(self, monkeypatch):
    monkeypatch.setenv('HOME', '/their/home')
    for path, expected in (
        ('~', '/their/home'),
        ('~/a~/~', '/their/home/a~/~'),
        (pathlib.Path('~/a'), '/their/home/a'),
        ('a/~', 'a/~'),
        ('~nobody-of-this-name/a', '~nobody-of-this-name/a'),
        ('gs://bucket/~', 'gs://bucket/~'),
    ):
      assert os.fspath(user_paths.expand(path)) == expected

  def test_url_of_a_file(self, tmp_path):
    path = tmp_path / 'a b'
    for url in (path.as_uri(), path.as_uri().replace('//', '//localhost', 1)):
      assert os.fspath(user_paths.expand(url)) == str(path)
    with pytest.raises(ValueError, match='file:///a/b'):
      user_paths.expand('file://a/b')

  def test_nothing_else_makes_paths(self):
    """Or a tilde would be a name to it."""
    made = re.compile(r'\bepath\.Path\(')
    files = {
        path.name
        for path in _PACKAGE.rglob('*.py')
        if made.search(path.read_text())
    }
    assert files - {'tfds_tasks.py'} == {'user_paths.py'}


@pytest.mark.parametrize('border', _BORDERS)
class TestBorders:

  def test_tilde(self, tmp_path, monkeypatch, border):
    monkeypatch.setenv('HOME', str(tmp_path))
    kinds = OSError, ValueError, tf.errors.OpError
    with pytest.raises(kinds, match=re.escape(str(tmp_path))):
      _BORDERS[border]('~/missing')

  def test_name_that_is_not_utf8(self, tmp_path, monkeypatch, border):
    for folder in (tmp_path, tmp_path / _NOT_UTF8):
      with pytest.raises(ValueError, match=r'caf\\udce9.* is not UTF-8'):
        _BORDERS[border](folder / _NOT_UTF8)


def test_output_folder(tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  with folder_lock.hold('~/out'):
    assert (tmp_path / 'out' / folder_lock.NAME).exists()
  with pytest.raises(ValueError, match='is not UTF-8'):
    with folder_lock.hold(tmp_path / _NOT_UTF8):
      pytest.fail('its records could not be written')
  assert not any(tmp_path.iterdir())


def test_checkpoint_in_a_current_folder_that_is_not_utf8(tmp_path, monkeypatch):
  """Records name checkpoints by their absolute paths."""
  (tmp_path / _NOT_UTF8).mkdir()
  monkeypatch.chdir(tmp_path / _NOT_UTF8)
  with pytest.raises(ValueError, match='is not UTF-8'):
    checkpoints.open('model')

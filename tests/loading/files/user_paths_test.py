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
def test_borders(tmp_path, monkeypatch, border):
  monkeypatch.setenv('HOME', str(tmp_path))
  kinds = OSError, ValueError, tf.errors.OpError
  with pytest.raises(kinds, match=re.escape(str(tmp_path))):
    _BORDERS[border]('~/missing')


def test_output_folder(tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  with folder_lock.hold('~/out'):
    assert (tmp_path / 'out' / folder_lock.NAME).exists()

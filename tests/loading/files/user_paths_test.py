# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of paths that people write."""

import os
import pathlib
import re

import pytest

import speculative_t5x as st
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths

_PACKAGE = pathlib.Path(st.__file__).parent


@pytest.mark.parametrize(
    ('path', 'expected'),
    [
        ('~', '/their/home'),
        (pathlib.Path('~/a~/~'), '/their/home/a~/~'),
        ('a/~', 'a/~'),
        ('~nobody-of-this-name/a', '~nobody-of-this-name/a'),
        ('gs://bucket/~', 'gs://bucket/~'),
    ],
)
def test_tilde(monkeypatch, path, expected):
  monkeypatch.setenv('HOME', '/their/home')
  assert os.fspath(user_paths.expand(path)) == expected


def test_nothing_else_makes_paths():
  """Or a tilde would be a name to it."""
  made = re.compile(r'\bepath\.Path\(')
  files = {
      path.name
      for path in _PACKAGE.rglob('*.py')
      if made.search(path.read_text())
  }
  assert files - {'tfds_tasks.py'} == {'user_paths.py'}


def test_output_folder(tmp_path, monkeypatch):
  monkeypatch.setenv('HOME', str(tmp_path))
  with folder_lock.hold('~/out'):
    assert (tmp_path / 'out' / folder_lock.NAME).exists()

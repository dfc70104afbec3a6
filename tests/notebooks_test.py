# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that every notebook runs, and is stored without output."""

import json
import pathlib

import pytest

_FOLDER = pathlib.Path(__file__).parent.parent / 'notebooks'
_NOTEBOOKS = sorted(_FOLDER.glob('*.ipynb'))


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.name)
class TestNotebook:

  def test_runs(self, path):
    names = {}
    for cell in json.loads(path.read_text())['cells']:
      if cell['cell_type'] == 'code':
        exec(compile(''.join(cell['source']), path.name, 'exec'), names)

  def test_has_no_output(self, path):
    for cell in json.loads(path.read_text())['cells']:
      assert not cell.get('outputs')


def test_there_are_notebooks():
  assert _NOTEBOOKS

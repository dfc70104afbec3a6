# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that changes of the process state are detected, and only these."""

import colorsys  # noqa: F401, of which nothing else has a need
import importlib
import re
import sys
import types

import jax
import pytest

from tests import process_state


def test_a_change_is_named(tmp_path, monkeypatch):
  (tmp_path / 'made_by_a_test.py').write_text('')
  before = process_state.capture()
  monkeypatch.syspath_prepend(tmp_path)
  monkeypatch.setitem(sys.modules, 'made_by_a_test', None)
  del sys.modules['made_by_a_test']
  importlib.import_module('made_by_a_test')
  monkeypatch.setitem(sys.modules, 'colorsys', types.ModuleType('colorsys'))
  monkeypatch.delenv('PATH')
  monkeypatch.chdir(tmp_path)
  found = process_state.changes(before, process_state.capture(), tmp_path)
  monkeypatch.undo()
  for line in (
      'sys.modules: colorsys was',
      'sys.modules: made_by_a_test of a temporary folder',
      'sys.path: 0 was',
      'environment: PATH .* is missing',
      'working folder',
  ):
    assert any(re.search(line, each) for each in found), line
  assert not process_state.changes(before, process_state.capture(), tmp_path)


def test_reverted_changes_and_imports_do_not_count(monkeypatch, tmp_path):
  monkeypatch.delitem(sys.modules, 'colorsys')
  with process_state.unchanged(tmp_path):
    importlib.import_module('colorsys')
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patch:
      patch.setenv('NEW', '1')
      patch.chdir(tmp_path)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that changes of the process state are detected, and only these."""

import colorsys  # noqa: F401, of which nothing else has a need
import importlib
import os
import re
import sys
import types

import jax
import pytest

from tests import process_state


def _import_of(folder, patch):
  (folder / 'made_by_a_test.py').write_text('')
  patch.syspath_prepend(folder)
  patch.setitem(sys.modules, 'made_by_a_test', None)
  del sys.modules['made_by_a_test']
  importlib.import_module('made_by_a_test')


LEAKS = {
    'sys.modules: colorsys was': lambda folder, patch: patch.setitem(
        sys.modules, 'colorsys', types.ModuleType('colorsys')
    ),
    'sys.modules: colorsys .* is missing': lambda folder, patch: patch.delitem(
        sys.modules, 'colorsys'
    ),
    'sys.modules: made_by_a_test of a temporary folder': _import_of,
    'sys.path: 0 was': lambda folder, patch: patch.syspath_prepend(folder),
    'sys.argv': lambda folder, patch: patch.setattr(sys, 'argv', ['x']),
    'environment: NEW was missing': lambda folder, patch: patch.setenv(
        'NEW', '1'
    ),
    'environment: PATH .* is missing': lambda folder, patch: patch.delenv(
        'PATH'
    ),
    'working folder': lambda folder, patch: patch.chdir(folder),
}


@pytest.mark.parametrize('line', LEAKS)
def test_a_change_is_named(line, tmp_path, monkeypatch):
  before = process_state.capture()
  LEAKS[line](tmp_path, monkeypatch)
  found = process_state.changes(before, process_state.capture(), tmp_path)
  monkeypatch.undo()
  assert any(re.search(line, each) for each in found)
  assert not process_state.changes(before, process_state.capture(), tmp_path)


def test_reverted_changes_and_imports_do_not_count(monkeypatch, tmp_path):
  monkeypatch.delitem(sys.modules, 'colorsys')
  with process_state.unchanged(tmp_path):
    importlib.import_module('colorsys')
    with jax.enable_x64(True), pytest.MonkeyPatch.context() as patch:
      patch.setenv('NEW', '1')
      patch.chdir(tmp_path)
    assert 'NEW' not in os.environ

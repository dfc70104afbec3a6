# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the examples run, and are short."""

import io
import pathlib
import re
import runpy

import pytest

from speculative_t5x import embedded

_FOLDER = pathlib.Path(__file__).parents[1] / 'examples'
_NAMES = sorted(path.stem for path in _FOLDER.glob('*.py'))


def _main(name):
  return runpy.run_path(str(_FOLDER / f'{name}.py'))['main']


def test_decode_your_pair(capsys, monkeypatch):
  lines = io.StringIO('The train from Bonn is late.\n\nIt rains in Bonn.\n')
  monkeypatch.setattr('sys.stdin', lines)
  paths = [embedded.target_checkpoint(), embedded.draft_checkpoint()]
  _main('decode_your_pair')(
      [*paths, f'--vocabulary={embedded.VOCABULARY_FILE}', '--gamma=3']
  )
  found = capsys.readouterr()
  assert len(found.out.splitlines()) == 2
  assert 'gamma 3' in found.err and 'tokens per target call' in found.err


def test_your_own_drafter(capsys):
  _main('your_own_drafter')()
  *_, counts = capsys.readouterr().out.splitlines()
  plain, own = map(int, re.findall(r'\d+', counts))
  assert own < plain


def test_your_own_network(capsys):
  _main('your_own_network')()
  assert 'follow the distribution' in capsys.readouterr().out


@pytest.mark.parametrize('name', _NAMES)
def test_is_short(name):
  assert len((_FOLDER / f'{name}.py').read_text().splitlines()) < 80


def test_all_are_tested():
  assert _NAMES == ['decode_your_pair', 'your_own_drafter', 'your_own_network']

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reports reach a terminal in styles, and a pipe as whole plain lines."""

from rich import console as console_lib
from rich import text

from speculative_t5x.research.reports import console

_PATH = '/a/long/path' * 30
_ROW = '1 ' * 90 + '1'


def _report():
  styled = text.Text('styled', 'bold red')
  table = console.table([{'a': _ROW}])
  return console_lib.Group(f'[1] :smile: {_PATH} ', styled, table)


def test_in_a_pipe(capsys, monkeypatch):
  monkeypatch.delenv('FORCE_COLOR', raising=False)
  console.show(_report())
  lines = [f'[1] :smile: {_PATH}', 'styled', ' ' * 180 + 'a', _ROW]
  assert capsys.readouterr().out.splitlines() == lines
  assert console.to_text(_report()).split('\n') == lines


def test_on_a_terminal(capsys, monkeypatch):
  monkeypatch.setenv('FORCE_COLOR', '1')
  monkeypatch.setenv('TERM', 'xterm-256color')
  monkeypatch.delenv('NO_COLOR', raising=False)
  console.show(_report())
  output = capsys.readouterr().out
  assert '\x1b[1;31mstyled\x1b[0m' in output
  assert _PATH in output and _ROW in output  # whole, so that it can be copied

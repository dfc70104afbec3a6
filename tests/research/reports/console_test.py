# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reports reach a terminal in styles, and a pipe as whole plain lines."""

import os
import pty
import subprocess
import sys

import pytest
from rich import console as console_lib
from rich import text

from speculative_t5x.research.reports import console

_PATH = '/a/long/path' * 30
_SHOW = f"""
from rich import console as console_lib
from rich import text
from speculative_t5x.research.reports import console
styled = text.Text('styled', 'bold red')
table = console.table(['a'], [['1 ' * 90 + '1']])
console.show(console_lib.Group('A sentence at {_PATH}', styled, table))
"""


@pytest.fixture
def environment():
  """One in which neither colours nor a width are asked for."""
  names = ('COLUMNS', 'FORCE_COLOR', 'NO_COLOR', 'TTY_COMPATIBLE')
  kept = {k: v for k, v in os.environ.items() if k not in names}
  return kept | {'TERM': 'xterm-256color'}


class TestToText:

  def test_lines_are_whole_and_without_styles(self):
    report = console_lib.Group(
        text.Text('a ' * 999, 'bold'), '[1] :smile: ', ''
    )
    assert console.to_text(report).split('\n') == [
        ('a ' * 999).rstrip(), '[1] :smile:', ''
    ]  # fmt: skip

  def test_not_by_request_either(self, monkeypatch):
    monkeypatch.setenv('FORCE_COLOR', '1')
    monkeypatch.setenv('COLUMNS', '20')
    assert console.to_text(text.Text('a ' * 20 + 'b', 'red')).endswith(' a b')


class TestNotebook:

  @pytest.fixture(autouse=True)
  def in_a_notebook(self, monkeypatch):
    monkeypatch.setattr(console_lib, '_is_jupyter', lambda: True)

  def test_text_is_returned_and_not_displayed(self):
    assert console.to_text(text.Text('styled', 'bold red')) == 'styled'

  def test_html(self):
    html = console.to_html(text.Text.assemble('a < b ', ('c', 'bold #ff0000')))
    assert 'a &lt; b <span style="color: #ff0000;' in html
    assert 'font-weight: bold">c</span>' in html


class TestTable:

  def test_columns(self):
    table = console.table(['one', ''], [['[1]', 'x' * 300], ['22222', '']])
    assert console.to_text(table).splitlines() == [
        '  one', '  [1]  ' + 'x' * 300, '22222'
    ]  # fmt: skip

  def test_left(self):
    table = console.table(['', 'b'], [['long', '1']], justify='left')
    assert console.to_text(table).splitlines() == ['      b', 'long  1']


class TestShow:

  def test_in_a_pipe(self, environment):
    done = subprocess.run(
        [sys.executable, '-c', _SHOW],
        env=environment, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert done.stdout.splitlines() == [
        f'A sentence at {_PATH}', 'styled', ' ' * 180 + 'a', '1 ' * 90 + '1'
    ]  # fmt: skip

  def test_on_a_terminal_without_styles(self, environment):
    """It is told by TERM, as in an editor's shell."""
    assert '\x1b' not in self.output({**environment, 'TERM': 'dumb'})

  def test_on_a_terminal(self, environment):
    output = self.output(environment)
    assert '\x1b[1;31mstyled\x1b[0m' in output
    assert _PATH in output  # whole, so that it can be copied
    assert '1 ' * 90 + '1\r\n' in output

  def output(self, environment):
    """Returns what a terminal gets."""
    outer, inner = pty.openpty()
    with open(outer, 'rb', buffering=0) as shown:
      with open(inner, 'wb') as stdout:
        subprocess.run(
            [sys.executable, '-c', _SHOW],
            env=environment, check=True, stdout=stdout,
        )  # fmt: skip
        return shown.read(100_000).decode()

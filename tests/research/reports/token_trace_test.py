# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoded sentence, and any report, in a terminal, a pipe and a notebook."""

import io

from rich import console as console_lib
from rich import text

from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import token_trace

SCRIPT = '<script>[bold]:smile:'
PIECES = ['▁Die', '▁Donau', 'dampf', 'schiff', '▁', '7', '[/]', SCRIPT]
BLOCKS = [
    token_trace.Block((0, 1, 2), 7, 3),
    token_trace.Block((), 4, 5),
    token_trace.Block((4, 6, 7), None, 5),
    token_trace.Block((7,), None, None),
]


def trace(blocks=BLOCKS, sentence=None):
  return token_trace.TokenTrace(blocks, PIECES.__getitem__, sentence)


def test_plain_text_has_one_line_per_call():
  lines = console.to_text(trace()).splitlines()
  assert lines[-4:] == [
      f'1  ▁Die ▁Donau dampf [-{SCRIPT}-] {{+schiff+}}',
      '2  [-▁-] {+7+}',
      f'3  ▁ [/] {SCRIPT} {{+7+}}',
      f'4  {SCRIPT}',
  ]


def test_notebook_page():
  page = trace(sentence=SCRIPT)._repr_html_()
  assert SCRIPT not in page and '&lt;script&gt;[bold]:smile:' in page
  assert page.count('line-through') == 1 + 2  # the legend, two rejections
  assert page.count('background-color') == 3 + 12  # and all tokens
  # One line per call, in a block that keeps lines and spaces.
  assert page.startswith('<pre') and '\n4  <span' in page


def test_forms_differ_without_colours():
  terminal = console_lib.Console(
      file=io.StringIO(), width=100, color_system='truecolor'
  )
  blocks = [token_trace.Block((0,), 1, 2)]
  line = terminal.render_lines(trace(blocks), pad=False)[3]
  looks = [part.style for part in line if part.style]
  accepted, rejected, target = [look for look in looks if look.bgcolor]
  assert not (accepted.strike or accepted.bold or accepted.underline)
  assert rejected.strike and not rejected.bold
  assert target.bold and target.underline and not target.strike


_PATH = '/a/long/path' * 30
_ROW = '1 ' * 90 + '1'


def _report():
  styled = text.Text('styled', 'bold red')
  table = markdown.Table([{'a': _ROW}])
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

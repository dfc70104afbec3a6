# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that each row of `public_reports.md` has a link, and a test here."""

import ast
import functools
import pathlib
import re

_TESTS = pathlib.Path(__file__).parent
_ROW = re.compile(
    r'\| [^|]+ \| \[(?P<repository>[\w.-]+)#(?P<number>\d+)\]'
    r'\((?P<link>https://github\.com/[\w-]+/(?P=repository)'
    r'/(issues|pull)/(?P=number))\) \| `(?P<test>[\w/]+\.py::[\w:]+)` \|'
)
_HEADING = ('| what went wrong ', '|---|')


def _rows() -> list[re.Match]:
  lines = (_TESTS / 'public_reports.md').read_text().splitlines()
  rows = [x for x in lines if x.startswith('|') and not x.startswith(_HEADING)]
  matches = {row: _ROW.fullmatch(row) for row in rows}
  assert all(matches.values()), [x for x in rows if not matches[x]]
  return list(matches.values())


@functools.cache
def _names(file: str) -> set[str]:
  """Returns the tests of a file, those of classes as `Class::test`."""

  def names(body, prefix=''):
    for node in body:
      if isinstance(node, ast.ClassDef):
        yield from names(node.body, f'{node.name}::')
      elif isinstance(node, ast.FunctionDef) and node.name.startswith('test_'):
        yield prefix + node.name

  return {*names(ast.parse((_TESTS / file).read_text()).body)}


def test_links_are_unique():
  links = [row['link'] for row in _rows()]
  assert len(links) == len(set(links)) >= 40


def test_tests_exist():
  tests = [row['test'].split('::', 1) for row in _rows()]
  assert [x for x in tests if x[1] not in _names(x[0])] == []

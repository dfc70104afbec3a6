# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the README's Python runs, and that files that pages name exist."""

import pathlib
import re
import shutil

import pytest

from speculative_t5x import embedded

_ROOT = pathlib.Path(__file__).parent.parent
_README = (_ROOT / 'README.md').read_text()


class TestReadme:

  def test_python_runs(self, capsys, tmp_path):
    """The embedded models stand for the reader's own pair."""
    shutil.copytree(embedded.target_checkpoint(), tmp_path / 'target')
    shutil.copy(embedded.VOCABULARY_FILE, tmp_path / 'target/spiece.model')
    own, pair = re.findall(r'```python\n(.*?)```', _README, re.DOTALL)
    own = own.replace('<target>', str(tmp_path / 'target'))
    own = own.replace('<draft>', embedded.draft_checkpoint())
    names = {}
    exec(compile(own, 'README.md', 'exec'), names)
    exec(compile(pair, 'README.md', 'exec'), names)
    assert 'speculatively' in capsys.readouterr().out

  def test_files_exist(self):
    links = re.findall(r'\]\((?!http)([^)#]+)', _README)
    assert len(links) > 12
    for name in links:
      assert (_ROOT / name).exists(), name

  def test_is_short(self):
    assert len(_README.splitlines()) <= 150


@pytest.mark.parametrize('page', sorted((_ROOT / 'docs').glob('*.md')), ids=str)
def test_files_that_a_page_names(page):
  text = page.read_text()
  names = re.findall(
      r'`((?:configs|speculative_t5x|scripts|tests)/[^`<*{ ]+)`', text
  )
  links = re.findall(r'\]\((?!http|#)([^)#]+)', text)
  found = [_ROOT / name for name in names] + [page.parent / x for x in links]
  assert [str(path) for path in found if not path.exists()] == []

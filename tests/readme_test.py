# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The README's Python runs, and the files it names exist."""

import pathlib
import re

_ROOT = pathlib.Path(__file__).parent.parent
_README = (_ROOT / 'README.md').read_text()


class TestReadme:

  def test_python_runs(self, capsys):
    blocks = re.findall(r'```python\n(.*?)```', _README, re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
      exec(compile(block, 'README.md', 'exec'), {})
    assert 'speculatively' in capsys.readouterr().out

  def test_files_exist(self):
    names = re.findall(
        r"`((?:configs|speculative_t5x|scripts)/[^`<*]+)`", _README
    )
    links = re.findall(r'\]\((?!http)([^)]+)\)', _README)
    assert len(names) > 8 and links
    for name in [*names, *links]:
      assert (_ROOT / name).exists(), name

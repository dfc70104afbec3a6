# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading macros and includes of gin files without gin."""

from speculative_t5x.jobs.command_line import gin_text

_TEXT = """# A = %B
import gin.torch
from __gin__ import dynamic_registration
C = 1
scope/D = {'x': [%E, '# %F'],  # %G
           'I = ': %scope/H}
c.d.e = %gin.REQUIRED
call:
  J = [@scope/other(), %K]
  l = (
1, %L)
include "other.gin"
N= 2"""


def _read(folder, *names):
  return gin_text.read_macros(names, ['nowhere', str(folder)])


def test_macros(tmp_path):
  (tmp_path / 'a.gin').write_text(_TEXT)
  (tmp_path / 'other.gin').write_text('\nC = 2\nP = %N')
  macros = _read(tmp_path, 'a.gin')
  assert macros.places == {
      'C': f'{tmp_path / "other.gin"}, line 2',
      'scope/D': f'{tmp_path / "a.gin"}, line 5',
      'P': f'{tmp_path / "other.gin"}, line 3',
      'N': f'{tmp_path / "a.gin"}, line 13',
  }
  assert macros.used == {'E', 'scope/H', 'K', 'L', 'N'}
  assert macros.values['scope/D'] == (
      "{'x': [%E, '# %F'], 'I = ': %scope/H}"
  )
  assert macros.values['C'] == '2' and macros.values['P'] == '%N'
  assert macros.mentioned == {*macros.places, *macros.used}
  macros = _read(tmp_path, 'a.gin', 'other.gin')  # a file may be read twice
  assert macros.places['C'] == f'{tmp_path / "other.gin"}, line 2'

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the report of the compare job."""

import json
import pathlib

import pytest

from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import divergence

_RESULTS = pathlib.Path(__file__).parents[3] / 'results'


@pytest.mark.parametrize(('name', 'count'), [('plain', 1), ('speculative', 2)])
def test_shows_the_comparisons_of_results(name, count):
  text = (_RESULTS / f'divergence_multi30k_{name}.json').read_text()
  line = json.loads(text)
  header, *rows, summary = console.to_text(divergence.render([line])).split(
      '\n'
  )
  assert header.startswith('temperature') and len(rows) == count + 1
  assert all('near tie' in row for row in rows[:-1])
  assert summary.endswith(f'{count} near ties, 0 mismatches')

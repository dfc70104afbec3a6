# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables of recipes for drafts."""

import json

from scripts.pages import records
from scripts.pages import training_tables


def _recipes():
  speed = lambda t, gamma, x: {
      'temperature': t,
      'gamma': gamma,
      'speedup': x,
      'speedup_ci95': [x - 0.1, x + 0.1],
      'tokens_per_target_call': 2 * x,
  }
  baseline = {
      'recipe': 'references',
      'bleu': 30.0,
      'seeds': {'0': {}, '1': {}},
      'mean': {'acceptance_t0': 0.5, 'acceptance_t1': 0.4},
      'speed': [speed(0.0, 3, 1.2), speed(0.0, 5, 1.1), speed(1.0, 3, 0.9)],
  }
  other = {
      'recipe': 'exit_head',
      'bleu': None,
      'seeds': {'0': {}},
      'mean': {'acceptance_t0': 0.61, 'acceptance_t1': 0.55},
      'speed': [speed(0.0, 3, 1.5), speed(0.0, 5, 1.6), speed(1.0, 3, 1.3)],
      'over_references': {
          'acceptance_t0': [0.11, 0.09, 0.13],
          'acceptance_t1': [0.15],
      },
  }
  text = json.dumps([baseline, other])
  return json.loads(text, object_hook=records.Entry)


def test_acceptance():
  assert training_tables.recipes_table(_recipes()).splitlines()[2:] == [
      '| references | 2 | 30.0 | 0.500 | - | 0.400 | - |',
      '| exit head | 1 | - | 0.610 | +0.110 [+0.090, +0.130]'
      ' | 0.550 | +0.150 |',
  ]


def test_speeds_of_a_temperature():
  assert training_tables.recipe_speeds_table(
      _recipes(), 0
  ).splitlines()[2:] == [
      '| references | 2.40 | 1.20x [1.10, 1.30] | 2.20 | 1.10x [1.00, 1.20] |',
      '| exit head | 3.00 | 1.50x [1.40, 1.60] | 3.20 | 1.60x [1.50, 1.70] |',
  ]
  assert training_tables.recipe_speeds_table(
      _recipes(), 1
  ).splitlines()[2:] == [
      '| references | 1.80 | 0.90x [0.80, 1.00] |',
      '| exit head | 2.60 | 1.30x [1.20, 1.40] |',
  ]


def test_recipe_by_name():
  assert training_tables.recipe(_recipes(), 'exit_head').bleu is None

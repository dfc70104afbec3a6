# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tables of recipes for drafts."""

import json

from scripts.pages import records
from scripts.pages import training_tables


def _mean(acceptance_t0, acceptance_t1):
  tokens = {
      f'tokens_per_call_{gamma}_t{t}': gamma / 2 - t
      for gamma in (3, 5, 7)
      for t in (0, 1)
  }
  return tokens | {
      'acceptance_t0': acceptance_t0,
      'acceptance_t1': acceptance_t1,
  }


def _speed(temperature, speedup):
  return {
      'temperature': temperature,
      'gamma': 5,
      'speedup': speedup,
      'speedup_ci95': [speedup - 0.1, speedup + 0.1],
  }


def _recipes():
  baseline = {
      'recipe': 'references',
      'bleu': 30.0,
      'seeds': {'0': {}, '1': {}},
      'mean': _mean(0.5, 0.4),
      'speed': [_speed(0.0, 1.2), _speed(1.0, 0.9)],
  }
  other = {
      'recipe': 'exit_head',
      'bleu': None,
      'seeds': {'0': {}},
      'mean': _mean(0.61, 0.55),
      'speed': [_speed(0.0, 1.5), _speed(1.0, 1.3)],
      'over_references': {
          'acceptance_t0': [0.11, 0.09, 0.13],
          'acceptance_t1': [0.15],
      },
  }
  text = json.dumps([baseline, other])
  return json.loads(text, object_hook=records.Entry)


def test_acceptance():
  assert training_tables.recipes_table(_recipes()).splitlines()[2:] == [
      '| `references` | 2 | 30.0 | 0.500 | - | 0.400 | - |',
      '| `exit_head` | 1 | - | 0.610 | +0.110 [+0.090, +0.130]'
      ' | 0.550 | +0.150 |',
  ]


def test_speeds_of_a_temperature():
  table = training_tables.recipe_speeds_table(_recipes(), 0).splitlines()
  assert table[0].endswith('call, gamma 7 | speedup, gamma 5 |')
  assert table[2:] == [
      '| `references` | 1.50 | 2.50 | 3.50 | 1.20x [1.10, 1.30] |',
      '| `exit_head` | 1.50 | 2.50 | 3.50 | 1.50x [1.40, 1.60] |',
  ]
  table = training_tables.recipe_speeds_table(_recipes(), 1).splitlines()
  assert table[2:] == [
      '| `references` | 0.50 | 1.50 | 2.50 | 0.90x [0.80, 1.00] |',
      '| `exit_head` | 0.50 | 1.50 | 2.50 | 1.30x [1.20, 1.40] |',
  ]

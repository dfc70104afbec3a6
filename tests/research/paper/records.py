# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run records that were made up, and the tables of pages, for tests."""

import dataclasses

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import theory

TOKENS = 1000  # of the run
ENCODER_S = 2.0  # of the target
T1_MS = 10.0
COST = 0.05
VERIFY_RATIO = 1.5
LOOP_EFFICIENCY = 0.8
_TIMED = (
    'baseline', 'speculative', 'tokens_per_target_call', 'encoder_s', 't1_ms',
    't_verify_ms', 't_draft_ms', 't_draft2_ms', 'c', 'verify_cost_ratio',
    'bound_speedup', 'speedup', 'speedup_ci95',
    'loop_efficiency',
)  # fmt: skip


def with_times(settings, gamma, **values):
  """Return the settings with what timing would add, from `measured`."""
  found = measured(gamma)
  times = {key: getattr(found, key) for key in _TIMED}
  return dataclasses.replace(settings, **times | values)


def measured(
    gamma=7, temperature=0.0, alpha=0.7, tokens_per_call=2.5, **values
):
  """Return a record of a run at batch size 1, whose values fit each other."""
  times = step_times.PartTimes(
      target_encoder_s=ENCODER_S,
      draft_encoder_s=0.1,
      t1_ms=T1_MS,
      t_verify_ms=VERIFY_RATIO * T1_MS,
      t_draft_ms=COST * T1_MS,
      t_draft2_ms=COST * T1_MS,
  )
  calls = TOKENS / tokens_per_call
  bound = times.plain_seconds(TOKENS) / times.speculative_seconds(
      gamma * calls, [calls]
  )
  speedup = LOOP_EFFICIENCY * bound
  plain_s = ENCODER_S + TOKENS * T1_MS / 1e3
  record = {
      'job': 'walltime',
      'task': 'bulletins_ende',
      'num_examples': 64,
      'target': _model('target/checkpoint_2', 11_100_000_000),
      'drafter': _model('draft/checkpoint_4', 77_000_000) | {'kind': 'model'},
      'gamma': gamma,
      'temperature': temperature,
      'seed': 5,
      'batch_size': 1,
      'inputs_length': 96,
      'targets_length': 48,
      'device': {'kind': 'TPU v5', 'count': 1, 'jax': '0.10.2'},
      'host': {'cpu': 'A processor', 'cores': 8},
      'baseline': {'walltime_s': plain_s, 'loop_steps': TOKENS},
      'speculative': {'loop_steps': calls},
      'tokens_per_target_call': tokens_per_call,
      'encoder_s': {'target': ENCODER_S, 'draft': 0.1},
      't1_ms': T1_MS,
      't_verify_ms': VERIFY_RATIO * T1_MS,
      't_draft_ms': COST * T1_MS,
      't_draft2_ms': COST * T1_MS,
      't_call_ms': 1.1 * (gamma * COST + VERIFY_RATIO) * T1_MS,
      'c': COST,
      'verify_cost_ratio': VERIFY_RATIO,
      'alpha': {'value': alpha, 'ci95': [0.69, 0.71], 'num_tokens': 10_000},
      'predicted_speedup': float(theory.walltime_factor(alpha, gamma, COST)),
      'bound_speedup': bound,
      'speedup': speedup,
      'speedup_ci95': [0.95 * speedup, 1.05 * speedup],
      'loop_efficiency': LOOP_EFFICIENCY,
      'repeats': 3,
  }
  return run_record.from_dict(record | values)


def simulated(rate=0.75, **values):
  """Return a record of a run with simulated acceptance, without alpha."""
  record = measured(simulated_acceptance=rate, task=None, **values)
  return dataclasses.replace(record, alpha=None)


def changed(record, key, **values):
  """Return the record with other values in one of its nested dataclasses."""
  nested = dataclasses.replace(getattr(record, key), **values)
  return dataclasses.replace(record, **{key: nested})


def tables(page):
  """Return header and rows of cells of each table of a page."""
  found = []
  for part in str(page).split('\n\n'):
    lines = [x for x in part.splitlines() if x.startswith('|')]
    if lines:
      split = [[c.strip() for c in x.strip('|').split('|')] for x in lines]
      assert len({len(row) for row in split}) == 1
      found.append((split[0], split[2:]))
  return found


def cells(page):
  """Return header and rows of cells of the last table of a page."""
  return tables(page)[-1]


def table_with(page, name):
  """Return the rows of the last table of a page with a column, by column."""
  header, rows = [x for x in tables(page) if name in x[0]][-1]
  return [dict(zip(header, row, strict=True)) for row in rows]


def _model(name, num_params):
  return {'name': name, 'num_params': num_params, 'dtype': 'bfloat16'}

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run record says beside the paper: a verdict, reasons and points.

`docs/run_record.md` explains the keys of a record.

Legend: gamma (guesses a target call); c (time of a draft step over a target
step, Definition 3.7); a dialled record is one whose acceptance was drawn at a
set rate and not earned by its models.
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import math
from typing import Any

from speculative_t5x import analysis
from speculative_t5x.paper import published

Record = Mapping[str, Any]

_LEAST_EFFECT = 0.05  # a change of speed that is worth a word
_MOST_REASONS = 3  # a cell of a table holds no more


def alpha(record: Record) -> float | None:
  """Alpha of the guesses of a run, None where it is not known.

  The rate of a dialled record, else Corollary 3.6 as measured.
  """
  if is_dialled(record):
    return record['simulated_acceptance']
  return record['alpha'] and record['alpha']['value']


def is_dialled(record: Record) -> bool:
  """Whether acceptance was drawn at a set rate."""
  return record['simulated_acceptance'] is not None


def verdict(record: Record) -> str:
  """Whether speculation pays: see `analysis.verdict`."""
  if record['speedup'] is None:
    return 'not measured'
  return analysis.verdict(record['speedup_ci95'])


def in_turns(record: Record) -> float | None:
  """Drafting and verifying in turns, over both by themselves.

  Above 1 where draft and target push each other out of the caches.
  """
  if record['t_call_ms'] is None:
    return None
  later = (record['gamma'] - 1) * record['t_draft_ms']
  apart = record['t_draft2_ms'] + later + record['t_verify_ms']
  return record['t_call_ms'] / apart


@dataclasses.dataclass(frozen=True)
class Effect:
  """Something that parts a measured speedup from the paper's.

  Attributes:
    words: what it is.
    factor: what it multiplies the speedup by.
  """

  words: str
  factor: float


def effects(row: published.Row, record: Record) -> list[Effect]:
  """All that is known to part a measured speedup from the paper's.

  From the paper's measured speed to its predicted one, by other alpha and c to
  the prediction for this run, and from there to its measured speed. The factors
  multiply to measured over published if nothing is missing in the record; what
  a block's first draft step takes longer counts with the encoders.
  """
  made = (make(row, record) for make in _EFFECTS)
  return [effect for effect in made if effect is not None]


def reasons(row: published.Row, record: Record) -> list[Effect]:
  """The three largest effects, of 5 percent or more, the largest first."""
  strength = lambda effect: abs(math.log(effect.factor))
  least = math.log1p(_LEAST_EFFECT)
  large = [e for e in effects(row, record) if strength(e) >= least]
  return sorted(large, key=strength, reverse=True)[:_MOST_REASONS]


def _paper_effect(row: published.Row, record: Record) -> Effect:
  del record
  predicted = float(
      analysis.walltime_factor(row.alpha, row.gamma, row.cost_coefficient)
  )
  ratio = row.measured / predicted
  words = f"the paper's own speed is {ratio:.2f} times Theorem 3.8"
  return Effect(words, 1 / ratio)


def _alpha_effect(row: published.Row, record: Record) -> Effect | None:
  ours = alpha(record)
  if ours is None:
    return None
  side = 'above' if ours > row.alpha else 'below'
  tokens = analysis.expected_tokens([ours, row.alpha], row.gamma)
  return Effect(
      f"alpha is {abs(ours - row.alpha):.2f} {side} the paper's",
      float(tokens[0] / tokens[1]),
  )


def _cost_effect(row: published.Row, record: Record) -> Effect | None:
  cost = record['c']
  if cost is None:
    return None
  ours, theirs = row.gamma * cost + 1, row.gamma * row.cost_coefficient + 1
  times = cost / row.cost_coefficient
  return Effect(f"c is {times:.1f} times the paper's", theirs / ours)


def _tokens_effect(row: published.Row, record: Record) -> Effect | None:
  tokens, ours = record['tokens_per_target_call'], alpha(record)
  if tokens is None or ours is None:
    return None
  expected = float(analysis.expected_tokens(ours, row.gamma))
  words = f'a call yields {tokens:.2f} tokens, by Equation (1) {expected:.2f}'
  return Effect(words, tokens / expected)


def _verify_effect(row: published.Row, record: Record) -> Effect | None:
  cost, verify = record['c'], record['verify_cost_ratio']
  if cost is None or verify is None:
    return None
  draft = row.gamma * cost
  words = f'verifying costs {verify:.1f} single steps'
  return Effect(words, (draft + 1) / (draft + verify))


def _encoders_effect(row: published.Row, record: Record) -> Effect | None:
  keys = (
      'encoder_s', 'c', 'verify_cost_ratio', 'tokens_per_target_call',
      'bound_speedup',
  )  # fmt: skip
  if any(record[key] is None for key in keys):
    return None
  seconds, cost, verify, tokens, bound = (record[key] for key in keys)
  without_encoders = tokens / (row.gamma * cost + verify)
  share = (seconds['target'] or 0) / record['baseline']['walltime_s']
  words = f"the target's encoder takes {share:.0%} of plain decoding"
  return Effect(words, bound / without_encoders)


def _loop_effect(row: published.Row, record: Record) -> Effect | None:
  del row
  efficiency = record['loop_efficiency']
  if efficiency is None:
    return None
  return Effect(f'the loop reaches {efficiency:.0%} of its bound', efficiency)


_EFFECTS = (
    _paper_effect,
    _alpha_effect,
    _cost_effect,
    _tokens_effect,
    _verify_effect,
    _encoders_effect,
    _loop_effect,
)


@dataclasses.dataclass(frozen=True)
class Point:
  """A measured run, to be laid over a figure of the paper.

  Attributes:
    label: tells the runs that differ only in gamma from all others.
    alpha: see `alpha`.
    gamma: guesses a target call.
    cost_coefficient: c.
    tokens_per_call: committed tokens over target calls.
    speedup: plain over speculative walltime.
    speedup_ci95: its 95 percent interval, None for too few batches.
    operations_factor: speculative over plain operations, None if not counted.
  """

  label: str
  alpha: float
  gamma: int
  cost_coefficient: float
  tokens_per_call: float
  speedup: float
  speedup_ci95: tuple[float, float] | None
  operations_factor: float | None


def model_name(model: Mapping[str, Any]) -> str:
  """That of the checkpoint; without one, the kind and the size."""
  if model['name']:
    return model['name']
  kind = model.get('kind') or 'no checkpoint'
  count = model['num_params']
  return kind if count is None else f'{kind} {size(count)}'


def size(num_params: float) -> str:
  """In millions or billions, with three digits."""
  if num_params >= 999.5e6:
    return f'{num_params / 1e9:.3g}B'
  return f'{num_params / 1e6:.3g}M'


def label(record: Record) -> str:
  """Drafter and temperature, and the batch size unless it is 1."""
  parts = [model_name(record['drafter']), f'T={record["temperature"]:g}']
  if record['batch_size'] != 1:
    parts.append(f'batch {record["batch_size"]}')
  if is_dialled(record):
    parts.append(f'dialled {record["simulated_acceptance"]:g}')
  return ', '.join(parts)


def points(
    records: Sequence[Record], label: Callable[[Record], str] = label
) -> list[Point]:
  """A point for each record that has all it needs; others are left out.

  Args:
    records: of any job. A plain run gives no point, nor does one whose alpha,
      c, tokens a call or speedup was not measured.
    label: makes the label of a record; runs of one label are taken to differ
      only in gamma.
  """
  return [
      Point(
          label=label(record),
          alpha=alpha(record),
          gamma=record['gamma'],
          cost_coefficient=record['c'],
          tokens_per_call=record['tokens_per_target_call'],
          speedup=record['speedup'],
          speedup_ci95=_pair(record['speedup_ci95']),
          operations_factor=record['operations_factor'],
      )
      for record in records
      if _is_complete(record)
  ]


def _is_complete(record: Record) -> bool:
  needed = ('drafter', 'gamma', 'c', 'tokens_per_target_call', 'speedup')
  has_all = all(record[key] is not None for key in needed)
  return has_all and alpha(record) is not None


def _pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
  return None if interval is None else (interval[0], interval[1])

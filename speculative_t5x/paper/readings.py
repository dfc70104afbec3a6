# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What a run record says beside the paper: a verdict and reasons.

`docs/run_record.md` explains the keys of a record.

Legend: gamma (guesses a target call); c (time of a draft step over a target
step, Definition 3.7); a dialled record is one whose acceptance was drawn at a
set rate and not earned by its models.
"""

from collections.abc import Iterable, Mapping
import dataclasses
import math
from typing import Any

from speculative_t5x import analysis
from speculative_t5x.paper import published
from speculative_t5x.walltime import measurement

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


def cut_inputs(records: Iterable[Record]) -> list[str]:
  """Returns a line for each limit that inputs were cut to."""
  lines = [
      f'{record["truncated_inputs"]} of {record["num_examples"]} inputs were'
      f' cut to {record["inputs_length"]} tokens. A larger TASK_FEATURE_LENGTHS'
      ' keeps them whole.'
      for record in records
      if record['truncated_inputs']
  ]
  return list(dict.fromkeys(lines))


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
  multiply to measured over published if nothing is missing in the record.
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


def _first_draft_effect(
    row: published.Row, record: Record
) -> Effect | None:
  if not _has_parts(record):
    return None
  cost, later_cost = record['t_draft2_ms'] / record['t1_ms'], record['c']
  later = row.gamma * later_cost + record['verify_cost_ratio']
  words = (
      f"a block's first draft step costs {cost:.2f} target steps, later ones"
      f' {later_cost:.2f}'
  )
  return Effect(words, later / _block_cost(row, record))


def _encoders_effect(row: published.Row, record: Record) -> Effect | None:
  if not _has_parts(record):
    return None
  share = record['encoder_s']['target'] / record['baseline']['walltime_s']
  words = f"the target's encoder takes {share:.0%} of plain decoding"
  decoders = record['tokens_per_target_call'] / _block_cost(row, record)
  return Effect(words, _bound_of_medians(row, record) / decoders)


def _drift_effect(row: published.Row, record: Record) -> Effect | None:
  if not _has_parts(record):
    return None
  words = 'the machine changed its speed while the parts were timed'
  ratio = record['bound_speedup'] / _bound_of_medians(row, record)
  return Effect(words, ratio)


def _has_parts(record: Record) -> bool:
  keys = 'encoder_s', 'c', 'tokens_per_target_call', 'bound_speedup'
  return all(record[key] is not None for key in keys)


def _block_cost(row: published.Row, record: Record) -> float:
  """Of drafting and verifying a block, in single steps of the target."""
  later_ms = (row.gamma - 1) * record['t_draft_ms']
  block_ms = record['t_draft2_ms'] + later_ms + record['t_verify_ms']
  return block_ms / record['t1_ms']


def _bound_of_medians(row: published.Row, record: Record) -> float:
  """The bound, had the parts' medians held all along."""
  return analysis.bound_speedup(
      measurement.step_times_of(record),
      baseline_steps=record['baseline']['loop_steps'],
      speculative_steps=record['speculative']['loop_steps'],
      gamma=row.gamma,
  )


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
    _first_draft_effect,
    _encoders_effect,
    _drift_effect,
    _loop_effect,
)


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

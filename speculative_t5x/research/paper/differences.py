# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Why the speedup of a run differs from the paper's.

Legend: gamma (draft tokens per target call); c (time of a draft step over that
of a target step, Definition 3.7).
"""

import dataclasses
import math

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import readings
from speculative_t5x.speculation import theory

_LEAST_EFFECT = 0.05  # smaller effects on the speedup are not mentioned
_MAX_REASONS = 3  # that fit into a cell of a table


@dataclasses.dataclass(frozen=True)
class Effect:
  """One cause of a difference between a measured and a published speedup.

  Attributes:
    words: describes the cause.
    factor: by which it multiplies the speedup.
  """

  words: str
  factor: float


def effects(row: published.Row, record: run_record.RunRecord) -> list[Effect]:
  """Returns all known causes of the difference, in a fixed order.

  They lead from the paper's measured speedup to its predicted one, from there
  to the prediction for this run by way of its alpha and c, and then to its
  measured speedup. If the record has every value that is needed, the factors
  multiply to the measured over the published speedup.

  Args:
    row: of the paper.
    record: of a run with the gamma and the temperature of the row.
  """
  made = (make(row, record) for make in _EFFECTS)
  return [effect for effect in made if effect is not None]


def reasons(row: published.Row, record: run_record.RunRecord) -> list[Effect]:
  """Returns up to 3 effects of 5 percent or more, the largest first."""
  strength = lambda effect: abs(math.log(effect.factor))
  least = math.log1p(_LEAST_EFFECT)
  large = [e for e in effects(row, record) if strength(e) >= least]
  return sorted(large, key=strength, reverse=True)[:_MAX_REASONS]


def _paper_effect(row: published.Row, record: run_record.RunRecord) -> Effect:
  del record
  predicted = float(
      theory.walltime_factor(row.alpha, row.gamma, row.cost_coefficient)
  )
  ratio = row.measured / predicted
  words = f"the paper's speedup is {ratio:.2f} times that of Theorem 3.8"
  return Effect(words, 1 / ratio)


def _alpha_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  ours = readings.alpha(record)
  if ours is None:
    return None
  side = 'above' if ours > row.alpha else 'below'
  tokens = theory.expected_tokens([ours, row.alpha], row.gamma)
  return Effect(
      f"alpha is {abs(ours - row.alpha):.2f} {side} the paper's",
      float(tokens[0] / tokens[1]),
  )


def _cost_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  cost = record.c
  if cost is None:
    return None
  ours, theirs = row.gamma * cost + 1, row.gamma * row.cost_coefficient + 1
  times = cost / row.cost_coefficient
  return Effect(f"c is {times:.1f} times the paper's", theirs / ours)


def _tokens_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  tokens = record.tokens_per_target_call
  ours = readings.alpha(record)
  if tokens is None or ours is None:
    return None
  expected = float(theory.expected_tokens(ours, row.gamma))
  words = f'{tokens:.2f} tokens per call, {expected:.2f} by Equation (1)'
  return Effect(words, tokens / expected)


def _verify_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  cost, verify = record.c, record.verify_cost_ratio
  if cost is None or verify is None:
    return None
  draft = row.gamma * cost
  words = f'verification takes {verify:.1f} target steps'
  return Effect(words, (draft + 1) / (draft + verify))


def _first_draft_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  if not _has_parts(record):
    return None
  cost, later_cost = record.t_draft2_ms / record.t1_ms, record.c
  later = row.gamma * later_cost + record.verify_cost_ratio
  words = (
      f'the first draft step of a block takes {cost:.2f} target steps, later'
      f' ones {later_cost:.2f}'
  )
  return Effect(words, later / _block_cost(row, record))


def _encoders_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  if not _has_parts(record):
    return None
  share = record.encoder_s.target / record.baseline.walltime_s
  words = f"the target's encoder takes {share:.0%} of plain decoding"
  decoders = record.tokens_per_target_call / _block_cost(row, record)
  return Effect(words, _bound_of_medians(row, record) / decoders)


def _drift_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  if not _has_parts(record):
    return None
  words = 'the speed of the machine changed while the parts were timed'
  ratio = record.bound_speedup / _bound_of_medians(row, record)
  return Effect(words, ratio)


def _has_parts(record: run_record.RunRecord) -> bool:
  keys = 'encoder_s', 'c', 'tokens_per_target_call', 'bound_speedup'
  return all(getattr(record, key) is not None for key in keys)


def _block_cost(row: published.Row, record: run_record.RunRecord) -> float:
  """Returns the time of drafting and verifying, over that of a target step."""
  later_ms = (row.gamma - 1) * record.t_draft_ms
  block_ms = record.t_draft2_ms + later_ms + record.t_verify_ms
  return block_ms / record.t1_ms


def _bound_of_medians(
    row: published.Row, record: run_record.RunRecord
) -> float:
  """Returns the speedup if every part had always taken its median time."""
  return part_sums.bound_speedup(
      walltimes.step_times_of(record),
      baseline_steps=record.baseline.loop_steps,
      speculative_steps=record.speculative.loop_steps,
      gamma=row.gamma,
  )


def _loop_effect(
    row: published.Row, record: run_record.RunRecord
) -> Effect | None:
  del row
  efficiency = record.loop_efficiency
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

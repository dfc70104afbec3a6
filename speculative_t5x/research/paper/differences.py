# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Why the speedup of a run differs from the paper's.

Legend: gamma (draft tokens per target call); c (time of a draft step over that
of a target step, Definition 3.7).
"""

import math
from typing import NamedTuple

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import readings
from speculative_t5x.speculation import theory

_LEAST_EFFECT = 0.05  # smaller effects on the speedup are not mentioned
_MAX_REASONS = 3  # that fit into a cell of a table


class Effect(NamedTuple):
  """A cause of a difference, and by what factor it multiplies the speedup."""

  words: str
  factor: float


def effects(row: published.Row, record: run_record.RunRecord) -> list[Effect]:
  """Return all known causes of the difference, in a fixed order.

  They lead from the paper's measured speedup to its predicted one, from there
  to the prediction for this run by way of its alpha and c, and then to its
  measured speedup. If the record has every value that is needed, the factors
  multiply to the measured over the published speedup. It has the gamma and the
  temperature of the row.
  """
  gamma, alpha, cost = row.gamma, readings.alpha(record), record.c
  predicted = theory.walltime_factor(row.alpha, gamma, row.cost_coefficient)
  ratio = row.measured / float(predicted)
  words = f"the paper's speedup is {ratio:.2f} times that of Theorem 3.8"
  found = [Effect(words, 1 / ratio)]
  tokens, verify = record.tokens_per_target_call, record.verify_cost_ratio
  if alpha is not None:
    side = 'above' if alpha > row.alpha else 'below'
    words = f"alpha is {abs(alpha - row.alpha):.2f} {side} the paper's"
    ours, theirs = theory.expected_tokens([alpha, row.alpha], gamma)
    found.append(Effect(words, float(ours / theirs)))
  if cost is not None:
    words = f"c is {cost / row.cost_coefficient:.1f} times the paper's"
    theirs = gamma * row.cost_coefficient + 1
    found.append(Effect(words, theirs / (gamma * cost + 1)))
  if tokens is not None and alpha is not None:
    expected = float(theory.expected_tokens(alpha, gamma))
    words = f'{tokens:.2f} tokens per call, {expected:.2f} by Equation (1)'
    found.append(Effect(words, tokens / expected))
  if cost is not None and verify is not None:
    words = f'verification takes {verify:.1f} target steps'
    found.append(Effect(words, (gamma * cost + 1) / (gamma * cost + verify)))
  if None not in (record.encoder_s, cost, tokens, record.bound_speedup):
    found += _part_effects(gamma, record)
  efficiency = record.loop_efficiency
  if efficiency is not None:
    words = f'the loop reaches {efficiency:.0%} of its bound'
    found.append(Effect(words, efficiency))
  return found


def _part_effects(gamma: int, record: run_record.RunRecord) -> list[Effect]:
  """Return the effects of the first draft step, the encoders and the drift."""
  first, later = record.t_draft2_ms / record.t1_ms, record.c
  block_ms = record.t_draft2_ms + (gamma - 1) * record.t_draft_ms
  block = (block_ms + record.t_verify_ms) / record.t1_ms  # in target steps
  share = record.encoder_s.target / record.baseline.walltime_s
  # The speedup if every part had always taken its median time.
  bound = part_sums.bound_speedup(
      walltimes.step_times_of(record),
      baseline_steps=record.baseline.loop_steps,
      speculative_steps=record.speculative.loop_steps,
      gamma=gamma,
  )
  factors = {
      f'the first draft step of a block takes {first:.2f} target steps, later'
      f' ones {later:.2f}': (gamma * later + record.verify_cost_ratio) / block,
      f"the target's encoder takes {share:.0%} of plain decoding": (
          bound * block / record.tokens_per_target_call
      ),
      'the speed of the machine changed while the parts were timed': (
          record.bound_speedup / bound
      ),
  }
  return [Effect(*each) for each in factors.items()]


def reasons(row: published.Row, record: run_record.RunRecord) -> list[Effect]:
  """Return up to 3 effects of 5 percent or more, the largest first."""
  strength = lambda effect: abs(math.log(effect.factor))
  least = math.log1p(_LEAST_EFFECT)
  large = [e for e in effects(row, record) if strength(e) >= least]
  return sorted(large, key=strength, reverse=True)[:_MAX_REASONS]

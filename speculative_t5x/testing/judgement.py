# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The judgement that checks of drafters and of policies have in common."""

from collections.abc import Sequence
import functools

import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import rules
from speculative_t5x.testing import step_programs

# Of probabilities, which production computes in float32.
ROUNDING = 1e-5


def check(
    pair: pairs.Pair,
    policy: contracts.DraftLengthPolicy,
    *,
    temperatures: Sequence[float],
    tolerance: float,
) -> set[int]:
  """Checks that outputs of the rule of the paper follow the target.

  Args:
    pair: what is decoded.
    policy: the draft length policy.
    temperatures: of target and drafter; see also `rules.samplings`.
    tolerance: the largest total variation distance that passes.
  Returns:
    The lengths of drafts, see `reachable.Reached`.
  Raises:
    AssertionError: see `check_drafter`.
  """
  program = step_programs.Program(pair, policy, sampling_lib.make_sampling())
  lengths = set()
  vocab_size = pair.target.vocab_size
  for setting in rules.samplings(temperatures, vocab_size):
    program = program.with_sampling(sampling_lib.make_sampling(**setting))
    found = reachable.reach(
        program, verification.TOKENWISE, reachable.Decisions(_enumerator())
    )
    lengths |= found.lengths
    exact = reachable.exact_distributions(program)
    for example, both in enumerate(zip(exact, found.distributions)):
      _check_distance(program, example, setting, *both, tolerance)
  return lengths


@functools.cache
def _enumerator() -> rules.Enumerator:
  return rules.Enumerator(verification.TOKENWISE)


def _check_distance(program, example, setting, exact, found, tolerance):
  outputs = sorted(exact.keys() | found.keys())
  differences = np.array(
      [found.get(x, 0.0) - exact.get(x, 0.0) for x in outputs]
  )
  distance = rules.total_variation(exact, found)
  if distance <= tolerance:
    return
  shown = ', '.join(f'{name} {value:g}' for name, value in setting.items())
  worst = outputs[int(np.argmax(np.abs(differences)))]
  raise AssertionError(
      f'{program.name}: the outputs do not follow the distribution of the'
      f' target. At {shown} the total variation distance is'
      f' {distance:.2g} for example {example}, and {tolerance:g} is allowed.'
      f' The output {worst} has probability {found.get(worst, 0.0):.3g} instead'
      f' of {exact.get(worst, 0.0):.3g}.'
  )

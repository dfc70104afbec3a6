# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks that what happens to a row does not depend on the other rows."""

import jax
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import step_programs

_HALF = step_programs.ROWS // 2
_ROUNDS = 8  # by chance, the others may decide alike in one of them
_ROUNDING = 1e-5  # of a policy's numbers


def check(
    program: step_programs.Program,
    rule: contracts.Rule,
    examples: np.ndarray,
    state: state_lib.State,
) -> None:
  """Steps rows in two batches each, beside others and in another order.

  Args:
    program: whose step.
    rule: of the step.
    examples: of the states, any number.
    state: of some rows, of which random ones are taken.
  Raises:
    AssertionError: naming what differs.
  """
  for seed in range(_ROUNDS):
    _check_once(program, rule, examples, state, np.random.default_rng(seed))


def _check_once(program, rule, examples, state, rng) -> None:
  # Those beside them are as different as the states are.
  short, long = np.argmin(state.num_tokens), np.argmax(state.num_tokens)
  if short == long:
    short, long = 0, len(examples) - 1
  rows = np.concatenate(
      [
          rng.integers(0, len(examples), _HALF),
          np.repeat([short, long], _HALF),
      ]
  )
  uniforms = rng.random((len(rows), program.num_uniforms))

  def step(order):
    after = program.step(
        rule,
        examples[rows[order]],
        step_programs.take(state, rows[order]),
        uniforms[order],
    )
    return _results(after)

  own = np.arange(_HALF)
  mixed = rng.permutation(step_programs.ROWS)
  place = np.argsort(mixed)[:_HALF]
  first = step(np.concatenate([own, _HALF + own]))
  second = step(np.concatenate([own, 2 * _HALF + own])[mixed])
  for name, one in first.items():
    if difference := _differ(one[:_HALF], second[name][place]):
      raise AssertionError(
          f'{program.name}: {name} of a row depend on the other rows of its'
          f' batch: {difference} with others beside it. What is decided for a'
          ' row must depend on that row alone.'
      )


def _results(after: state_lib.State) -> dict[str, np.ndarray]:
  """Returns what a row must have decided by itself."""
  outcome = after.outcome
  is_draft = (
      np.arange(outcome.draft_tokens.shape[1]) < outcome.num_drafted[:, None]
  )
  found = {
      'the numbers of draft tokens': outcome.num_drafted,
      'the draft tokens': np.where(is_draft, outcome.draft_tokens, -1),
      'the outputs': after.sequences,
  }
  for i, leaf in enumerate(jax.tree.leaves(after.policy_state)):
    found[f"the numbers of the policy's state ({i})"] = leaf
  return found


def _differ(one: np.ndarray, other: np.ndarray) -> str | None:
  """Shows the first row that differs, None without one."""
  is_equal = np.isclose(one, other, rtol=_ROUNDING, atol=_ROUNDING)
  rows = np.flatnonzero(~is_equal.reshape(len(one), -1).all(axis=1))
  if not len(rows):
    return None
  show = lambda x: x[rows[0]].tolist()
  return f'{show(one)} is {show(other)}'

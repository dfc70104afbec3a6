# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps in one compiled loop, until rows have ended, and refilling rows.

The uniforms of a step are drawn from the row's key and the number of its target
call, or under a coupled rule its positions: see `noise`.

Legend: rows, examples, length (of the longest output), calls (target calls).
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import widths as widths_lib

_Tree = TypeVar('_Tree')


class Run(NamedTuple):
  """Rows that are being decoded.

  Attributes:
    batch: What the models have read for the rows.
    state: State of the rows.
    kept: What the fold has kept of their outcomes.
  """

  batch: state_lib.Batch
  state: state_lib.State
  kept: Any


class Work(NamedTuple):
  """The work of a compiled loop; all rows wait for it.

  Attributes:
    num_steps: int32 scalar, steps of the loop.
    num_draft_steps: int32 scalar, the most draft tokens of any row, summed over
      the steps.
    calls_by_width: [widths] int32, target calls at each of `widths.of`.
  """

  num_steps: jax.Array
  num_draft_steps: jax.Array
  calls_by_width: jax.Array

  def add(self, outcome: outcome_lib.Outcome, widths: Sequence[int]) -> 'Work':
    """Return the work with that of one more step."""
    num_needed = jnp.max(outcome.num_drafted) + 1
    return Work(
        self.num_steps + 1,
        self.num_draft_steps + jnp.max(outcome.num_computed),
        self.calls_by_width + jnp.stack(widths_lib.chosen(widths, num_needed)),
    )


def start(
    begun: tuple[state_lib.Batch, state_lib.State],
    fold: outcome_lib.Fold = outcome_lib.NOTHING,
) -> Run:
  """Return rows of which no token is decoded yet, as `state.begin` did."""
  batch, state = begun
  rows, length = state.sequences.shape
  gamma = state.outcome.draft_tokens.shape[1]
  return Run(batch, state, fold.init(rows, length, gamma))


def decode(
    setup: state_lib.Setup,
    begun: tuple[state_lib.Batch, state_lib.State],
    fold: outcome_lib.Fold = outcome_lib.NOTHING,
) -> tuple[state_lib.State, Work, Any]:
  """Decode a batch from its first token to its last.

  It takes what `state.begin` returned for this setup, and returns the last
  state, the work of the loop, and what the fold kept of the outcomes.
  """
  run = start(begun, fold)
  # Each call commits a token, so that no row makes more than `length`.
  length = run.state.sequences.shape[1]
  run, work = advance(setup, run, length, fold=fold)
  return run.state, work, run.kept


def advance(
    setup: state_lib.Setup,
    run: Run,
    max_steps: int,
    until: jax.Array | None = None,
    limit: jax.Array | None = None,
    *,
    fold: outcome_lib.Fold = outcome_lib.NOTHING,
) -> tuple[Run, Work]:
  """Step until enough rows have ended.

  Args:
    run: Run that `start`, `advance` or `admit` returned.
    max_steps: The most steps (static).
    until: int32 scalar. The number of ended rows to stop at; None for all.
    limit: int32 scalar. Fewer steps than the most; None for as many.
    fold: The fold that `run` was started with (static).
  Returns:
    The run, and the work of these steps.
  """
  # Drawn before the loop: then a step costs a lookup and no hashing.
  table = setup.noise.table(run.batch.keys, run.state, max_steps)
  num_rows = run.state.num_calls.shape[0]
  widths = widths_lib.of(setup.drafter.form, setup.policy.is_constant)
  # Rows that fill the batch count as ended from the start.
  enough = num_rows if until is None else jnp.minimum(until, num_rows)
  limit = max_steps if limit is None else jnp.minimum(limit, max_steps)

  def is_unfinished(carry):
    state, _, work = carry
    return (jnp.sum(state.has_ended) < enough) & (work.num_steps < limit)

  def body(carry):
    state, kept, work = carry
    uniforms = setup.noise.look_up(table, run.state, state)
    state, outcome = step_lib.step(setup, run.batch, state, uniforms)
    return state, fold.update(kept, outcome), work.add(outcome, widths)

  no_calls = jnp.zeros((len(widths),), jnp.int32)
  nothing = Work(jnp.int32(0), jnp.int32(0), no_calls)
  state, kept, work = lax.while_loop(
      is_unfinished, body, (run.state, run.kept, nothing)
  )
  return Run(run.batch, state, kept), work


def admit(run: Run, new: Run, examples: jax.Array) -> Run:
  """Put new requests in the place of examples whose rows have all ended.

  Args:
    run: Run whose rows are refilled. Rows that have not ended are lost.
    new: Run started by the same setup, length and fold, with as many rows per
      example, and no more examples.
    examples: [new examples] int32. Places of the new requests. A place below 0
      or past the last one leaves its request out.
  """
  per_example = new.state.num_tokens.shape[0] // examples.shape[0]
  num_places = run.state.num_tokens.shape[0] // per_example
  return put(run, new, examples, num_places)


def put(old: _Tree, new: _Tree, places: jax.Array, num_places: int) -> _Tree:
  """Put examples in places, whatever an example is made of.

  Args:
    old: Arrays of some entries per place, next to each other.
    new: Arrays of as many entries per example.
    places: [new examples] int32. A place below 0 or past the last one leaves
      an example out.
    num_places: Places (static).
  """
  # A place of -1 would be the last one; past the end, writes are dropped.
  places = jnp.where(places < 0, num_places, places)

  def replace(old, new):
    if num_places == 1:  # then an array may have no axis for it
      return jnp.where(places[0] == 0, new.reshape(old.shape), old)
    per_place = old.shape[0] // num_places
    entries = old.shape[1:] if per_place == 1 else (per_place, *old.shape[1:])
    new = new.reshape(places.shape[0], *entries)
    # Places differ: of two writes to one, either might stay.
    by_place = old.reshape(num_places, *entries)
    return by_place.at[places].set(new, mode='drop').reshape(old.shape)

  return jax.tree.map(replace, old, new)

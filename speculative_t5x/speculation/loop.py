# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Steps in one compiled loop, until rows have ended, and refilling rows.

The loop draws the uniforms of each step: those of call k of a row from the
row's key and k, and never from the position. After a rejection a position is
drawn again, and must be drawn afresh.

Legend: rows, examples, length (of the longest output), calls (target calls).
"""

from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib


class Run(NamedTuple):
  """Rows on their way.

  Attributes:
    batch: what the rows have read.
    state: where they are.
    kept: by the fold of their outcomes.
  """

  batch: state_lib.Batch
  state: state_lib.State
  kept: Any


def start(
    setup: state_lib.Setup,
    inputs: contracts.Inputs,
    keys: jax.Array,
    limits: jax.Array,
    *,
    length: int,
    fold: outcome_lib.Fold = outcome_lib.NOTHING,
) -> Run:
  """Reads inputs; no token is decoded yet. See `state.begin`."""
  batch, state = state_lib.begin(setup, inputs, keys, limits, length=length)
  gamma = setup.drafter.max_draft_tokens
  return Run(batch, state, fold.init(limits.shape[0], length, gamma))


def decode(
    setup: state_lib.Setup,
    inputs: contracts.Inputs,
    keys: jax.Array,
    limits: jax.Array,
    *,
    length: int,
    fold: outcome_lib.Fold = outcome_lib.NOTHING,
) -> tuple[state_lib.State, jax.Array, Any]:
  """Decodes a batch from its first token to its last.

  Args:
    setup: models, drafter and rules.
    inputs: one row per example.
    keys: [rows] typed PRNG keys, see `state.row_keys`.
    limits: [rows] int32, the most tokens of each row.
    length: of the longest output (static).
    fold: what is kept of the outcomes (static).
  Returns:
    The last state, the steps of the loop (int32 scalar), and what was kept.
  """
  run = start(setup, inputs, keys, limits, length=length, fold=fold)
  # Each call commits a token, so that no row makes more than `length`.
  run, num_steps = advance(setup, run, length, fold=fold)
  return run.state, num_steps, run.kept


def advance(
    setup: state_lib.Setup,
    run: Run,
    max_steps: int,
    until: jax.Array | None = None,
    *,
    fold: outcome_lib.Fold = outcome_lib.NOTHING,
) -> tuple[Run, jax.Array]:
  """Steps until enough rows have ended.

  Args:
    setup: models, drafter and rules.
    run: from `start`, `advance` or `admit`.
    max_steps: stops after so many (static).
    until: int32 scalar, stops when so many rows have ended; None for all.
    fold: that `run` was started with (static).
  Returns:
    The run, and how many steps were made (int32 scalar).
  """
  # Drawn before the loop: a call costs a lookup and no hashing.
  first_calls = run.state.num_calls
  table = uniform_table(
      run.batch.keys, first_calls, max_steps, step_lib.num_uniforms(setup)
  )
  # A run that began with `max_steps` slots ends by itself.
  is_bounded = max_steps < run.state.sequences.shape[1]

  def is_unfinished(carry):
    state, _, num_steps = carry
    if until is None:
      goes_on = ~jnp.all(state.has_ended)
    else:
      goes_on = jnp.sum(state.has_ended) < until
    return goes_on & (num_steps < max_steps) if is_bounded else goes_on

  def body(carry):
    state, kept, num_steps = carry
    uniforms = uniforms_at(table, state.num_calls - first_calls)
    state, outcome = step_lib.step(setup, run.batch, state, uniforms)
    return state, fold.update(kept, outcome), num_steps + 1

  state, kept, num_steps = lax.while_loop(
      is_unfinished, body, (run.state, run.kept, jnp.int32(0))
  )
  return Run(run.batch, state, kept), num_steps


def check_ended(state: state_lib.State, rows: jax.Array) -> None:
  """Checks that new requests may take the place of rows; waits for them.

  Raises:
    ValueError: for a row that has not ended.
  """
  has_ended = np.asarray(state.has_ended)
  for row in np.asarray(rows).tolist():
    if row < len(has_ended) and not has_ended[row]:
      raise ValueError(
          f'Row {row} has not ended, so no new request can take its place.'
          ' Advance until it has.'
      )


def admit(run: Run, new: Run, examples: jax.Array) -> Run:
  """Puts new requests in the place of examples whose rows have all ended.

  Args:
    run: whose rows are refilled; see `check_ended`.
    new: started by the same setup, length and fold, with as many rows per
      example, and no more examples.
    examples: [new examples] int32, the places. A place past the last one
      leaves its request out.
  """
  num_rows = run.state.num_tokens.shape[0]
  per_example = new.state.num_tokens.shape[0] // examples.shape[0]
  index = jnp.arange(per_example, dtype=jnp.int32)
  rows = (examples[:, None] * per_example + index).reshape(-1)

  def put(places, num_places):
    def replace(old, new):
      if num_places == 1:  # then an array may have no axis for it
        return jnp.where(places[0] == 0, new.reshape(old.shape), old)
      new = new.reshape(places.shape[0], *old.shape[1:])
      return old.at[places].set(new, mode='drop')

    return replace

  memories = lambda run: (run.batch.memory, run.batch.draft_memory)
  rest = lambda run: run._replace(
      batch=run.batch.replace(memory=None, draft_memory=None)
  )
  memory, draft_memory = jax.tree.map(
      put(examples, num_rows // per_example), memories(run), memories(new)
  )
  refilled = jax.tree.map(put(rows, num_rows), rest(run), rest(new))
  return refilled._replace(
      batch=refilled.batch.replace(memory=memory, draft_memory=draft_memory)
  )


def uniform_table(
    keys: jax.Array, first_calls: jax.Array, num_calls: int, count: int
) -> jax.Array:
  """Draws the uniforms of the next calls of each row.

  Args:
    keys: [rows] typed PRNG keys.
    first_calls: [rows] int32, the number of each row's next call.
    num_calls: how many calls (static).
    count: uniforms per call and row (static).
  Returns:
    [num_calls, rows, count] float32 in [0, 1).
  """
  calls = first_calls + jnp.arange(num_calls, dtype=jnp.int32)[:, None]

  def draw(key, call):
    return jax.random.uniform(jax.random.fold_in(key, call), (count,))

  return jax.vmap(jax.vmap(draw), (None, 0))(keys, calls)


def uniforms_at(table: jax.Array, calls: jax.Array) -> jax.Array:
  """Returns what each row uses at its own call.

  Args:
    table: [calls, rows, count].
    calls: [rows] int32.
  Returns:
    [rows, count].
  """
  index = calls[None, :, None]
  return jnp.take_along_axis(table, index, axis=0)[0]

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam searches in one compiled loop, until examples have ended.

Plain ones make a step of the search per target call, speculative ones several:
the drafter alone decides how many. Examples may be refilled by `loop.put`.

Legend: examples, beams (hypotheses per example), length (of the longest
output), rows (examples times beams, an example's next to each other).
"""

from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import views


def start(
    setup: beams_lib.SearchSetup,
    inputs: contracts.Inputs,
    limits: jax.Array,
    *,
    beams: int,
    length: int,
    hints: jax.Array | None = None,
) -> beams_lib.Run:
  """Read inputs, and return searches before their first step.

  Args:
    setup: How to search.
    inputs: One row per example.
    limits: [examples] int32, see `beams.begin`.
    beams: Hypotheses per example (static).
    length: Tokens of the longest output (static).
    hints: See `views.Context`; None without.
  """
  target, params, _, drafter, draft_params = setup
  examples = limits.shape[0]
  rows = examples * beams
  # As many slots as T5X's cache, often a multiple of the 128 of a TPU's tiles.
  # A row that has ended at its limit writes to the last one, which nothing
  # reads then.
  slots = length
  if drafter is not None:
    slots = state_lib.cache_slots(length, drafter.form.gamma)
  started = target.start(params, inputs, rows, slots)
  run = beams_lib.Run(
      limits,
      started.offsets,
      started.first_tokens,
      started.memory,
      None,
      beams_lib.begin(limits, beams, length, target.special_ids),
      started.cache,
      None,
      None,
  )
  if drafter is None:
    return run
  context = views.Context(
      inputs, hints, started.view(params), started.features
  )
  memory, draft_state = drafter.init(draft_params, context, rows, slots)
  gamma = drafter.form.gamma
  return run._replace(
      draft_memory=memory,
      cache=target.share_rows(started.cache, examples),
      draft_state=draft_state,
      counts=outcome_lib.COUNTING.init(examples, length, gamma),
  )


def advance(
    setup: beams_lib.SearchSetup,
    run: beams_lib.Run,
    until: jax.Array | None = None,
    limit: jax.Array | None = None,
) -> tuple[beams_lib.Run, jax.Array]:
  """Call the target until enough examples have ended.

  Args:
    setup: The setup that `run` was started with.
    run: Is continued.
    until: int32 scalar. The number of ended examples to stop at; None for all.
    limit: int32 scalar, the most calls; None for any number.
  Returns:
    The run, and the number of calls, an int32 scalar.
  """
  examples = run.limits.shape[0]
  enough = examples if until is None else jnp.minimum(until, examples)
  # As far as the counter goes, which is int32.
  limit = jnp.iinfo(jnp.int32).max if limit is None else limit
  call = beams_lib.call if setup.drafter is None else beam_trees.call
  num_read = run._fields.index('state')  # what comes before is not carried

  def body(carry):
    state, num_calls = carry
    after = call(setup, beams_lib.Run(*run[:num_read], *state))
    return after[num_read:], num_calls + 1

  state, num_calls = lax.while_loop(
      lambda carry: (jnp.sum(carry[0][0].has_ended) < enough)
      & (carry[1] < limit),
      body,
      (run[num_read:], jnp.int32(0)),
  )
  return beams_lib.Run(*run[:num_read], *state), num_calls


def search(
    setup: beams_lib.SearchSetup,
    inputs: contracts.Inputs,
    limits: jax.Array,
    **options: Any,
) -> beams_lib.Run:
  """Search to the end; see `start`."""
  run, _ = advance(setup, start(setup, inputs, limits, **options))
  return run

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's beam search, with several steps of it per target call.

Legend: batch (examples), length.
"""

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import beam_drafts
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.t5x_guest import samplers


def speculative_beam_search(
    target: samplers.Target,
    drafter: samplers.Drafter,
    example_ids: jax.Array,
    length: int,
    eos_id: int,
    num_decodes: int = 4,
    *,
    alpha: float = beams_lib.BREVITY_PENALTY,
    max_decode_step: int = -1,
    min_log_prob: float = -jnp.inf,
    draft_beams: int | None = None,
) -> samplers.Decodes:
  """Search as `t5x.decoding.beam_search`, speculatively.

  Up to rounding, hypotheses, order and scores are those of T5X for an example
  alone: in a batch, T5X goes on until all examples may stop, which changes the
  order of hypotheses with exactly the same score, and what `min_log_prob` ends.

  Args:
    target: The model, which has read the inputs.
    drafter: A draft model, or a decoder on the target's encoder.
    example_ids: [batch] int32; a beam search draws nothing.
    length: The length of the longest output.
    eos_id: The target's end of sequence.
    num_decodes: Beams. One is searched without drafts, as T5X does it.
    alpha: See `beam_scores.BrevityPenalty`.
    max_decode_step: Most tokens behind a prompt; none if not above 0.
    min_log_prob: See `beam_scores.BrevityPenalty`.
    draft_beams: See `beam_drafts.of`.
  Returns:
    Sequences [batch, num_decodes, length] int32 and their scores [batch,
    num_decodes] float32, the best last; counts of each, int32: its tokens, and
    of the example target calls and steps of the search.
  Raises:
    ValueError: for another end of sequence, a negative alpha, or a drafter that
      cannot draft trees.
  """
  samplers.check_end(target, eos_id)
  ranges.check_settings(ranges.COEFFICIENT, alpha=alpha)
  limits = jnp.full(example_ids.shape, length, jnp.int32)
  if target.room is not None:
    limits = jnp.minimum(limits, target.room)
  if max_decode_step > 0:
    limits = jnp.minimum(limits, max_decode_step)
  scoring = beam_scores.BrevityPenalty(
      jnp.float32(alpha), jnp.float32(min_log_prob)
  )
  setup = beams_lib.Setup(target.model, target.params, scoring)
  if num_decodes > 1:
    trees = beam_drafts.of(drafter.drafter, num_decodes, draft_beams)
    setup = setup._replace(drafter=trees, draft_params=drafter.params)
  run = beam_loop.search(
      setup, target.inputs, limits, beams=num_decodes, length=length
  )
  state, calls = run.state, run.state.num_steps
  if run.counts is not None:
    calls = jnp.sum(run.counts.accepted_histogram, axis=-1)
  found = beams_lib.outputs(state)
  of_each = lambda x: jnp.broadcast_to(x[:, None], found.counts.shape)
  counts = {
      'tokens': found.counts,
      'target_calls': of_each(calls),
      'beam_steps': of_each(state.num_steps),
  }
  return found.tokens, found.scores, counts

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decode functions for a `GuestModel`, with the arguments of T5X's own.

T5X's decode functions get a callback that returns one token's logits. A decode
function with an argument `target` gets a `Target` in its place, and a
`BoundDrafter` if it has an argument `drafter`. Its third result, if any,
becomes auxiliary values.

Legend: batch (examples), rows (batch times num_decodes), length.
"""

from collections.abc import Mapping
from typing import NamedTuple

from absl import logging
import jax
import jax.numpy as jnp

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.drafters import beam_drafts
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import descriptions
from speculative_t5x.rules import description
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import score_order
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification

Decodes = tuple[jax.Array, jax.Array, Mapping[str, jax.Array]]


class Target(NamedTuple):
  """The model to decode, and what it reads, one row per example."""

  model: contracts.Model
  params: contracts.Params
  inputs: contracts.Inputs
  room: jax.Array | None = None  # [batch] int32, most tokens; None for length

  def limits(self, length: int, example_ids: jax.Array) -> jax.Array:
    """Return the most tokens of each output, [batch] int32."""
    limits = jnp.full(example_ids.shape, length, jnp.int32)
    return limits if self.room is None else jnp.minimum(limits, self.room)


class BoundDrafter(NamedTuple):
  """A drafter with its parameters."""

  drafter: contracts.Drafter
  params: contracts.Params
  description: descriptions.DrafterDescription | None = None  # for the log


def speculative_sample(
    target: Target,
    drafter: BoundDrafter,
    example_ids: jax.Array,
    length: int,
    num_decodes: int = 1,
    *,
    seed: int | jax.Array = 0,
    temperature: float | jax.Array = 1.0,
    topk: int | jax.Array = 1,
    topp: float | jax.Array = 0.0,
    minp: float | jax.Array = 0.0,
    typicalp: float | jax.Array = 0.0,
    draft_sampling: sampling_lib.Sampling | None = None,
    rule: contracts.Rule = verification.TOKENWISE,
    max_decode_steps: int | jax.Array | None = None,
    max_decode_steps_hard_limit: int | None = None,
    rescale_log_probs: bool = True,
    policy: draft_length.Policy = draft_length.Fixed(),  # noqa: B008
) -> Decodes:
  """Sample as `t5x.decoding.temperature_sample`, speculatively.

  The outputs follow the same distribution, the target's, unless the rule is one
  that is not lossless. Defaults are T5X's: with `topk` 1 it is argmax.

  Args:
    target: The model, which has read the inputs.
    drafter: Drafts for it.
    example_ids: [batch] int32. With `seed` and the number of the decode, all
      that a sample depends on, up to rounding.
    length: The length of the longest output.
    num_decodes: Samples per example.
    seed: int32.
    temperature, topk, topp, minp, typicalp: See `sampling.Sampling`.
    draft_sampling: Sampling of the drafter; None for the target's. It never
      changes the distribution of the outputs.
    rule: Which draft tokens are accepted. One that is not lossless may write
      tokens that have probability 0 under the distribution sampled from: the
      scores are then under the model's own.
    max_decode_steps: Most tokens, one number or [batch]; None for `length`. Of
      0 for all rows each has one token, as in T5X.
    max_decode_steps_hard_limit: Bounds `max_decode_steps` where that is
      given; 0 and None do not.
    rescale_log_probs: Score under the distribution sampled from, or under
      the model's own.
    policy: How many draft tokens are wanted.
  Returns:
    Sequences [batch, num_decodes, length] int32 and their scores [batch,
    num_decodes] float32, the best last; counts of each, int32: tokens and
    target calls [batch, num_decodes], and those of `outcome.Statistics.named`.
  Raises:
    ValueError: for a sampling argument out of range, or something that is not
      a rule.
  Reference: Leviathan et al. (2023), Algorithm 1, arXiv:2211.17192v2.
  """
  description.check(rule)
  draft_length.check(policy)
  # A traced seed has 32 bits by its dtype; a larger number would be wrapped.
  if not isinstance(seed, jax.Array):
    request_lib.check_int32('seed', seed)
  if drafter.description is not None:
    _log(drafter, rule, policy)  # once per program, as this is traced
  setup = state_lib.Setup(
      target.model,
      target.params,
      drafter.drafter,
      drafter.params,
      rule=rule,
      policy=policy,
      rescale_log_probs=rescale_log_probs,
  )
  limits = target.limits(length, example_ids)
  if max_decode_steps is not None:
    limits = jnp.minimum(limits, jnp.asarray(max_decode_steps, jnp.int32))
    if max_decode_steps_hard_limit:  # 0 is none, as in T5X
      limits = jnp.minimum(limits, max_decode_steps_hard_limit)
    # T5X's loop ends rows after their first step: of 0 steps it writes a token,
    # unless other rows go on and blank it.
    limits = jnp.where(jnp.max(limits) < 1, 1, limits)
  begun = state_lib.begin(
      setup,
      target.inputs,
      state_lib.row_keys(seed, example_ids, num_decodes),
      jnp.repeat(limits, num_decodes),
      sampling_lib.Sampling(temperature, topk, topp, minp, typicalp),
      draft_sampling,
      length=length,
  )
  state, _, folded = loop.decode(setup, begun, outcome_lib.COUNTING)
  counts = {'tokens': state.num_tokens, 'target_calls': state.num_calls}
  return score_order.best_last(
      state.log_probs,
      (state.sequences, state.log_probs, counts | folded.named()),
      num_decodes,
  )


def plain_sample(
    target: Target,
    example_ids: jax.Array,
    length: int,
    num_decodes: int = 1,
    **options,
) -> Decodes:
  """Sample one token per target call: what to compare `speculative_sample` to.

  Args and Returns: as `speculative_sample`, without what concerns drafting.
  """
  sequences, scores, counts = speculative_sample(
      target,
      BoundDrafter(nothing.NoDrafter(), None),
      example_ids,
      length,
      num_decodes,
      **options,
  )
  kept = {name: counts[name] for name in ('tokens', 'target_calls')}
  return sequences, scores, kept


def speculative_beam_search(
    target: Target,
    drafter: BoundDrafter,
    example_ids: jax.Array,
    length: int,
    num_decodes: int = 4,
    *,
    alpha: float = beams_lib.BREVITY_PENALTY,
    max_decode_step: int = -1,
    min_log_prob: float = -jnp.inf,
    draft_beams: int | None = None,
) -> Decodes:
  """Search as `t5x.decoding.beam_search`, speculatively.

  Up to rounding, hypotheses, order and scores are those of T5X for an example
  alone: in a batch, T5X goes on until all examples may stop, which changes the
  order of hypotheses with exactly the same score, and what `min_log_prob` ends.

  Args:
    target: The model, which has read the inputs.
    drafter: A draft model, or a decoder on the target's encoder.
    example_ids: [batch] int32; a beam search draws nothing.
    length: The length of the longest output.
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
    ValueError: for a negative alpha, or a drafter that cannot draft trees.
  """
  ranges.check_settings(ranges.COEFFICIENT, alpha=alpha)
  limits = target.limits(length, example_ids)
  if max_decode_step > 0:
    limits = jnp.minimum(limits, max_decode_step)
  scoring = beam_scores.BrevityPenalty(
      jnp.float32(alpha), jnp.float32(min_log_prob)
  )
  setup = beams_lib.SearchSetup(target.model, target.params, scoring)
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


def _log(
    drafter: BoundDrafter,
    rule: contracts.Rule,
    policy: draft_length.Policy,
) -> None:
  logging.info(
      'Speculative decoding: drafter %s (%s), gamma %d; rule %s, which is %s;'
      ' policy %s',
      drafter.description,
      drafter.description.kind,
      drafter.drafter.form.gamma,
      description.describe(rule),
      'lossless' if rule.is_lossless else 'not lossless',
      policy.name,
  )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decode functions for a `GuestModel`, with the arguments of T5X's own.

T5X's decode functions get a callback that returns one token's logits. A decode
function with an argument `target` gets a `Target` in its place, and a `Drafter`
if it has an argument `drafter`. Its third result, if any, becomes auxiliary
values.

Legend: batch (examples), rows (batch times num_decodes), length.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from absl import logging
import jax
import jax.numpy as jnp

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import descriptions
from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
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


class Drafter(NamedTuple):
  """What drafts for a target."""

  drafter: contracts.Drafter
  params: contracts.Params
  description: descriptions.DrafterDescription | None = None  # for the log


def speculative_sample(
    target: Target,
    drafter: Drafter,
    example_ids: jax.Array,
    length: int,
    eos_id: int,
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
    state_callback_fn: Callable | None = None,
    logit_callback_fn: Callable | None = None,
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
    eos_id: The target's end of sequence.
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
    state_callback_fn, logit_callback_fn: Not supported.
  Returns:
    Sequences [batch, num_decodes, length] int32 and their scores [batch,
    num_decodes] float32, the best last; counts of each, int32: tokens and
    target calls [batch, num_decodes], and those of `outcome.Statistics.named`.
  Raises:
    ValueError: for another end of sequence, a sampling argument out of range,
      or something that is not a rule.
    NotImplementedError: for a callback.
  Reference: Leviathan et al. (2023), Algorithm 1, arXiv:2211.17192v2.
  """
  description.check(rule)
  draft_length.check(policy)
  _check_supported(target, eos_id, state_callback_fn, logit_callback_fn)
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
  limits = jnp.full(example_ids.shape, length, jnp.int32)
  if target.room is not None:
    limits = jnp.minimum(limits, target.room)
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
      _sampling(temperature, topk, topp, minp, typicalp),
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
    eos_id: int,
    num_decodes: int = 1,
    **options,
) -> Decodes:
  """Sample one token per target call: what to compare `speculative_sample` to.

  Args and Returns: as `speculative_sample`, without what concerns drafting.
  """
  sequences, scores, counts = speculative_sample(
      target,
      Drafter(nothing.NoDrafter(), None),
      example_ids,
      length,
      eos_id,
      num_decodes,
      **options,
  )
  kept = {name: counts[name] for name in ('tokens', 'target_calls')}
  return sequences, scores, kept


def _log(
    drafter: Drafter,
    rule: contracts.Rule,
    policy: draft_length.Policy,
) -> None:
  """Log how the job decodes."""
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


def _check_supported(
    target: Target, eos_id: int, *callbacks: Callable | None
) -> None:
  if any(callback is not None for callback in callbacks):
    raise NotImplementedError(
        'state_callback_fn and logit_callback_fn are not supported: they act'
        ' between two tokens of one sequence, and a block has several. Leave'
        " them out, or decode with T5X's temperature_sample."
    )
  check_end(target, eos_id)


def check_end(target: Target, eos_id: int) -> None:
  """Raise ValueError for another end of sequence than the target's."""
  end = target.model.special_ids.end
  if eos_id != end:
    raise ValueError(
        f'eos_id must be {end}, the end of sequence of the target, got'
        f' {eos_id}. Leave it out: the model passes that of its vocabulary.'
    )


def _sampling(*values) -> sampling_lib.Sampling:
  """Return a sampling; values handed over while tracing are not checked."""
  if any(jnp.ndim(value) for value in values):
    raise NotImplementedError(
        'temperature, topk, topp, minp and typicalp must be one number for all'
        f' examples, got shapes {[jnp.shape(value) for value in values]}.'
    )
  return sampling_lib.Sampling(*values)

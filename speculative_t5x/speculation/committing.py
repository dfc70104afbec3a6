# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The end of a step: scores of its tokens, and rows with what it committed.

Legend: rows, gamma (draft tokens per block), length (longest output), vocab.
"""

from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import proposing
from speculative_t5x.speculation import state as state_lib


class Verified(NamedTuple):
  """All that the target call and the rule found.

  Attributes:
    num_accepted: [rows] int32, see `contracts.Verdict`.
    next_token: [rows] int32, resampled after a rejection, else the bonus token.
    log_probs: [rows, gamma + 1] float32, of the tokens of the block; see
      `outcome.Outcome`.
    model_log_probs: Likewise.
    alternatives: Likewise.
    features: See `state.State.last_features`.
  """

  num_accepted: jax.Array
  next_token: jax.Array
  log_probs: jax.Array
  model_log_probs: jax.Array
  alternatives: outcome_lib.Alternatives | None
  features: jax.Array | None


class Judged(NamedTuple):
  """A draft that the target call and the rule have judged.

  Attributes:
    draft: The draft; of a tree, its path.
    counted: The same, cut to the tokens that could be accepted.
    verified: All that was found.
  """

  draft: contracts.Draft
  counted: contracts.Draft
  verified: Verified


def commit(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    judged: Judged,
) -> tuple[state_lib.State, outcome_lib.Outcome]:
  """Commit what was judged; return the next state, and what happened."""
  outcome = _outcome(
      state,
      judged,
      batch.limits - state.num_tokens,
      setup.target.special_ids,
  )
  policy_state = setup.policy.update(state.policy_state, outcome)
  proposing.check_form(
      f'The policy {setup.policy.name} returned its state',
      state.policy_state,
      policy_state,
  )
  state = state.replace(
      last_features=judged.verified.features,
      policy_state=policy_state,
      # Rows begin without them, and no drafter reads them.
      outcome=outcome._replace(alternatives=None),
  )
  return _append(state, outcome), outcome


def scores_of(
    setup: state_lib.Setup,
    draft: contracts.Draft,
    num_accepted: jax.Array,
    next_token: jax.Array,
    logits: jax.Array,
    probs: jax.Array,
) -> tuple[jax.Array, jax.Array, outcome_lib.Alternatives | None]:
  """Return both log-probabilities and the alternatives of `Verified`.

  Logits and probabilities, [rows, gamma + 1, vocab], are the target's after
  each draft token; those past the accepted ones do not matter.
  """
  tokens = _block_tokens(draft, num_accepted, next_token)
  logits = logits.astype(probs.dtype)
  total = jax.nn.logsumexp(logits, axis=-1)
  of_model = (_at_tokens(logits, tokens) - total).astype(jnp.float32)
  alternatives = _alternatives(setup, logits, total)
  # A rule that is not lossless may accept tokens that the distribution sampled
  # from rules out, which would have no score under it.
  if setup.rescale_log_probs and setup.rule.is_lossless:
    return _log_probs(tokens, probs), of_model, alternatives
  return of_model, of_model, alternatives


def _alternatives(
    setup: state_lib.Setup, logits: jax.Array, total: jax.Array
) -> outcome_lib.Alternatives | None:
  """Return the likeliest tokens of logits whose exponentials have a sum.

  Args:
    setup: Says whether they are kept.
    logits: [rows, block, vocab].
    total: [rows, block], the logarithms of the sums.
  """
  if setup.keeps_alternatives is None:
    return None
  count = outcome_lib.num_alternatives(logits.shape[-1])

  def find():
    largest, tokens = lax.top_k(logits, count)
    log_probs = (largest - total[..., None]).astype(jnp.float32)
    return outcome_lib.Alternatives(tokens, log_probs)

  # Whoever does not ask for them does not wait for them.
  return lax.cond(
      setup.keeps_alternatives,
      find,
      lambda: outcome_lib.Alternatives.zeros(*total.shape, count),
  )


def _block_tokens(
    draft: contracts.Draft, num_accepted: jax.Array, next_token: jax.Array
) -> jax.Array:
  """Return accepted draft tokens, then the drawn token, [rows, gamma + 1]."""
  # Draft a b c, 2 accepted, z drawn: a b z z, the last of which is unused.
  tokens = jnp.pad(draft.tokens, ((0, 0), (0, 1)))
  index = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
  is_drawn = index >= num_accepted[:, None]
  return jnp.where(is_drawn, next_token[:, None], tokens)


def _outcome(
    state: state_lib.State,
    judged: Judged,
    num_remaining: jax.Array,
    special_ids: contracts.SpecialIds,
) -> outcome_lib.Outcome:
  draft, counted, verified = judged
  is_active = ~state.has_ended
  when_active = lambda n: jnp.where(is_active, n.astype(jnp.int32), 0)
  num_accepted = verified.num_accepted
  tokens = _block_tokens(draft, num_accepted, verified.next_token)
  # The accepted tokens alone may end the row, by an end or at the limit: then
  # the drawn token is not committed.
  is_cut_short = _is_last(tokens, num_accepted, num_remaining, special_ids)
  num_committed = num_accepted + jnp.where(is_cut_short, 0, 1)
  is_last = _is_last(tokens, num_committed, num_remaining, special_ids)
  return outcome_lib.Outcome(
      num_before=state.num_tokens,
      num_computed=when_active(draft.lengths),
      num_drafted=when_active(counted.lengths),
      num_accepted=when_active(num_accepted),
      num_committed=when_active(num_committed),
      is_active=is_active,
      is_cut_short=is_active & is_cut_short,
      has_ended=state.has_ended | is_last,
      draft_tokens=draft.tokens,
      tokens=tokens,
      log_probs=verified.log_probs,
      model_log_probs=verified.model_log_probs,
      alternatives=verified.alternatives,
  )


def _is_last(
    tokens: jax.Array,
    count: jax.Array,
    num_remaining: jax.Array,
    special_ids: contracts.SpecialIds,
) -> jax.Array:
  """Return whether the first `count` tokens end the row, [rows] bool."""
  index = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
  is_end = special_ids.is_end(tokens) & (index < count[:, None])
  return jnp.any(is_end, axis=1) | (count >= num_remaining)


def _log_probs(tokens: jax.Array, probs: jax.Array) -> jax.Array:
  """Return log-probabilities of tokens, [rows, block], at their positions."""
  return jnp.log(_at_tokens(probs, tokens)).astype(jnp.float32)


def _at_tokens(values: jax.Array, tokens: jax.Array) -> jax.Array:
  return jnp.take_along_axis(values, tokens[..., None], axis=-1)[..., 0]


def _append(
    state: state_lib.State, outcome: outcome_lib.Outcome
) -> state_lib.State:
  """Append a block's new tokens to every row that has not ended."""
  index = jnp.arange(outcome.tokens.shape[1], dtype=jnp.int32)[None]
  is_new = index < outcome.num_committed[:, None]
  return state.replace(
      sequences=outcome_lib.append(state.sequences, outcome.tokens, outcome),
      num_tokens=state.num_tokens + outcome.num_committed,
      has_ended=outcome.has_ended,
      # What is not new may be -inf, and 0 * -inf is not a number.
      log_probs=state.log_probs
      + jnp.sum(jnp.where(is_new, outcome.log_probs, 0), axis=1),
      num_calls=state.num_calls + outcome.is_active.astype(jnp.int32),
  )

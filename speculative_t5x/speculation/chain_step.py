# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judging chains: one target call, as wide as the longest draft needs.

Legend: rows, gamma (draft tokens per block), width (positions that are
verified), vocab.
"""

from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import committing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import widths as widths_lib


def judge(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    draft: contracts.Draft,
    num_wanted: jax.Array,
    uniforms: Any,
) -> tuple[contracts.Cache, None, committing.Judged]:
  """Score drafts, accept a prefix of each and draw one more token.

  Args:
    draft: As the drafter made it.
    num_wanted: [rows] int32, the most draft tokens to accept.
    uniforms: Those of `noise`, that decide.
  Returns:
    The target's next cache, None for the path of a tree, and what was found.
  """
  draft, counted = cut(setup, draft, num_wanted)

  def verify(width, carry):
    return _verify(setup, batch, state, counted, uniforms, width, carry[0])

  cache, verified = widths_lib.at_smallest(
      widths_lib.of(setup.drafter.form, setup.policy.is_constant),
      jnp.max(counted.lengths) + 1,
      verify,
      (
          state.target_cache,
          _nothing_verified(setup, counted, state.last_features),
      ),
  )
  return cache, None, committing.Judged(draft, counted, verified)


def cut(
    setup: state_lib.Setup, draft: contracts.Draft, num_wanted: jax.Array
) -> tuple[contracts.Draft, contracts.Draft]:
  """Cut a draft to what is wanted, and to the tokens that can be accepted."""
  # A drafter may make more than was wanted. Where it is cut depends on no
  # token's value, so that the cut does not bias the output.
  lengths = jnp.clip(draft.lengths, 0, num_wanted)
  draft = draft.replace(lengths=lengths)
  target = setup.target
  lengths = _count_draft_tokens(draft, target.special_ids, target.vocab_size)
  return draft, draft.replace(lengths=lengths)


def _nothing_verified(
    setup: state_lib.Setup, draft: contracts.Draft, features: jax.Array | None
) -> committing.Verified:
  """Return zeros in the shapes of what is verified."""
  rows, gamma = draft.tokens.shape
  counts = lambda *shape: jnp.zeros(shape, jnp.int32)
  log_probs = jnp.zeros((rows, gamma + 1), jnp.float32)
  alternatives = None
  if setup.keeps_alternatives is not None:
    count = outcome_lib.num_alternatives(setup.target.vocab_size)
    alternatives = outcome_lib.Alternatives.zeros(rows, gamma + 1, count)
  return committing.Verified(
      counts(rows),
      counts(rows),
      log_probs,
      log_probs,
      alternatives,
      None if features is None else jnp.zeros_like(features),
  )


def _verify(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    draft: contracts.Draft,
    uniforms: Any,
    width: int,
    target_cache: contracts.Cache,
) -> tuple[contracts.Cache, committing.Verified]:
  """Score the first `width` positions of each block and apply the rule.

  What comes after them in a block belongs to no draft token.
  """
  gamma = draft.tokens.shape[1]
  # Width 3 of gamma 4: the decoder is fed the last committed token and two
  # draft tokens, `y a b`, and gives the distributions of three tokens.
  # Lengths have no axis for positions: no draft is longer than the width.
  short = jax.tree.map(lambda x: x[:, : width - 1] if x.ndim > 1 else x, draft)
  last_token = state_lib.decoder_inputs(
      state.sequences, batch.first_tokens, state.num_tokens, 1
  )
  with jax.named_scope('target'):  # names are for traces
    logits, target_cache, features = setup.decode(
        batch.memory,
        target_cache,
        jnp.concatenate([last_token, short.tokens], axis=1),
        batch.offsets + state.num_tokens,
    )
  # [rows, width, vocab]: position i is about the token after i draft tokens, so
  # the draft token at index i is judged by position i, and the token that is
  # drawn after n accepted ones comes from position n.
  probs = sampling_lib.standardize(logits, batch.sampling)
  num_accepted, next_token = setup.noise.decide(
      contracts.Scores(logits, probs, batch.sampling), short, uniforms
  )
  # All widths of the chain must return the same shapes.
  padded = lambda x: jnp.pad(
      x, ((0, 0), (0, gamma + 1 - width), (0, 0))[: x.ndim]
  )
  scores = committing.scores_of(
      setup, short, num_accepted, next_token, logits, probs
  )
  return target_cache, committing.Verified(
      num_accepted, next_token, *jax.tree.map(padded, (*scores, features))
  )


def _count_draft_tokens(
    draft: contracts.Draft, special_ids: contracts.SpecialIds, vocab_size: int
) -> jax.Array:
  """Return how many draft tokens can be accepted, [rows].

  They are those up to the first end of sequence and before the first id outside
  the vocabulary, which would be looked up as another id.
  """
  # Draft a <end> b: last is (gamma, 2, gamma), and two draft tokens remain.
  # Draft a b 99 with a vocabulary of 64: last is (gamma, gamma, 2), the same.
  gamma = draft.tokens.shape[1]
  index = jnp.arange(gamma, dtype=jnp.int32)
  is_id = (draft.tokens >= 0) & (draft.tokens < vocab_size)
  is_end = special_ids.is_end(draft.tokens)
  last = jnp.where(is_id, jnp.where(is_end, index + 1, gamma), index)
  num_to_end = jnp.min(last, axis=1, initial=gamma)
  return jnp.minimum(draft.lengths, num_to_end)

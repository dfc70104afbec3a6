# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""All that a drafter sees: the request, the target, and its rows so far.

Legend: rows, examples (each has rows // examples rows next to each other),
gamma (draft tokens per block), width (of features), vocab, length (of the
longest output).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import uniforms as uniforms_lib


class TargetView(NamedTuple):
  """The target, for drafters that share it.

  Attributes:
    params: Parameters of the target.
    memory: What the target has read of its inputs.
    cache: Cache of the target, which holds the committed tokens.
    offsets: [rows] int32, position of the first decoder input: see
      `contracts.Started`.
    first_tokens: [rows] int32, the decoder input there.
    last_features: [rows, gamma + 1, width]. Features of the positions of the
      last target call, whose first one is `Outcome.num_before` behind the
      offset: those at the index of a rejected token and behind it are stale.
      Before any call the first one is `contracts.Started.last_features`.
      None unless the drafter reads them.
  """

  params: Any
  memory: Any
  cache: Any
  offsets: jax.Array
  first_tokens: jax.Array
  last_features: jax.Array | None = None


class Context(NamedTuple):
  """All that a drafter may read before the first block.

  Attributes:
    inputs: One row per example.
    hints: [examples, any] int32. Token ids that an output may repeat, such as
      an earlier version of it. `contracts.NO_TOKEN` fills a row and separates
      several texts. None without hints.
    target: The target, which has read the inputs.
    features: What the target computed of the inputs, see `contracts.Started`.
  """

  inputs: Any
  hints: jax.Array | None
  target: TargetView
  features: Any


def drafts_on(
    progress: Any, logits: jax.Array, tokens: jax.Array
) -> tuple[jax.Array, Any]:
  """Draft on in every row: see `View.continues`."""
  del logits
  return jnp.ones(tokens.shape, bool), progress


class View(NamedTuple):
  """All that a drafter may look at when it drafts.

  Attributes:
    sequences: [rows, length] int32. Tokens committed so far.
    num_tokens: [rows] int32. Number of committed tokens.
    num_wanted: [rows] int32 in [0, gamma]. The most draft tokens that are
      worth having in this step: what the policy asks for, up to the limit; 0 in
      rows that have ended.
    uniforms: Uniforms of the drafter, `num_uniforms` per row; under a coupled
      rule those of the next positions, one each.
    sampling: Turns a draft model's logits into a distribution; arrays [rows].
    target: The target, for drafters that share it.
    last_outcome: `outcome.Outcome` of the previous step. Before the first one
      it says that nothing was drafted and nothing was committed.
    num_pending: [rows] int32. How many of the last `num_tokens` are not yet
      committed: they are draft tokens of drafters before this one.
    begin: Takes how many draft tokens there are, [rows] int32, and returns what
      `continues` knows of the draft at first.
    continues: Takes what it knows of the draft, the logits of a draft token's
      distribution before they were standardized, [rows, vocab], and the token,
      [rows]; returns whether to draft another one after it, [rows] bool, and
      what it then knows. A drafter that samples asks it after each token.
    wants_always: Whether this drafter alone drafts, and in every step as many
      tokens as each row that has not ended may have (static). Then some row
      wants a token, and a network was fed all but what the last step drew.
    draw: Draws tokens, [...], from distributions, [..., vocab], and uniforms,
      [..., 2]: as `sampling.draw`, or as a coupled rule does. Under that a
      drafter that draws otherwise has fewer tokens accepted.
    draw_candidates: Draws the candidates of a tree: see
      `candidates.CandidateRule`. None under other rules.
    scores: [rows] float32, log-probabilities of the sequences of a search; None
      where rows are samples.
  """

  sequences: jax.Array
  num_tokens: jax.Array
  num_wanted: jax.Array
  uniforms: uniforms_lib.Uniforms
  sampling: sampling_lib.Sampling
  target: TargetView
  last_outcome: Any
  num_pending: jax.Array | int = 0
  begin: Callable[[jax.Array], Any] = lambda num_drafted: None
  continues: Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, Any]] = (
      drafts_on
  )
  wants_always: bool = False
  draw: Callable[[jax.Array, jax.Array], jax.Array] = sampling_lib.draw
  draw_candidates: Callable[..., jax.Array] | None = None
  scores: jax.Array | None = None

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafting token by token with a network: as long as a row wants tokens.

Legend: rows, block, gamma (draft tokens per block), vocab.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import views
from speculative_t5x.speculation import widths

# The first call of a draft feeds the token that the last block ended with, and
# before it, where the whole draft was accepted, the last draft token: the
# network drew it and was never fed it.
FIRST_BLOCK = 2

# Names of the loops of a draft in compiled programs: what is fed before, the
# first draft token, and all others.
CATCH_UP, FIRST, LATER = 'catch_up', 'first_token', 'later_tokens'

# Takes a cache, tokens [rows, block], the numbers of tokens before them [rows],
# and the one index of the block whose logits are wanted [rows], None for all;
# returns logits and the next cache.
Decode = Callable[
    [contracts.Cache, jax.Array, jax.Array, jax.Array | None],
    tuple[jax.Array, contracts.Cache],
]


class _Drafted(NamedTuple):
  """A draft so far.

  Attributes:
    cache: Cache of the network that drafts.
    tokens: [gamma, rows] int32. One token of all rows lies together, because
      they are written one by one: on TPU it takes far less to write a whole
      tile than a row of each.
    probs: [gamma, rows, vocab], distributions of the tokens.
    lengths: [rows] int32, draft tokens of each row.
    is_open: [rows] bool, whether another one is wanted.
    progress: State of the policy within the draft, of `views.View.begin`.
    num_steps: int32 scalar, tokens drawn in each row, wanted or not.
  """

  cache: contracts.Cache
  tokens: jax.Array
  probs: jax.Array
  lengths: jax.Array
  is_open: jax.Array
  progress: Any
  num_steps: jax.Array


def draft(
    decode: Decode,
    cache: contracts.Cache,
    num_fed: jax.Array,
    first_tokens: jax.Array,
    view: views.View,
    gamma: int,
    first_block: int = FIRST_BLOCK,
) -> tuple[contracts.Draft, contracts.Cache, jax.Array]:
  """Draft until every row has what it wants; no call if none wants any.

  Args:
    decode: A call of the network.
    cache: What it was fed.
    num_fed: [rows] int32, how many tokens of `view` it was fed, the decoder's
      first token included and the last committed token never.
    first_tokens: [rows] int32, see `contracts.Started`.
    view: What the drafter sees; it has one uniform per draft token.
    gamma: The most draft tokens (static).
    first_block: Positions of the first call, which feeds what is missing of the
      tokens (static).
  Returns:
    The draft, the cache, and how many tokens the network was fed, as above.
    Those past the committed tokens belong to the draft.
  """
  uniforms = jnp.moveaxis(view.uniforms.split(gamma)[0], 1, 0)
  inputs = lambda start, block: state_lib.decoder_inputs(
      view.sequences, first_tokens, start, block
  )
  if not view.wants_always:
    cache, num_fed = _catch_up(
        decode, cache, num_fed, inputs, view, gamma, first_block
    )

  def draw(drafted, tokens, start, at) -> _Drafted:
    logits, cache = decode(drafted.cache, tokens, start, at)
    step = drafted.num_steps
    probs, token = sampling_lib.standardize_and_draw(
        logits[:, 0],
        view.sampling,
        lambda probs: view.draw(probs, uniforms[step]),
    )
    lengths = drafted.lengths + drafted.is_open.astype(jnp.int32)
    continues, progress = view.continues(drafted.progress, logits[:, 0], token)
    put = lambda all, one: lax.dynamic_update_index_in_dim(
        all, one.astype(all.dtype), step, axis=0
    )
    return _Drafted(
        cache,
        put(drafted.tokens, token),
        put(drafted.probs, probs),
        lengths,
        drafted.is_open & (lengths < view.num_wanted) & continues,
        progress,
        step + 1,
    )

  def draw_first(drafted: _Drafted) -> _Drafted:
    at = view.num_tokens - num_fed
    return draw(drafted, inputs(num_fed, first_block), num_fed, at)

  def draw_later(drafted: _Drafted) -> _Drafted:
    token = drafted.tokens[drafted.num_steps - 1]
    start = view.num_tokens + drafted.num_steps
    return draw(drafted, token[:, None], start, None)

  is_wanted = lambda drafted: jnp.any(drafted.is_open)
  drafted = _nothing_drafted(decode, cache, inputs, view, gamma)
  with jax.named_scope(FIRST):
    # Each loop less lets a TPU keep more of the network's weights on the chip.
    if view.wants_always:
      drafted = draw_first(drafted)
    else:
      drafted = widths.when(is_wanted(drafted), draw_first, drafted)
  goes_on = is_wanted
  if view.wants_always:
    # A GPU waits for the host at each predicate, unless the number of turns is
    # known. Only at the ends of texts are fewer enough, and to draw more in a
    # row changes nothing of its draft.
    has_more = lambda drafted: drafted.num_steps < gamma
    goes_on = lambda drafted: lax.platform_dependent(
        drafted, cuda=has_more, default=is_wanted
    )
  with jax.named_scope(LATER):
    drafted = lax.while_loop(goes_on, draw_later, drafted)
  # A row that wants nothing is fed along with the others. If it was behind by
  # more than the first call feeds, tokens are missing between: it stays behind,
  # and all that was written past them is written again once it catches up.
  # Other rows may draft on after a row's own draft has ended: what it is fed
  # from there on belongs to no draft token of its own, and where another
  # drafter goes on after it, other tokens are committed in those places.
  was_fed = (drafted.num_steps > 0) & (view.num_tokens - num_fed < first_block)
  num_own = jnp.minimum(drafted.num_steps, drafted.lengths + 1)
  num_fed = jnp.where(was_fed, view.num_tokens + num_own, num_fed)
  found = contracts.Draft(
      tokens=drafted.tokens.T,
      lengths=drafted.lengths,
      probs=jnp.moveaxis(drafted.probs, 0, 1),
  )
  return found, drafted.cache, num_fed


def _catch_up(decode, cache, num_fed, inputs, view, gamma, first_block):
  """Feed what was committed while the network did not draft.

  A row that wants nothing may stay behind.
  """
  block = gamma + 1  # never past the slots of a cache

  def is_behind(carry):
    _, num_fed = carry
    num_missing = view.num_tokens - num_fed
    return jnp.any((view.num_wanted > 0) & (num_missing >= first_block))

  def feed(carry):
    cache, num_fed = carry
    # Without a use of its logits, the compiler leaves out the head.
    _, cache = decode(cache, inputs(num_fed, block), num_fed, None)
    # Nothing in this loop reads the cache of the last layer. Left alone, a
    # TPU's compiler gives it another layout there, and copies it in every step.
    cache = jax.tree.map(sharding.lay_in_order, cache)
    return cache, jnp.minimum(num_fed + block, view.num_tokens)

  with jax.named_scope(CATCH_UP):
    return lax.while_loop(is_behind, feed, (cache, num_fed))


def _nothing_drafted(decode, cache, inputs, view, gamma) -> _Drafted:
  """Return the draft before its first token."""
  zeros = jnp.zeros_like(view.num_tokens)
  # Shapes alone: nothing is decoded here.
  logits, _ = jax.eval_shape(decode, cache, inputs(zeros, 1), zeros, None)
  rows, _, vocab = logits.shape
  probs = jax.eval_shape(
      sampling_lib.standardize,
      jax.ShapeDtypeStruct((rows, vocab), logits.dtype),
      view.sampling,
  )
  return _Drafted(
      cache,
      jnp.zeros((gamma, rows), jnp.int32),
      jnp.zeros((gamma, *probs.shape), probs.dtype),
      zeros,
      view.num_wanted > 0,
      view.begin(jnp.broadcast_to(view.num_pending, zeros.shape)),
      jnp.int32(0),
  )

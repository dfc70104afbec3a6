# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The decoding loop: Algorithm 1 of Leviathan et al. (2023), batched.

One `lax.while_loop` whose step drafts up to gamma tokens, scores them all by
one target call, keeps a prefix and draws one more token. Each row advances by
its own number of tokens. Plain decoding goes through the same seam, state and
commit, one token a target call.

What a step does is a pure function of the state and of the uniforms it is
given; the loop draws them, call k of a row from the row's key and k. Never
from the position: after a rejection a position is drawn again, and must be
drawn afresh.

Legend: batch (rows), gamma (guesses a block), length (longest output), vocab.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import verification

EOS_ID = 1


@struct.dataclass
class Statistics:
  """What happened in each row, counted as blocks end.

  A block's guesses count up to its first end of sequence and up to the length
  limit; what lies past either is paid for and never looked at.

  Attributes:
    accepted_histogram: [batch, gamma + 1] int32, blocks by number of guesses
      accepted.
    drafted_histogram: [batch, gamma + 1] int32, blocks by number of guesses
      that count.
    num_rejections: [batch] int32, blocks that ended in a rejected guess.
    num_computed: [batch] int32, guesses drafted, those past the end included.
    num_cut_short: [batch] int32, blocks that ended inside their draft, by an
      end of sequence or the limit, so that no further token was drawn.
  """

  accepted_histogram: jax.Array
  drafted_histogram: jax.Array
  num_rejections: jax.Array
  num_computed: jax.Array
  num_cut_short: jax.Array

  @property
  def num_accepted(self) -> jax.Array:
    """[batch] int32, guesses that were committed."""
    return _weighted_sum(self.accepted_histogram)

  @property
  def num_drafted(self) -> jax.Array:
    """[batch] int32, guesses that count."""
    return _weighted_sum(self.drafted_histogram)

  @property
  def num_tested(self) -> jax.Array:
    """[batch] int32, guesses whose coin was looked at."""
    return self.num_accepted + self.num_rejections


def _weighted_sum(histogram: jax.Array) -> jax.Array:
  bins = jnp.arange(histogram.shape[-1], dtype=histogram.dtype)
  return jnp.sum(histogram * bins, axis=-1)


@struct.dataclass
class State:
  """What the loop carries. There is no global step: each row has its own.

  Attributes:
    sequences: [batch, length] int32, tokens committed; 0 past the end.
    num_tokens: [batch] int32, how many are committed.
    has_ended: [batch] bool.
    log_probs: [batch] float32, of the committed tokens.
    num_calls: [batch] int32, target calls made for the row.
    target_cache: the target's.
    draft_state: the drafter's, or None.
    statistics: counts a row.
  """

  sequences: jax.Array
  num_tokens: jax.Array
  has_ended: jax.Array
  log_probs: jax.Array
  num_calls: jax.Array
  target_cache: seam.Cache
  draft_state: Any
  statistics: Statistics


@struct.dataclass
class Rows:
  """What tells one row from another.

  Attributes:
    keys: [batch] typed PRNG keys, see `row_keys`.
    limits: [batch] int32 in [0, length]: most tokens of each row. A row of
      limit 0 is padding: it never runs and counts nowhere.
  """

  keys: jax.Array
  limits: jax.Array


class Block(NamedTuple):
  """Tokens that a step adds.

  Attributes:
    tokens: [batch, block] int32, new tokens first.
    log_probs: [batch, block] float32.
    num_new: [batch] int32 in [0, block], how many tokens are new.
  """

  tokens: jax.Array
  log_probs: jax.Array
  num_new: jax.Array


def row_keys(
    seed: jax.Array, example_ids: jax.Array, num_decodes: int = 1
) -> jax.Array:
  """Keys that depend on seed, example and decode number and nothing else.

  Threefry whatever the default is: the bits of T5X's `unsafe_rbg` depend on
  the batch.

  Args:
    seed: int32 scalar.
    example_ids: [examples] int32, the data set's own.
    num_decodes: samples an example.
  Returns:
    [examples * num_decodes] typed keys, an example's next to each other.
  """
  key = jax.random.key(seed, impl='threefry2x32')
  by_example = jax.vmap(jax.random.fold_in, (None, 0))(key, example_ids)
  by_decode = jax.vmap(
      jax.vmap(jax.random.fold_in, (None, 0)), (0, None)
  )(by_example, jnp.arange(num_decodes))
  return by_decode.reshape(-1)


def call_uniforms(rows: Rows, num_calls: jax.Array, count: int) -> jax.Array:
  """All uniforms of one target call of each row: [batch, count] float32."""
  keys = jax.vmap(jax.random.fold_in)(rows.keys, num_calls)
  return jax.vmap(lambda key: jax.random.uniform(key, (count,)))(keys)


def uniforms_of(state: State, table: jax.Array) -> jax.Array:
  """What each row uses at its next call: [calls, batch, n] -> [batch, n]."""
  index = state.num_calls[None, :, None]
  return jnp.take_along_axis(table, index, axis=0)[0]


def cache_slots(length: int, gamma: int) -> int:
  """Positions a cache needs so that no write is ever clamped.

  A row that has ended at the limit still writes its block, after the end.
  """
  return length + gamma + 1


def init_state(
    target: seam.BlockDecoder,
    context: seam.Context,
    rows: Rows,
    draft_state: Any = None,
    *,
    length: int,
    gamma: int,
) -> State:
  """The state before the first step."""
  batch = rows.limits.shape[0]
  counts = lambda *shape: jnp.zeros((batch, *shape), jnp.int32)
  return State(
      sequences=counts(length),
      num_tokens=counts(),
      has_ended=rows.limits <= 0,
      log_probs=jnp.zeros((batch,), jnp.float32),
      num_calls=counts(),
      target_cache=target.init_cache(
          context, batch, cache_slots(length, gamma)
      ),
      draft_state=draft_state,
      statistics=Statistics(
          counts(gamma + 1), counts(gamma + 1), counts(), counts(), counts()
      ),
  )


class Speculation(NamedTuple):
  """All that a speculative step needs besides state and uniforms.

  Attributes:
    target: the target's seam.
    target_params: its parameters.
    target_context: what it only reads.
    drafter: guesses.
    draft_params: the drafter's parameters.
    draft_context: what it only reads.
    sampling: the law of the target.
    draft_sampling: the law of the draft; any will do, the closer the better.
    rescale_log_probs: score under the law sampled from (True, T5X's default)
      or under the model's own (False). Static.
    rule: which guesses are kept.
  """

  target: seam.BlockDecoder
  target_params: seam.Params
  target_context: seam.Context
  drafter: seam.Drafter
  draft_params: seam.Params
  draft_context: seam.Context
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling
  rescale_log_probs: bool = True
  rule: verification.Rule = verification.TOKENWISE


def speculative_step(
    setup: Speculation, rows: Rows, state: State, uniforms: jax.Array
) -> State:
  """Drafts, scores, keeps a prefix and draws one more token, for every row.

  A worked block, gamma 3, a row at 2 committed tokens `x y`:

    decoder fed       y  a  b  c      at positions 2, 3, 4, 5
    target's laws     p1 p2 p3 p4     of the tokens at 2, 3, 4, 5
    a, b kept, c rejected: a b and a token from max(0, p3 - q3) are committed,
    and the next block is fed from position 5 on, over what c left there.

  Args:
    setup: models and rules.
    rows: keys are not used here; limits are.
    state: rows that have ended stay as they are.
    uniforms: [batch, 2 * gamma + 1] in [0, 1): gamma to draw guesses, gamma to
      accept them, one for the token at the end.
  Returns:
    The next state.
  Reference: Leviathan et al. (2023), Algorithm 1, arXiv:2211.17192v2.
  """
  gamma = setup.drafter.gamma
  with jax.named_scope('draft'):  # names are for traces
    draft, draft_state, target_cache = setup.drafter.propose(
        setup.draft_params,
        setup.draft_context,
        state.draft_state,
        state.target_cache,
        state.sequences,
        state.num_tokens,
        uniforms[:, :gamma],
        setup.draft_sampling,
    )
  last_token = seam.decoder_inputs(state.sequences, state.num_tokens, 1)
  with jax.named_scope('target'):
    logits, target_cache = setup.target.decode_block(
        setup.target_params,
        setup.target_context,
        target_cache,
        jnp.concatenate([last_token, draft.tokens], axis=1),
        state.num_tokens,
        None,
    )
  probs = sampling_lib.standardize(logits, setup.sampling)

  num_computed = draft.lengths
  remaining = rows.limits - state.num_tokens
  draft = draft.replace(lengths=_count_guesses(draft, remaining))
  verdict = setup.rule(
      probs, draft, uniforms[:, gamma : 2 * gamma], uniforms[:, 2 * gamma]
  )
  is_cut_short = _ends_inside(draft, verdict.num_accepted, remaining)
  tokens = _block_tokens(draft, verdict)
  block = Block(
      tokens,
      _token_log_probs(tokens, logits, probs, setup.rescale_log_probs),
      verdict.num_accepted + jnp.where(is_cut_short, 0, 1),
  )
  state = state.replace(
      target_cache=target_cache,
      draft_state=draft_state,
      statistics=_count_block(
          state, draft.lengths, verdict, num_computed, is_cut_short
      ),
  )
  return _commit(rows, state, block)


def _count_guesses(draft: seam.Draft, remaining: jax.Array) -> jax.Array:
  """Guesses up to the first end of sequence and up to the limit, [batch]."""
  gamma = draft.tokens.shape[1]
  index = jnp.arange(gamma, dtype=jnp.int32)
  end = jnp.min(
      jnp.where(draft.tokens == EOS_ID, index + 1, gamma), axis=1
  )
  return jnp.minimum(jnp.minimum(draft.lengths, end), remaining)


def _ends_inside(
    draft: seam.Draft, num_accepted: jax.Array, remaining: jax.Array
) -> jax.Array:
  """Whether the accepted guesses end the row, [batch] bool."""
  last = jnp.maximum(num_accepted - 1, 0)[:, None]
  last_token = jnp.take_along_axis(draft.tokens, last, axis=1)[:, 0]
  is_end = (num_accepted > 0) & (last_token == EOS_ID)
  return is_end | (num_accepted >= remaining)


def _block_tokens(
    draft: seam.Draft, verdict: verification.Verdict
) -> jax.Array:
  """Accepted guesses, then the token drawn: [batch, gamma + 1]."""
  tokens = jnp.pad(draft.tokens, ((0, 0), (0, 1)))
  index = jnp.arange(tokens.shape[1], dtype=jnp.int32)[None]
  is_drawn = index >= verdict.num_accepted[:, None]
  return jnp.where(is_drawn, verdict.next_token[:, None], tokens)


def _count_block(
    state: State,
    num_drafted: jax.Array,
    verdict: verification.Verdict,
    num_computed: jax.Array,
    is_cut_short: jax.Array,
) -> Statistics:
  counts = state.statistics
  is_active = ~state.has_ended
  bins = jnp.arange(counts.accepted_histogram.shape[1], dtype=jnp.int32)[None]
  mark = lambda n: ((bins == n[:, None]) & is_active[:, None]).astype(jnp.int32)
  when = lambda n: jnp.where(is_active, n.astype(jnp.int32), 0)
  is_rejected = verdict.num_accepted < num_drafted
  return Statistics(
      counts.accepted_histogram + mark(verdict.num_accepted),
      counts.drafted_histogram + mark(num_drafted),
      counts.num_rejections + when(is_rejected),
      counts.num_computed + when(num_computed),
      counts.num_cut_short + when(is_cut_short),
  )


class Plain(NamedTuple):
  """All that a step of plain decoding needs besides state and uniforms.

  Attributes: as those of `Speculation`.
  """

  target: seam.BlockDecoder
  target_params: seam.Params
  target_context: seam.Context
  sampling: sampling_lib.Sampling
  rescale_log_probs: bool = True


def plain_step(
    setup: Plain, rows: Rows, state: State, uniforms: jax.Array
) -> State:
  """Draws one token a row from the target.

  Args:
    setup: the model and its law.
    rows: keys are not used here; limits are.
    state: rows that have ended stay as they are.
    uniforms: [batch, 1] in [0, 1).
  """
  with jax.named_scope('target'):
    logits, target_cache = setup.target.decode_block(
        setup.target_params,
        setup.target_context,
        state.target_cache,
        seam.decoder_inputs(state.sequences, state.num_tokens, 1),
        state.num_tokens,
        None,
    )
  probs = sampling_lib.standardize(logits, setup.sampling)
  tokens = sampling_lib.draw(probs, uniforms)
  block = Block(
      tokens,
      _token_log_probs(tokens, logits, probs, setup.rescale_log_probs),
      jnp.ones_like(state.num_tokens),
  )
  return _commit(rows, state.replace(target_cache=target_cache), block)


def _token_log_probs(
    tokens: jax.Array, logits: jax.Array, probs: jax.Array, rescaled: bool
) -> jax.Array:
  """Log-probabilities of tokens [batch, block] at their own positions."""
  take = lambda x: jnp.take_along_axis(x, tokens[..., None], axis=-1)[..., 0]
  if rescaled:
    return jnp.log(take(probs)).astype(jnp.float32)
  logits = logits.astype(probs.dtype)
  total = jax.nn.logsumexp(logits, axis=-1)
  return (take(logits) - total).astype(jnp.float32)


def _commit(rows: Rows, state: State, block: Block) -> State:
  """Appends a block's new tokens to every row that has not ended."""
  is_active = ~state.has_ended
  num_new = jnp.where(is_active, block.num_new, 0)
  index = jnp.arange(block.tokens.shape[1], dtype=jnp.int32)[None]
  is_new = index < num_new[:, None]
  num_tokens = state.num_tokens + num_new
  is_end = jnp.any(is_new & (block.tokens == EOS_ID), axis=1)
  log_probs = jnp.sum(jnp.where(is_new, block.log_probs, 0), axis=1)
  return state.replace(
      sequences=_append(state.sequences, state.num_tokens, block, num_new),
      num_tokens=num_tokens,
      has_ended=state.has_ended | is_end | (num_tokens >= rows.limits),
      log_probs=state.log_probs + log_probs,
      num_calls=state.num_calls + is_active.astype(jnp.int32),
  )


def _append(sequences, num_tokens, block: Block, num_new) -> jax.Array:
  slots = jnp.arange(sequences.shape[1], dtype=jnp.int32)[None]
  index = slots - num_tokens[:, None]  # of each slot within the block
  last = block.tokens.shape[1] - 1
  tokens = jnp.take_along_axis(block.tokens, jnp.clip(index, 0, last), axis=1)
  is_new = (index >= 0) & (index < num_new[:, None])
  return jnp.where(is_new, tokens, sequences)


def run(
    step: Callable[[Rows, State, jax.Array], State],
    rows: Rows,
    state: State,
    num_uniforms: int,
) -> tuple[State, jax.Array]:
  """Steps until every row has ended, in one compiled loop.

  Args:
    step: `speculative_step` or `plain_step`, bound to its setup.
    rows: keys and limits.
    state: from `init_state`.
    num_uniforms: how many a row uses a step (static).
  Returns:
    The last state, and how many steps the loop took (int32 scalar).
  """

  # Drawn before the loop: a call costs a lookup and no hashing. Each call
  # commits a token, so no row makes more calls than its sequence has slots.
  batch, length = state.sequences.shape
  calls = jnp.broadcast_to(
      jnp.arange(length, dtype=jnp.int32)[:, None], (length, batch)
  )
  table = jax.vmap(call_uniforms, (None, 0, None))(rows, calls, num_uniforms)

  def is_unfinished(carry):
    state, _ = carry
    return ~jnp.all(state.has_ended)

  def advance(carry):
    state, num_steps = carry
    return step(rows, state, uniforms_of(state, table)), num_steps + 1

  return lax.while_loop(is_unfinished, advance, (state, jnp.int32(0)))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the decoding loop, the networks and the drafters agree on.

The loop knows a model as the two callables of `BlockDecoder`, and a way to
guess as the two methods of `Drafter`. A tabular Markov chain fits as well as
T5, so the loop's law can be proven without a network.

Legend: batch (rows), block (positions decoded at once), gamma (guesses a
block), vocab, length (of the output), slots (of the cache).
"""

from collections.abc import Callable
import dataclasses
from typing import Any, Protocol

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x import sampling as sampling_lib

Params = Any
# What decoding only reads: keys and values of the inputs and their mask, one
# an example. The loop closes over it and never carries or rewinds it.
Context = Any
# The decoder's own keys and values and nothing else.
Cache = Any

BOS_ID = 0  # T5's decoder starts from its padding token


@dataclasses.dataclass(frozen=True)
class BlockDecoder:
  """A language model that decodes a block of tokens a call.

  Attributes:
    vocab_size: width of the logits.
    init_cache: `(context, batch, slots) -> cache`, static sizes.
    decode_block: `(params, context, cache, tokens, positions, logits_at) ->
      (logits, cache)`. Feeds tokens [batch, block] at positions [batch],
      position + 1, ... of each row; logits [batch, block, vocab] predict the
      token after each. `logits_at` [batch] asks for one index of the block a
      row (block is then 1); None for all. A row is rewound by passing a
      smaller position: what was written at or past it is never read again.
  """

  vocab_size: int
  init_cache: Callable[[Context, int, int], Cache]
  decode_block: Callable[..., tuple[jax.Array, Cache]]


@struct.dataclass
class Draft:
  """Guesses for the next tokens of each row, and the law they came from.

  Attributes:
    tokens: [batch, gamma] int32.
    lengths: [batch] int32 in [0, gamma]: how many are real guesses.
    probs: [batch, gamma, vocab]: the very distribution each token was drawn
      from, after standardization and in the dtype it was drawn in.
    is_point_mass: [batch] bool: the guesses were not drawn but chosen (all
      mass on the token); `probs` is then ignored.
  """

  tokens: jax.Array
  lengths: jax.Array
  probs: jax.Array
  is_point_mass: jax.Array


class Drafter(Protocol):
  """A way to guess tokens. What it guesses for a row depends on it alone."""

  gamma: int

  def init(
      self,
      params: Params,
      encoder_input_tokens: jax.Array,
      target_encoded: jax.Array,
      batch: int,
      slots: int,
  ) -> tuple[Context, Any]:
    """What the drafter only reads, and its state before the first block.

    Args:
      params: the drafter's own.
      encoder_input_tokens: [examples, inputs_length] int32.
      target_encoded: the target's encoder output.
      batch: rows to decode; each example has batch // examples of them.
      slots: positions that a cache must hold.
    """

  def propose(
      self,
      params: Params,
      context: Context,
      state: Any,
      target_cache: Cache,
      sequences: jax.Array,
      num_tokens: jax.Array,
      uniforms: jax.Array,
      sampling: sampling_lib.Sampling,
  ) -> tuple[Draft, Any, Cache]:
    """Guesses up to gamma tokens a row.

    Args:
      params: the drafter's own.
      context: from `init`.
      state: from `init` or from the last call. Whatever it holds past a row's
        `num_tokens` was rejected.
      target_cache: the target's, for drafters that share it.
      sequences: [batch, length] int32, tokens committed so far.
      num_tokens: [batch] int32, how many those are.
      uniforms: [batch, gamma] in [0, 1), one for each draw.
      sampling: how the draft's logits become a distribution.
    Returns:
      The draft, the next state, and the target's cache.
    """


def decoder_inputs(
    sequences: jax.Array, positions: jax.Array, block: int
) -> jax.Array:
  """The tokens that the decoder is fed at `positions` and after.

  The decoder is fed the sequence shifted right behind a start token: for the
  sequence a b c, positions 0, 1, 2, 3 take <bos> a b c.

  Args:
    sequences: [batch, length] int32.
    positions: [batch] int32 in [0, length].
    block: how many positions (static). Those past the sequence's end get its
      last token; they must not matter.
  Returns:
    [batch, block] int32.
  """
  offsets = jnp.arange(-1, block - 1, dtype=positions.dtype)
  index = positions[:, None] + offsets[None]
  last = sequences.shape[-1] - 1
  tokens = jnp.take_along_axis(sequences, jnp.clip(index, 0, last), axis=-1)
  return jnp.where(index < 0, jnp.asarray(BOS_ID, tokens.dtype), tokens)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A smaller model that guesses by decoding: the paper's M_q (Section 3.6).

Legend: batch (rows), gamma (guesses a block), vocab (the target's), slots.
"""

from collections.abc import Callable
import dataclasses

from flax import struct
from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import sharding

# The first call of a block feeds the token that the last block ended with,
# and before it, where the whole draft was kept, the last guess: the draft drew
# it and was never fed it.
_CATCH_UP_BLOCK = 2


@struct.dataclass
class DraftModelState:
  """What a draft model carries from block to block.

  Attributes:
    cache: its keys and values.
    num_fed: [batch] int32, positions fed so far; those past a row's committed
      tokens hold rejected guesses.
  """

  cache: seam.Cache
  num_fed: jax.Array


@dataclasses.dataclass(frozen=True)
class DraftModel:
  """Guesses gamma tokens, one at a time, with a model of its own.

  Attributes:
    decoder: the model's seam.
    encode: `(params, encoder_input_tokens) -> context`; its own encoder, run
      once.
    gamma: guesses a block, at least 1.
    vocab_size: width of the target's logits. A narrower draft gives the rest
      probability 0; a wider one is cut and renormalised.
    rules: how the model lies on a mesh, where one is in force: its own way and
      not the target's, whose number of heads is another.
  """

  decoder: seam.BlockDecoder
  encode: Callable[[seam.Params, jax.Array], seam.Context]
  gamma: int
  vocab_size: int
  rules: sharding.Rules = sharding.REPLICATED

  def __post_init__(self):
    if self.gamma < 1:
      raise ValueError(
          f'gamma must be at least 1, got {self.gamma}. Decode plainly for no'
          ' guesses at all.'
      )

  def init(
      self, params, encoder_input_tokens, target_encoded, batch, slots
  ) -> tuple[seam.Context, DraftModelState]:
    """See `seam.Drafter.init`."""
    del target_encoded
    with partitioning.axis_rules(self.rules):
      context = self.encode(params, encoder_input_tokens)
      cache = self.decoder.init_cache(context, batch, slots)
    return context, DraftModelState(cache, jnp.zeros((batch,), jnp.int32))

  def laws(
      self,
      params: seam.Params,
      encoder_input_tokens: jax.Array,
      sequences: jax.Array,
      sampling: sampling_lib.Sampling,
  ) -> jax.Array:
    """What each token of given texts would have been guessed from.

    Args:
      params: the model's.
      encoder_input_tokens: [examples, inputs_length] int32.
      sequences: [batch, length] int32.
      sampling: how logits become a distribution.
    Returns:
      [batch, length, vocab], each law given the text before its token.
    """
    batch, length = sequences.shape
    context, state = self.init(
        params, encoder_input_tokens, None, batch, length
    )
    start = jnp.zeros((batch,), jnp.int32)
    with partitioning.axis_rules(self.rules):
      logits, _ = self.decoder.decode_block(
          params,
          context,
          state.cache,
          seam.decoder_inputs(sequences, start, length),
          start,
          None,
      )
    logits = _fit_width(logits, self.vocab_size)
    return sampling_lib.standardize(logits, sampling)

  def propose(
      self,
      params,
      context,
      state,
      target_cache,
      sequences,
      num_tokens,
      uniforms,
      sampling,
  ) -> tuple[seam.Draft, DraftModelState, seam.Cache]:
    """See `seam.Drafter.propose`."""

    def guess(cache, tokens, positions, logits_at, uniform):
      with partitioning.axis_rules(self.rules):
        logits, cache = self.decoder.decode_block(
            params, context, cache, tokens, positions, logits_at
        )
      logits = _fit_width(logits[:, 0], self.vocab_size)
      probs = sampling_lib.standardize(logits, sampling)
      return cache, sampling_lib.draw(probs, uniform), probs

    start = jnp.minimum(state.num_fed, num_tokens)
    cache, token, probs = guess(
        state.cache,
        seam.decoder_inputs(sequences, start, _CATCH_UP_BLOCK),
        start,
        num_tokens - start,
        uniforms[:, 0],
    )

    def next_guess(carry, step):
      cache, token = carry
      offset, uniform = step
      cache, token, probs = guess(
          cache, token[:, None], num_tokens + offset, None, uniform
      )
      return (cache, token), (token, probs)

    offsets = jnp.arange(1, self.gamma, dtype=jnp.int32)
    (cache, _), (tokens, later_probs) = lax.scan(
        next_guess, (cache, token), (offsets, uniforms[:, 1:].T)
    )
    tokens = jnp.concatenate([token[None], tokens])
    probs = jnp.concatenate([probs[None], later_probs])
    batch = num_tokens.shape[0]
    draft = seam.Draft(
        tokens=tokens.T,
        lengths=jnp.full((batch,), self.gamma, jnp.int32),
        probs=jnp.moveaxis(probs, 0, 1),
        is_point_mass=jnp.zeros((batch,), bool),
    )
    state = DraftModelState(cache, num_tokens + self.gamma)
    return draft, state, target_cache


def _fit_width(logits: jax.Array, vocab_size: int) -> jax.Array:
  """Cuts logits [..., any] to the target's width, or pads them by -inf."""
  missing = vocab_size - logits.shape[-1]
  if missing <= 0:
    return logits[..., :vocab_size]
  padding = [(0, 0)] * (logits.ndim - 1) + [(0, missing)]
  return jnp.pad(logits, padding, constant_values=-jnp.inf)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic operations of the parts, counted in the programs themselves.

Counted are the calls of the two decoders, as in Section 3.4 of Leviathan et
al. (2023): neither the encoders nor what chooses tokens from logits.
"""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5_decoding


@dataclasses.dataclass(frozen=True)
class Operations:
  """Floating-point operations of one call, by kind, for a whole batch.

  Attributes:
    target: on one position a row.
    verify: of the target on gamma + 1 positions.
    draft: of the draft on one position.
    draft2: of the draft on two positions, the first call of a block, which
      wants the logits of one.
    gamma: guesses a block.
  """

  target: float
  verify: float
  draft: float
  draft2: float
  gamma: int

  @property
  def ops_coefficient(self) -> float:
    """Operations a token of the draft over the target's: Definition 3.10."""
    return self.draft / self.target

  def factor(self, baseline_steps: int, speculative_steps: int) -> float:
    """Speculative over plain operations, of so many steps of either loop."""
    draft = self.draft2 + (self.gamma - 1) * self.draft
    speculative = speculative_steps * (self.verify + draft)
    return speculative / (baseline_steps * self.target)


def count(
    decoder: token_decoder.TokenDecoder, request: token_decoder.Request
) -> Operations:
  """Counts the operations of a pair's parts on batches like the request."""
  rows = len(request.limits) * decoder.num_decodes
  tokens = request.encoder_input_tokens
  counted = lambda model, block_decoder, block, logits_at=None: _flops(
      model, block_decoder, tokens, rows, block, decoder, logits_at
  )
  return Operations(
      target=counted(decoder.target, decoder.target_decoder, 1),
      verify=counted(
          decoder.target, decoder.target_decoder, decoder.gamma + 1
      ),
      draft=counted(decoder.draft, decoder.drafter.decoder, 1),
      draft2=counted(
          decoder.draft,
          decoder.drafter.decoder,
          2,
          logits_at=jax.ShapeDtypeStruct((rows,), jnp.int32),
      ),
      gamma=decoder.gamma,
  )


def _flops(
    model, block_decoder, tokens, rows, block, decoder, logits_at
) -> float:
  """Operations of one call of a decoder, by the compiler's analysis of it."""
  slots = speculation.cache_slots(decoder.length, decoder.gamma)
  params = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), model.params
  )
  _, context = jax.eval_shape(
      lambda params: t5_decoding.encode(model.config, params, tokens), params
  )
  cache = jax.eval_shape(
      lambda context: block_decoder.init_cache(context, rows, slots), context
  )
  fed = jax.ShapeDtypeStruct((rows, block), jnp.int32)
  positions = jax.ShapeDtypeStruct((rows,), jnp.int32)
  # No other platform's client analyses what it has not compiled.
  with jax.default_device(jax.local_devices(backend='cpu')[0]):
    lowered = jax.jit(block_decoder.decode_block).lower(
        params, context, cache, fed, positions, logits_at
    )
  return float(lowered.cost_analysis()['flops'])

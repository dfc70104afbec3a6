# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic operations of the parts, counted in the programs themselves.

Counted are the calls of the two decoders, as in Section 3.4 of Leviathan et
al. (2023): neither the encoders nor what chooses tokens from logits.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from speculative_t5x import token_decoder
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib


@dataclasses.dataclass(frozen=True)
class Operations:
  """Floating-point operations of the networks' calls, for a whole batch.

  Attributes:
    target: of one target call on one position per row.
    verify: of one on gamma + 1 positions per row.
    draft: of a draft of gamma tokens; 0 for a drafter without a network.
    draft_token: of the last token of a draft of two.
  """

  target: float
  verify: float
  draft: float
  draft_token: float

  @property
  def ops_coefficient(self) -> float:
    """c-hat, operations per token, drafter over target: Definition 3.10."""
    return self.draft_token / self.target

  def factor(self, baseline_steps: int, speculative_steps: int) -> float:
    """Returns speculative over plain operations for the steps of each loop."""
    speculative = speculative_steps * (self.verify + self.draft)
    return speculative / (baseline_steps * self.target)


def count(
    decoder: token_decoder.TokenDecoder, request: token_decoder.Request
) -> Operations:
  """Counts the operations of decoding batches like the request."""
  rows = len(request.limits) * decoder.num_decodes
  tokens = request.encoder_input_tokens

  def target(block: int) -> float:
    call = contracts.ModelCall(decoder.target_model, block, 1)
    return _flops(decoder.target.params, call, tokens, rows, decoder)

  @functools.cache
  def draft_call(call: contracts.ModelCall) -> float:
    return _flops(decoder.loaded_drafter.params, call, tokens, rows, decoder)

  def draft(max_draft_tokens: int) -> float:
    drafter = decoder.make_drafter(max_draft_tokens)
    calls = getattr(drafter, 'model_calls', tuple)()
    return sum(
        call.count * draft_call(call._replace(count=1))
        for call in calls
        if call.count
    )

  return Operations(
      target=target(1),
      verify=target(decoder.gamma + 1),
      draft=draft(decoder.gamma),
      draft_token=draft(2) - draft(1),
  )


def _flops(params, call, tokens, rows, decoder) -> float:
  """Operations of one call of a decoder, by the compiler's analysis of it."""
  model = call.model
  slots = state_lib.cache_slots(decoder.length, decoder.gamma)
  params = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), params
  )
  started = jax.eval_shape(
      lambda params: model.start(params, tokens, rows, slots), params
  )
  fed = jax.ShapeDtypeStruct((rows, call.block), jnp.int32)
  positions = jax.ShapeDtypeStruct((rows,), jnp.int32)
  at = positions if call.wants_one else None
  # No other platform's client analyses what it has not compiled.
  with jax.default_device(jax.local_devices(backend='cpu')[0]):
    lowered = jax.jit(model.decode).lower(
        params, started.memory, started.cache, fed, positions, at
    )
  # A table may compute nothing.
  return float(lowered.cost_analysis().get('flops', 0))

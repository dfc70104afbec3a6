# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART and its like as a network of the decoding loop: Marian, M2M-100, NLLB.

The decoder begins with a prompt of one id or several: a start, and in some a
language or what the checkpoint forces to be first. It is no part of the output.

Legend: examples, rows, inputs_length, outputs_length, slots, vocab.
"""

from collections.abc import Mapping, Sequence
import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from speculative_t5x.networks import encoder_decoder_modules as modules
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.speculation import contracts


@dataclasses.dataclass(frozen=True)
class EncoderDecoder(modules.Sizes, t5.CrossAttending):
  """BART, Marian, M2M-100 or NLLB with its sizes: a `network.Network`.

  Its attributes are those of `encoder_decoder_modules.Sizes`.
  """

  name: ClassVar[str] = 'encoder-decoder'
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=2, padding=1, start=2
  )
  ends_inputs: ClassVar[bool] = True

  def _modules(self) -> modules.Transformer:
    return modules.Transformer(self)

  def _encode(self, params, tokens, is_input) -> jax.Array:
    return self._modules().apply(
        {'params': params}, tokens, is_input, method='encode'
    )

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    token, is_input = jnp.zeros((1, 1), jnp.int32), jnp.ones((1, 1), bool)
    cache = t5_modules.init_cache(self, (1,), 1)

    def run(bound: modules.Transformer) -> None:
      if self.reads_features:
        features = jnp.zeros((1, 1, self.width_of_inputs), self.dtype)
      else:
        features = bound.encode(token, is_input)
      cross = bound.cross_keys_values(features)
      bound.decode_block(token, jnp.int32(0), cross, is_input, cache)

    return self._modules().init(key, method=run)

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """Read the inputs and the decoder's prompt; see `network.Network.start`."""
    *before, last = self.decoder_prompt
    started = super().start(
        params, inputs, rows, len(before) + slots, features
    )
    cache = started.cache
    if before:
      # Nothing reads the logits, and the compiler leaves the head out.
      tokens = jnp.broadcast_to(jnp.int32(before), (rows, len(before)))
      _, cache = self.decode(
          params, started.memory, cache, tokens, started.offsets, None
      )
    return started._replace(
        cache=cache,
        offsets=jnp.full((rows,), len(before), jnp.int32),
        first_tokens=jnp.full((rows,), last, jnp.int32),
    )

  def features(
      self, params: contracts.Params, inputs: jax.Array
  ) -> jax.Array:
    """Run the encoder at the whole width; see `network.ComputesFeatures`."""
    return self._encode(params, jnp.maximum(inputs, 0), inputs >= 0)

  def score(
      self, params, inputs, outputs, dropout_key=None, features=None
  ) -> jax.Array:
    """See `network.Scores`; it has no dropout."""
    del dropout_key
    if features is None:
      features = self.features(params, inputs)
    rows, count = outputs.shape[0], len(self.decoder_prompt)
    prompt = jnp.broadcast_to(jnp.int32(self.decoder_prompt), (rows, count))
    fed = [prompt, jnp.maximum(outputs[:, :-1], 0)]
    fed = jnp.concatenate(fed, axis=1)
    bound = self._modules().bind({'params': params})
    logits, _ = bound.decode_block(
        fed,
        jnp.int32(0),
        bound.cross_keys_values(features),
        inputs >= 0,
        t5_modules.init_cache(self, (rows,), fed.shape[1]),
    )
    return logits[:, count - 1 :]

  def with_decoder_prompt(self, ids: Sequence[int]) -> 'EncoderDecoder':
    """See `network.PromptsDecoder`."""
    return dataclasses.replace(self, decoder_prompt=ids)

  def num_positions(self, inputs_length: int, max_tokens: int) -> int:
    """See `network.LimitsPositions`: each stack counts its own."""
    # The last token of an output is fed to nothing.
    return max(inputs_length, len(self.decoder_prompt) + max_tokens - 1)

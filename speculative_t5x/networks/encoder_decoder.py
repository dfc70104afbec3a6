# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""BART and its like as a network of the decoding loop: Marian, M2M-100, NLLB.

The decoder begins with a prompt of one id or several: a start, and in some a
language or what the checkpoint forces to be first. It is no part of the output.

Legend: rows.
"""

from collections.abc import Sequence
import dataclasses
from typing import ClassVar

import jax.numpy as jnp

from speculative_t5x.networks import cross_attending
from speculative_t5x.networks import encoder_decoder_modules as modules
from speculative_t5x.speculation import contracts


@dataclasses.dataclass(frozen=True)
class EncoderDecoder(modules.Sizes, cross_attending.CrossAttending):
  """BART, Marian, M2M-100 or NLLB with its sizes: a `network.Network`.

  Its attributes are those of `encoder_decoder_modules.Sizes`.
  """

  name: ClassVar[str] = 'encoder-decoder'
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=2, padding=1, start=2
  )
  feature_dim: ClassVar[None] = None  # it is no head

  def _modules(self) -> modules.Transformer:
    return modules.Transformer(self)

  @property
  def _begin_ids(self) -> tuple[int, ...]:
    return self.decoder_prompt

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

  def with_decoder_prompt(self, ids: Sequence[int]) -> 'EncoderDecoder':
    """See `network.PromptsDecoder`."""
    return dataclasses.replace(self, decoder_prompt=ids)

  def num_positions(self, inputs_length: int, max_tokens: int) -> int:
    """See `network.LimitsPositions`: each stack counts its own."""
    # The last token of an output is fed to nothing.
    return max(inputs_length, len(self.decoder_prompt) + max_tokens - 1)

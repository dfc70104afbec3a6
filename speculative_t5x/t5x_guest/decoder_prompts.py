# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Prompts of the decoder of an encoder-decoder: T5X's `prompt_with_targets`.

T5X's T5 is fed a prompt one token per step. Here it is decoded in one block,
before the first step.

Legend: batch (examples), rows, length (of prompt and output together).
"""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import widths

_Read = tuple[contracts.Cache, jax.Array | None]


@dataclasses.dataclass(frozen=True)
class PromptedModel(network.NetworkModel):
  """A model whose outputs go on behind prompts, with which they share a length.

  The last columns of its inputs are not the encoder's but the prompts, at their
  left, then `contracts.NO_TOKEN`. A draft model of the same class reads them
  too.

  Attributes:
    prompt_width: How many columns these are.
  """

  prompt_width: int = 0

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    inputs, prompts = self._split(inputs, rows)
    started = super().start(params, inputs, rows, slots, features)
    return self._read(params, started, prompts)

  def start_with_features(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    inputs, prompts = self._split(inputs, rows)
    started = super().start_with_features(
        params, inputs, rows, slots, features
    )
    return self._read(params, started, prompts)

  def _split(
      self, inputs: jax.Array, rows: int
  ) -> tuple[jax.Array, jax.Array]:
    """Return what the encoder reads, and the prompt of each row."""
    width = inputs.shape[1] - self.prompt_width
    prompts = jnp.repeat(inputs[:, width:], rows // inputs.shape[0], axis=0)
    return inputs[:, :width], prompts

  def _read(
      self, params, started: contracts.Started, prompts: jax.Array
  ) -> contracts.Started:
    """Return what is known once the decoder has read the prompts.

    With last features, these are shown of the position before the first one.
    """
    fed = jnp.concatenate([started.first_tokens[:, None], prompts], axis=1)
    lengths = jnp.sum(prompts >= 0, axis=1, dtype=jnp.int32)
    first = jnp.zeros_like(lengths)

    def read(width: int, carry: _Read) -> _Read:
      args = params, started.memory, carry[0], fed[:, :width], first
      if carry[1] is None:
        return self.decode(*args, first)[1], None
      at = jnp.maximum(lengths - 1, 0)
      _, cache, shown = self.decode_with_features(*args, at)
      has_before = (lengths > 0)[:, None, None]
      return cache, jnp.where(has_before, shown, carry[1])

    # What is behind a prompt is overwritten before it is read. The last token
    # of a prompt is what the loop feeds first.
    cache, last_features = widths.at_smallest(
        input_widths.of_inputs(self.prompt_width),
        jnp.max(lengths),
        read,
        (started.cache, started.last_features),
    )
    return started._replace(
        cache=cache,
        last_features=last_features,
        offsets=lengths,
        first_tokens=jnp.take_along_axis(fed, lengths[:, None], axis=1)[:, 0],
    )


def of_targets(tokens: jax.Array, end: int) -> tuple[jax.Array, jax.Array]:
  """Return what T5X takes for prompts, and their lengths.

  Args:
    tokens: [batch, length] int32, the decoder's inputs of the targets, with
      T5X's start and 0 for no token.
    end: End of sequence, which is not part of a prompt.
  Returns:
    [batch, length - 1] int32 with 0 behind each prompt, and [batch] int32. A
    prompt ends with the first token that is not forced.
  """
  tokens = tokens[:, 1:]
  is_forced = jnp.cumprod((tokens > 0) & (tokens != end), axis=1)
  return tokens * is_forced, jnp.sum(is_forced, axis=1, dtype=jnp.int32)


def put_before(
    outputs: jax.Array, prompts: jax.Array, lengths: jax.Array
) -> jax.Array:
  """Return outputs [batch, ..., length] behind their prompts, as T5X has them.

  Prompts and lengths are those of `of_targets`; an output has 0 past its end.
  """
  length = outputs.shape[-1]
  shape = len(lengths), *[1] * (outputs.ndim - 2), length
  index = (jnp.arange(length) - lengths[:, None]).reshape(shape)
  index = jnp.broadcast_to(index, outputs.shape)
  behind = jnp.take_along_axis(outputs, jnp.maximum(index, 0), axis=-1)
  prompts = jnp.pad(prompts, ((0, 0), (0, 1))).reshape(shape)
  return jnp.where(index < 0, prompts, behind)

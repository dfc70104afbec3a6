# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Records the masks that a network draws for dropout."""

from unittest import mock

import flax.linen as nn
import jax
import jax.numpy as jnp

from tests import tiny

CONFIG = tiny.config(
    num_encoder_layers=1, num_decoder_layers=1, dropout_rate=0.25
)


def of(network: nn.Module) -> list[tuple[float, tuple[int, ...]]]:
  """Return the probability to keep and the shape of each, as drawn.

  The network of CONFIG, ours or T5X's, gets 2 examples with 5 tokens of inputs
  and 4 of targets.
  """
  masks = []
  draw = jax.random.bernoulli

  def bernoulli(key, p=0.5, shape=None, **kwargs):
    masks.append((p, tuple(shape)))
    return draw(key, p, shape, **kwargs)

  inputs, targets = jnp.ones((2, 5), jnp.int32), jnp.ones((2, 4), jnp.int32)
  params = tiny.params(CONFIG)
  with mock.patch.object(jax.random, 'bernoulli', bernoulli):
    jax.eval_shape(
        lambda: network.apply(
            {'params': params},
            inputs,
            targets,
            targets,
            enable_dropout=True,
            rngs={'dropout': jax.random.PRNGKey(0)},
        )
    )
  return masks

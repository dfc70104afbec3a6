# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What training computes with a network: the logits of given texts.

Nothing else in training calls a network.

Legend: batch, inputs_length, length (of the targets), embed, vocab.
"""

from typing import Any

import jax

from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.training import batches

Params = Any


def score(
    config: t5.T5Config,
    params: Params,
    batch: batches.Examples,
    dropout_key: jax.Array | None = None,
    encoded: jax.Array | None = None,
) -> jax.Array:
  """Compute the logits of all target tokens, [batch, length, vocab] float32.

  Args:
    config: The network's config.
    params: The network's parameters.
    batch: Examples, whose targets are read and predicted.
    dropout_key: Key of the dropout masks; None for no dropout.
    encoded: [batch, inputs_length, embed]. The output of an encoder that the
      decoder reads; None to run the network's own.
  """
  fed = batches.shift_right(batch.targets)
  arguments = batch.inputs, fed, batch.targets
  if encoded is None:
    return _apply(config, params, dropout_key, *arguments)
  return _apply(
      config, params, dropout_key, encoded, *arguments, method='decode'
  )


def encode(
    config: t5.T5Config, params: Params, inputs: jax.Array
) -> jax.Array:
  """Run the encoder without dropout, [batch, inputs_length, embed]."""
  return _apply(config, params, None, inputs, method='encode')


def _apply(config, params, dropout_key, *args, **kwargs) -> jax.Array:
  if dropout_key is None:
    kwargs['enable_dropout'] = False
  else:
    kwargs['rngs'] = {'dropout': dropout_key}
  network = t5_modules.Transformer(config)
  return network.apply({'params': params}, *args, **kwargs)

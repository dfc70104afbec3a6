# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 behind the seam that the decoding loop knows.

What passes the seam is put where the rules in force want it on a mesh, so that
neither caches nor logits lie where the compiler happens to take them.
"""

from collections.abc import Sequence
from typing import TypeVar

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x import seam
from speculative_t5x import sharding
from speculative_t5x.networks import t5

_KeysValues = TypeVar('_KeysValues')


@struct.dataclass
class T5Context:
  """What T5's decoder only reads, one row an example.

  Attributes:
    cross: keys and values of the inputs, a layer each.
    is_input: [examples, inputs_length] bool, False at padding.
  """

  cross: t5.CrossKeysValues
  is_input: jax.Array


def encode(
    config: t5.T5Config, params: seam.Params, encoder_input_tokens: jax.Array
) -> tuple[jax.Array, T5Context]:
  """Runs the encoder and projects what every decoder layer attends to.

  Args:
    config: of the network.
    params: its parameters.
    encoder_input_tokens: [examples, inputs_length] int32; 0 is padding.
  Returns:
    The encoder's output [examples, inputs_length, embed], and the context.
  """
  network = t5.Transformer(config)
  variables = {'params': params}
  tokens = sharding.constrain(encoder_input_tokens, ('batch', 'length'))
  encoded = sharding.constrain(
      network.apply(variables, tokens, False, method='encode'),
      ('batch', 'length', 'embed'),
  )
  cross = network.apply(variables, encoded, method='cross_keys_values')
  return encoded, T5Context(_constrain_keys_values(cross), tokens > 0)


def _constrain_keys_values(keys_values: _KeysValues) -> _KeysValues:
  axes = ('batch', 'heads', 'kv', 'length')
  # One row has no batch axis.
  return jax.tree.map(
      lambda x: sharding.constrain(x, axes[-x.ndim :]), keys_values
  )


def _gather_logits(logits: jax.Array) -> jax.Array:
  """The logits of a row as a whole where the row is, [batch, block, vocab].

  Cut along the vocabulary, every sum over a law and every step of a search in
  it would wait for the other devices. Made in parts first, or the compiler
  gathers the kernel of the head instead.
  """
  parts = sharding.constrain(logits, ('batch', 'length', 'vocab'))
  return sharding.constrain(parts, ('batch', 'length', None))


def block_decoder(
    config: t5.T5Config,
    num_valid_tokens: int | None = None,
    forbidden: Sequence[int] = (),
) -> seam.BlockDecoder:
  """T5's decoder as the loop knows it.

  Args:
    config: of the network.
    num_valid_tokens: if given, ids from there on (the padding of the logits to
      a round width) get logit -inf; by default they take part, as in T5X.
    forbidden: further ids that get it.
  """
  network = t5.Transformer(config)

  def init_cache(context, batch, slots):
    del context
    # One row is kept without a batch axis: see `networks.kv_cache`.
    batch_shape = () if batch == 1 else (batch,)
    return _constrain_keys_values(t5.init_cache(config, batch_shape, slots))

  def decode_block(params, context, cache, tokens, positions, logits_at):
    batch = tokens.shape[0]
    if batch == 1:
      context, tokens, positions, logits_at = jax.tree.map(
          lambda x: x[0], (context, tokens, positions, logits_at)
      )
    logits, cache = network.apply(
        {'params': params},
        tokens,
        positions,
        context.cross,
        context.is_input,
        cache,
        logits_at,
        method='decode_block',
    )
    logits = _gather_logits(logits.reshape(batch, -1, config.vocab_size))
    ids = jnp.arange(config.vocab_size)
    if num_valid_tokens is not None:
      logits = jnp.where(ids < num_valid_tokens, logits, -jnp.inf)
    for each in forbidden:
      logits = jnp.where(ids != each, logits, -jnp.inf)
    return logits, _constrain_keys_values(cache)

  return seam.BlockDecoder(config.vocab_size, init_cache, decode_block)

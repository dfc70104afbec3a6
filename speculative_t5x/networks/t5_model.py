# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5 as a model of the decoding loop.

On a mesh, inputs, caches and logits are constrained to the sharding rules in
force; otherwise the compiler would choose their sharding.
"""

import dataclasses
from typing import TypeVar

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.networks import input_widths
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts

# The special ids of T5's vocabularies: the decoder starts from the padding id.
SPECIAL_IDS = contracts.SpecialIds(end=1, padding=0, start=0)

_KeysValues = TypeVar('_KeysValues')


@struct.dataclass
class T5Memory:
  """Read-only inputs of T5's decoder, one row per example.

  Attributes:
    cross: keys and values of the inputs, per layer.
    is_input: [examples, inputs_length] bool, False at padding.
  """

  cross: t5.CrossKeysValues
  is_input: jax.Array


@struct.dataclass
class Encoded:
  """What a decoder reads of an encoder.

  Attributes:
    output: [examples, inputs_length, embed].
    is_input: [examples, inputs_length] bool, False at padding.
  """

  output: jax.Array
  is_input: jax.Array


def encode(
    config: t5.T5Config,
    params: contracts.Params,
    encoder_input_tokens: jax.Array,
    padding: int = SPECIAL_IDS.padding,
) -> tuple[jax.Array, T5Memory]:
  """Runs the encoder and projects its output for every decoder layer.

  Args:
    config: the config of the network.
    params: the parameters of the network.
    encoder_input_tokens: [examples, inputs_length] int32.
    padding: the id that fills inputs (static).
  Returns:
    The encoder's output [examples, inputs_length, embed], and the memory.
  """
  encoded = run_encoder(config, params, encoder_input_tokens, padding)
  return encoded.output, _project(config, params, encoded)


def run_encoder(
    config: t5.T5Config,
    params: contracts.Params,
    encoder_input_tokens: jax.Array,
    padding: int = SPECIAL_IDS.padding,
) -> Encoded:
  """Runs the encoder; takes what `encode` takes.

  Without a reverse-mode gradient, see `input_widths.at_smallest`: a network in
  training calls `Transformer.encode`.
  """
  tokens = sharding.constrain(encoder_input_tokens, ('batch', 'length'))
  is_input = tokens != padding
  network = t5.Transformer(config)
  output = input_widths.at_smallest(
      is_input,
      1,
      lambda width: network.apply(
          {'params': params}, tokens[:, :width], False, padding, method='encode'
      ),
  )
  return Encoded(
      sharding.constrain(output, ('batch', 'length', 'embed')), is_input
  )


def _project(
    config: t5.T5Config, params: contracts.Params, encoded: Encoded
) -> T5Memory:
  """Projects an encoder's output for every decoder layer."""
  network = t5.Transformer(config)
  cross = input_widths.at_smallest(
      encoded.is_input,
      -1,
      lambda width: network.apply(
          {'params': params},
          encoded.output[:, :width],
          method='cross_keys_values',
      ),
  )
  return T5Memory(_constrain_keys_values(cross), encoded.is_input)


def _constrain_keys_values(keys_values: _KeysValues) -> _KeysValues:
  axes = ('batch', 'heads', 'kv', 'length')
  # One row has no batch axis.
  return jax.tree.map(
      lambda x: sharding.constrain(x, axes[-x.ndim :]), keys_values
  )


def _gather_logits(logits: jax.Array) -> jax.Array:
  """Gathers the logits [batch, block, vocab] along the vocabulary axis.

  With logits partitioned along the vocabulary, every sum over a distribution
  and every step of a search in it would wait for other devices. The logits are
  first constrained to be partitioned; otherwise the compiler gathers the head's
  kernel instead.
  """
  parts = sharding.constrain(logits, ('batch', 'length', 'vocab'))
  return sharding.constrain(parts, ('batch', 'length', None))


@dataclasses.dataclass(frozen=True)
class T5Model:
  """T5 as a `contracts.Model`.

  Attributes:
    config: the config of the network.
    num_valid_tokens: if given, ids from this one on (the padding of the
      vocabulary) get logit -inf; by default they can be sampled, as in T5X.
    forbidden: further ids that get logit -inf.
    special_ids: special ids of the vocabulary.
  """

  config: t5.T5Config
  num_valid_tokens: int | None = None
  forbidden: tuple[int, ...] = ()
  special_ids: contracts.SpecialIds = SPECIAL_IDS

  @property
  def vocab_size(self) -> int:
    """Width of the logits."""
    return self.config.vocab_size

  def start(
      self, params, encoder_input_tokens, rows, slots, features=None
  ) -> contracts.Started:
    """See `contracts.Model.start`.

    Args:
      params: the parameters of the network.
      encoder_input_tokens: [examples, inputs_length] int32.
      rows: sequences to decode.
      slots: of the cache.
      features: output of `run_encoder` for the same tokens; None to run it.
    Raises:
      ValueError: for features of another shape or dtype.
    """
    if features is None:
      padding = self.special_ids.padding
      encoded = run_encoder(self.config, params, encoder_input_tokens, padding)
    else:
      encoded = self._encoded_before(features, encoder_input_tokens)
    memory = _project(self.config, params, encoded)
    return self._started(memory, rows, slots)._replace(features=encoded.output)

  def _encoded_before(self, features: jax.Array, tokens: jax.Array) -> Encoded:
    shape = *tokens.shape, self.config.emb_dim
    dtype = jnp.dtype(self.config.dtype)
    if features.shape != shape or features.dtype != dtype:
      raise ValueError(
          f'Features of shape {features.shape} and type {features.dtype} were'
          f' given for inputs whose features have shape {shape} and type'
          f' {dtype}. Give what the same target has computed of the same'
          ' inputs, or None.'
      )
    return Encoded(
        sharding.constrain(features, ('batch', 'length', 'embed')),
        tokens != self.special_ids.padding,
    )

  def _started(
      self, memory: T5Memory, rows: int, slots: int
  ) -> contracts.Started:
    return contracts.Started(
        memory,
        self.init_cache(rows, slots),
        offsets=jnp.zeros((rows,), jnp.int32),
        first_tokens=jnp.full((rows,), self.special_ids.start, jnp.int32),
    )

  def init_cache(self, rows: int, slots: int) -> contracts.Cache:
    """Returns an empty cache."""
    # A single row has no batch axis: see `networks.layers`.
    batch_shape = () if rows == 1 else (rows,)
    return _constrain_keys_values(
        t5.init_cache(self.config, batch_shape, slots)
    )

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    """Implements `contracts.Model.decode`."""
    rows = tokens.shape[0]
    if rows == 1:
      memory, tokens, positions, at = jax.tree.map(
          lambda x: x[0], (memory, tokens, positions, at)
      )
    logits, cache = t5.Transformer(self.config).apply(
        {'params': params},
        tokens,
        positions,
        memory.cross,
        memory.is_input,
        cache,
        at,
        method='decode_block',
    )
    logits = _gather_logits(logits.reshape(rows, -1, self.vocab_size))
    ids = jnp.arange(self.vocab_size)
    if self.num_valid_tokens is not None:
      logits = jnp.where(ids < self.num_valid_tokens, logits, -jnp.inf)
    for each in self.forbidden:
      logits = jnp.where(ids != each, logits, -jnp.inf)
    return logits, _constrain_keys_values(cache)


@dataclasses.dataclass(frozen=True)
class T5Decoder(T5Model):
  """A T5 decoder alone as a `contracts.Model`; another network encodes."""

  def start(self, params, encoded: Encoded, rows, slots) -> contracts.Started:
    """See `contracts.Model.start`."""
    memory = _project(self.config, params, encoded)
    return self._started(memory, rows, slots)

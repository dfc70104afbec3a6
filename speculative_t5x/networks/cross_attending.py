# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What encoder-decoders have in common: encoders, and decoders that read them.

On a mesh, inputs and features are constrained to the sharding rules in force.

Legend: examples, rows, inputs_length, embed.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar, Self

from flax import struct
import flax.linen as nn
import jax
import jax.numpy as jnp

from speculative_t5x.networks import block_decoder
from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_modules
from speculative_t5x.speculation import contracts


@struct.dataclass
class Memory:
  """Read-only inputs of a decoder, one row per example.

  Attributes:
    cross: Keys and values of the inputs, per layer.
    is_input: [examples, inputs_length] bool, False where there is no token.
  """

  cross: t5_modules.CrossKeysValues
  is_input: jax.Array


class CrossAttending(block_decoder.BlockDecoder):
  """A `network.Network` whose decoder attends to features of the inputs.

  Its subclasses also have the fields `head_dim`, `num_encoder_layers` and
  `encoder_dim`. They define `name`, `special_ids` and `_modules`.
  """

  ends_inputs: ClassVar[bool] = True

  def _modules(self) -> nn.Module:
    """Return modules with `encode`, `cross_keys_values` and what decodes."""
    raise NotImplementedError

  def _encode(
      self, params: contracts.Params, tokens: jax.Array, is_input: jax.Array
  ) -> jax.Array:
    """Run the encoder over [examples, length]; return [..., embed]."""
    return self._modules().apply(
        {'params': params}, tokens, is_input, method='encode'
    )

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    token, is_input = jnp.zeros((1, 1), jnp.int32), jnp.ones((1, 1), bool)
    cache = t5_modules.init_cache(self, (1,), 1)

    def run(bound: nn.Module) -> None:
      if self.reads_features:
        features = jnp.zeros((1, 1, self.width_of_inputs), self.dtype)
      else:
        features = bound.encode(token, is_input)
      cross = bound.cross_keys_values(features)
      bound.decode_block(token, jnp.int32(0), cross, is_input, cache)

    return self._modules().init(key, method=run)

  @property
  def reads_features(self) -> bool:
    """Whether it is a decoder alone, on the encoder of another network."""
    return not self.num_encoder_layers

  @property
  def width_of_inputs(self) -> int:
    """Width of the features that the decoder reads."""
    return self.emb_dim if self.encoder_dim is None else self.encoder_dim

  def encode(
      self, params: contracts.Params, inputs: jax.Array
  ) -> jax.Array:
    """Run the encoder; return [examples, inputs_length, embed].

    Without a reverse-mode gradient, see `input_widths.at_smallest`: training
    calls `features`.
    """
    inputs = sharding.constrain(inputs, ('batch', 'length'))
    is_input = inputs >= 0
    tokens = jnp.maximum(inputs, 0)
    output = input_widths.at_smallest(
        is_input,
        1,
        lambda width: self._encode(
            params, tokens[:, :width], is_input[:, :width]
        ),
    )
    return sharding.constrain(output, ('batch', 'length', 'embed'))

  def features(
      self, params: contracts.Params, inputs: jax.Array
  ) -> jax.Array:
    """Run the encoder at the whole width; see `network.ComputesFeatures`."""
    return self._encode(params, jnp.maximum(inputs, 0), inputs >= 0)

  def start(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """See `network.Network.start`; the features are those of `encode`."""
    if features is None:
      features = self.encode(params, inputs)
    else:
      self._check_features(features, inputs)
      features = sharding.constrain(features, ('batch', 'length', 'embed'))
    return contracts.Started(
        self._project(params, features, inputs >= 0),
        self.init_cache(rows, slots),
        offsets=jnp.zeros((rows,), jnp.int32),
        first_tokens=None,
        features=features,
    )

  def start_with_features(
      self, params, inputs, rows, slots, features=None
  ) -> contracts.Started:
    """See `contracts.ShowsFeatures`; before an output there are none."""
    started = self.start(params, inputs, rows, slots, features)
    zeros = jnp.zeros((rows, 1, self.last_width), self.dtype)
    return started._replace(last_features=zeros)

  def _check_features(self, features: jax.Array, inputs: jax.Array) -> None:
    shape = *inputs.shape, self.width_of_inputs
    dtype = jnp.dtype(self.dtype)
    if features.shape != shape or features.dtype != dtype:
      raise ValueError(
          f'Features of shape {features.shape} and type {features.dtype} were'
          f' given for inputs whose features have shape {shape} and type'
          f' {dtype}. Give what the same target has computed of the same'
          ' inputs, or None.'
      )

  def _project(
      self, params: contracts.Params, features: jax.Array, is_input: jax.Array
  ) -> Memory:
    """Project an encoder's output for every decoder layer."""
    decoder = self._modules()

    def project(width: int) -> t5_modules.CrossKeysValues:
      cross = decoder.apply(
          {'params': params}, features[:, :width], method='cross_keys_values'
      )
      # The product leaves the slots before the heads. XLA:CPU would copy all
      # slots to the order that attention reads, and not only these.
      return jax.tree.map(sharding.lay_in_order, cross)

    cross = input_widths.at_smallest(is_input, -1, project)
    return Memory(kv_cache.constrain(cross), is_input)

  def init_cache(self, rows: int, slots: int) -> contracts.Cache:
    """Return an empty cache."""
    # A single row has no batch axis: see `networks.t5_layers`.
    batch_shape = () if rows == 1 else (rows,)
    return kv_cache.constrain(
        t5_modules.init_cache(self, batch_shape, slots)
    )

  def _decode_block(
      self, params, memory: Memory, cache, tokens, positions, at, fed
  ) -> tuple[jax.Array, contracts.Cache, jax.Array]:
    return self._modules().apply(
        {'params': params},
        tokens,
        positions,
        memory.cross,
        memory.is_input,
        cache,
        at,
        fed,
        method='decode_block',
    )

  def _decode_tree(
      self, params, memory: Memory, *args
  ) -> tuple[jax.Array, contracts.Cache]:
    return self._modules().apply(
        {'params': params},
        *args,
        memory.cross,
        memory.is_input,
        method='decode_tree',
    )

  @property
  def _begin_ids(self) -> tuple[int, ...]:
    """Ids that the decoder is fed before an output."""
    return (self.special_ids.start,)

  def score(
      self, params, inputs, outputs, dropout_key=None, features=None
  ) -> jax.Array:
    """See `network.Scores`."""
    return self.score_with_features(
        params, inputs, outputs, dropout_key, features
    ).logits

  def score_with_features(
      self, params, inputs, outputs, dropout_key=None, features=None, fed=None
  ) -> network.Scored:
    """See `network.ShowsFeatures`; it has no dropout."""
    del dropout_key
    if features is None:
      features = self.features(params, inputs)
    rows, count = outputs.shape[0], len(self._begin_ids)
    begin = jnp.broadcast_to(jnp.int32(self._begin_ids), (rows, count))
    # The last token of an output is fed to nothing.
    outputs = jnp.maximum(outputs[:, :-1], 0)
    tokens = jnp.concatenate([begin, outputs], axis=1)
    bound = self._modules().bind({'params': params})
    logits, _, shown = bound.decode_block(
        tokens,
        jnp.int32(0),
        bound.cross_keys_values(features),
        inputs >= 0,
        t5_modules.init_cache(self, (rows,), tokens.shape[1]),
        None,
        fed,
    )
    of_outputs = slice(count - 1, tokens.shape[1])
    shown = shown[:, of_outputs]
    return network.Scored(logits[:, of_outputs], shown, shown)

  def _without_encoder(self) -> Self:
    return dataclasses.replace(self, num_encoder_layers=0)

  def on_features(self, width: int) -> Self:
    """Return the decoder alone, which reads features of a width."""
    return dataclasses.replace(self._without_encoder(), encoder_dim=width)

  def decoder_alone(self) -> Self:
    return super().decoder_alone()._without_encoder()

  def take_first_layers(
      self, memory: Memory, cache: contracts.Cache
  ) -> tuple[Memory, contracts.Cache]:
    count = self.num_decoder_layers
    return memory.replace(cross=memory.cross[:count]), cache[:count]

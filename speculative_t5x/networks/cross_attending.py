# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Common part of encoder-decoders: encoders, and decoders that read them.

On a mesh, inputs and features are constrained to the sharding rules in force.

Legend: examples, rows, inputs_length, embed.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, ClassVar, NamedTuple, Self

import jax
import jax.numpy as jnp

from speculative_t5x.networks import block_decoder
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import input_widths
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import contracts


class Memory(NamedTuple):
  """Read-only inputs of a decoder, one row per example.

  Attributes:
    cross: Keys and values of the inputs, per layer.
    is_input: [examples, inputs_length] bool, False where there is no token.
  """

  cross: transformer.CrossKeysValues
  is_input: jax.Array


class CrossAttending(block_decoder.BlockDecoder):
  """A `network.Network` whose decoder attends to features of the inputs.

  Its subclasses also have the fields `num_encoder_layers` and `encoder_dim`.
  They define `name`, `special_ids` and `_stack`, or both stacks.

  Attributes:
    embedding_in: Where the embedding of inputs lies: in 'both' stacks' parent,
      whose embedding is theirs too, in the 'decoder', or in 'each' stack.
  """

  ends_inputs: ClassVar[bool] = True
  embedding_in: ClassVar[str] = 'both'

  def _stack(self, num_layers: int, **others: Any) -> config_lib.Stack:
    """Return the sizes of a stack, with others that are not the network's."""
    raise NotImplementedError

  @property
  def encoder(self) -> config_lib.Stack | None:
    """Sizes of the encoder; None of a decoder on another network's."""
    count = self.num_encoder_layers
    return self._stack(count, encoder_dim=None) if count else None

  @property
  def decoder(self) -> config_lib.Stack:
    """Sizes of the decoder."""
    return self._stack(
        self.num_decoder_layers, encoder_dim=self.width_of_inputs
    )

  def _apply(self, params: contracts.Params, *args, **kwargs) -> Any:
    module = transformer.Transformer(self)
    return module.apply({'params': params}, *args, **kwargs)

  def _init(self, key: jax.Array) -> Mapping[str, Any]:
    zeros = lambda width: jnp.zeros((1, 1, width), self.dtype)
    token, is_token = jnp.zeros((1, 1), jnp.int32), jnp.ones((1, 1), bool)
    return transformer.Transformer(self).init(
        key,
        zeros(self.width_of_inputs) if self.reads_features else None,
        token,
        token,
        is_input=is_token,
        is_target=is_token,
        fed=None if self.feature_dim is None else zeros(self.feature_dim),
        method='score',
    )

  @property
  def reads_features(self) -> bool:
    """True of a decoder alone, on the encoder of another network."""
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
    output = input_widths.at_smallest(
        inputs >= 0, 1, lambda width: self.features(params, inputs[:, :width])
    )
    return sharding.constrain(output, ('batch', 'length', 'embed'))

  def features(
      self, params: contracts.Params, inputs: jax.Array
  ) -> jax.Array:
    """Run the encoder at the whole width; see `network.Encodes`."""
    tokens, is_input = jnp.maximum(inputs, 0), inputs >= 0
    return self._apply(params, tokens, is_input, method='encode')

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

    def project(width: int) -> transformer.CrossKeysValues:
      cross = self._apply(
          params, features[:, :width], method='cross_keys_values'
      )
      # The product leaves the slots before the heads. XLA:CPU would copy all
      # slots to the order that attention reads, and not only these.
      return jax.tree.map(sharding.lay_in_order, cross)

    cross = input_widths.at_smallest(is_input, -1, project)
    return Memory(kv_cache.constrain(cross), is_input)

  @property
  def decoder_prompt(self) -> tuple[int, ...]:
    """Ids that the decoder is fed before an output in training."""
    return (self.special_ids.start,)

  def score_with_features(
      self, params, inputs, outputs, dropout_key=None, features=None, fed=None
  ) -> network.Scored:
    """See `network.ShowsFeatures`; id 0 may be a token, as in a head's target.
    """
    rows, count = outputs.shape[0], len(self.decoder_prompt)
    begin = jnp.broadcast_to(jnp.int32(self.decoder_prompt), (rows, count))
    # The last token of an output is fed to nothing.
    tokens = jnp.concatenate([begin, outputs[:, :-1]], axis=1)
    is_begun = jnp.ones((rows, count - 1), bool)
    logits, shown = self._apply(
        params,
        features,
        jnp.maximum(inputs, 0),
        jnp.maximum(tokens, 0),
        is_input=inputs >= 0,
        is_target=jnp.concatenate([is_begun, outputs >= 0], axis=1),
        fed=fed,
        enable_dropout=dropout_key is not None,
        rngs=None if dropout_key is None else {'dropout': dropout_key},
        method='score',
    )
    shown = shown[:, count - 1 : tokens.shape[1]]
    return network.Scored(logits[:, count - 1 :], shown, shown)

  def _without_encoder(self) -> Self:
    return dataclasses.replace(self, num_encoder_layers=0)

  def on_features(self, width: int) -> Self:
    """Return the decoder alone, which reads features of a width."""
    return dataclasses.replace(self._without_encoder(), encoder_dim=width)

  def on_last_features(self, target: network.Network) -> Self:
    """See `network.ShowsFeatures`."""
    decoder = self.on_features(network.features_width(target))
    return dataclasses.replace(decoder, feature_dim=target.last_width)

  def decoder_alone(self) -> Self:
    return super().decoder_alone()._without_encoder()

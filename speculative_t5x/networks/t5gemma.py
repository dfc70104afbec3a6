# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma as a network of the decoding loop: an encoder-decoder of Gemma.

Layers are those of decoders alone; in the encoder a query attends to both
sides, and in the decoder to the encoder's output as well: by an attention of
its own in T5Gemma, of Gemma 2, and by the same one in T5Gemma 2, of Gemma 3.
Names are T5X's for an encoder-decoder, with more where T5 has no such part.

Reference: Zhang et al. (2025), "Encoder-Decoder Gemma".

Legend: examples, inputs_length, embed.
"""

from collections.abc import Mapping
import dataclasses
import math
from typing import ClassVar

import flax.linen as nn
import jax
import jax.numpy as jnp

from speculative_t5x.networks import cross_attending
from speculative_t5x.networks import decoder_only_modules as modules
from speculative_t5x.networks import rope
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


class EncoderLayer(nn.Module):
  """Attention to both sides and a feed-forward block, normalized around both.
  """

  config: modules.Sizes

  def setup(self):
    config = self.config
    self.pre_attention_layer_norm = modules.norm(config)
    self.attention = modules.Attention(config, config.merge_projections)
    self.post_attention_layer_norm = modules.norm(config)
    self.pre_mlp_layer_norm = modules.norm(config)
    self.mlp = modules.mlp(config)
    self.post_mlp_layer_norm = modules.norm(config)

  def __call__(self, x, *, mask, rotation) -> jax.Array:
    query, keys_values = self.attention.project(
        self.pre_attention_layer_norm(x), rotation=rotation
    )
    y = self.attention.attend(query, keys_values, mask)
    x = x + self.post_attention_layer_norm(y)
    y = self.mlp(self.pre_mlp_layer_norm(x), deterministic=True)
    return x + self.post_mlp_layer_norm(y)


class Encoder(nn.Module):
  """The encoder stack, over embedded inputs."""

  config: modules.Sizes

  def setup(self):
    config = self.config
    self.token_embedder = modules.embedding(config)  # unless it is shared
    self.layers = [EncoderLayer(config) for _ in range(config.num_layers)]
    self.encoder_norm = modules.norm(config)

  def __call__(self, x: jax.Array, is_input: jax.Array) -> jax.Array:
    """Encode [examples, inputs_length, embed].

    `is_input` is [examples, inputs_length] bool, False where there is no token.
    """
    config = self.config
    at = jnp.arange(x.shape[-2])
    places = {}
    for kind in set(config.kinds):
      mask = is_input[:, None, :]
      if kind.window is not None:
        distance = at[:, None] - at
        mask &= (distance < kind.window) & (distance >= -kind.ahead)
      frequencies = rope.frequencies(config.head_dim, kind.theta, kind.scaling)
      places[kind] = {'mask': mask, 'rotation': rope.tables(at, frequencies)}
    for i, layer in enumerate(self.layers):
      x = layer(x, **places[config.kind(i)])
    return self.encoder_norm(x)


class Transformer(nn.Module):
  """Both stacks, or a decoder alone on the features of another network."""

  config: 'T5Gemma'

  def setup(self):
    if self.config.encoder is not None:
      self.encoder = Encoder(self.config.encoder)
    self.decoder = modules.Decoder(self.config)

  def encode(self, tokens, is_input) -> jax.Array:
    stack = self.decoder if self.config.shares_embedding else self.encoder
    return self.encoder(stack.token_embedder(tokens), is_input)

  def cross_keys_values(self, features) -> modules.Cache:
    return self.decoder.cross_keys_values(features)

  def decode_block(
      self, tokens, positions, cross, is_input, cache, logits_at=None, fed=None
  ) -> tuple[jax.Array, modules.Cache, jax.Array]:
    """Decode a block; see `t5_modules.Transformer.decode_block`."""
    if logits_at is not None:
      logits_at = logits_at[..., None]
    return self.decoder(
        tokens, positions, cache, logits_at, fed, crosses=cross,
        is_input=is_input,
    )  # fmt: skip

  def decode_tree(self, *args) -> tuple[jax.Array, modules.Cache]:
    """Decode some nodes; see `t5_modules.Transformer.decode_tree`."""
    return self.decoder.decode_tree(*args)


@dataclasses.dataclass(frozen=True)
class T5Gemma(modules.Sizes, cross_attending.CrossAttending):
  """T5Gemma, or T5Gemma 2, with its sizes: a `network.Network`.

  Its attributes are those of `decoder_only_modules.Sizes`, which are the
  decoder's.

  Attributes:
    encoder: Those of the encoder; None for a decoder alone, which reads the
      output of another network's encoder.
    shares_embedding: Whether inputs are embedded as outputs are.
  """

  encoder: modules.Sizes | None = None
  shares_embedding: bool = False

  name: ClassVar[str] = 'T5Gemma'
  special_ids: ClassVar[contracts.SpecialIds] = contracts.SpecialIds(
      end=1, padding=0, start=2
  )
  ends_inputs: ClassVar[bool] = False

  def __post_init__(self):
    super().__post_init__()
    if self.encoder is not None:
      encoder = dataclasses.replace(
          self.encoder,
          dtype=self.dtype,
          merge_projections=self.merge_projections,
      )
      object.__setattr__(self, 'encoder', encoder)
      object.__setattr__(self, 'encoder_dim', encoder.emb_dim)
    if self.merged_attention:
      self._check_equal('emb_dim', self.width_of_inputs)
    if self.encoder is not None and self.shares_embedding:
      self._check_equal('emb_dim', self.encoder.emb_dim)
      self._check_equal('vocab_size', self.encoder.vocab_size)

  def _check_equal(self, name: str, of_encoder: int) -> None:
    if of_encoder != (own := getattr(self, name)):
      raise ranges.ArgumentError(
          f'{name} is {of_encoder} in the encoder and {own} in the decoder, and'
          ' parts that both use need one. Choose equal ones.',
          **{name: own},
      )

  @property
  def num_encoder_layers(self) -> int:
    return 0 if self.encoder is None else self.encoder.num_layers

  @property
  def axis_units(self) -> Mapping[str, int]:
    """Query heads stay with the heads of keys and values that they read."""
    stacks = [self] if self.encoder is None else [self, self.encoder]
    return {'joined_kv': math.gcd(*(x.num_kv_heads for x in stacks))}

  def _modules(self) -> Transformer:
    return Transformer(self)

  def _without_encoder(self) -> 'T5Gemma':
    return dataclasses.replace(self, encoder=None)

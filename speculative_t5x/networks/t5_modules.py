# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Flax modules of a T5 encoder-decoder that decodes blocks of tokens.

The parameter tree, shapes, names and logical axes are those of
`t5x.examples.t5.network`, so a T5X checkpoint loads without conversion.
Decoding differs: a call decodes any number of new positions, each row is at its
own position, cross-attention keys and values are computed once per example, and
embeddings are looked up by a gather.

Legend: batch, inputs_length, length (decoder positions of a teacher-forced
call), block (positions decoded per call), slots (length of the cache), embed,
vocab.
"""

from collections.abc import Sequence
import dataclasses
import math
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from speculative_t5x.networks import chips
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import t5_layers as layers
from speculative_t5x.networks import tree_blocks
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

Cache = tuple[kv_cache.KeysValues, ...]  # one entry per layer
CrossKeysValues = tuple[kv_cache.KeysValues, ...]  # one entry per layer


def settled_dtype(dtype: Any) -> Any:
  """Return a dtype to decode in; for None, the one that suits the device.

  Raises:
    ValueError: for one that cannot represent the logit of a masked position, as
      float16, or no dtype.
  """
  if dtype is None:  # a NumPy dtype counts as false
    dtype = chips.suited_dtype()
  try:
    name = jnp.dtype(dtype).name
  except TypeError:
    name = dtype
  if name not in ('float32', 'bfloat16'):
    message = f'dtype must be float32 or bfloat16, got {name}.'
    raise ranges.ArgumentError(message, dtype=name)
  return dtype


@dataclasses.dataclass(frozen=True, kw_only=True)
class Form:
  """How a network holds its parameters and computes, whatever its sizes are.

  All but the dtype is for decoding only, see `t5_preparation`.

  Attributes:
    dtype: Dtype of activations and matrix products; None for the one that suits
      the device. Logits are float32.
    separate_head: Whether a tied head is also stored transposed.
    merge_projections: Whether kernels that share an input are stored as one.
    head_size: Number of tokens that the head has logits for, if not all.
    min_block: Minimum number of positions that a decoder call computes; padding
      positions are discarded.
  """

  dtype: Any = jnp.float32
  separate_head: bool = False
  merge_projections: bool = False
  head_size: int | None = None
  min_block: int = 1

  def __post_init__(self):
    object.__setattr__(self, 'dtype', settled_dtype(self.dtype))


@dataclasses.dataclass(frozen=True)
class Sizes(Form):
  """Sizes of a T5 1.0 or 1.1 network, under T5X's names.

  Attributes:
    vocab_size: Rows of the embedding and width of the logits, with padding.
    emb_dim: Width of the residual stream.
    num_heads: Attention heads.
    num_encoder_layers: Layers of the encoder; 0 for a decoder alone, which
      reads the output of another network's encoder.
    num_decoder_layers: Layers of the decoder.
    head_dim: Width of one head.
    mlp_dim: Width of the feed-forward block.
    mlp_activations: Flax names, one per input projection; 'linear' for none.
    encoder_dim: Width of the output of that encoder; None for emb_dim.
    feature_dim: Width of the last features that a head on them is fed and
      predicts; None for a network that is fed tokens alone.
    dropout_rate: Dropout rate in training, in [0, 1); unused in decoding.
    logits_via_embedding: Whether the embedding is also the output head, as in
      T5 1.0.
    bias_per_layer: Whether each layer has a table of relative positions, as in
      umT5; in T5, all layers of a stack share one.
  """

  vocab_size: int
  emb_dim: int = 512
  num_heads: int = 8
  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ('gelu', 'linear')
  encoder_dim: int | None = None
  feature_dim: int | None = None
  dropout_rate: float = 0.1
  logits_via_embedding: bool = False
  bias_per_layer: bool = False

  def __post_init__(self):
    super().__post_init__()
    # Gin files give a list, which is not hashable.
    activations = tuple(self.mlp_activations)
    object.__setattr__(self, 'mlp_activations', activations)
    ranges.check_settings(ranges.RATE_BELOW_1, dropout_rate=self.dropout_rate)
    if self.num_encoder_layers and self.encoder_dim is not None:
      raise ValueError(
          f'encoder_dim is {self.encoder_dim}, but the network has an encoder'
          ' of its own. Set num_encoder_layers = 0 for a decoder alone.'
      )
    if self.num_encoder_layers and self.feature_dim is not None:
      raise ValueError(
          f'feature_dim is {self.feature_dim}, but the network has an encoder'
          ' of its own. A head on the last features of a target is a decoder on'
          " the target's encoder: set num_encoder_layers = 0."
      )


def _attention(config: Sizes, merged: bool = False) -> layers.Attention:
  return layers.Attention(
      config.num_heads,
      config.head_dim,
      config.emb_dim,
      config.dtype,
      config.dropout_rate,
      merged,
  )


def _mlp(config: Sizes) -> layers.GatedMlp:
  return layers.GatedMlp(
      config.mlp_dim,
      config.mlp_activations,
      config.dtype,
      config.dropout_rate,
      config.merge_projections,
  )


def _residual_dropout(config: Sizes) -> nn.Dropout:
  # One mask for all positions, as in T5X.
  return nn.Dropout(config.dropout_rate, broadcast_dims=(-2,))


def _relpos_bias(
    config: Sizes, bidirectional: bool
) -> layers.RelativePositionBias:
  return layers.RelativePositionBias(
      config.num_heads, config.dtype, bidirectional
  )


def _biases(
    stack: 'Encoder | Decoder',
    positions: jax.Array,
    num_slots: int,
    key_positions: jax.Array | None = None,
) -> list[jax.Array]:
  """Return the biases of each layer; see `layers.RelativePositionBias`."""
  where = positions, num_slots, num_slots, key_positions
  if stack.config.bias_per_layer:
    return [layer.relpos_bias(*where) for layer in stack.layers]
  return [stack.relpos_bias(*where)] * len(stack.layers)


class EncoderLayer(nn.Module):
  """An encoder layer: self-attention and a feed-forward block."""

  config: Sizes

  def setup(self):
    if self.config.bias_per_layer:
      self.relpos_bias = _relpos_bias(self.config, bidirectional=True)
    self.pre_attention_layer_norm = layers.RMSNorm(self.config.dtype)
    self.attention = _attention(self.config, self.config.merge_projections)
    self.pre_mlp_layer_norm = layers.RMSNorm(self.config.dtype)
    self.mlp = _mlp(self.config)
    self.dropout = _residual_dropout(self.config)

  def __call__(self, x, *, mask, bias, deterministic) -> jax.Array:
    query, keys_values = self.attention.project(
        self.pre_attention_layer_norm(x)
    )
    y = self.attention.attend(
        query, keys_values, mask=mask, bias=bias, deterministic=deterministic
    )
    x = x + self.dropout(y, deterministic=deterministic)
    y = self.mlp(self.pre_mlp_layer_norm(x), deterministic=deterministic)
    return x + self.dropout(y, deterministic=deterministic)


class DecoderLayer(nn.Module):
  """A decoder layer: self-attention, cross-attention, feed-forward block."""

  config: Sizes

  def setup(self):
    if self.config.bias_per_layer:
      self.relpos_bias = _relpos_bias(self.config, bidirectional=False)
    self.pre_self_attention_layer_norm = layers.RMSNorm(self.config.dtype)
    self.self_attention = _attention(self.config, self.config.merge_projections)
    self.pre_cross_attention_layer_norm = layers.RMSNorm(self.config.dtype)
    self.encoder_decoder_attention = _attention(self.config)
    self.pre_mlp_layer_norm = layers.RMSNorm(self.config.dtype)
    self.mlp = _mlp(self.config)
    self.dropout = _residual_dropout(self.config)

  def __call__(
      self, x, cross, *, mask, bias, cross_mask, deterministic
  ) -> jax.Array:
    """Compute all positions in one call, for training and scoring."""
    query, keys_values = self.self_attention.project(
        self.pre_self_attention_layer_norm(x)
    )
    y = self.self_attention.attend(
        query, keys_values, mask=mask, bias=bias, deterministic=deterministic
    )
    x = x + self.dropout(y, deterministic=deterministic)
    query = self._cross_query(x)
    y = self.encoder_decoder_attention.attend(
        query, cross, mask=cross_mask, deterministic=deterministic
    )
    x = x + self.dropout(y, deterministic=deterministic)
    y = self.mlp(self.pre_mlp_layer_norm(x), deterministic=deterministic)
    return x + self.dropout(y, deterministic=deterministic)

  def decode_block(
      self, x, cross, cache, *, block, positions, mask, bias, cross_mask
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Decode new positions and write the first `block` to the cache."""
    query, new = self.self_attention.project(
        self.pre_self_attention_layer_norm(x), block
    )
    cache = kv_cache.write_block(cache, new, positions)
    x = x + self.self_attention.attend(
        query,
        kv_cache.read(cache, positions + block),
        mask=mask,
        bias=bias,
    )
    x = x + self.encoder_decoder_attention.attend_shared(
        self._cross_query(x), cross, mask=cross_mask
    )
    x = x + self.mlp(self.pre_mlp_layer_norm(x), deterministic=True)
    return x, cache

  def decode_tree(
      self, x, cross, cache, block, *, first, roots, mask, bias, cross_mask
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Decode nodes and write them to places of the block."""
    query, new = self.self_attention.project(
        self.pre_self_attention_layer_norm(x)
    )
    block = tree_blocks.write(block, new, first)
    x = x + self.self_attention.attend_tree(
        query, cache, block, roots=roots, mask=mask, bias=bias
    )
    x = x + self.encoder_decoder_attention.attend(
        self._cross_query(x), cross, mask=cross_mask
    )
    x = x + self.mlp(self.pre_mlp_layer_norm(x), deterministic=True)
    return x, block

  def _cross_query(self, x) -> jax.Array:
    return self.encoder_decoder_attention.project_query(
        self.pre_cross_attention_layer_norm(x)
    )


class Encoder(nn.Module):
  """The encoder stack, over embedded inputs."""

  config: Sizes

  def setup(self):
    config = self.config
    if not config.bias_per_layer:
      self.relpos_bias = _relpos_bias(config, bidirectional=True)
    self.layers = [
        EncoderLayer(config) for _ in range(config.num_encoder_layers)
    ]
    self.encoder_norm = layers.RMSNorm(config.dtype)
    self.input_dropout = _residual_dropout(config)
    self.output_dropout = nn.Dropout(config.dropout_rate)

  def __call__(self, x, *, mask, deterministic) -> jax.Array:
    length = x.shape[-2]
    biases = _biases(self, jnp.arange(length), length)
    x = self.input_dropout(x, deterministic=deterministic)
    for layer, bias in zip(self.layers, biases):
      x = layer(x, mask=mask, bias=bias, deterministic=deterministic)
    return self.output_dropout(
        self.encoder_norm(x), deterministic=deterministic
    )


class Decoder(nn.Module):
  """The decoder stack, over embedded tokens, and the output head."""

  config: Sizes
  token_embedder: layers.Embedding

  def setup(self):
    config = self.config
    if not config.bias_per_layer:
      self.relpos_bias = _relpos_bias(config, bidirectional=False)
    self.layers = [
        DecoderLayer(config) for _ in range(config.num_decoder_layers)
    ]
    self.decoder_norm = layers.RMSNorm(config.dtype)
    self.dropout = _residual_dropout(config)
    if config.separate_head or not config.logits_via_embedding:
      self.logits_dense = layers.LogitsProjection(
          config.head_size or config.vocab_size
      )
    if config.head_size is not None:
      self.short_vocabulary = layers.ShortVocabulary(config.vocab_size)
    if config.feature_dim is not None:
      self.features = layers.FeatureProjections(
          config.emb_dim, config.feature_dim, config.dtype
      )

  def __call__(self, x, encoded, fed, *, mask, cross_mask, deterministic):
    """Return the logits of given outputs, and the features of their positions.
    """
    if fed is not None:
      x = x + self.features.read(fed)
    length = x.shape[-2]
    biases = _biases(self, jnp.arange(length), length)
    x = self.dropout(x, deterministic=deterministic)
    crosses = self.cross_keys_values(encoded)
    for layer, bias, cross in zip(self.layers, biases, crosses):
      x = layer(
          x,
          cross,
          mask=mask,
          bias=bias,
          cross_mask=cross_mask,
          deterministic=deterministic,
      )
    x = self.dropout(self.decoder_norm(x), deterministic=deterministic)
    return self._over_vocabulary(self._logits(x)), self._shown(x)

  def _shown(self, x) -> jax.Array:
    """Return the features of positions: what the head reads, or predicts."""
    return x if self.config.feature_dim is None else self.features.predict(x)

  def _over_vocabulary(self, logits) -> jax.Array:
    if self.config.head_size is None:
      return logits
    return self.short_vocabulary(logits)

  def _logits(self, x) -> jax.Array:
    config = self.config
    if not config.logits_via_embedding:
      return self.logits_dense(x)
    head = (
        self.logits_dense
        if config.separate_head
        else self.token_embedder.attend
    )
    # Embeddings have variance 1, so the logits of a tied head are rescaled.
    return head(x) / math.sqrt(config.emb_dim)

  def cross_keys_values(self, encoded) -> CrossKeysValues:
    return tuple(
        layer.encoder_decoder_attention.project_keys_values(encoded)
        for layer in self.layers
    )

  def decode_block(
      self, x, cross, cache, fed, *, positions, cross_mask, logits_at
  ):
    block, num_slots = x.shape[-2], cache[0].keys.shape[-1]
    x = pad_positions(x, self.config.min_block)
    if fed is not None:
      x = x + self.features.read(pad_positions(fed, self.config.min_block))
    # Padding positions of the block take the position of its last token.
    offsets = jnp.minimum(jnp.arange(x.shape[-2]), block - 1)
    query_positions = positions[..., None] + offsets
    mask = jnp.arange(num_slots) <= query_positions[..., None]
    biases = _biases(self, query_positions, num_slots)
    new_cache = []
    for layer, bias, cross_layer, cache_layer in zip(
        self.layers, biases, cross, cache
    ):
      x, cache_layer = layer.decode_block(
          x,
          cross_layer,
          cache_layer,
          block=block,
          positions=positions,
          mask=mask[..., None, :, :],
          bias=bias,
          cross_mask=cross_mask,
      )
      new_cache.append(cache_layer)
    if logits_at is None:
      x = x[..., :block, :]
    else:
      index = logits_at[..., None, None]
      x = jnp.take_along_axis(x, index, axis=-2)
    num_wanted = x.shape[-2]
    x = pad_positions(self.decoder_norm(x), self.config.min_block)
    logits = self._over_vocabulary(self._logits(x)[..., :num_wanted, :])
    return logits, tuple(new_cache), self._shown(x)

  def decode_tree(
      self, x, nodes, cross, cache, block, *, first, num_cached, cross_mask
  ):
    num_slots = cache[0].keys.shape[-1]
    sight = tree_blocks.sight_of(
        nodes, first, x.shape[-2], cache[0], num_cached
    )
    biases = _biases(self, sight.at, num_slots, sight.key_positions)
    new_block = []
    for layer, bias, cross_layer, cache_layer, block_layer in zip(
        self.layers, biases, cross, cache, block
    ):
      x, block_layer = layer.decode_tree(
          x,
          cross_layer,
          sight.attended(cache_layer),
          block_layer,
          first=first,
          roots=sight.roots,
          mask=sight.mask,
          bias=bias,
          cross_mask=cross_mask,
      )
      new_block.append(block_layer)
    logits = self._over_vocabulary(self._logits(self.decoder_norm(x)))
    return logits, tuple(new_block)


def pad_positions(x: jax.Array, count: int) -> jax.Array:
  """Pad [..., positions, embed] with zeros to at least `count` positions."""
  missing = max(0, count - x.shape[-2])
  return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, missing), (0, 0)])


class Transformer(nn.Module):
  """A T5 encoder-decoder, or a decoder alone, without `encode`.

  Training uses `encode` and `score`, and decoding `encode`, `cross_keys_values`
  and `decode_block`. `__call__` takes T5X's arguments.
  """

  config: Sizes

  def setup(self):
    config = self.config
    self.token_embedder = layers.Embedding(
        config.vocab_size, config.emb_dim, config.dtype
    )
    self.encoder = Encoder(config)
    self.decoder = Decoder(config, self.token_embedder)

  def encode(
      self,
      tokens: jax.Array,
      is_input: jax.Array,
      enable_dropout: bool = False,
  ) -> jax.Array:
    """Encode [batch, inputs_length] int32; return [..., embed].

    `is_input`, bool of the same shape, is False where there is no token.
    """
    mask = is_input[:, None, :, None] & is_input[:, None, None, :]
    return self.encoder(
        self.token_embedder(tokens),
        mask=mask,
        deterministic=not enable_dropout,
    )

  def score(
      self,
      encoded: jax.Array | None,
      inputs: jax.Array,
      tokens: jax.Array,
      *,
      is_input: jax.Array,
      is_target: jax.Array,
      fed: jax.Array | None = None,
      enable_dropout: bool = False,
  ) -> tuple[jax.Array, jax.Array]:
    """Return teacher-forced logits, and the features of their positions.

    Args:
      encoded: Output of an encoder, [batch, inputs_length, any]; None for its
        own over the inputs.
      inputs: [batch, inputs_length] int32.
      tokens: [batch, length] int32, what the decoder is fed.
      is_input, is_target: Bool of these shapes, False where there is no token.
      fed: [batch, length, feature_dim], features of its target that a head is
        fed; None of others.
      enable_dropout: Whether to drop out activations.
    """
    if encoded is None:
      encoded = self.encode(inputs, is_input, enable_dropout)
    length = tokens.shape[-1]
    causal = jnp.tril(jnp.ones((length, length), bool))
    mask = causal & is_target[:, None, :, None] & is_target[:, None, None, :]
    return self.decoder(
        self.token_embedder(tokens),
        encoded,
        fed,
        mask=mask,
        cross_mask=is_target[:, None, :, None] & is_input[:, None, None, :],
        deterministic=not enable_dropout,
    )

  def __call__(
      self,
      encoder_input_tokens: jax.Array,
      decoder_input_tokens: jax.Array,
      decoder_target_tokens: jax.Array,
      *,
      enable_dropout: bool = True,
  ) -> jax.Array:
    """Return teacher-forced logits [batch, length, vocab] as T5X does.

    Its arguments are T5X's, and id 0 is no token.
    """
    return self.score(
        None,
        encoder_input_tokens,
        decoder_input_tokens,
        is_input=encoder_input_tokens > 0,
        is_target=decoder_target_tokens > 0,
        enable_dropout=enable_dropout,
    )[0]

  def cross_keys_values(self, encoded: jax.Array) -> CrossKeysValues:
    """Return the cross-attention keys and values of the inputs."""
    return self.decoder.cross_keys_values(encoded)

  def decode_block(
      self,
      tokens: jax.Array,
      positions: jax.Array,
      cross: CrossKeysValues,
      is_input: jax.Array,
      cache: Cache,
      logits_at: jax.Array | None = None,
      fed: jax.Array | None = None,
  ) -> tuple[jax.Array, Cache, jax.Array]:
    """Decode a block of tokens, each row from its own position on.

    With one row, all arrays have no batch axis: `tokens` is [block],
    `positions` is a scalar, and so on (see `layers`).

    Args:
      tokens: [batch, block] int32; the decoder's first token is 0.
      positions: [batch] int32 in [0, slots - block], the position of each row's
        first token.
      cross: Keys and values of the inputs, [examples, heads, head_dim,
        inputs_length]; row r belongs to example r // (batch // examples).
      is_input: [examples, inputs_length] bool, False at padding.
      cache: Keys and values as in `init_cache`; slots before a row's position
        must hold its earlier tokens.
      logits_at: [batch] int32 in [0, block), the one index of the block at
        which logits are computed; None for all.
      fed: [batch, block, feature_dim], the features of its target that a head
        is fed; None of others.
    Returns:
      float32 logits [batch, block, vocab] (block is 1 if `logits_at` is
      given), the cache with the block written, and the last features of the
      positions of the logits, behind which padding positions may follow.
    """
    return self.decoder.decode_block(
        self.token_embedder(tokens),
        cross,
        cache,
        fed,
        positions=positions,
        cross_mask=is_input[..., None, None, :],
        logits_at=logits_at,
    )

  def decode_tree(
      self,
      nodes: contracts.Nodes,
      first: int,
      count: int,
      num_cached: jax.Array,
      cache: Cache,
      block: Cache,
      cross: CrossKeysValues,
      is_input: jax.Array,
  ) -> tuple[jax.Array, Cache]:
    """Decode some nodes of trees; see `contracts.DecodesTrees.decode_tree`.

    The cache is [examples, rows, heads, head_dim, slots], and the block
    [examples, heads, head_dim, nodes].
    """
    return self.decoder.decode_tree(
        self.token_embedder(nodes.tokens[:, first : first + count]),
        nodes,
        cross,
        cache,
        block,
        first=first,
        num_cached=num_cached,
        cross_mask=is_input[:, None, None, :],
    )


def init_cache(
    config: Any, batch_shape: tuple[int, ...], num_slots: int
) -> Cache:
  """Return zeros [*batch_shape, kv_heads, head_dim, slots] per layer.

  The config is that of any `block_decoder.BlockDecoder`.
  """
  shape = *batch_shape, config.num_kv_heads, config.head_dim, num_slots
  # Each leaf has its own buffer: the loop would copy a shared one.
  empty = lambda: jnp.zeros(shape, config.dtype)
  return tuple(
      kv_cache.KeysValues(empty(), empty())
      for _ in range(config.num_decoder_layers)
  )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Flax modules of BART and its like, which decode blocks of tokens.

Each token's embedding has its absolute position added. Layers are T5's, with
biases; a norm is before each block of a layer, as in M2M-100, or behind it, as
in BART. Names are T5X's where T5 has such a part.

Reference: Vaswani et al. (2017), "Attention Is All You Need"; Lewis et al.
  (2020), "BART".

Legend: batch, inputs_length, block (positions decoded per call), slots (length
of the cache), embed, vocab.
"""

from collections.abc import Sequence
import dataclasses
import math

import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import norms
from speculative_t5x.networks import rope
from speculative_t5x.networks import t5_layers as layers
from speculative_t5x.networks import t5_modules
from speculative_t5x.networks import tree_blocks
from speculative_t5x.speculation import ranges

LEARNED, SINUSOID, TENSOR2TENSOR = 'learned', 'sinusoid', 'tensor2tensor'
_LONGEST = 10_000.0  # of the sinusoids' wavelengths, over 2 pi
_EPSILON = 1e-5  # of all norms


@dataclasses.dataclass(frozen=True)
class Sizes(t5_modules.Form):
  """Sizes and parts of an encoder-decoder with absolute positions.

  Attributes:
    vocab_size: Rows of the embedding and width of the logits, with padding.
    emb_dim: Width of the residual stream, which the heads share.
    num_heads: Attention heads.
    num_encoder_layers: Layers of the encoder; 0 for a decoder alone, which
      reads the output of another network's encoder.
    num_decoder_layers: Layers of the decoder.
    mlp_dim: Width of the feed-forward block.
    mlp_activations: Flax names, or 'gelu_exact'; one per input projection.
    positions: What is added to an embedding: 'learned' for rows of a table,
      'sinusoid' for sines and then cosines, 'tensor2tensor' for those whose
      last wavelength is the longest one, and not one step from it.
    max_positions: Positions that an input or an output may have; None for any
      number, of sinusoids.
    position_offset: The number of the first position.
    pre_norm: Whether blocks are normalized before, and each stack at its end;
      blocks and what they are added to are normalized behind otherwise.
    embedding_norm: Whether embeddings are normalized.
    embedding_scale: Factor of embeddings, before positions are added.
    logits_bias: Whether the logits have a bias.
    decoder_prompt: Ids that the decoder is fed before the first token of an
      output, as a start and a language; empty if they are still to be chosen.
    encoder_dim: Width of the output of another network's encoder; None for
      emb_dim.
    logits_via_embedding: Whether the embedding is also the output head.
  """

  vocab_size: int
  emb_dim: int = 768
  num_heads: int = 12
  num_encoder_layers: int = 6
  num_decoder_layers: int = 6
  mlp_dim: int = 3072
  mlp_activations: Sequence[str] = ('gelu_exact',)
  positions: str = LEARNED
  max_positions: int | None = 1024
  position_offset: int = 2
  pre_norm: bool = False
  embedding_norm: bool = True
  embedding_scale: float = 1.0
  logits_bias: bool = True
  decoder_prompt: Sequence[int] = (2,)
  encoder_dim: int | None = None
  logits_via_embedding: bool = True

  def __post_init__(self):
    super().__post_init__()
    put = lambda name, value: object.__setattr__(self, name, value)
    # Gin files give lists, which are not hashable.
    put('mlp_activations', tuple(self.mlp_activations))
    put('decoder_prompt', tuple(self.decoder_prompt))
    kinds = LEARNED, SINUSOID, TENSOR2TENSOR
    if self.positions not in kinds:
      raise ranges.ArgumentError(
          f'positions must be {" or ".join(kinds)}, got {self.positions!r}.',
          positions=self.positions,
      )
    if self.positions == LEARNED and self.max_positions is None:
      message = 'max_positions is needed for learned positions, got None.'
      raise ranges.ArgumentError(message, max_positions=None)
    for name, parts in (('num_heads', self.num_heads), ('2', 2)):
      if self.emb_dim % parts:
        raise ranges.ArgumentError(
            f'emb_dim is {self.emb_dim}, which {name}, {parts}, does not'
            ' divide. Choose a multiple.',
            emb_dim=self.emb_dim,
        )

  @property
  def head_dim(self) -> int:
    """Width of one head."""
    return self.emb_dim // self.num_heads


def _attention(config: Sizes, merged: bool = False) -> layers.Attention:
  return layers.Attention(
      config.num_heads,
      config.head_dim,
      config.emb_dim,
      config.dtype,
      dropout_rate=0.0,
      merged=merged,
      use_bias=True,
      query_scale=config.head_dim**-0.5,
  )


def _mlp(config: Sizes) -> layers.GatedMlp:
  return layers.GatedMlp(
      config.mlp_dim,
      config.mlp_activations,
      config.dtype,
      dropout_rate=0.0,
      merged=config.merge_projections,
      use_bias=True,
  )


def _norm(config: Sizes) -> norms.LayerNorm:
  return norms.LayerNorm(config.dtype, _EPSILON)


def _before(config: Sizes, norm: nn.Module, x: jax.Array) -> jax.Array:
  """Return what a block of a layer reads."""
  return norm(x) if config.pre_norm else x


def _behind(
    config: Sizes, norm: nn.Module, x: jax.Array, y: jax.Array
) -> jax.Array:
  """Return x with a block's output added."""
  return x + y if config.pre_norm else norm(x + y)


class EncoderLayer(nn.Module):
  """An encoder layer: self-attention and a feed-forward block."""

  config: Sizes

  def setup(self):
    self.attention = _attention(self.config, self.config.merge_projections)
    self.attention_layer_norm = _norm(self.config)
    self.mlp = _mlp(self.config)
    self.mlp_layer_norm = _norm(self.config)

  def __call__(self, x: jax.Array, mask: jax.Array) -> jax.Array:
    config = self.config
    y = _before(config, self.attention_layer_norm, x)
    y = self.attention.attend(*self.attention.project(y), mask=mask)
    x = _behind(config, self.attention_layer_norm, x, y)
    y = _before(config, self.mlp_layer_norm, x)
    y = self.mlp(y, deterministic=True)
    return _behind(config, self.mlp_layer_norm, x, y)


class DecoderLayer(nn.Module):
  """A decoder layer: self-attention, cross-attention, feed-forward block."""

  config: Sizes

  def setup(self):
    self.self_attention = _attention(self.config, self.config.merge_projections)
    self.self_attention_layer_norm = _norm(self.config)
    self.encoder_decoder_attention = _attention(self.config)
    self.cross_attention_layer_norm = _norm(self.config)
    self.mlp = _mlp(self.config)
    self.mlp_layer_norm = _norm(self.config)

  def __call__(
      self, x, cross, cache, *, block, positions, mask, cross_mask
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Decode new positions and write the first `block` to the cache."""
    config = self.config
    y = _before(config, self.self_attention_layer_norm, x)
    query, new = self.self_attention.project(y, block)
    cache = kv_cache.write_block(cache, new, positions)
    read = kv_cache.read(cache, positions + block)
    y = self.self_attention.attend(query, read, mask=mask)
    return self._go_on(x, y, cross, cross_mask), cache

  def decode_tree(
      self, x, cross, cache, block, *, first, roots, mask, cross_mask
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Decode nodes and write them to places of the block."""
    y = _before(self.config, self.self_attention_layer_norm, x)
    query, new = self.self_attention.project(y)
    block = tree_blocks.write(block, new, first)
    y = self.self_attention.attend_tree(
        query, cache, block, roots=roots, mask=mask
    )
    return self._go_on(x, y, cross, cross_mask), block

  def _go_on(self, x, y, cross, cross_mask) -> jax.Array:
    """Return the output of a layer, from that of its self-attention."""
    config = self.config
    x = _behind(config, self.self_attention_layer_norm, x, y)
    y = _before(config, self.cross_attention_layer_norm, x)
    y = self.encoder_decoder_attention.attend_shared(
        self.encoder_decoder_attention.project_query(y), cross, mask=cross_mask
    )
    x = _behind(config, self.cross_attention_layer_norm, x, y)
    y = _before(config, self.mlp_layer_norm, x)
    y = self.mlp(y, deterministic=True)
    return _behind(config, self.mlp_layer_norm, x, y)


class Embedder(nn.Module):
  """Embeddings of tokens at positions: [...] int32 each -> [..., embed]."""

  config: Sizes
  token_embedder: layers.Embedding

  def setup(self):
    config = self.config
    if config.positions == LEARNED:
      self.position_embedder = layers.Embedding(
          config.max_positions + config.position_offset,
          config.emb_dim,
          config.dtype,
      )
    if config.embedding_norm:
      self.embedding_layer_norm = _norm(config)

  def __call__(self, tokens: jax.Array, positions: jax.Array) -> jax.Array:
    config = self.config
    x = self.token_embedder(tokens)
    x = x * jnp.asarray(config.embedding_scale, config.dtype)
    if config.max_positions is not None:
      # Rows that have ended go past the last one: what they write is not read.
      positions = jnp.minimum(positions, config.max_positions - 1)
    positions = positions + config.position_offset
    if config.positions == LEARNED:
      x = x + self.position_embedder(positions)
    else:
      cosines, sines = rope.tables(positions, _frequencies(config))
      added = jnp.concatenate([sines, cosines], axis=-1)
      x = x + added.astype(config.dtype)
    return self.embedding_layer_norm(x) if config.embedding_norm else x


def _frequencies(config: Sizes) -> np.ndarray:
  """Return the angle per position of each sinusoid, [embed / 2] float32."""
  if config.positions == SINUSOID:
    return rope.frequencies(config.emb_dim, _LONGEST)
  half = config.emb_dim // 2
  step = np.float32(math.log(_LONGEST) / max(half - 1, 1))
  return np.exp(np.arange(half, dtype=np.float32) * -step)


class Encoder(nn.Module):
  """The encoder stack, with its embedder."""

  config: Sizes
  token_embedder: layers.Embedding

  def setup(self):
    config = self.config
    self.embedder = Embedder(config, self.token_embedder)
    self.layers = [
        EncoderLayer(config) for _ in range(config.num_encoder_layers)
    ]
    if config.pre_norm:
      self.encoder_norm = _norm(config)

  def __call__(self, tokens: jax.Array, is_input: jax.Array) -> jax.Array:
    # What is no token takes no position.
    positions = jnp.maximum(jnp.cumsum(is_input, axis=-1) - 1, 0)
    x = self.embedder(tokens, positions)
    mask = is_input[:, None, :, None] & is_input[:, None, None, :]
    for layer in self.layers:
      x = layer(x, mask)
    return self.encoder_norm(x) if self.config.pre_norm else x


class Decoder(nn.Module):
  """The decoder stack, with its embedder and the output head."""

  config: Sizes
  token_embedder: layers.Embedding

  def setup(self):
    config = self.config
    self.embedder = Embedder(config, self.token_embedder)
    self.layers = [
        DecoderLayer(config) for _ in range(config.num_decoder_layers)
    ]
    if config.pre_norm:
      self.decoder_norm = _norm(config)
    if config.separate_head or not config.logits_via_embedding:
      self.logits_dense = layers.LogitsProjection(
          config.head_size or config.vocab_size
      )
    if config.head_size is not None:
      self.short_vocabulary = layers.ShortVocabulary(config.vocab_size)
    if config.logits_bias:
      self.logits_bias = LogitsBias(config.vocab_size)

  def cross_keys_values(self, encoded) -> t5_modules.CrossKeysValues:
    return tuple(
        layer.encoder_decoder_attention.project_keys_values(encoded)
        for layer in self.layers
    )

  def __call__(self, tokens, positions, cross, is_input, cache, logits_at):
    config = self.config
    block, num_slots = tokens.shape[-1], cache[0].keys.shape[-1]
    missing = max(0, config.min_block - block)
    padded = jnp.pad(tokens, [(0, 0)] * (tokens.ndim - 1) + [(0, missing)])
    # Padding positions of the block take the position of its last token.
    at = positions[..., None] + jnp.minimum(
        jnp.arange(padded.shape[-1]), block - 1
    )
    mask = jnp.arange(num_slots) <= at[..., None]
    x = self.embedder(padded, at)
    new_cache = []
    for layer, of_inputs, own in zip(self.layers, cross, cache, strict=True):
      x, own = layer(
          x,
          of_inputs,
          own,
          block=block,
          positions=positions,
          mask=mask[..., None, :, :],
          cross_mask=is_input[..., None, None, :],
      )
      new_cache.append(own)
    if logits_at is None:
      x = x[..., :block, :]
    else:
      x = jnp.take_along_axis(x, logits_at[..., None, None], axis=-2)
    if config.pre_norm:
      x = self.decoder_norm(x)
    return self._logits(x), tuple(new_cache), x

  def decode_tree(
      self, nodes, first, count, num_cached, cache, block, cross, is_input
  ):
    sight = tree_blocks.sight_of(nodes, first, count, cache[0], num_cached)
    x = self.embedder(nodes.tokens[:, first : first + count], sight.at)
    new_block = []
    of_layers = zip(self.layers, cross, cache, block, strict=True)
    for layer, of_inputs, of_layer, own in of_layers:
      x, own = layer.decode_tree(
          x,
          of_inputs,
          sight.attended(of_layer),
          own,
          first=first,
          roots=sight.roots,
          mask=sight.mask,
          cross_mask=is_input[:, None, None, :],
      )
      new_block.append(own)
    if self.config.pre_norm:
      x = self.decoder_norm(x)
    return self._logits(x), tuple(new_block)

  def _logits(self, x: jax.Array) -> jax.Array:
    config, wanted = self.config, x.shape[-2]
    x = t5_modules.pad_positions(x, config.min_block)
    if config.separate_head or not config.logits_via_embedding:
      logits = self.logits_dense(x)
    else:
      logits = self.token_embedder.attend(x)
    logits = logits[..., :wanted, :]
    if config.head_size is not None:
      logits = self.short_vocabulary(logits)
    return self.logits_bias(logits) if config.logits_bias else logits


class LogitsBias(nn.Module):
  """The bias of the logits, [1, vocab] as Hugging Face stores it."""

  vocab_size: int

  @nn.compact
  def __call__(self, logits: jax.Array) -> jax.Array:
    bias = partitioning.param_with_axes(
        'bias',
        nn.initializers.zeros,
        (1, self.vocab_size),
        jnp.float32,
        axes=('stack', 'vocab'),
    )
    return logits + bias[0].astype(jnp.float32)


class Transformer(nn.Module):
  """An encoder-decoder, or a decoder alone, without `encode`."""

  config: Sizes

  def setup(self):
    config = self.config
    self.token_embedder = layers.Embedding(
        config.vocab_size, config.emb_dim, config.dtype
    )
    self.encoder = Encoder(config, self.token_embedder)
    self.decoder = Decoder(config, self.token_embedder)

  def encode(self, tokens: jax.Array, is_input: jax.Array) -> jax.Array:
    """Encode [batch, inputs_length] int32; return [..., embed].

    `is_input`, bool of the same shape, is False where there is no token.
    """
    return self.encoder(tokens, is_input)

  def cross_keys_values(
      self, encoded: jax.Array
  ) -> t5_modules.CrossKeysValues:
    """Return the cross-attention keys and values of the inputs."""
    return self.decoder.cross_keys_values(encoded)

  def decode_block(
      self,
      tokens: jax.Array,
      positions: jax.Array,
      cross: t5_modules.CrossKeysValues,
      is_input: jax.Array,
      cache: t5_modules.Cache,
      logits_at: jax.Array | None = None,
      fed: None = None,
  ) -> tuple[jax.Array, t5_modules.Cache, jax.Array]:
    """Decode a block of tokens; see `t5_modules.Transformer.decode_block`.

    `positions` may be a scalar, which is that of all rows. No network of this
    kind is a head that is fed features.
    """
    del fed
    return self.decoder(tokens, positions, cross, is_input, cache, logits_at)

  def decode_tree(self, *args) -> tuple[jax.Array, t5_modules.Cache]:
    """Decode some nodes; see `t5_modules.Transformer.decode_tree`."""
    return self.decoder.decode_tree(*args)

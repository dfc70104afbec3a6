# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The transformer of all families, which decodes blocks of tokens.

    Transformer   both stacks, or a decoder that reads another network's encoder
      Encoder
      Decoder     with the output head; alone, it is a network of its own
        Embedder  positions that are added to embeddings
        Layer     the only forward pass, wherever keys lie (see `keys`)

Parameter names, shapes and logical axes are T5X's wherever T5X has such a part,
so a T5X checkpoint loads without conversion. Decoding differs: a call decodes
any number of new positions, each row is at its own position, cross-attention
keys and values are computed once per example, and embeddings are looked up by a
gather.

References: Raffel et al. (2020), "Exploring the Limits of Transfer Learning";
  Lewis et al. (2020), "BART"; Zhang et al. (2025), "Encoder-Decoder Gemma".

In shapes, `...` stands for the batch axis, or for no axis when a single row is
decoded, see `layers`.

Legend: examples, inputs_length, length (positions of a call), block (positions
decoded per call), slots (length of the cache), embed, kv_heads, head_dim,
vocab.
"""

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from speculative_t5x.networks import attention
from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import draft_blocks
from speculative_t5x.networks import keys as keys_lib
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import layers
from speculative_t5x.networks import norms
from speculative_t5x.networks import rope
from speculative_t5x.networks import transformer_layer
from speculative_t5x.speculation import contracts

Cache = tuple[kv_cache.KeysValues, ...]  # one entry per layer
CrossKeysValues = tuple[kv_cache.KeysValues, ...]  # one entry per layer


class LayerStack(nn.Module):
  """Layers with their embedder, and the loop over them.

  Attributes:
    config: Sizes and parts.
    shared: The embedding of tokens, if both stacks have one.
  """

  config: config_lib.Stack
  shared: layers.Embedding | None = None

  is_encoder = False

  def setup(self):
    config = self.config
    self.token_embedder = self.shared or layers.token_embedding(config)
    self.embedder = layers.Embedder(config)
    if not config.bart_form:
      nn.share_scope(self, self.embedder)  # no level of its own in names
    if config.positions == config_lib.RELATIVE and not config.bias_per_layer:
      self.relpos_bias = layers.RelativePositionBias(config, self.is_encoder)
    self.layers = [
        transformer_layer.Layer(config, self.is_encoder)
        for _ in range(config.num_layers)
    ]

  def _through(
      self,
      x: jax.Array,
      place: keys_lib.Place,
      kept: Sequence[Any] | None = None,
      crosses: CrossKeysValues | None = None,
      cross_mask: jax.Array | None = None,
      drop: bool = False,
  ) -> tuple[jax.Array, tuple[Any, ...]]:
    """Return x behind all layers, and what each keeps; see `Layer`."""
    nothing = (None,) * len(self.layers)
    if crosses is not None:
      crosses = [attention.Keys(cross, cross_mask) for cross in crosses]
    of_layers = zip(
        self.layers,
        self._sights(place),
        kept or nothing,
        crosses or nothing,
        strict=True,
    )
    now_kept = []
    for layer, sight, of_layer, inputs in of_layers:
      x, of_layer = layer(x, of_layer, place, sight, inputs, drop=drop)
      now_kept.append(of_layer)
    return x, tuple(now_kept)

  def _sights(self, place: keys_lib.Place) -> list[keys_lib.Sight]:
    """Return what the queries see, per layer."""
    config, of_kinds = self.config, {}
    for kind in set(config.kinds):
      mask, rotation = place.mask, None
      if kind.window is not None:
        distance = place.at[..., None] - place.key_positions[..., None, :]
        mask = mask & (distance < kind.window) & (distance >= -kind.ahead)
      if config.positions == config_lib.ROPE:
        frequencies = rope.frequencies(
            config.rotated_dim or config.head_dim, kind.theta, kind.scaling
        )
        rotation = rope.tables(place.at, frequencies)
      of_kinds[kind] = mask, rotation
    kinds = [of_kinds[config.kind(i)] for i in range(len(self.layers))]
    return [
        keys_lib.Sight(mask, bias, rotation)
        for (mask, rotation), bias in zip(kinds, self._biases(place))
    ]

  def _biases(self, place: keys_lib.Place) -> list[jax.Array | None]:
    """Return the biases of attention by relative positions, per layer."""
    if self.config.positions != config_lib.RELATIVE:
      return [None] * len(self.layers)
    where = place.at, place.key_positions, place.mask.shape[-1]
    if self.config.bias_per_layer:
      return [layer.relpos_bias(*where) for layer in self.layers]
    return [self.relpos_bias(*where)] * len(self.layers)


class Encoder(LayerStack):
  """The encoder stack, over embeddings of tokens."""

  is_encoder = True

  def setup(self):
    super().setup()
    if not self.config.sum_norms:
      self.encoder_norm = norms.of(self.config)
    rate = self.config.dropout_rate
    # As in T5X, one mask for all positions, and behind the stack one for each.
    self.input_dropout = nn.Dropout(rate, broadcast_dims=(-2,))
    self.output_dropout = nn.Dropout(rate)

  def __call__(
      self, x: jax.Array, is_input: jax.Array, drop: bool = False
  ) -> jax.Array:
    """Encode [examples, inputs_length, embed].

    `is_input` is [examples, inputs_length] bool, False where there is no token.
    """
    at = positions = jnp.arange(x.shape[-2])
    if self.config.positions in config_lib.ADDED:
      # A place without a token takes no position.
      positions = jnp.maximum(jnp.cumsum(is_input, axis=-1) - 1, 0)
    x = self.embedder(x, positions)
    x = self.input_dropout(x, deterministic=not drop)
    mask = is_input[:, :, None] & is_input[:, None, :]
    x, _ = self._through(x, keys_lib.Here(at, mask), drop=drop)
    x = x if self.config.sum_norms else self.encoder_norm(x)
    return self.output_dropout(x, deterministic=not drop)


class Decoder(LayerStack):
  """The decoder stack, with the output head."""

  def setup(self):
    super().setup()
    config = self.config
    if not config.sum_norms:
      self.decoder_norm = norms.of(config)
    self.dropout = nn.Dropout(config.dropout_rate, broadcast_dims=(-2,))
    if config.separate_head or not config.logits_via_embedding:
      self.logits_dense = layers.LogitsProjection(
          config.head_size or config.vocab_size
      )
    if config.head_size is not None:
      self.short_vocabulary = layers.ShortVocabulary(config.vocab_size)
    if config.logits_bias:
      self.logits_bias = layers.LogitsBias(config.vocab_size)
    if config.feature_dim is not None:
      self.features = layers.FeatureProjections(
          config.emb_dim, config.feature_dim, config.dtype
      )
    if config.num_masks:
      self.mask_embedder = layers.Embedding(
          config.num_masks, config.emb_dim, config.dtype
      )
    if config.recurrence_dim is not None:
      self.recurrence = layers.DraftRecurrence(
          config.vocab_size, config.recurrence_dim, config.dtype
      )

  def score(
      self,
      tokens: jax.Array,
      mask: jax.Array,
      crosses: CrossKeysValues | None = None,
      cross_mask: jax.Array | None = None,
      fed: jax.Array | None = None,
      drop: bool = False,
      at: jax.Array | None = None,
  ) -> jax.Array:
    """Return the last hidden states of given tokens, for `logits_of`.

    Args:
      tokens: [examples, length] int32, see `_embed`.
      mask: Bool, broadcastable to [examples, length, length]; which tokens each
        one attends to.
      crosses: Keys and values of an encoder's output, per layer; None for none.
      cross_mask: [examples, length or 1, inputs_length] bool, or None.
      fed: See `decode_block`.
      drop: Whether activations are dropped out.
      at: [examples, length] int32 in [0, length), the positions; None for those
        of texts.
    Returns:
      [examples, length, embed], normalized.
    """
    at = jnp.arange(tokens.shape[-1]) if at is None else at
    x = self._embed(tokens, at, fed)
    x = self.dropout(x, deterministic=not drop)
    place = keys_lib.Here(at, mask)
    x, _ = self._through(x, place, None, crosses, cross_mask, drop)
    return self.dropout(self._normalized(x), deterministic=not drop)

  def decode_block(
      self,
      tokens: jax.Array,
      positions: jax.Array,
      cache: Cache,
      crosses: CrossKeysValues | None = None,
      is_input: jax.Array | None = None,
      logits_at: jax.Array | None = None,
      fed: jax.Array | None = None,
      prefix: jax.Array | None = None,
  ) -> tuple[jax.Array, Cache, jax.Array]:
    """Decode a block of tokens, each row from its own position on.

    With one row, all arrays have no batch axis: `tokens` is [block],
    `positions` is a scalar, and so on (see `layers`).

    Args:
      tokens: [..., block] int32, see `_embed`.
      positions: [...] int32 in [0, slots - block], the position of each row's
        first token; or a scalar, which is that of all rows.
      cache: As `init_cache` makes it; slots before a row's position must hold
        its earlier tokens.
      crosses: Keys and values of the inputs per layer, [examples, kv_heads,
        head_dim, inputs_length]; row r belongs to example r // (rows //
        examples). None for a decoder alone.
      is_input: [examples, inputs_length] bool, False where there is no token.
      logits_at: [...] int32 in [0, block), the one index of the block at which
        logits are computed, or [..., any], several; None for all.
      fed: [..., block, feature_dim], the features of its target that a head is
        fed; None of others.
      prefix: [...] int32, the number of first slots that every query attends
        to, also those behind it, which the block must hold; None for none.
    Returns:
      float32 logits [..., block or as many as asked for, vocab], the cache with
      the block written, and the last features of the positions of the logits,
      behind which those of padding may follow.
    """
    block, num_slots = tokens.shape[-1], cache[0].keys.shape[-1]
    length = max(block, self.config.min_block)
    place = keys_lib.in_cache(positions, block, length, num_slots, prefix)
    tokens = _pad(tokens[..., None], length)[..., 0]
    fed = None if fed is None else _pad(fed, length)
    x = self._embed(tokens, place.at, fed)
    cross_mask = None if is_input is None else is_input[..., None, :]
    x, cache = self._through(x, place, cache, crosses, cross_mask)
    if logits_at is None:
      x = x[..., :block, :]
    else:
      if logits_at.ndim < tokens.ndim:
        logits_at = logits_at[..., None]
      x = jnp.take_along_axis(x, logits_at[..., None], axis=-2)
    wanted = x.shape[-2]
    x = _pad(self._normalized(x), self.config.min_block)
    logits = self._over_vocabulary(self._head(x)[..., :wanted, :])
    return logits, cache, self.shown(x)

  def decode_tree(
      self,
      nodes: contracts.Nodes,
      first: int,
      count: int,
      num_cached: jax.Array,
      cache: Cache,
      block: Cache,
      crosses: CrossKeysValues | None = None,
      is_input: jax.Array | None = None,
  ) -> tuple[jax.Array, Cache]:
    """Decode some nodes of trees; see `contracts.DecodesTrees.decode_tree`.

    The cache is [examples, rows, kv_heads, head_dim, slots], and the block
    [examples, kv_heads, head_dim, nodes]; the last two are as above.
    """
    place = keys_lib.beside_cache(nodes, first, count, cache[0], num_cached)
    x = self._embed(nodes.tokens[:, first : first + count], place.at)
    cross_mask = None if is_input is None else is_input[:, None, :]
    kept = list(zip(cache, block, strict=True))
    x, block = self._through(x, place, kept, crosses, cross_mask)
    return self._over_vocabulary(self._head(self._normalized(x))), block

  def cross_keys_values(self, encoded: jax.Array) -> CrossKeysValues:
    """Return the keys and values of an encoder's output, per layer."""
    return tuple(layer.project_inputs(encoded) for layer in self.layers)

  def logits_of(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return logits and last features of what `score` returned."""
    return self._over_vocabulary(self._head(x)), self.shown(x)

  def _embed(
      self,
      tokens: jax.Array,
      positions: jax.Array,
      fed: jax.Array | None = None,
  ) -> jax.Array:
    """Return embeddings of tokens at positions, of a head with features.

    Ids from the vocabulary's size on are masks: the first one stands one
    position behind the last token, and so on.
    """
    # A place without a token only fills a row or a tree, and is not read.
    x = self.token_embedder(jnp.maximum(tokens, 0))
    if self.config.num_masks:
      ahead = tokens - self.config.vocab_size
      masks = self.mask_embedder(jnp.maximum(ahead, 0))
      x = jnp.where((ahead < 0)[..., None], x, masks)
    x = self.embedder(x, positions)
    return x if fed is None else x + self.features.read(fed)

  def _normalized(self, x: jax.Array) -> jax.Array:
    return x if self.config.sum_norms else self.decoder_norm(x)

  def shown(self, x: jax.Array) -> jax.Array:
    """Return the features of positions: what the head reads, or predicts.

    Of a head with a recurrence it is what that reads.
    """
    if self.config.recurrence_dim is not None:
      return self.recurrence.read(x)
    if self.config.feature_dim is None or self.config.num_masks:
      return x
    return self.features.predict(x)

  def read(
      self, tokens, mask, anchors, *args, **kwargs
  ) -> tuple[jax.Array, jax.Array | None]:
    """Return logits and features of given tokens, or behind some of them.

    The arguments are those of `score`, and with anchors of `draft_blocks`.
    """
    if anchors is not None:
      return draft_blocks.score(self, tokens, mask, anchors, *args, **kwargs)
    return self.logits_of(self.score(tokens, mask, *args, **kwargs))

  def follow(self, *args) -> tuple[jax.Array, jax.Array]:
    """See `layers.DraftRecurrence`."""
    return self.recurrence(*args)

  def _head(self, x: jax.Array) -> jax.Array:
    """Return the logits of normalized positions that the head has."""
    config = self.config
    if config.separate_head or not config.logits_via_embedding:
      logits = self.logits_dense(x)
    else:
      logits = self.token_embedder.attend(x)
    if config.logits_scale != 1:
      logits = logits * config.logits_scale
    return attention.soft_cap(logits, config.logits_cap)

  def _over_vocabulary(self, logits: jax.Array) -> jax.Array:
    if self.config.head_size is not None:
      logits = self.short_vocabulary(logits)
    return self.logits_bias(logits) if self.config.logits_bias else logits


class Transformer(nn.Module):
  """An encoder-decoder, or a decoder on the features of another network.

  Training uses `score`, and decoding `encode`, `cross_keys_values` and
  `decode_block`.

  Attributes:
    config: A `transformer_network.TransformerNetwork`.
  """

  config: Any

  def setup(self):
    config, shared = self.config, None
    if config.embedding_in == 'both':
      self.token_embedder = shared = layers.token_embedding(config.decoder)
    self.decoder = Decoder(config.decoder, shared)
    if config.encoder is not None:
      self.encoder = Encoder(config.encoder, shared)

  def encode(
      self, tokens: jax.Array, is_input: jax.Array, drop: bool = False
  ) -> jax.Array:
    """Encode [examples, inputs_length] int32; return [..., embed].

    `is_input`, bool of the same shape, is False where there is no token.
    """
    is_decoders = self.config.embedding_in == 'decoder'
    stack = self.decoder if is_decoders else self.encoder
    return self.encoder(stack.token_embedder(tokens), is_input, drop)

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
      anchors: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    """Return teacher-forced logits, and the features of their positions.

    Args:
      encoded: Output of an encoder, [examples, inputs_length, any]; None for
        its own over the inputs.
      inputs: [examples, inputs_length] int32.
      tokens: [examples, length] int32, what the decoder is fed.
      is_input, is_target: Bool of these shapes, False where there is no token.
      fed: [examples, length, feature_dim], features of its target that a head
        is fed; None of others.
      enable_dropout: Whether to drop out activations.
      anchors: See `draft_blocks.score`, whose result this is then; None for the
        logits of all positions.
    """
    if encoded is None:
      encoded = self.encode(inputs, is_input, enable_dropout)
    causal = jnp.tril(jnp.ones((tokens.shape[-1],) * 2, bool))
    cross_mask = is_target[:, :, None] & is_input[:, None, :]
    if anchors is not None:
      cross_mask = is_input[:, None, :]
    return self.decoder.read(
        tokens,
        causal & is_target[:, :, None] & is_target[:, None, :],
        anchors,
        self.cross_keys_values(encoded),
        cross_mask,
        fed,
        enable_dropout,
    )

  def cross_keys_values(self, encoded: jax.Array) -> CrossKeysValues:
    """See `Decoder.cross_keys_values`."""
    return self.decoder.cross_keys_values(encoded)

  def follow(self, *args) -> tuple[jax.Array, jax.Array]:
    """See `layers.DraftRecurrence`."""
    return self.decoder.follow(*args)

  def decode_block(self, *args, **kwargs) -> tuple[jax.Array, Cache, jax.Array]:
    """See `Decoder.decode_block`."""
    return self.decoder.decode_block(*args, **kwargs)

  def decode_tree(self, *args) -> tuple[jax.Array, Cache]:
    """See `Decoder.decode_tree`."""
    return self.decoder.decode_tree(*args)


def init_cache(
    config: config_lib.Stack, batch_shape: tuple[int, ...], num_slots: int
) -> Cache:
  """Return zeros [*batch_shape, kv_heads, head_dim, slots] per layer."""
  shape = *batch_shape, config.num_kv_heads, config.head_dim, num_slots
  # Each leaf has its own buffer: the loop would copy a shared one.
  empty = lambda: jnp.zeros(shape, config.dtype)
  return tuple(
      kv_cache.KeysValues(empty(), empty()) for _ in range(config.num_layers)
  )


def _pad(x: jax.Array, count: int) -> jax.Array:
  """Pad [..., positions, any] with zeros to at least `count` positions."""
  missing = max(0, count - x.shape[-2])
  return jnp.pad(x, [(0, 0)] * (x.ndim - 2) + [(0, missing), (0, 0)])

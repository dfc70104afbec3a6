# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Flax modules of a decoder alone, which decodes blocks of tokens.

With the features of an encoder it is the decoder of `t5gemma`.

Names are those of `t5x.examples.decoder_only.network`, with more where it has
no such part. Layers are T5's wherever they compute the same.

In shapes, `...` stands for the batch axis, or for no axis when a single row is
decoded, see `t5_layers`. Positions are one per row, or a scalar if all rows are
at the same one, as while prompts are read.

Legend: batch, block (positions per call), slots (length of the cache), embed,
heads, kv_heads, group (query heads per head of keys and values), head_dim.
"""

from collections.abc import Sequence
import dataclasses
from typing import Any, ClassVar

import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp

from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import norms
from speculative_t5x.networks import rope
from speculative_t5x.networks import t5_layers as layers
from speculative_t5x.networks import t5_modules
from speculative_t5x.networks import tree_blocks
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

Cache = tuple[kv_cache.KeysValues, ...]  # one entry per layer

RELATIVE, LEARNED, ROPE = 'relative', 'learned', 'rope'
RMS, RMS_PLUS_ONE, LAYER = 'rms', 'rms_plus_one', 'layer'


@dataclasses.dataclass(frozen=True)
class LayerKind:
  """What may differ from layer to layer.

  Attributes:
    window: How many of the last positions a query attends to, itself included;
      None for all.
    theta: Base of RoPE's frequencies.
    scaling: How these are scaled; None for not at all.
    ahead: In an encoder, how many of the next positions beside a window.
  """

  window: int | None = None
  theta: float = 10_000.0
  scaling: rope.Scaling | None = None
  ahead: int = 0


@dataclasses.dataclass(frozen=True)
class Sizes(t5_modules.Form):
  """Sizes and parts of a decoder alone, under T5X's names where it has some.

  Attributes:
    vocab_size: Rows of the embedding and width of the logits, with padding.
    emb_dim: Width of the residual stream.
    num_layers: Layers.
    num_heads: Heads of queries.
    num_kv_heads: Heads of keys and values, which divide them; None for as many.
    head_dim: Width of one head.
    mlp_dim: Width of the feed-forward block.
    mlp_activations: Flax names, one per input projection; 'linear' for none.
    positions: 'relative' for T5X's bias, 'learned' for a table that is added to
      the embedding, 'rope' for rotated queries and keys.
    max_positions: Rows of the learned table; None for the other kinds.
    kinds: Kinds of the layers by turns, from the first one on.
    norm: 'rms', 'rms_plus_one' for one with scale 1 + w, or 'layer'.
    norm_eps: Epsilon of all norms.
    post_norms: Whether attention and feed-forward outputs are normalized too.
    qk_norm: Whether queries and keys are normalized, per head.
    qkv_bias: Whether query, key and value projections have a bias.
    out_bias: Whether the output projection of attention has one.
    mlp_bias: Whether the projections of the feed-forward block have one.
    query_scale: Factor of queries; None for 1 / sqrt(head_dim).
    attention_cap: Soft cap of attention logits; None for none.
    logits_cap: Soft cap of the logits; None for none.
    embedding_scale: Factor of embeddings.
    logits_scale: Factor of the logits.
    logits_via_embedding: Whether the embedding is also the output head.
    feature_dim: See `t5_modules.Sizes`.
    encoder_dim: Width of an encoder's output, which each layer attends to as
      well; None for a decoder alone.
    merged_attention: Whether one attention is to both, by the same projections.
    unscaled_id: Id whose embedding is a row of its own, without the factor;
      None for none.
  """

  vocab_size: int
  emb_dim: int = 768
  num_layers: int = 12
  num_heads: int = 12
  num_kv_heads: int | None = None
  head_dim: int = 64
  mlp_dim: int = 2048
  mlp_activations: Sequence[str] = ('silu', 'linear')
  positions: str = ROPE
  max_positions: int | None = None
  kinds: Sequence[LayerKind] = (LayerKind(),)
  norm: str = RMS
  norm_eps: float = 1e-6
  post_norms: bool = False
  qk_norm: bool = False
  qkv_bias: bool = False
  out_bias: bool = False
  mlp_bias: bool = False
  query_scale: float | None = None
  attention_cap: float | None = None
  logits_cap: float | None = None
  embedding_scale: float = 1.0
  logits_scale: float = 1.0
  logits_via_embedding: bool = False
  feature_dim: int | None = None
  encoder_dim: int | None = None
  merged_attention: bool = False
  unscaled_id: int | None = None

  layers_field: ClassVar[str] = 'num_layers'

  def __post_init__(self):
    super().__post_init__()
    put = lambda name, value: object.__setattr__(self, name, value)
    # Gin files give lists, which are not hashable.
    put('mlp_activations', tuple(self.mlp_activations))
    put('kinds', tuple(self.kinds))
    if self.num_kv_heads is None:
      put('num_kv_heads', self.num_heads)
    if self.query_scale is None:
      put('query_scale', self.head_dim**-0.5)
    for name, allowed in (
        ('positions', (RELATIVE, LEARNED, ROPE)),
        ('norm', (RMS, RMS_PLUS_ONE, LAYER)),
    ):
      if (value := getattr(self, name)) not in allowed:
        message = f'{name} must be {" or ".join(allowed)}, got {value!r}.'
        raise ranges.ArgumentError(message, **{name: value})
    if self.num_heads % self.num_kv_heads:
      raise ranges.ArgumentError(
          f'num_heads is {self.num_heads}, which num_kv_heads,'
          f' {self.num_kv_heads}, does not divide. Choose a divisor.',
          num_kv_heads=self.num_kv_heads,
      )
    if (self.positions == LEARNED) != (self.max_positions is not None):
      raise ranges.ArgumentError(
          'max_positions is needed for learned positions and for no others, got'
          f' {self.max_positions} for {self.positions}.',
          max_positions=self.max_positions,
      )

  @property
  def num_decoder_layers(self) -> int:
    """Layers, as encoder-decoders name those of their decoder."""
    return self.num_layers

  def kind(self, layer: int) -> LayerKind:
    """Return the kind of a layer."""
    return self.kinds[layer % len(self.kinds)]


_NORMS = {
    RMS: layers.RMSNorm,
    RMS_PLUS_ONE: norms.RMSNormPlusOne,
    LAYER: norms.LayerNorm,
}


def norm(config: Sizes) -> nn.Module:
  """Return a norm of the kind of a network."""
  return _NORMS[config.norm](config.dtype, config.norm_eps)


def _soft_cap(x: jax.Array, cap: float | None) -> jax.Array:
  return x if cap is None else cap * jnp.tanh(x / cap)


class Embedding(layers.Embedding):
  """Embeddings times a factor; one token may have a row that is not."""

  scale: float
  unscaled_id: int | None

  def setup(self):
    super().setup()
    if self.unscaled_id is not None:
      self.unscaled = partitioning.param_with_axes(
          'unscaled',
          nn.initializers.zeros,
          (self.features,),
          jnp.float32,
          axes=('embed',),
      )

  def __call__(self, tokens: jax.Array) -> jax.Array:
    # Rounded to the dtype, as Gemma does.
    x = super().__call__(tokens) * jnp.asarray(self.scale, self.dtype)
    if self.unscaled_id is None:
      return x
    is_unscaled = (tokens == self.unscaled_id)[..., None]
    return jnp.where(is_unscaled, self.unscaled.astype(self.dtype), x)


def embedding(config: Sizes) -> Embedding:
  """Return the embedding of tokens."""
  return Embedding(
      config.vocab_size,
      config.emb_dim,
      config.dtype,
      config.embedding_scale,
      config.unscaled_id,
  )


def mlp(config: Sizes) -> layers.GatedMlp:
  """Return a feed-forward block."""
  return layers.GatedMlp(
      config.mlp_dim,
      config.mlp_activations,
      config.dtype,
      dropout_rate=0.0,
      merged=config.merge_projections,
      use_bias=config.mlp_bias,
  )


class Attention(nn.Module):
  """Attention whose query heads may share heads of keys and values.

  Projections and attention are separate methods, because keys and values come
  from the same call, from a cache or from an encoder.
  """

  config: Sizes
  merged: bool = False

  def setup(self):
    config = self.config
    heads = config.num_heads, config.num_kv_heads, config.num_kv_heads
    widths = tuple(count * config.head_dim for count in heads)
    axes = 'embed', 'joined_kv'
    if self.merged:
      self.query_key_value = layers.MergedProjection(
          widths, axes, config.dtype, config.qkv_bias
      )
    else:
      self.query, self.key, self.value = (
          layers.Projection(x, axes, config.dtype, use_bias=config.qkv_bias)
          for x in widths
      )
    self.out = layers.Projection(
        config.emb_dim, axes[::-1], config.dtype, use_bias=config.out_bias
    )
    if config.qk_norm:
      self.query_norm, self.key_norm = norm(config), norm(config)

  def project(
      self, x: jax.Array, block: int | None = None, rotation: Any = None
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Project to queries, keys and values, for self-attention.

    Of x [..., length, embed] they are [..., length, heads, head_dim] and
    [..., kv_heads, head_dim, block], of the leading positions or of all.
    `rotation` is `rope.tables` of the positions, or None.
    """
    if self.merged:
      query, key, value = self.query_key_value(x)
    else:
      query, key, value = self.query(x), self.key(x), self.value(x)
    key, value = (y[..., :block, :] for y in (key, value))
    query, key, value = map(self._split_heads, (query, key, value))
    if self.config.qk_norm:
      query, key = self.query_norm(query), self.key_norm(key)
    if rotation is not None:
      query = rope.rotate(query, *rotation)
      key = rope.rotate(key, *(y[..., :block, :] for y in rotation))
    return query, _to_keys_values(key, value)

  def project_query(self, x: jax.Array) -> jax.Array:
    """Project [..., length, embed] -> [..., length, heads, head_dim]."""
    query = self._split_heads(self.query(x))
    return self.query_norm(query) if self.config.qk_norm else query

  def project_keys_values(self, x: jax.Array) -> kv_cache.KeysValues:
    """Project [..., slots, embed] -> 2 x [..., kv_heads, head_dim, slots]."""
    if self.merged:
      _, key, value = self.query_key_value(x)
    else:
      key, value = self.key(x), self.value(x)
    key, value = map(self._split_heads, (key, value))
    if self.config.qk_norm:
      key = self.key_norm(key)
    return _to_keys_values(key, value)

  def _split_heads(self, x: jax.Array) -> jax.Array:
    return x.reshape(*x.shape[:-1], -1, self.config.head_dim)

  def attend(
      self,
      query: jax.Array,
      keys_values: kv_cache.KeysValues,
      mask: jax.Array,
      bias: jax.Array | None = None,
  ) -> jax.Array:
    """Attend to the unmasked slots and project the result.

    Args:
      query: [..., length, heads, head_dim].
      keys_values: [..., kv_heads, head_dim, slots] each.
      mask: bool, broadcastable to [..., length, slots]; True where attention is
        allowed.
      bias: [..., heads, length, slots], or None.
    Returns:
      [..., length, embed].
    """
    query = self._grouped(query)
    logits = jnp.einsum('...mkgd,...kdl->...kgml', query, keys_values.keys)
    logits = self._capped(logits)
    if bias is not None:
      shape = *bias.shape[:-3], *query.shape[-3:-1], *bias.shape[-2:]
      logits = logits + bias.reshape(shape)
    # After the cap, which would bring masked logits back.
    logits = jnp.where(mask[..., None, None, :, :], logits, layers.MASKED_LOGIT)
    weights = jax.nn.softmax(logits).astype(self.config.dtype)
    x = jnp.einsum('...kgml,...kdl->...mkgd', weights, keys_values.values)
    return self.out(x.reshape(*x.shape[:-3], -1))

  def attend_merged(
      self,
      query: jax.Array,
      own: kv_cache.KeysValues,
      mask: jax.Array,
      cross: kv_cache.KeysValues,
      cross_mask: jax.Array,
  ) -> jax.Array:
    """Attend to slots and to an example's inputs in one softmax; see `attend`.

    Args:
      query: [..., length, heads, head_dim].
      own: [..., kv_heads, head_dim, slots] each.
      mask: bool, broadcastable to [..., length, slots].
      cross: [examples, kv_heads, head_dim, inputs_length] each; without the
        first axis for one row.
      cross_mask: [examples, 1, inputs_length] bool, likewise.
    Returns:
      [..., length, embed].
    """
    shape, query = query.shape, self._grouped(query)
    if len(shape) > 3:  # rows, of which each example has some
      examples = cross.keys.shape[0]
      of_examples = lambda x: x.reshape(examples, -1, *x.shape[1:])
      query, own = jax.tree.map(of_examples, (query, own))
      mask = of_examples(mask) if mask.ndim > 2 else mask
      cross, cross_mask = jax.tree.map(
          lambda x: x[:, None], (cross, cross_mask)
      )
    logits = [
        jnp.where(
            is_seen[..., None, None, :, :],
            self._capped(
                jnp.einsum('...mkgd,...kdl->...kgml', query, read.keys)
            ),
            layers.MASKED_LOGIT,
        )
        for read, is_seen in ((own, mask), (cross, cross_mask))
    ]
    weights = jax.nn.softmax(jnp.concatenate(logits, axis=-1))
    weights = weights.astype(self.config.dtype)
    of_own, of_cross = jnp.split(weights, [own.keys.shape[-1]], axis=-1)
    x = jnp.einsum('...kgml,...kdl->...mkgd', of_own, own.values)
    x += jnp.einsum('...kgml,...kdl->...mkgd', of_cross, cross.values)
    return self.out(x.reshape(*shape[:-2], -1))

  def attend_tree(
      self,
      query: jax.Array,
      cache: kv_cache.KeysValues,
      block: kv_cache.KeysValues,
      **options: jax.Array,
  ) -> jax.Array:
    """Attend from nodes [examples, nodes, heads, head_dim].

    The options are those of `layers.attend_tree`.
    """
    query, capped = self._grouped(query), self._capped
    return self.out(
        layers.attend_tree(query, cache, block, adjust=capped, **options)
    )

  def _grouped(self, query: jax.Array) -> jax.Array:
    """Return scaled queries [..., kv_heads, group, head_dim].

    Keys are not repeated, which would copy the cache.
    """
    config = self.config
    grouped = config.num_kv_heads, config.num_heads // config.num_kv_heads
    query = query * config.query_scale
    return query.reshape(*query.shape[:-2], *grouped, config.head_dim)

  def _capped(self, logits: jax.Array) -> jax.Array:
    return _soft_cap(logits.astype(jnp.float32), self.config.attention_cap)


def _to_keys_values(key: jax.Array, value: jax.Array) -> kv_cache.KeysValues:
  """Return keys and values [..., slots, kv_heads, head_dim], slots last."""
  slots_last = lambda x: jnp.moveaxis(x, -3, -1)
  return kv_cache.KeysValues(slots_last(key), slots_last(value))


class Layer(nn.Module):
  """Attention and a feed-forward block, each normalized before, or also after.

  Between them, or with its own attention, a layer may attend to the output of
  an encoder.
  """

  config: Sizes

  def setup(self):
    config = self.config
    self.pre_self_attention_layer_norm = norm(config)
    self.self_attention = Attention(config, config.merge_projections)
    self.pre_mlp_layer_norm = norm(config)
    self.mlp = mlp(config)
    if config.post_norms:
      self.post_self_attention_layer_norm = norm(config)
      self.post_mlp_layer_norm = norm(config)
    if config.encoder_dim is not None and not config.merged_attention:
      self.pre_cross_attention_layer_norm = norm(config)
      self.encoder_decoder_attention = Attention(config)
      if config.post_norms:
        self.post_cross_attention_layer_norm = norm(config)

  def __call__(
      self,
      x,
      cache,
      cross,
      *,
      block,
      positions,
      mask,
      bias,
      rotation,
      cross_mask,
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Decode positions, of which the first `block` are written to the cache.

    Args:
      x: [..., length, embed]; positions from `block` on only pad it.
      cache: Of this layer.
      cross: Keys and values of the inputs, [examples, kv_heads, head_dim,
        inputs_length]; None in a decoder alone.
      block: Positions to write (static).
      positions: [...] int32, of the first one.
      mask: [..., length, slots] bool, True where attention is allowed.
      bias: [..., heads, length, slots], or None.
      rotation: `rope.tables` of the positions, or None.
      cross_mask: [examples, 1, inputs_length] bool; None in a decoder alone.
    Returns:
      [..., length, embed], and the cache with the block.
    """
    query, new = self.self_attention.project(
        self.pre_self_attention_layer_norm(x), block, rotation
    )
    cache = kv_cache.write_block(cache, new, positions)
    read = kv_cache.read(cache, positions + block)
    if self.config.merged_attention:
      inputs, cross = (cross, cross_mask), None
      y = self.self_attention.attend_merged(query, read, mask, *inputs)
    else:
      y = self.self_attention.attend(query, read, mask, bias)
    return self._go_on(x, y, cross, cross_mask), cache

  def decode_tree(
      self,
      x,
      cache,
      cross,
      block,
      *,
      first,
      roots,
      mask,
      bias,
      rotation,
      cross_mask,
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Decode nodes and write them to places of the block, from `first` on.

    Shapes are those of `layers.attend_tree`.
    """
    query, new = self.self_attention.project(
        self.pre_self_attention_layer_norm(x), rotation=rotation
    )
    block = attended = tree_blocks.write(block, new, first)
    if self.config.merged_attention:  # inputs are further nodes, which all see
      join = lambda *x: jnp.concatenate(x, axis=-1)
      attended = jax.tree.map(join, block, cross)
      shape = *mask.shape[:-1], cross_mask.shape[-1]
      mask, cross = join(mask, jnp.broadcast_to(cross_mask, shape)), None
    y = self.self_attention.attend_tree(
        query, cache, attended, roots=roots, mask=mask, bias=bias
    )
    return self._go_on(x, y, cross, cross_mask), block

  def _go_on(self, x, y, cross, cross_mask) -> jax.Array:
    """Return the output of a layer, from that of its self-attention."""
    if self.config.post_norms:
      y = self.post_self_attention_layer_norm(y)
    x = x + y
    if cross is not None:
      y = self._attend_to_inputs(x, cross, cross_mask)
      if self.config.post_norms:
        y = self.post_cross_attention_layer_norm(y)
      x = x + y
    y = self.mlp(self.pre_mlp_layer_norm(x), deterministic=True)
    if self.config.post_norms:
      y = self.post_mlp_layer_norm(y)
    return x + y

  def _attend_to_inputs(self, x, cross, cross_mask) -> jax.Array:
    attention = self.encoder_decoder_attention
    query = attention.project_query(self.pre_cross_attention_layer_norm(x))
    # The rows of an example (its decodes) become further queries to its keys.
    shared = query
    if query.ndim > 3:
      shared = query.reshape(cross.keys.shape[0], -1, *query.shape[2:])
    y = attention.attend(shared, cross, cross_mask)
    return y.reshape(*query.shape[:-2], -1)


class Decoder(nn.Module):
  """The stack of layers, with embedding and output head."""

  config: Sizes

  def setup(self):
    config = self.config
    self.token_embedder = embedding(config)
    if config.positions == LEARNED:
      self.position_embedder = layers.Embedding(
          config.max_positions, config.emb_dim, config.dtype
      )
    elif config.positions == RELATIVE:
      self.relpos_bias = layers.RelativePositionBias(
          config.num_heads, config.dtype, bidirectional=False
      )
    self.layers = [Layer(config) for _ in range(config.num_layers)]
    self.decoder_norm = norm(config)
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

  def __call__(
      self,
      tokens: jax.Array,
      positions: jax.Array,
      cache: Cache,
      logits_at: jax.Array | None = None,
      fed: jax.Array | None = None,
      shows_all: bool = False,
      crosses: Cache | None = None,
      is_input: jax.Array | None = None,
      prefix: jax.Array | None = None,
  ) -> tuple[jax.Array, Cache, jax.Array]:
    """Decode a block of tokens, each row from its own position on.

    Args:
      tokens: [..., block] int32.
      positions: [...] int32 in [0, slots - block], the position of each row's
        first token; or a scalar, which is that of all rows.
      cache: As `t5_modules.init_cache` makes it; slots before a row's
        position hold its earlier tokens.
      logits_at: [..., wanted] int32, the indices of the block at which logits
        are computed; None for all.
      fed: [..., block, feature_dim] that a head is fed; None of others.
      shows_all: Whether the features are those of all positions (static).
      crosses: Keys and values of the inputs per layer, [examples, kv_heads,
        head_dim, inputs_length]; None for a decoder alone.
      is_input: [examples, inputs_length] bool, False where there is no token.
      prefix: [...] int32, the number of first slots that every query attends
        to, also those behind it, which the block must hold; None for none.
    Returns:
      float32 logits [..., block or wanted, vocab], the cache with the block
      written, and the last features of the positions of the logits, or of all;
      padding positions may follow.
    """
    config = self.config
    block, num_slots = tokens.shape[-1], cache[0].keys.shape[-1]
    x = t5_modules.pad_positions(self.token_embedder(tokens), config.min_block)
    # Padding positions of the block take the position of its last token.
    offsets = jnp.minimum(jnp.arange(x.shape[-2]), block - 1)
    at = positions[..., None] + offsets
    x = self._at_positions(x, at)
    if fed is not None:
      fed = t5_modules.pad_positions(fed, config.min_block)
      x = x + self.features.read(fed)
    bias = None
    if config.positions == RELATIVE:
      bias = self.relpos_bias(at, num_slots, num_slots)
    slots = jnp.arange(num_slots)
    mask = slots <= at[..., None]
    if prefix is not None:
      mask |= slots < prefix[..., None, None]
    places = self._places(at, slots, mask)
    new_cache = []
    of_inputs = crosses or (None,) * len(cache)
    cross_mask = None if is_input is None else is_input[..., None, :]
    of_layers = zip(self.layers, cache, of_inputs, strict=True)
    for i, (layer, of_layer, cross) in enumerate(of_layers):
      x, of_layer = layer(
          x,
          of_layer,
          cross,
          block=block,
          positions=positions,
          bias=bias,
          cross_mask=cross_mask,
          **places[config.kind(i)],
      )
      new_cache.append(of_layer)
    everywhere = x = x[..., :block, :]
    if logits_at is not None:
      x = jnp.take_along_axis(x, logits_at[..., None], axis=-2)
    wanted = x.shape[-2]
    x = t5_modules.pad_positions(self.decoder_norm(x), config.min_block)
    shown = self.decoder_norm(everywhere) if shows_all else x
    if config.feature_dim is not None:
      shown = self.features.predict(shown)
    return self._logits(x, wanted), tuple(new_cache), shown

  def decode_tree(
      self,
      nodes: contracts.Nodes,
      first: int,
      count: int,
      num_cached: jax.Array,
      cache: Cache,
      block: Cache,
      crosses: Cache | None = None,
      is_input: jax.Array | None = None,
  ) -> tuple[jax.Array, Cache]:
    """Decode some nodes of trees; see `contracts.DecodesTrees.decode_tree`.

    The cache is [examples, rows, kv_heads, head_dim, slots], and the block
    [examples, kv_heads, head_dim, nodes]; the last two are as above.
    """
    config, num_slots = self.config, cache[0].keys.shape[-1]
    sight = tree_blocks.sight_of(nodes, first, count, cache[0], num_cached)
    # What is no token only fills a tree.
    tokens = jnp.maximum(nodes.tokens[:, first : first + count], 0)
    x = self._at_positions(self.token_embedder(tokens), sight.at)
    keys, bias = sight.key_positions, None
    if config.positions == RELATIVE:
      bias = self.relpos_bias(sight.at, num_slots, num_slots, keys)
    places = self._places(sight.at, keys[:, None], sight.mask)
    new_block = []
    of_inputs = crosses or (None,) * len(cache)
    cross_mask = None if is_input is None else is_input[:, None, :]
    of_layers = zip(self.layers, cache, of_inputs, block, strict=True)
    for i, (layer, of_layer, cross, of_block) in enumerate(of_layers):
      x, of_block = layer.decode_tree(
          x,
          sight.attended(of_layer),
          cross,
          of_block,
          first=first,
          roots=sight.roots,
          bias=bias,
          cross_mask=cross_mask,
          **places[config.kind(i)],
      )
      new_block.append(of_block)
    return self._logits(self.decoder_norm(x), count), tuple(new_block)

  def cross_keys_values(self, encoded: jax.Array) -> Cache:
    """Return the keys and values of an encoder's output, per layer."""
    name = 'encoder_decoder_attention'
    if self.config.merged_attention:
      name = 'self_attention'
    return tuple(
        getattr(layer, name).project_keys_values(encoded)
        for layer in self.layers
    )

  def _at_positions(self, x: jax.Array, at: jax.Array) -> jax.Array:
    """Return embeddings of tokens as embeddings of tokens at positions."""
    config = self.config
    if config.positions == LEARNED:
      # Rows that have ended write past the table: what they write is not read.
      x = x + self.position_embedder(jnp.minimum(at, config.max_positions - 1))
    return x

  def _places(
      self, at: jax.Array, key_positions: jax.Array, mask: jax.Array
  ) -> dict[LayerKind, dict[str, Any]]:
    """Return mask and rotation of queries at positions, per kind of layer.

    Key positions and mask are broadcastable to [..., length, keys].
    """
    found = {}
    for kind in set(self.config.kinds):
      of_kind, rotation = mask, None
      if kind.window is not None:
        of_kind = mask & (key_positions > at[..., None] - kind.window)
      if self.config.positions == ROPE:
        frequencies = rope.frequencies(
            self.config.head_dim, kind.theta, kind.scaling
        )
        rotation = rope.tables(at, frequencies)
      found[kind] = {'mask': of_kind, 'rotation': rotation}
    return found

  def _logits(self, x: jax.Array, wanted: int) -> jax.Array:
    """Return the logits of the first `wanted` normalized positions."""
    config = self.config
    if config.separate_head or not config.logits_via_embedding:
      logits = self.logits_dense(x)
    else:
      logits = self.token_embedder.attend(x)
    logits = logits[..., :wanted, :] * config.logits_scale
    logits = _soft_cap(logits, config.logits_cap)
    if config.head_size is None:
      return logits
    return self.short_vocabulary(logits)

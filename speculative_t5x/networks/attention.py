# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Attention whose query heads may share heads of keys and values.

In T5 each head of queries is a group of its own. In shapes, `...` stands for
the batch axis, or for no axis when a single row is decoded, see `layers`.

Legend: rows, examples (each of which has some rows), length (query positions),
slots (key positions), embed, heads, kv_heads, group (query heads per head of
keys and values), head_dim, nodes, block (all nodes of a tree).
"""

import functools
import math
import operator
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import kv_cache
from speculative_t5x.networks import layers
from speculative_t5x.networks import norms
from speculative_t5x.networks import rope
from speculative_t5x.speculation import beam_rows

# Finite, as in T5X, so that outputs of padding, which sees no key, are too.
MASKED_LOGIT = -1e10

_fan_in_normal = nn.initializers.variance_scaling(1.0, 'fan_in', 'normal')


class Keys(NamedTuple):
  """Keys and values, and which of them a query sees.

  Attributes:
    keys_values: [..., kv_heads, head_dim, slots] each.
    mask: Bool, broadcastable to [..., length, slots]; True where attention is
      allowed.
    bias: [..., heads, length, slots], added to the logits, or None.
  """

  keys_values: kv_cache.KeysValues
  mask: jax.Array
  bias: jax.Array | None = None


class Attention(nn.Module):
  """Attention of a stack.

  Projections and attention are separate methods, because keys and values come
  from the same call, from a cache or from an encoder. T5 applies the factor
  1/sqrt(head_dim) in the initialization; others have it as `query_scale`.
  """

  config: config_lib.Stack
  merged: bool = False

  def setup(self):
    config = self.config
    heads = config.num_heads, config.num_kv_heads, config.num_kv_heads
    widths = tuple(count * config.head_dim for count in heads)
    axes = 'embed', 'joined_kv'
    project = lambda width, axes, bias, init=_fan_in_normal: layers.Projection(
        width,
        axes,
        config.dtype,
        init if config.t5_attention else layers.fan_in_truncated,
        bias,
    )
    if self.merged:
      self.query_key_value = layers.MergedProjection(
          widths, axes, config.dtype, config.qkv_bias
      )
    else:
      self.query = project(widths[0], axes, config.qkv_bias, self._query_init)
      self.key = project(widths[1], axes, config.qkv_bias)
      self.value = project(widths[2], axes, config.qkv_bias)
    self.out = project(config.emb_dim, axes[::-1], config.out_bias)
    self.query_norm = norms.of(config) if config.qk_norm else None
    self.key_norm = norms.of(config) if config.qk_norm else None

  def _query_init(self, *args) -> jax.Array:
    return _fan_in_normal(*args) / math.sqrt(self.config.head_dim)

  def project(
      self,
      x: jax.Array,
      num_kept: int | None = None,
      rotation: rope.Tables | None = None,
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Project to queries, keys and values, for self-attention.

    Of x [..., length, embed] they are [..., length, heads, head_dim] and
    [..., kv_heads, head_dim, num_kept], of the leading positions or of all.
    `rotation` is `rope.tables` of the positions, or None.
    """
    if self.merged:
      query, key, value = self.query_key_value(x)
    else:
      query, key, value = self.query(x), self.key(x), self.value(x)
    # Sliced before heads are split: after that, a TPU would move whole tiles.
    key, value = (y[..., :num_kept, :] for y in (key, value))
    query = self._split_heads(query, self.query_norm)
    key = self._split_heads(key, self.key_norm)
    if rotation is not None:  # after the norms
      query = rope.rotate(query, *rotation)
      key = rope.rotate(key, *(y[..., :num_kept, :] for y in rotation))
    return query, _slots_last(key, self._split_heads(value))

  def project_query(self, x: jax.Array) -> jax.Array:
    """Project [..., length, embed] -> [..., length, heads, head_dim]."""
    return self._split_heads(self.query(x), self.query_norm)

  def project_keys_values(self, x: jax.Array) -> kv_cache.KeysValues:
    """Project [..., slots, embed] -> 2 x [..., kv_heads, head_dim, slots]."""
    if self.merged:
      _, key, value = self.query_key_value(x)
    else:
      key, value = self.key(x), self.value(x)
    key = self._split_heads(key, self.key_norm)
    return _slots_last(key, self._split_heads(value))

  def attend(
      self, query: jax.Array, *keys: Keys, drop: bool = False
  ) -> jax.Array:
    """Attend to the unmasked slots of all keys, in one softmax, and project.

    Args:
      query: [..., length, heads, head_dim].
      *keys: For example those of a cache.
      drop: Whether attention weights are dropped out.
    Returns:
      [..., length, embed].
    """
    query = self._folded(query)
    logits = jnp.concatenate([self._logits(query, x) for x in keys], axis=-1)
    weights = jax.nn.softmax(logits).astype(self.config.dtype)
    if drop and self.config.dropout_rate:
      weights = self._dropped(weights)
    ends = np.cumsum([x.keys_values.keys.shape[-1] for x in keys])[:-1]
    parts = [
        jnp.einsum('...kml,...kdl->...mkd', part, of.keys_values.values)
        for part, of in zip(jnp.split(weights, ends, axis=-1), keys)
    ]
    return self.out(self._unfolded(functools.reduce(operator.add, parts)))

  def attend_to_inputs(
      self,
      query: jax.Array,
      inputs: Keys,
      own: Keys | None = None,
      drop: bool = False,
  ) -> jax.Array:
    """Attend to the inputs of examples, of which each has some rows.

    Args:
      query: [..., length, heads, head_dim], of rows.
      inputs: [examples, ...]; without that axis for one row.
      own: Keys of the rows, for one softmax over both; None for none.
      drop: See `attend`.
    Returns:
      [..., length, embed], of rows.
    """
    if query.ndim == 3:
      keys = (inputs,) if own is None else (own, inputs)
      return self.attend(query, *keys, drop=drop)
    shape = query.shape
    of_examples = lambda x: x.reshape(-1, shape[0] // examples, *x.shape[1:])
    examples = inputs.keys_values.keys.shape[0]
    if own is None:
      # The rows of an example become further queries to its keys.
      query = query.reshape(examples, -1, *shape[2:])
      y = self.attend(query, inputs, drop=drop)
    else:
      has_rows = own.mask.ndim > 2
      own = Keys(
          jax.tree.map(of_examples, own.keys_values),
          of_examples(own.mask) if has_rows else own.mask,
      )
      inputs = jax.tree.map(lambda x: x[:, None], inputs)
      y = self.attend(of_examples(query), own, inputs, drop=drop)
    return y.reshape(*shape[:-2], -1)

  def attend_tree(
      self,
      query: jax.Array,
      cache: kv_cache.KeysValues,
      block: kv_cache.KeysValues,
      *,
      roots: jax.Array,
      mask: jax.Array,
      bias: jax.Array | None = None,
  ) -> jax.Array:
    """Attend to the slots of a root's row and to nodes of a block at once.

    Args:
      query: [examples, nodes, heads, head_dim].
      cache: [examples, rows, kv_heads, head_dim, slots] each.
      block: [examples, kv_heads, head_dim, block] each.
      roots: [examples, nodes, slots or 1] int32. The row that holds each slot
        that a node attends to.
      mask: [examples, nodes, slots + block], True where attention is allowed.
      bias: Likewise, [examples, heads, nodes, slots + block], or None.
    Returns:
      [examples, nodes, embed].
    """
    query = jnp.swapaxes(self._folded(query), 1, 2)
    examples = len(query)
    roots, mask = (self._per_query(x)[:, None] for x in (roots, mask))
    # All nodes meet all rows, and each takes of a slot what the row gave that
    # holds it. Rows stay outermost, as they lie in the cache: with other batch
    # axes, or a product that sums over rows, XLA:CPU copies the whole cache.
    num_rows, num_slots = cache.keys.shape[1], cache.keys.shape[-1]
    at_rows = lambda x: jnp.broadcast_to(
        x[:, None], (examples, num_rows, *x.shape[1:])
    )
    of_slots = jnp.einsum('erhnd,erhdl->erhnl', at_rows(query), cache.keys)
    of_slots = beam_rows.choose(
        roots, [of_slots[:, row] for row in range(num_rows)]
    )
    of_block = jnp.einsum('ehnd,ehdl->ehnl', query, block.keys)
    logits = self._capped(jnp.concatenate([of_slots, of_block], axis=-1))
    if bias is not None:
      logits = logits + self._folded_bias(bias)
    masked = jnp.asarray(MASKED_LOGIT, logits.dtype)
    weights = jax.nn.softmax(jnp.where(mask, logits, masked))
    weights = weights.astype(cache.values.dtype)
    of_slots, of_block = weights[..., :num_slots], weights[..., num_slots:]
    of_slots = at_rows(of_slots)
    if num_rows > 1:
      is_held = roots[:, None] == jnp.arange(num_rows)[:, None, None, None]
      of_slots = jnp.where(is_held, of_slots, 0)
    x = jnp.einsum('erhnl,erhdl->erhnd', of_slots, cache.values)
    x = jnp.sum(x, axis=1)
    x += jnp.einsum('ehnl,ehdl->ehnd', of_block, block.values)
    return self.out(self._unfolded(jnp.swapaxes(x, 1, 2)))

  def _logits(self, query: jax.Array, keys: Keys) -> jax.Array:
    """Return masked logits [..., kv_heads, length * group, slots]."""
    logits = jnp.einsum('...mkd,...kdl->...kml', query, keys.keys_values.keys)
    logits = self._capped(logits)
    if keys.bias is not None:
      logits = logits + self._folded_bias(keys.bias)
    mask = keys.mask  # maybe one for all queries
    if mask.shape[-2] > 1:
      mask = self._per_query(mask)
    mask = mask[..., None, :, :]
    # After the cap, which would bring masked logits back.
    masked = jnp.asarray(MASKED_LOGIT, logits.dtype)
    return jnp.where(mask, logits, masked)

  def _capped(self, logits: jax.Array) -> jax.Array:
    """Return logits in the dtype of the softmax, with a soft cap if any."""
    if not self.config.t5_attention:
      logits = logits.astype(jnp.float32)
    return soft_cap(logits, self.config.attention_cap)

  def _dropped(self, weights: jax.Array) -> jax.Array:
    """Drop out weights [..., kv_heads, length * group, slots]."""
    *batch, kv_heads, _, slots = weights.shape
    keep_prob = 1.0 - self.config.dropout_rate
    # T5 drops a key for all queries of a head: the mask is broadcast over
    # length. It is drawn in T5X's shape.
    keep = jax.random.bernoulli(
        self.make_rng('dropout'),
        keep_prob,
        (*batch, self.config.num_heads, 1, slots),
    )
    keep = keep.reshape(*batch, kv_heads, 1, self._group, slots)
    by_group = weights.reshape(*batch, kv_heads, -1, self._group, slots)
    dropped = by_group * (keep.astype(weights.dtype) / keep_prob)
    return dropped.reshape(weights.shape)

  def _split_heads(
      self, x: jax.Array, norm: norms.Norm | None = None
  ) -> jax.Array:
    x = x.reshape(*x.shape[:-1], -1, self.config.head_dim)
    return x if norm is None else norm(x)

  @property
  def _group(self) -> int:
    """Query heads per head of keys and values."""
    return self.config.num_heads // self.config.num_kv_heads

  def _folded(self, query: jax.Array) -> jax.Array:
    """Return scaled queries [..., length * group, kv_heads, head_dim].

    The queries of a group become further positions. Keys are not repeated,
    which would copy the cache.
    """
    config = self.config
    if config.query_scale != 1:
      query = query * config.query_scale
    *batch, length, _, head_dim = query.shape
    query = query.reshape(*batch, length, -1, self._group, head_dim)
    query = jnp.swapaxes(query, -2, -3)
    return query.reshape(*batch, -1, config.num_kv_heads, head_dim)

  def _per_query(self, x: jax.Array) -> jax.Array:
    """Return [..., length * group, any] of [..., length, any]."""
    return x if self._group == 1 else jnp.repeat(x, self._group, axis=-2)

  def _folded_bias(self, bias: jax.Array) -> jax.Array:
    """Return [..., kv_heads, length * group, slots] of [..., heads, length,
    slots].
    """
    *batch, _, length, slots = bias.shape
    bias = bias.reshape(*batch, -1, self._group, length, slots)
    bias = jnp.swapaxes(bias, -3, -2)
    return bias.reshape(*batch, self.config.num_kv_heads, -1, slots)

  def _unfolded(self, x: jax.Array) -> jax.Array:
    """Return [..., length, heads * head_dim] of what `_folded` is like."""
    *batch, _, kv_heads, head_dim = x.shape
    x = x.reshape(*batch, -1, self._group, kv_heads, head_dim)
    x = jnp.swapaxes(x, -3, -2)
    return x.reshape(*x.shape[:-3], -1)


def soft_cap(x: jax.Array, cap: float | None) -> jax.Array:
  """Return numbers bent into (-cap, cap); themselves without a cap."""
  return x if cap is None else cap * jnp.tanh(x / cap)


def _slots_last(key: jax.Array, value: jax.Array) -> kv_cache.KeysValues:
  """Return keys and values [..., slots, kv_heads, head_dim], slots last."""
  last = lambda x: jnp.moveaxis(x, -3, -1)
  return kv_cache.KeysValues(last(key), last(value))

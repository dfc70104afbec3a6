# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers of T5 with T5X's parameter names, shapes and logical axes.

In shapes, `...` stands for the batch axis, or for no axis when a single row is
decoded: on CPU, a batch axis of size 1 makes XLA copy the whole cache at every
step.

Legend: batch, length (query positions), slots (key positions), embed, heads,
head_dim, mlp.
"""

from collections.abc import Callable, Sequence
import functools
import math
import operator

import flax.linen as nn
from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import kv_cache
from speculative_t5x.speculation import beam_rows

NUM_BUCKETS = 32
MAX_DISTANCE = 128
# Finite, as in T5X: the output of a query whose keys are all masked (padding)
# stays finite.
MASKED_LOGIT = -1e10

# Those that Flax has under no name; its gelu is tanh's approximation.
_OWN_ACTIVATIONS = {
    'linear': lambda x: x,
    'gelu_exact': functools.partial(nn.gelu, approximate=False),
}

_fan_in_normal = nn.initializers.variance_scaling(1.0, 'fan_in', 'normal')
_fan_in_truncated = nn.initializers.variance_scaling(
    1.0, 'fan_in', 'truncated_normal'
)
_embedding_init = nn.initializers.normal(stddev=1.0)
_bias_init = nn.initializers.variance_scaling(1.0, 'fan_avg', 'uniform')


class Projection(nn.Module):
  """A linear map, in T5 without bias: [..., inputs] -> [..., features]."""

  features: int
  kernel_axes: tuple[str, str]
  dtype: jnp.dtype
  kernel_init: nn.initializers.Initializer = _fan_in_truncated
  use_bias: bool = False

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    kernel = partitioning.param_with_axes(
        'kernel',
        self.kernel_init,
        (x.shape[-1], self.features),
        jnp.float32,
        axes=self.kernel_axes,
    )
    y = _dot(x.astype(self.dtype), kernel.astype(self.dtype))
    if not self.use_bias:
      return y
    bias = partitioning.param_with_axes(
        'bias',
        nn.initializers.zeros,
        (self.features,),
        jnp.float32,
        axes=self.kernel_axes[1:],
    )
    return y + bias.astype(self.dtype)


@jax.custom_gradient
def _dot(x: jax.Array, kernel: jax.Array):
  """Return the product [..., inputs] x [inputs, features] -> [..., features].

  The gradient of the kernel is a product of two matrices. JAX's own sums over
  several axes, for which XLA copies its operands on a CPU: a train step of a T5
  of 23 million parameters then takes a third longer.
  """

  def gradients(of_product):
    rows = lambda y: y.reshape(-1, y.shape[-1])
    of_kernel = jnp.dot(rows(x).T, rows(of_product))
    return jnp.dot(of_product, kernel.T), of_kernel

  return _product(x, kernel), gradients


# Fewer rows of a kernel per product gain nothing on 2 cores.
_MIN_ROWS = 192


def _product(x: jax.Array, kernel: jax.Array) -> jax.Array:
  """Return `jnp.dot(x, kernel)`; of one vector on a CPU, in several products.

  A single product with one vector reads a kernel more slowly: a step of GPT-2
  small's shape on 2 cores took 1.37 times the reading of its parameters, and
  1.12 times with several (`results/decoder_only.ndjson` and its history).
  """
  num_inputs, num_features = kernel.shape
  fit = max(num_inputs // _MIN_ROWS, 1)
  num_parts = math.gcd(num_inputs, 2 ** (fit.bit_length() - 1))
  if x.size != num_inputs or num_parts < 4:
    return jnp.dot(x, kernel)

  def sum_of_products(x, kernel):
    parts = jnp.einsum(
        'pi,pif->pf',
        x.reshape(num_parts, -1),
        kernel.reshape(num_parts, -1, num_features),
        preferred_element_type=jnp.promote_types(x.dtype, jnp.float32),
    )
    total = jnp.sum(parts, axis=0).astype(x.dtype)
    return total.reshape(*x.shape[:-1], num_features)

  return lax.platform_dependent(
      x, kernel, cpu=sum_of_products, default=jnp.dot
  )


class LogitsProjection(nn.Module):
  """The output head: [..., inputs] -> float32 logits [..., features].

  Products are computed in the wider of the two dtypes and summed in float32.
  With a bfloat16 input and a bfloat16 kernel the result is the same as with
  both cast to float32, without a float32 copy of the largest matrix of a step.
  """

  features: int

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    kernel = partitioning.param_with_axes(
        'kernel',
        _fan_in_truncated,
        (x.shape[-1], self.features),
        jnp.float32,
        axes=('embed', 'vocab'),
    )
    return _dot_float32(x, kernel)


def _dot_float32(x: jax.Array, kernel: jax.Array) -> jax.Array:
  dtype = jnp.promote_types(x.dtype, kernel.dtype)
  return jnp.dot(
      x.astype(dtype),
      kernel.astype(dtype),
      preferred_element_type=jnp.float32,
  )


class ShortVocabulary(nn.Module):
  """Places the logits of a short head among those of the whole vocabulary.

  A gather over the vocabulary is several times as fast on a CPU as a scatter of
  the logits. `t5_preparation.shorten_head` makes the places, which are never
  saved.
  """

  vocab_size: int

  @nn.compact
  def __call__(self, logits: jax.Array) -> jax.Array:
    """Return logits [..., vocab_size], -inf where the head [..., n] has none.

    Token i of the vocabulary has the one at `places[i]`, and none if that is n.
    """
    places = partitioning.param_with_axes(
        'places',
        nn.initializers.zeros,
        (self.vocab_size,),
        jnp.int32,
        axes=('short_vocab',),
    )
    padding = [(0, 0)] * (logits.ndim - 1) + [(0, 1)]
    padded = jnp.pad(logits, padding, constant_values=-jnp.inf)
    return jnp.take(padded, places, axis=-1, mode='clip')


class MergedProjection(nn.Module):
  """Several linear maps of one input, computed with one concatenated kernel.

  For decoding on one device: one matrix product replaces several.
  `t5_preparation.merge` concatenates the kernels; they are never saved.
  """

  features: tuple[int, ...]
  kernel_axes: tuple[str, str]
  dtype: jnp.dtype
  use_bias: bool = False

  @nn.compact
  def __call__(self, x: jax.Array) -> list[jax.Array]:
    merged = Projection(
        sum(self.features),
        self.kernel_axes,
        self.dtype,
        use_bias=self.use_bias,
        name='merged',
    )(x)
    ends = np.cumsum(self.features)[:-1]
    return jnp.split(merged, ends, axis=-1)


class FeatureProjections(nn.Module):
  """What a head on the last features of a target reads and predicts of them.
  """

  embed_dim: int
  feature_dim: int
  dtype: jnp.dtype

  def setup(self):
    axes = 'features', 'embed'
    self.read = Projection(self.embed_dim, axes, self.dtype)
    self.predict = Projection(self.feature_dim, axes[::-1], self.dtype)


class Embedding(nn.Module):
  """Token embeddings, looked up by a gather; also the output head of T5 1.0."""

  vocab_size: int
  features: int
  dtype: jnp.dtype

  def setup(self):
    self.embedding = partitioning.param_with_axes(
        'embedding',
        _embedding_init,
        (self.vocab_size, self.features),
        jnp.float32,
        axes=('vocab', 'embed'),
    )

  def __call__(self, tokens: jax.Array) -> jax.Array:
    """Look up embeddings: [...] int32 -> [..., features]."""
    return self.embedding[tokens].astype(self.dtype)

  def attend(self, x: jax.Array) -> jax.Array:
    """Compute logits: [..., features] -> float32 [..., vocab_size]."""
    return _dot_float32(x, self.embedding.T)


class RMSNorm(nn.Module):
  """T5's layer norm, without mean subtraction and without bias."""

  dtype: jnp.dtype
  epsilon: float = 1e-6

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    scale = partitioning.param_with_axes(
        'scale',
        nn.initializers.ones,
        (x.shape[-1],),
        jnp.float32,
        axes=('embed',),
    )
    x = x.astype(jnp.float32)
    mean_square = jnp.mean(lax.square(x), axis=-1, keepdims=True)
    normalized = (x * lax.rsqrt(mean_square + self.epsilon)).astype(self.dtype)
    return normalized * scale.astype(self.dtype)


class GatedMlp(nn.Module):
  """A feed-forward block: an output projection of multiplied activations.

  T5 1.1 has the activations ('gelu', 'linear'), T5 1.0 has ('relu',).
  """

  mlp_dim: int
  activations: Sequence[str]
  dtype: jnp.dtype
  dropout_rate: float
  merged: bool
  use_bias: bool = False

  @nn.compact
  def __call__(self, x: jax.Array, *, deterministic: bool) -> jax.Array:
    features = (self.mlp_dim,) * len(self.activations)
    project = functools.partial(
        Projection, dtype=self.dtype, use_bias=self.use_bias
    )
    if self.merged:
      hidden = MergedProjection(
          features, ('embed', 'mlp'), self.dtype, self.use_bias, name='wi'
      )(x)
    else:
      hidden = [
          project(n, ('embed', 'mlp'), name=name)(x)
          for n, name in zip(features, mlp_input_names(self.activations))
      ]
    activated = [
        _OWN_ACTIVATIONS.get(name, getattr(nn, name, None))(h)
        for h, name in zip(hidden, self.activations)
    ]
    gated = functools.reduce(operator.mul, activated)
    gated = nn.Dropout(self.dropout_rate, broadcast_dims=(-2,))(
        gated, deterministic=deterministic
    )
    return project(x.shape[-1], ('mlp', 'embed'), name='wo')(gated)


def mlp_input_names(activations: Sequence[str]) -> list[str]:
  """Return T5X's names of the input projections: `wi`, or `wi_0`, `wi_1`."""
  if len(activations) == 1:
    return ['wi']
  return [f'wi_{i}' for i in range(len(activations))]


class Attention(nn.Module):
  """Multi-head attention, in T5 without biases and the factor 1/sqrt(head_dim).

  T5 applies the factor in the initialisation; others have it as `query_scale`.
  The projections and the attention are separate methods, because keys and
  values come from the same call, from a cache or from the encoder.
  """

  num_heads: int
  head_dim: int
  embed_dim: int
  dtype: jnp.dtype
  dropout_rate: float
  merged: bool = False
  use_bias: bool = False
  query_scale: float = 1.0

  def setup(self):
    features = self.num_heads * self.head_dim
    axes = ('embed', 'joined_kv')
    project = functools.partial(
        Projection, dtype=self.dtype, use_bias=self.use_bias
    )
    if self.merged:
      self.query_key_value = MergedProjection(
          (features,) * 3, axes, self.dtype, self.use_bias
      )
    else:
      self.query = project(features, axes, kernel_init=self._query_init)
      self.key = project(features, axes, kernel_init=_fan_in_normal)
      self.value = project(features, axes, kernel_init=_fan_in_normal)
    self.out = project(
        self.embed_dim, axes[::-1], kernel_init=_fan_in_normal
    )

  def _query_init(self, *args) -> jax.Array:
    return _fan_in_normal(*args) / math.sqrt(self.head_dim)

  def project(
      self, x: jax.Array, num_kept: int | None = None
  ) -> tuple[jax.Array, kv_cache.KeysValues]:
    """Project to queries, keys and values, for self-attention.

    Of x [..., length, embed] they are [..., length, heads, head_dim] and
    [..., heads, head_dim, num_kept], of the leading positions or of all.
    """
    if self.merged:
      query, key, value = self.query_key_value(x)
    else:
      query, key, value = self.query(x), self.key(x), self.value(x)
    # Sliced before the heads are split: after the split, a TPU would move whole
    # tiles.
    key, value = (y[..., :num_kept, :] for y in (key, value))
    return self._to_query(query), self._to_keys_values(key, value)

  def project_query(self, x: jax.Array) -> jax.Array:
    """Project [..., length, embed] -> [..., length, heads, head_dim]."""
    return self._to_query(self.query(x))

  def project_keys_values(self, x: jax.Array) -> kv_cache.KeysValues:
    """Project [..., slots, embed] -> 2 x [..., heads, head_dim, slots]."""
    return self._to_keys_values(self.key(x), self.value(x))

  def attend(
      self,
      query: jax.Array,
      keys_values: kv_cache.KeysValues,
      *,
      mask: jax.Array,
      bias: jax.Array | None = None,
      deterministic: bool = True,
  ) -> jax.Array:
    """Attend to the unmasked slots and project the result.

    Args:
      query: [..., length, heads, head_dim].
      keys_values: [..., heads, head_dim, slots] each.
      mask: bool, broadcastable to [..., heads, length, slots]; True where
        attention is allowed.
      bias: Added to the logits, broadcastable to the same shape, or None.
      deterministic: Whether attention dropout is off.
    Returns:
      [..., length, embed].
    """
    logits = jnp.einsum('...mhd,...hdl->...hml', query, keys_values.keys)
    if bias is not None:
      logits = logits + bias
    logits = jnp.where(mask, logits, jnp.asarray(MASKED_LOGIT, logits.dtype))
    weights = jax.nn.softmax(logits).astype(self.dtype)
    if not deterministic and self.dropout_rate:
      weights = weights * self._dropout_multiplier(weights)
    x = jnp.einsum('...hml,...hdl->...mhd', weights, keys_values.values)
    return self.out(x.reshape(*x.shape[:-2], -1))

  def attend_shared(
      self,
      query: jax.Array,
      keys_values: kv_cache.KeysValues,
      *,
      mask: jax.Array,
  ) -> jax.Array:
    """Attend when several rows share an example, in decoding; see `attend`.

    The rows of an example (its decodes) become further queries to its keys.
    """
    if query.ndim == 3:
      return self.attend(query, keys_values, mask=mask)
    rows, block = query.shape[:2]
    examples = keys_values.keys.shape[0]
    shared = query.reshape(examples, -1, *query.shape[2:])
    y = self.attend(shared, keys_values, mask=mask)
    return y.reshape(rows, block, -1)

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
    """Attend from nodes [examples, nodes, heads, head_dim]; see `attend_tree`.
    """
    by_group = query[..., None, :]
    return self.out(
        attend_tree(
            by_group, cache, block, roots=roots, mask=mask, bias=bias
        )
    )

  def _dropout_multiplier(self, weights: jax.Array) -> jax.Array:
    # T5 drops a key for all queries: the mask is broadcast over length.
    shape = (*weights.shape[:-2], 1, weights.shape[-1])
    keep_prob = 1.0 - self.dropout_rate
    keep = jax.random.bernoulli(self.make_rng('dropout'), keep_prob, shape)
    return keep.astype(weights.dtype) / keep_prob

  def _to_query(self, x: jax.Array) -> jax.Array:
    if self.query_scale != 1:
      x = x * self.query_scale
    return self._split_heads(x)

  def _split_heads(self, x: jax.Array) -> jax.Array:
    return x.reshape(*x.shape[:-1], self.num_heads, self.head_dim)

  def _to_keys_values(self, key, value) -> kv_cache.KeysValues:
    slots_last = lambda x: jnp.moveaxis(self._split_heads(x), -3, -1)
    return kv_cache.KeysValues(slots_last(key), slots_last(value))


def attend_tree(
    query: jax.Array,
    cache: kv_cache.KeysValues,
    block: kv_cache.KeysValues,
    *,
    roots: jax.Array,
    mask: jax.Array,
    bias: jax.Array | None = None,
    adjust: Callable[[jax.Array], jax.Array] = lambda logits: logits,
) -> jax.Array:
  """Attend to the slots of a root's row and to nodes of a block at once.

  Args:
    query: [examples, nodes, kv_heads, group, head_dim]. In T5 each head of
      queries is a group.
    cache: [examples, rows, kv_heads, head_dim, slots] each.
    block: [examples, kv_heads, head_dim, block] each.
    roots: [examples, nodes, slots or 1] int32. The row that holds each slot
      that a node attends to.
    mask: [examples, nodes, slots + block], True where attention is allowed.
    bias: Likewise, [examples, kv_heads * group, nodes, slots + block], or None.
    adjust: What becomes of the logits before bias and mask.
  Returns:
    [examples, nodes, kv_heads * group * head_dim].
  """
  # The queries of a group become further nodes.
  examples, nodes, kv_heads, group, head_dim = query.shape
  query = jnp.transpose(query, (0, 2, 3, 1, 4))
  query = query.reshape(examples, kv_heads, group * nodes, head_dim)
  roots = jnp.tile(roots, (1, group, 1))[:, None]
  mask = jnp.tile(mask, (1, group, 1))[:, None]
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
  logits = jnp.concatenate([of_slots, of_block], axis=-1)
  logits = adjust(logits)
  if bias is not None:
    logits = logits + bias.reshape(logits.shape)
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
  x = x.reshape(examples, kv_heads, group, nodes, head_dim)
  x = jnp.transpose(x, (0, 3, 1, 2, 4))
  return x.reshape(examples, nodes, -1)


class RelativePositionBias(nn.Module):
  """T5's learned attention bias, one value per head and distance bucket."""

  num_heads: int
  dtype: jnp.dtype
  bidirectional: bool

  @nn.compact
  def __call__(
      self,
      query_positions: jax.Array,
      num_slots: int,
      max_position: int,
      key_positions: jax.Array | None = None,
  ) -> jax.Array:
    """Return the biases of queries against slots 0 to num_slots - 1.

    For positions [..., length] int32 in [0, max_position), a static bound, they
    are [..., heads, length, slots]. With key positions [..., keys] below
    `num_slots` they are those of these keys instead, [..., heads, length,
    keys].
    """
    table = partitioning.param_with_axes(
        'rel_embedding',
        _bias_init,
        (self.num_heads, NUM_BUCKETS),
        jnp.float32,
        axes=('heads', 'relpos_buckets'),
    )
    # The buckets of all distances are a compile-time constant.
    distances = np.arange(1 - max_position, num_slots)
    buckets = relative_position_buckets(distances, self.bidirectional)
    by_distance = table.astype(self.dtype)[:, buckets]
    if key_positions is None:
      key_positions = jnp.arange(num_slots, dtype=query_positions.dtype)
    keys = key_positions[..., None, :]
    index = keys - query_positions[..., None] + (max_position - 1)
    bias = by_distance[:, index]  # [heads, ..., length, slots]
    return jnp.moveaxis(bias, 0, -3)


def relative_position_buckets(
    relative_position: np.ndarray, bidirectional: bool
) -> np.ndarray:
  """Return T5's distance buckets, exact when near and logarithmic when far.

  Args:
    relative_position: Int, key position minus query position.
    bidirectional: Whether a query attends to later keys (the encoder). If not,
      later keys get bucket 0; the attention mask excludes them.
  Returns:
    Bucket numbers in [0, NUM_BUCKETS), of the same shape.
  """
  num_buckets, first = NUM_BUCKETS, 0
  distance = -relative_position
  if bidirectional:
    num_buckets //= 2
    first = (distance < 0) * num_buckets
    distance = np.abs(distance)
  distance = np.maximum(distance, 0)
  num_exact = num_buckets // 2
  # float32 and its epsilon, as in T5X: other rounding would move a boundary.
  ratio = distance.astype(np.float32) / num_exact + np.finfo(np.float32).eps
  far = num_exact + (
      np.log(ratio)
      / np.log(MAX_DISTANCE / num_exact)
      * (num_buckets - num_exact)
  ).astype(np.int32)
  far = np.minimum(far, num_buckets - 1)
  return first + np.where(distance < num_exact, distance, far)

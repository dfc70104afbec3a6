# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Layers with T5X's parameter names, shapes and logical axes, but attention.

In shapes, `...` stands for the batch axis, or for no axis when a single row is
decoded: on CPU, a batch axis of size 1 makes XLA copy the whole cache at every
step.

Legend: batch, length (query positions), slots (key positions), embed, heads,
mlp, vocab.
"""

from collections.abc import Sequence
import functools
import math
import operator

import flax.linen as nn
import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.networks import config as config_lib
from speculative_t5x.networks import norms
from speculative_t5x.networks import rope
from speculative_t5x.networks import sharding

NUM_BUCKETS = 32
MAX_DISTANCE = 128
_LONGEST = 10_000.0  # of the sinusoids' wavelengths, over 2 pi

# Those that Flax has under no name; its gelu is tanh's approximation.
_OWN_ACTIVATIONS = {
    'linear': lambda x: x,
    'gelu_exact': functools.partial(nn.gelu, approximate=False),
}

fan_in_truncated = nn.initializers.variance_scaling(
    1.0, 'fan_in', 'truncated_normal'
)
_zeros = nn.initializers.zeros
_embedding_init = nn.initializers.normal(stddev=1.0)
_bias_init = nn.initializers.variance_scaling(1.0, 'fan_avg', 'uniform')


class Projection(nn.Module):
  """A linear map, in T5 without bias: [..., inputs] -> [..., features]."""

  features: int
  kernel_axes: tuple[str, str]
  dtype: jnp.dtype
  kernel_init: nn.initializers.Initializer = fan_in_truncated
  use_bias: bool = False

  @nn.compact
  def __call__(self, x: jax.Array) -> jax.Array:
    shape = x.shape[-1], self.features
    kernel = sharding.param('kernel', self.kernel_init, shape, self.kernel_axes)
    y = _dot(x.astype(self.dtype), kernel.astype(self.dtype))
    if not self.use_bias:
      return y
    bias = sharding.param('bias', _zeros, shape[1:], self.kernel_axes[1:])
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
    shape, axes = (x.shape[-1], self.features), ('embed', 'vocab')
    kernel = sharding.param('kernel', fan_in_truncated, shape, axes)
    return _dot_float32(x, kernel)


def _dot_float32(x: jax.Array, kernel: jax.Array) -> jax.Array:
  dtype = jnp.promote_types(x.dtype, kernel.dtype)
  return jnp.dot(
      x.astype(dtype),
      kernel.astype(dtype),
      preferred_element_type=jnp.float32,
  )


class LogitsBias(nn.Module):
  """The bias of the logits, [1, vocab] as Hugging Face stores it."""

  vocab_size: int

  @nn.compact
  def __call__(self, logits: jax.Array) -> jax.Array:
    shape = 1, self.vocab_size
    bias = sharding.param('bias', _zeros, shape, ('stack', 'vocab'))
    return logits + bias[0].astype(jnp.float32)


class ShortVocabulary(nn.Module):
  """Places the logits of a short head among those of the whole vocabulary.

  A gather over the vocabulary is several times as fast on a CPU as a scatter of
  the logits. `HasVariants.shorten_head` makes the places, which are never
  saved.
  """

  vocab_size: int

  @nn.compact
  def __call__(self, logits: jax.Array) -> jax.Array:
    """Return logits [..., vocab_size], -inf where the head [..., n] has none.

    Token i of the vocabulary has the one at `places[i]`, and none if that is n.
    """
    shape, axes = (self.vocab_size,), ('short_vocab',)
    places = sharding.param('places', _zeros, shape, axes, jnp.int32)
    padding = [(0, 0)] * (logits.ndim - 1) + [(0, 1)]
    padded = jnp.pad(logits, padding, constant_values=-jnp.inf)
    return jnp.take(padded, places, axis=-1, mode='clip')


class MergedProjection(nn.Module):
  """Several linear maps of one input, computed with one concatenated kernel.

  For decoding on one device: one matrix product replaces several.
  `t5_preparation.merge_each` concatenates the kernels; they are never saved.
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
  """Projections from a target's last features, and to predictions of them."""

  embed_dim: int
  feature_dim: int
  dtype: jnp.dtype

  def setup(self):
    axes = 'features', 'embed'
    self.read = Projection(self.embed_dim, axes, self.dtype)
    self.predict = Projection(self.feature_dim, axes[::-1], self.dtype)


class DraftRecurrence(nn.Module):
  """A recurrence over draft tokens, which adds to the logits of each.

    s_i = silu(E[token i - 1] + V x_i + A s_(i - 1)),  logits_i + W s_i

  It is narrow, so that a token costs a small part of what a layer costs. V x of
  all positions is computed at once.

  Reference: the low-rank Markov term of DSpark, arXiv:2607.05147, which has
    neither V nor A.
  """

  vocab_size: int
  dim: int
  dtype: jnp.dtype

  def setup(self):
    project = lambda *axes: Projection(self.dim, axes, self.dtype)
    self.token = Embedding(self.vocab_size, self.dim, self.dtype)
    self.read = project('embed', 'features')
    self.state = project('features', 'kv')
    self.logits_dense = LogitsProjection(self.vocab_size)

  def __call__(
      self, state: jax.Array, tokens: jax.Array, read: jax.Array
  ) -> tuple[jax.Array, jax.Array]:
    """Return float32 logits [..., vocab] to be added, and the next state.

    Args:
      state: [..., dim], zeros before the first position.
      tokens: [...] int32, those before the positions.
      read: [..., dim], V x of the positions.
    """
    state = nn.silu(self.token(tokens) + read + self.state(state))
    return self.logits_dense(state), state


class Embedding(nn.Module):
  """Token embeddings times a factor, looked up by a gather; also a tied head.

  One token may have a row of its own, without the factor.
  """

  vocab_size: int
  features: int
  dtype: jnp.dtype
  scale: float = 1.0
  unscaled_id: int | None = None

  def setup(self):
    shape = self.vocab_size, self.features
    axes = 'vocab', 'embed'
    self.embedding = sharding.param('embedding', _embedding_init, shape, axes)
    if self.unscaled_id is not None:
      self.unscaled = sharding.param('unscaled', _zeros, shape[1:], axes[1:])

  def __call__(self, tokens: jax.Array) -> jax.Array:
    """Look up embeddings: [...] int32 -> [..., features]."""
    x = self.embedding[tokens].astype(self.dtype)
    if self.scale != 1:  # rounded to the dtype, as Gemma does
      x = x * jnp.asarray(self.scale, self.dtype)
    if self.unscaled_id is None:
      return x
    is_unscaled = (tokens == self.unscaled_id)[..., None]
    return jnp.where(is_unscaled, self.unscaled.astype(self.dtype), x)

  def attend(self, x: jax.Array) -> jax.Array:
    """Compute logits: [..., features] -> float32 [..., vocab_size]."""
    return _dot_float32(x, self.embedding.T)


def token_embedding(config: config_lib.Stack) -> Embedding:
  """Return the embedding of tokens of a stack."""
  return Embedding(
      config.vocab_size,
      config.emb_dim,
      config.dtype,
      config.embedding_scale,
      config.unscaled_id,
  )


class Embedder(nn.Module):
  """Embeddings of tokens at positions, [..., embed], from those of tokens."""

  config: config_lib.Stack

  def setup(self):
    config = self.config
    if config.positions == config_lib.LEARNED:
      self.position_embedder = Embedding(
          config.max_positions + config.position_offset,
          config.emb_dim,
          config.dtype,
      )
    if config.embedding_norm:
      self.embedding_layer_norm = norms.of(config)

  def __call__(self, x: jax.Array, positions: jax.Array) -> jax.Array:
    config = self.config
    if config.positions in config_lib.ADDED:
      x = x + self._added(positions)
    return self.embedding_layer_norm(x) if config.embedding_norm else x

  def _added(self, positions: jax.Array) -> jax.Array:
    config = self.config
    if config.max_positions is not None:
      # Rows that have ended go past the last one: what they write is not read.
      # A lookup past a table would be clamped or NaN, as its mode is.
      positions = jnp.minimum(positions, config.max_positions - 1)
    positions = positions + config.position_offset
    if config.positions == config_lib.LEARNED:
      return self.position_embedder(positions)
    cosines, sines = rope.tables(positions, _frequencies(config))
    added = jnp.concatenate([sines, cosines], axis=-1)
    return added.astype(config.dtype)


def _frequencies(config: config_lib.Stack) -> np.ndarray:
  """Return the angle per position of each sinusoid, [embed / 2] float32."""
  if config.positions == config_lib.SINUSOID:
    return rope.frequencies(config.emb_dim, _LONGEST)
  half = config.emb_dim // 2
  step = np.float32(math.log(_LONGEST) / max(half - 1, 1))
  return np.exp(np.arange(half, dtype=np.float32) * -step)


class GatedMlp(nn.Module):
  """A feed-forward block: an output projection of multiplied activations.

  T5 1.1 has the activations ('gelu', 'linear'), T5 1.0 has ('relu',).
  """

  config: config_lib.Stack

  @nn.compact
  def __call__(self, x: jax.Array, *, drop: bool) -> jax.Array:
    config, axes = self.config, ('embed', 'mlp')
    names = mlp_input_names(config.mlp_activations)
    options = config.dtype, fan_in_truncated, config.mlp_bias
    if config.merge_projections:
      features = (config.mlp_dim,) * len(names)
      hidden = MergedProjection(
          features, axes, config.dtype, config.mlp_bias, name='wi'
      )(x)
    else:
      hidden = [
          Projection(config.mlp_dim, axes, *options, name=name)(x)
          for name in names
      ]
    activated = [
        _OWN_ACTIVATIONS.get(name, getattr(nn, name, None))(h)
        for h, name in zip(hidden, config.mlp_activations)
    ]
    gated = functools.reduce(operator.mul, activated)
    gated = nn.Dropout(config.dropout_rate, broadcast_dims=(-2,))(
        gated, deterministic=not drop
    )
    return Projection(x.shape[-1], axes[::-1], *options, name='wo')(gated)


def mlp_input_names(activations: Sequence[str]) -> list[str]:
  """Return T5X's names of the input projections: `wi`, or `wi_0`, `wi_1`."""
  if len(activations) == 1:
    return ['wi']
  return [f'wi_{i}' for i in range(len(activations))]


class RelativePositionBias(nn.Module):
  """T5's learned attention bias, one value per head and distance bucket."""

  config: config_lib.Stack
  bidirectional: bool

  @nn.compact
  def __call__(
      self,
      query_positions: jax.Array,
      key_positions: jax.Array,
      num_positions: int,
  ) -> jax.Array:
    """Return the biases of queries at positions against keys at positions.

    For query positions [..., length] and key positions [..., keys], int32 in
    [0, num_positions), a static bound, they are [..., heads, length, keys].
    """
    shape = self.config.num_heads, NUM_BUCKETS
    axes = 'heads', 'relpos_buckets'
    table = sharding.param('rel_embedding', _bias_init, shape, axes)
    # The buckets of all distances are a compile-time constant.
    distances = np.arange(1 - num_positions, num_positions)
    buckets = relative_position_buckets(distances, self.bidirectional)
    by_distance = table.astype(self.config.dtype)[:, buckets]
    keys = key_positions[..., None, :]
    index = keys - query_positions[..., None] + (num_positions - 1)
    bias = by_distance[:, index]  # [heads, ..., length, keys]
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

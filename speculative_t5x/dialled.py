# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Pairs of any size without their weights, accepting at a rate that is given.

Both models run in earnest, with random weights; only whether a guess is kept
is drawn at a rate instead of being earned. So the walltime is that of a pair of
these sizes with this alpha, on the hardware at hand. What is written means
nothing and does not follow the target's law.

Legend: batch (rows), gamma (guesses a block), vocab.
"""

import functools

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x import loading
from speculative_t5x import seam
from speculative_t5x import verification
from speculative_t5x.networks import preparation
from speculative_t5x.networks import t5

# T5 1.1 as it was published, all but the vocabulary and the activations.
SIZES = {
    'small': dict(emb_dim=512, num_heads=6, num_layers=8, mlp_dim=1024),
    'base': dict(emb_dim=768, num_heads=12, num_layers=12, mlp_dim=2048),
    'large': dict(emb_dim=1024, num_heads=16, num_layers=24, mlp_dim=2816),
    'xl': dict(emb_dim=2048, num_heads=32, num_layers=24, mlp_dim=5120),
    'xxl': dict(emb_dim=4096, num_heads=64, num_layers=24, mlp_dim=10240),
}
VOCAB_SIZE = 32128


@struct.dataclass
class Dialled:
  """Keeps each guess with the same probability, whatever the two laws say.

  Attributes:
    alpha: float32 scalar in [0, 1]; no value recompiles.
  """

  alpha: jax.Array

  def __call__(
      self, target_probs, draft, accept_uniforms, draw_uniforms
  ) -> verification.Verdict:
    """See `verification.verify`; the next token is drawn as it says."""
    num_accepted = verification.count_prefix(
        draft, accept_uniforms < self.alpha
    )
    return verification.draw_next(
        target_probs, draft, num_accepted, draw_uniforms
    )


def make_rule(alpha: float) -> Dialled:
  """The rule that keeps guesses at a rate.

  Raises:
    ValueError: for a rate outside [0, 1].
  """
  if not 0 <= alpha <= 1:
    raise ValueError(f'alpha must lie in [0, 1], got {alpha}.')
  return Dialled(jnp.float32(alpha))


def make_config(size: str, dtype: str = 'float32') -> t5.T5Config:
  """The sizes of a published T5 1.1.

  Args:
    size: 'small', 'base', 'large', 'xl' or 'xxl'.
    dtype: to decode in.
  Raises:
    ValueError: for another size or dtype.
  """
  if size not in SIZES:
    raise ValueError(
        f'There is no T5 1.1 {size!r}. Choose one of {", ".join(SIZES)}.'
    )
  sizes = dict(SIZES[size])
  num_layers = sizes.pop('num_layers')
  return t5.T5Config(
      vocab_size=VOCAB_SIZE,
      num_encoder_layers=num_layers,
      num_decoder_layers=num_layers,
      mlp_activations=('gelu', 'linear'),
      dtype=dtype,
      **sizes,
  )


def make_model(config: t5.T5Config, seed: int = 0) -> loading.Model:
  """A model of random weights, made on the device as decoding wants them.

  No other copy is held meanwhile: an array at a time, in the config's dtype.
  """
  prepared = preparation.merge_config(
      preparation.prepare_config(config, jax.default_backend())
  )
  num_params = count_params(config)
  return loading.Model(prepared, random_params(prepared, seed), num_params)


@functools.cache
def count_params(config: t5.T5Config) -> int:
  """Parameters of a network, as its checkpoint has them."""
  return sum(x.size for x in jax.tree.leaves(loading.abstract_params(config)))


def random_params(config: t5.T5Config, seed: int = 0) -> seam.Params:
  """Random weights of a network's scale, in its dtype."""
  leaves, tree = jax.tree.flatten(loading.abstract_params(config))
  # Made by the generator that is fastest everywhere: nothing depends on it.
  keys = jax.random.split(jax.random.key(seed, impl='rbg'), len(leaves))
  dtype = jnp.dtype(config.dtype)
  values = [_random(leaf.shape, dtype, key) for leaf, key in zip(leaves, keys)]
  return jax.tree.unflatten(tree, values)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random(shape: tuple[int, ...], dtype: jnp.dtype, key) -> jax.Array:
  if len(shape) == 1:  # the scale of a norm
    return jnp.ones(shape, dtype)
  # Uniform of variance 1 / inputs: cheaper than normal, and as good here.
  bound = (3 / shape[0]) ** 0.5
  return jax.random.uniform(key, shape, dtype, -bound, bound)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training on given target tokens: references, or decodes of another model."""

from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.training import batches
from speculative_t5x.training import steps


@struct.dataclass
class CrossEntropy(steps.Objective):
  """The objective of T5X's train job; see `steps.Objective`."""

  # The network, with the dropout rate and the dtype of training.
  network: network_lib.Network = struct.field(pytree_node=False)
  # Weight of the squared log of the softmax normalizer, a term that keeps
  # logits from drifting.
  z_loss: float = struct.field(pytree_node=False, default=1e-4)

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    return models.param_shardings(self.network, mesh)

  def loss(self, params, batch, dropout_key) -> tuple[jax.Array, steps.Sums]:
    logits = self.network.score(
        params, batch.inputs, batch.targets, dropout_key
    )
    losses = per_token(logits, batch.targets, self.z_loss)
    sums = steps.sums(logits, batch.targets, losses)
    return sums.loss, sums


def per_token(
    logits: Float[Array, '*shape vocab'],
    targets: Int[Array, '*shape'],
    z_loss: float = 0.0,
) -> Float[Array, '*shape']:
  """Compute cross entropy and z-loss as T5X does, [...] float32.

  Logits are float32, targets int32 in [0, vocab), or NO_TOKEN, whose loss means
  nothing.
  """
  log_z = jax.nn.logsumexp(logits, axis=-1)
  # NO_TOKEN, -1, takes the last logit, and is masked by who sums up.
  target_logits = jnp.take_along_axis(logits, targets[..., None], axis=-1)
  return log_z - target_logits[..., 0] + z_loss * jnp.square(log_z)


def validation(
    objective: CrossEntropy, examples: batches.TokenPairs
) -> steps.Validation:
  """Return what measures cross entropy and accuracy.

  The examples are [num_batches, batch, length].
  """
  score = lambda measured: -measured['loss']
  return steps.Validation(objective, {'': (_measure, examples)}, score)


def _measure(
    objective: CrossEntropy, params: Any, batch: batches.TokenPairs
) -> dict[str, jax.Array]:
  """Sum up a batch without dropout and z-loss: cross entropy in nats."""
  logits = objective.network.score(params, batch.inputs, batch.targets)
  sums = steps.sums(logits, batch.targets, per_token(logits, batch.targets))
  return {
      'num_tokens': sums.num_tokens,
      'loss': sums.loss,
      'accuracy': sums.num_correct,
  }

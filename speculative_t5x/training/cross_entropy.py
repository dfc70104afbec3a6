# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training on given target tokens: references, or decodes of another model."""

from typing import Any

from flax import struct
import jax
from jax.typing import ArrayLike

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.training import batches
from speculative_t5x.training import losses
from speculative_t5x.training import steps


@struct.dataclass
class CrossEntropy:
  """The objective of T5X's train job; see `steps.Objective`.

  The network has the dropout rate and the dtype of training.
  """

  network: network_lib.Network = struct.field(pytree_node=False)
  loss_config: losses.LossConfig = struct.field(pytree_node=False)

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    return models.param_shardings(self.network, mesh)

  def loss(
      self, params: Any, batch: batches.TokenPairs, dropout_key: jax.Array
  ) -> tuple[jax.Array, losses.Sums]:
    logits = self.network.score(
        params, batch.inputs, batch.targets, dropout_key
    )
    metrics = losses.batch_metrics(logits, batch.targets, self.loss_config)
    return metrics.loss, metrics

  def divisor(self, metrics: losses.Sums, num_positions: int) -> ArrayLike:
    return self.loss_config.divisor(metrics, num_positions)


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
  """Sum up a batch without dropout, z-loss and label smoothing.

  The loss is then the cross entropy in nats, whatever the training loss.
  """
  logits = objective.network.score(params, batch.inputs, batch.targets)
  plain = losses.LossConfig(z_loss=0.0)
  metrics = losses.batch_metrics(logits, batch.targets, plain)
  return {
      'num_tokens': metrics.num_tokens,
      'loss': metrics.loss,
      'accuracy': metrics.num_correct,
  }

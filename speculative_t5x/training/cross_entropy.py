# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training on given target tokens: references, or decodes of another model."""

from collections.abc import Mapping
from typing import Any

from flax import struct
import jax
from jax.typing import ArrayLike

from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.training import batches
from speculative_t5x.training import losses
from speculative_t5x.training import steps


@struct.dataclass
class CrossEntropy:
  """The objective of T5X's train job; see `steps.Objective`.

  Attributes:
    config: of the network, with the dropout rate and the dtype of training.
    loss_config: of the loss.
  """

  config: t5.T5Config = struct.field(pytree_node=False)
  loss_config: losses.LossConfig = struct.field(pytree_node=False)

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """See `steps.Objective.shardings`."""
    return models.param_shardings(self.config, mesh)

  def loss(
      self, params: Any, batch: batches.Examples, dropout_key: jax.Array
  ) -> tuple[jax.Array, losses.Metrics]:
    """See `steps.Objective.loss`."""
    logits = steps.teacher_forced(
        self.config, params, batch, rngs={'dropout': dropout_key}
    )
    metrics = losses.batch_metrics(logits, batch.targets, self.loss_config)
    return metrics.loss, metrics

  def divisor(self, metrics: losses.Metrics, num_positions: int) -> ArrayLike:
    """See `steps.Objective.divisor`."""
    return self.loss_config.divisor(metrics, num_positions)


class Validation:
  """Cross entropy and accuracy; see `trainer.Validation`."""

  def __init__(self, objective: CrossEntropy, examples: batches.Examples):
    """Puts the examples, [num_batches, batch, length], on the device."""
    self._objective = objective
    self._examples = jax.device_put(examples)
    self._evaluate = steps.make_evaluate(_measure)

  def __call__(self, params: Any) -> Mapping[str, float]:
    """See `trainer.Validation`."""
    metrics = self._evaluate(self._objective, params, self._examples)
    return {
        'loss': float(metrics.loss_per_token),
        'accuracy': float(metrics.accuracy),
    }

  def score(self, measured: Mapping[str, float]) -> float:
    """See `trainer.Validation`."""
    return -measured['loss']


def _measure(
    objective: CrossEntropy, params: Any, batch: batches.Examples
) -> losses.Metrics:
  """Returns the metrics of a batch.

  Dropout, z-loss and label smoothing are off, so `loss_per_token` is the cross
  entropy in nats, independent of the training loss.
  """
  logits = steps.teacher_forced(
      objective.config, params, batch, enable_dropout=False
  )
  plain = losses.LossConfig(z_loss=0.0)
  return losses.batch_metrics(logits, batch.targets, plain)

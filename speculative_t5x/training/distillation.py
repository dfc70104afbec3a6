# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a draft model on the target's distributions.

Reference: Zhou et al. (2024), "DistillSpec", arXiv:2310.08461.
"""

from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from speculative_t5x.networks import t5
from speculative_t5x.training import batches
from speculative_t5x.training import divergences
from speculative_t5x.training import losses
from speculative_t5x.training import steps


@struct.dataclass
class Distillation:
  """The objective of a draft model that learns from a target.

  Both networks read the same tokens, and the loss of a token is how far the
  draft model's distribution is from the target's. See `steps.Objective`.

  Attributes:
    target_params: of the target; training does not change them.
    target_config: of the target.
    config: of the draft model.
    divergence: of `divergences`.
  """

  target_params: Any
  target_config: t5.T5Config = struct.field(pytree_node=False)
  config: t5.T5Config = struct.field(pytree_node=False)
  divergence: divergences.Divergence = struct.field(pytree_node=False)

  def loss(
      self, params: Any, batch: batches.Examples, dropout_key: jax.Array
  ) -> tuple[jax.Array, losses.Metrics]:
    """See `steps.Objective.loss`; a token counts as correct if it is both
    models' argmax."""
    draft_logits = steps.teacher_forced(
        self.config, params, batch, rngs={'dropout': dropout_key}
    )
    target_logits = self.target_logits(batch)
    weights = (batch.targets > 0).astype(jnp.float32)
    each = self.divergence(target_logits, draft_logits)
    agrees = jnp.argmax(draft_logits, -1) == jnp.argmax(target_logits, -1)
    metrics = losses.Metrics(
        loss=jnp.sum(jnp.where(weights > 0, each, 0)),
        z_loss=jnp.zeros(()),
        num_correct=jnp.sum(agrees * weights),
        num_tokens=jnp.sum(weights),
    )
    return metrics.loss, metrics

  def target_logits(self, batch: batches.Examples) -> jax.Array:
    """Returns the target's logits of all target tokens."""
    return steps.teacher_forced(
        self.target_config, self.target_params, batch, enable_dropout=False
    )

  def divisor(self, metrics: losses.Metrics, num_positions: int) -> ArrayLike:
    """See `steps.Objective.divisor`: a mean over tokens."""
    return metrics.num_tokens

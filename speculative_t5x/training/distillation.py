# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a draft on the target's distributions.

Reference: Zhou et al. (2024), "DistillSpec", arXiv:2310.08461.
"""

from typing import Any

from flax import struct
import jax
from jax.typing import ArrayLike

from speculative_t5x.networks import network as network_lib
from speculative_t5x.training import batches
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_kinds
from speculative_t5x.training import losses


@struct.dataclass
class Distillation:
  """The objective of a draft that learns from a target; see `steps.Objective`.

  Both read the same tokens, and the loss of a token is how far the draft's
  distribution is from the target's.

  Attributes:
    target_params: The target's parameters, which training does not change.
    target: The target's network.
    draft: What is trained.
    divergence: A function of `divergences`.
  """

  target_params: Any
  target: network_lib.Network = struct.field(pytree_node=False)
  draft: draft_kinds.Draft = struct.field(pytree_node=False)
  divergence: divergences.Divergence = struct.field(pytree_node=False)

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    return self.draft.shardings(mesh)

  def loss(
      self, params: Any, batch: batches.Examples, dropout_key: jax.Array
  ) -> tuple[jax.Array, losses.Metrics]:
    """Compute the divergences of a batch; see `steps.Objective.loss`.

    If the divergence ignores the target's logits, XLA removes the computations
    that only they need: for a draft with an encoder of its own all of the
    target, for a decoder on the target's encoder the target's decoder.
    """
    target_logits, draft_logits = self.logits(params, batch, dropout_key)
    divergence = self.divergence(target_logits, draft_logits, batch.targets)
    metrics = losses.sums(draft_logits, batch.targets, divergence)
    return metrics.loss, metrics

  def logits(
      self,
      params: Any,
      batch: batches.Examples,
      dropout_key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    """Compute the logits of the target and of the draft; no key is no dropout.

    Both are [batch, length of the targets, vocab] float32.
    """
    inputs, outputs = batch.inputs, batch.targets
    features = None
    if self.draft.network.reads_features:
      features = self.target.features(self.target_params, inputs)
    return (
        self.target.score(
            self.target_params, inputs, outputs, features=features
        ),
        self.draft.network.score(
            self.draft.joined(params, self.target_params),
            inputs,
            outputs,
            dropout_key,
            features,
        ),
    )

  def divisor(self, metrics: losses.Metrics, num_positions: int) -> ArrayLike:
    """Return the number of tokens; see `steps.Objective.divisor`."""
    del num_positions
    return metrics.num_tokens

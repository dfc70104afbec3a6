# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a head on the target's last features, by teacher forcing.

Head and target read the same text. At each position the head is fed the
features that the target has at the position before, and learns the target's
distribution and its features there. When it drafts, all but the first of these
features are its own predictions: further passes over the text feed it those of
the pass before.

Legend: batch, length (of the targets), width (of the features).
Reference: Li et al. (2024), "EAGLE", arXiv:2401.15077; for the further passes
  Zhang et al. (2024), "HASS", arXiv:2408.15766.
"""

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float
import optax

from speculative_t5x.networks import network as network_lib
from speculative_t5x.training import distillation
from speculative_t5x.training import steps


@struct.dataclass
class FeatureDistillation(distillation.Distillation):
  """The objective of a head on the target's last features.

  The loss of a token is the mean over the passes of its divergence plus the
  weighted loss of its features.
  """

  # Weight of the loss of predicted features.
  feature_weight: float = struct.field(pytree_node=False, default=1.0)
  # How often the head reads a text: at first with the target's features, then
  # with those that it predicted before.
  num_passes: int = struct.field(pytree_node=False, default=1)

  def loss(self, params, batch, dropout_key) -> tuple[jax.Array, steps.Sums]:
    target, passes = self._read(params, batch, dropout_key, self.num_passes)
    per_token = [
        self.divergence(target.logits, each.logits, batch.targets)
        + self.feature_weight * smooth_l1(target.features, each.features)
        for each in passes
    ]
    mean = sum(per_token) / len(per_token)
    metrics = steps.sums(passes[0].logits, batch.targets, mean)
    return metrics.loss, metrics

  def logits(
      self, params, batch, dropout_key=None
  ) -> tuple[jax.Array, jax.Array]:
    """Compute the logits of the target, and of the head on its features.

    They are those of the first token of a draft at each position.
    """
    target, (first,) = self._read(params, batch, dropout_key, num_passes=1)
    return target.logits, first.logits

  def _read(
      self, params, batch, dropout_key, num_passes: int
  ) -> tuple[network_lib.Scored, list[network_lib.Scored]]:
    """Read a batch by the target, and by the head as often as is said."""
    inputs, outputs = batch.inputs, batch.targets
    features = None  # those of a decoder alone are of no encoder
    if network_lib.has_encoder(self.target):
      features = self.target.features(self.target_params, inputs)
    target = self.target.score_with_features(
        self.target_params, inputs, outputs, features=features
    )
    shown, passes = jax.lax.stop_gradient(target.all_features), []
    for _ in range(num_passes):
      scored = self.draft.score_with_features(
          params,
          inputs,
          outputs,
          dropout_key,
          features,
          network_lib.one_later(shown),
      )
      passes.append(scored)
      shown = scored.all_features
    return target, passes


def smooth_l1(
    target: Float[Array, '*shape width'],
    predicted: Float[Array, '*shape width'],
) -> Float[Array, '*shape']:
  """Return the mean over the width of d^2 / 2, or |d| - 1/2 from |d| = 1 on.

  d is the difference of two features. Gradients flow to the predicted ones.

  Reference: Girshick (2015), arXiv:1504.08083, Eq. 3.
  """
  # A square of a difference in bfloat16 would keep 8 bits.
  as_float32 = lambda x: x.astype(jnp.float32)
  losses = optax.losses.huber_loss(
      as_float32(predicted), jax.lax.stop_gradient(as_float32(target))
  )
  return jnp.mean(losses, axis=-1)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a draft on the target's distributions.

Reference: Zhou et al. (2024), "DistillSpec", arXiv:2310.08461.
"""

from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.training import batches
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_kinds
from speculative_t5x.training import losses
from speculative_t5x.training import steps


@struct.dataclass
class Distillation:
  """The objective of a draft that learns from a target.

  Both read the same tokens, and the loss of a token is how far the draft's
  distribution is from the target's. See `steps.Objective`.

  Attributes:
    target_params: of the target; training does not change them.
    target_config: of the target.
    draft: what is trained.
    divergence: of `divergences`.
  """

  target_params: Any
  target_config: t5.T5Config = struct.field(pytree_node=False)
  draft: draft_kinds.Draft = struct.field(pytree_node=False)
  divergence: divergences.Divergence = struct.field(pytree_node=False)

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """See `steps.Objective.shardings`."""
    return self.draft.shardings(mesh)

  def loss(
      self, params: Any, batch: batches.Examples, dropout_key: jax.Array
  ) -> tuple[jax.Array, losses.Metrics]:
    """Returns the divergences of a batch; see `steps.Objective.loss`.

    If the divergence ignores the target's logits, XLA removes the computations
    that only they need: for a draft with an encoder of its own all of the
    target, for a decoder on the target's encoder the target's decoder.
    """
    target_logits, draft_logits = self.logits(
        params, batch, rngs={'dropout': dropout_key}
    )
    is_token = batch.targets > 0
    over_tokens = lambda x: jnp.sum(jnp.where(is_token, x, 0))
    is_correct = jnp.argmax(draft_logits, -1) == batch.targets
    metrics = losses.Metrics(
        loss=over_tokens(
            self.divergence(target_logits, draft_logits, batch.targets)
        ),
        z_loss=jnp.zeros(()),
        num_correct=over_tokens(is_correct.astype(jnp.float32)),
        num_tokens=over_tokens(jnp.ones(is_token.shape)),
    )
    return metrics.loss, metrics

  def logits(
      self, params: Any, batch: batches.Examples, **kwargs
  ) -> tuple[jax.Array, jax.Array]:
    """Returns the logits of the target and of the draft.

    Args:
      params: of the draft.
      batch: examples.
      **kwargs: see `drafts.Draft.logits`.
    """
    target = self._target_outputs(batch)
    return target.logits, self.draft.logits(params, batch, target, **kwargs)

  def _target_outputs(
      self, batch: batches.Examples
  ) -> draft_kinds.TargetOutputs:
    target = t5_modules.Transformer(self.target_config)
    encoded = target.apply(
        {'params': self.target_params},
        batch.inputs,
        enable_dropout=False,
        method='encode',
    )
    logits, captured = steps.teacher_forced(
        self.target_config,
        self.target_params,
        batch,
        encoded,
        enable_dropout=False,
        mutable='intermediates',
        capture_intermediates=lambda module, _: isinstance(
            module, t5_modules.DecoderLayer
        ),
    )
    decoder = captured['intermediates']['decoder']
    layers = tuple(
        decoder[f'layers_{i}']['__call__'][0]
        for i in range(self.target_config.num_decoder_layers)
    )
    return draft_kinds.TargetOutputs(encoded, layers, logits)

  def divisor(self, metrics: losses.Metrics, num_positions: int) -> ArrayLike:
    """See `steps.Objective.divisor`: a mean over tokens."""
    return metrics.num_tokens

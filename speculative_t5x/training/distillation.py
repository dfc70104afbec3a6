# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of a draft on the target's distributions.

Reference: Zhou et al. (2024), "DistillSpec", arXiv:2310.08461.
"""

from typing import Any

from flax import struct
import jax

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.training import batches
from speculative_t5x.training import divergences
from speculative_t5x.training import steps


@struct.dataclass
class Distillation(steps.Objective):
  """The objective of a draft that learns from a target; see `steps.Objective`.

  Both read the same tokens, and the loss of a token is how far the draft's
  distribution is from the target's.
  """

  target_params: Any  # the target's parameters, which training does not change
  # The target's network.
  target: network_lib.Network = struct.field(pytree_node=False)
  # The draft's network, with dropout rate and dtype of training. It may read
  # the features of the target.
  draft: network_lib.Network = struct.field(pytree_node=False)
  # A function of `divergences`.
  divergence: divergences.Divergence = struct.field(pytree_node=False)
  # Of a head on the target's first layers, how many; else None. The draft has
  # these layers and the head, and the head alone is trained.
  exit_layer: int | None = struct.field(pytree_node=False, default=None)

  # Of what is measured at both temperatures, what tells a better checkpoint.
  score_name = 'acceptance'

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    whole = models.param_shardings(self.draft, mesh)
    return whole if self.exit_layer is None else self.draft.take_head(whole)

  def joined(self, params: Any) -> Any:
    """Return all parameters of the draft, trained or the target's."""
    if self.exit_layer is None:
      return params
    return self.draft.put_head(self.target_params, params)

  def loss(self, params, batch, dropout_key) -> tuple[jax.Array, steps.Sums]:
    """Compute the divergences of a batch; see `steps.Objective.loss`.

    If the divergence ignores the target's logits, XLA removes the computations
    that only they need: for a draft with an encoder of its own all of the
    target, for a decoder on the target's encoder the target's decoder.
    """
    target_logits, draft_logits = self.logits(params, batch, dropout_key)
    divergence = self.divergence(target_logits, draft_logits, batch.targets)
    metrics = steps.sums(draft_logits, batch.targets, divergence)
    return metrics.loss, metrics

  def read(
      self, params: Any, batch: batches.TokenPairs
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Compute both logits without dropout, and the tokens that they are of.

    The tokens are [batch, length] int32, and the logits have an axis `vocab`
    more. Of blocks of draft tokens they are [batch, anchors, gamma + 1], with
    the token behind each block.
    """
    return *self.logits(params, batch), batch.targets

  def logits(
      self,
      params: Any,
      batch: batches.TokenPairs,
      dropout_key: jax.Array | None = None,
  ) -> tuple[jax.Array, jax.Array]:
    """Compute the logits of the target and of the draft; dropout needs a key.

    Both are [batch, length of the targets, vocab] float32.
    """
    inputs, outputs = batch.inputs, batch.targets
    features = None
    if self.draft.reads_features:
      features = self.target.features(self.target_params, inputs)
    return (
        self.target.score(
            self.target_params, inputs, outputs, features=features
        ),
        self.draft.score(
            self.joined(params), inputs, outputs, dropout_key, features
        ),
    )


def check_vocab_sizes(
    target: network_lib.Network, draft: network_lib.Network, setting: str
) -> None:
  """Check that both networks have logits of the same tokens."""
  one, other = target.vocab_size, draft.vocab_size
  if one != other:
    raise ValueError(
        f'The target has logits of {one} tokens and the draft model of {other}.'
        f" Set {setting} to the target's."
    )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The T5X model that trains a draft model on its target's distributions.

Reference: Zhou et al. (2024), "DistillSpec", arXiv:2310.08461.

Legend: batch (examples), length (of the outputs), vocab.
"""

from collections.abc import Mapping
from typing import Any

import clu.metrics as clu_metrics
import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import seqio
from t5x import losses
from t5x import metrics as metrics_lib
from t5x import models
from t5x import optimizers

from speculative_t5x.t5x_guest import draft_module
from speculative_t5x.t5x_guest import freezing
from speculative_t5x.t5x_guest import model as model_lib
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from speculative_t5x.training import draft_kinds

_TOKENS = ('encoder_input_tokens', 'decoder_target_tokens')


class DistillationModel(model_lib.SpeculativeModel):
  """A target and the draft model that learns from it.

  The loss of a token is how far the draft model's distribution is from the
  target's; both read the same examples. Scoring and decoding are those of
  `SpeculativeModel`, so that T5X's evaluation during training decodes with the
  draft model as it is.
  """

  def __init__(
      self,
      module: nn.Module,
      input_vocabulary: seqio.Vocabulary,
      output_vocabulary: seqio.Vocabulary,
      optimizer_def: optimizers.OptimizerDefType,
      *args,
      drafter: draft_module.DraftModule,
      divergence: divergences.Divergence = divergences.forward_kl,
      **kwargs,
  ):
    """Set up the model.

    Args:
      module: See `SpeculativeModel`.
      input_vocabulary: See `SpeculativeModel`.
      output_vocabulary: See `SpeculativeModel`.
      optimizer_def: T5X's Adafactor, for the draft model's parameters.
      *args: See `SpeculativeModel`.
      drafter: The draft model.
      divergence: The loss, a function of `training.divergences`.
      **kwargs: See `SpeculativeModel`.
    Raises:
      ValueError: for another drafter, a draft model of another number of
        logits, another optimizer, or as `SpeculativeModel`.
    """
    if not isinstance(drafter, draft_module.DraftModule):
      raise ValueError(
          f'Only a draft model can be distilled, and DRAFTER is {drafter!r}.'
          ' Give a file configs/t5x/draft_*.gin.'
      )
    super().__init__(
        module,
        input_vocabulary,
        output_vocabulary,
        freezing.DraftOptimizer(optimizer_def),
        *args,
        drafter=drafter,
        **kwargs,
    )
    draft_kinds.check_vocab_sizes(
        self._target_config,
        draft_module.read_config('draft', drafter.module),
        'draft/network.T5Config.vocab_size',
    )
    self._divergence = divergence
    self._draft = models.EncoderDecoderModel(
        drafter.module, input_vocabulary, output_vocabulary, optimizer_def
    )

  def loss_fn(
      self,
      params: Any,
      batch: Mapping[str, jax.Array],
      dropout_rng: jax.Array | None,
  ) -> tuple[jax.Array, metrics_lib.MetricsMap]:
    """Compute how far the draft model is from the target.

    Weights of tokens and the normalizing factor have T5X's meaning. There is no
    z-loss and no label smoothing: the target is what is to be learnt.

    Args:
      params: The parameters of target and draft; gradients reach the draft's
        alone.
      batch: Features of `ExampleIdConverter`, packed or not.
      dropout_rng: Key of the draft model's dropout; None for no dropout. The
        target never has dropout.
    Returns:
      The loss [] float32; and T5X's metrics, of which `accuracy` is the share
      of tokens whose argmax is the target's, with the acceptance rate at
      temperatures 0 and 1, by teacher forcing on the examples' targets.
    """
    target_logits = jax.lax.stop_gradient(self._compute_logits(params, batch))
    with partitioning.axis_rules(self._drafter.rules):
      draft_logits = self._draft._compute_logits(
          params['draft'], batch, dropout_rng
      )
    factor, weights = losses.get_loss_normalizing_factor_and_weights(
        self._loss_normalizing_factor, batch
    )
    if weights is None:
      weights = (batch['decoder_target_tokens'] > 0).astype(jnp.float32)
    divergence = self._divergence(
        target_logits, draft_logits, batch['decoder_target_tokens']
    )
    loss = _sum(divergence, weights)
    if factor is not None:
      loss = loss / factor
    metrics = self._compute_metrics(
        logits=draft_logits,
        targets=jnp.argmax(target_logits, -1),
        mask=weights,
        loss=loss,
        z_loss=jnp.zeros(()),
        segment_ids=_segment_ids(batch),
    )
    rates = draft_acceptance.per_token(target_logits, draft_logits)
    return loss, metrics | {
        f'acceptance_rate/temperature_{temperature}': clu_metrics.Average(
            total=_sum(rate, weights), count=jnp.sum(weights)
        )
        for temperature, rate in rates.items()
    }


def _sum(values: jax.Array, weights: jax.Array) -> jax.Array:
  # Selected, because a divergence may be inf where nothing is to be learnt.
  return jnp.sum(jnp.where(weights > 0, values * weights, 0))


def _segment_ids(batch: Mapping[str, jax.Array]) -> dict[str, jax.Array]:
  """Return what T5X counts packed examples and padding by."""
  suffix = '_segment_ids'
  packed = {
      name.removesuffix(suffix): ids
      for name, ids in batch.items()
      if name.endswith(suffix)
  }
  return packed or {name: batch[name] != 0 for name in _TOKENS}

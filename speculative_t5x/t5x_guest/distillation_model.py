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
from t5x import losses
from t5x import metrics as metrics_lib
from t5x import optimizers

from speculative_t5x.loading.drafters import drafting
from speculative_t5x.t5x_guest import draft_module
from speculative_t5x.t5x_guest import freezing
from speculative_t5x.t5x_guest import model as model_lib
from speculative_t5x.t5x_guest import module_sizes
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance

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
      *,
      optimizer_def: optimizers.OptimizerDefType,
      drafter: draft_module.DraftModule,
      divergence: divergences.Divergence = divergences.forward_kl,
      **kwargs,
  ):
    """Set up the model.

    The arguments are those of `SpeculativeModel`, but:

    Args:
      optimizer_def: T5X's Adafactor, for the draft model's parameters.
      drafter: The draft model.
      divergence: The loss, a function of `training.divergences`.
    Raises:
      ValueError: for another drafter, a draft model of another number of
        logits, another optimizer, or as `SpeculativeModel`.
    """
    if not isinstance(drafter, draft_module.DraftModule):
      raise ValueError(
          f'Only a draft whose sizes T5X knows can be distilled, and drafter is'
          f' {drafter!r}. Give a file configs/t5x/draft_*.gin.'
      )
    module_sizes.read('draft', drafter.module, self.MODULE)
    super().__init__(
        module,
        optimizer_def=freezing.DraftOptimizer(optimizer_def),
        drafter=drafter,
        **kwargs,
    )
    distillation.check_vocab_sizes(
        self._target_config,
        drafter.config_for(self._target_config),
        'draft/network.T5Config.vocab_size',
    )
    self.module = self.module.clone(draft=drafter.module)
    self._draft = drafter
    self._divergence = divergence

  def _add_draft(self, variables: dict[str, Any]) -> None:
    """Set the axes of the draft, whose parameters the module has made."""
    axes = variables['params_axes']
    axes['draft'] = self._draft.place_axes(axes['draft'])

  def _found(self, params: Any) -> drafting.Drafting:
    """Return the draft as it is, to decode during training."""
    return self._draft.drafting(self._target_source(), params['draft'])

  def loss_fn(
      self, params, batch, dropout_rng
  ) -> tuple[jax.Array, metrics_lib.MetricsMap]:
    """Compute how far the draft model is from the target.

    A draft without an encoder reads the output of the target's. Weights of
    tokens and the normalizing factor have T5X's meaning. There is no z-loss and
    no label smoothing: the target is what is to be learnt. The batch has the
    features of `ExampleIdConverter`, packed or not. The key is of the draft
    model's dropout, None for none; the target never has any. Gradients reach
    the draft's parameters alone.

    Returns:
      The loss [] float32; and T5X's metrics, of which `accuracy` is the share
      of tokens whose argmax is the target's, with the acceptance rate at
      temperatures 0 and 1, by teacher forcing on the examples' targets.
    """
    features = _encode(self.module, params, batch)
    target_logits = _decode(self.module, params, features, batch)
    # Nothing of the target is trained, whatever divergence is given: gradients
    # would be made for all of its parameters, of which the optimizer has none.
    features, target_logits = jax.lax.stop_gradient((features, target_logits))
    draft, own = self._draft.module, params['draft']
    with partitioning.axis_rules(self._draft.rules):
      if draft_module.has_encoder(draft):
        features = _encode(draft, own, batch, dropout_rng)
      draft_logits = _decode(draft, own, features, batch, dropout_rng)
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


def _encode(
    module: nn.Module,
    params: Any,
    batch: Mapping[str, jax.Array],
    dropout_rng: jax.Array | None = None,
) -> jax.Array:
  """Return the output of a module's encoder, [batch, inputs_length, embed]."""
  return module.apply(
      {'params': params},
      batch['encoder_input_tokens'],
      encoder_segment_ids=batch.get('encoder_segment_ids'),
      **_dropout(dropout_rng),
      method='encode',
  )


def _decode(
    module: nn.Module,
    params: Any,
    encoded: jax.Array,
    batch: Mapping[str, jax.Array],
    dropout_rng: jax.Array | None = None,
) -> jax.Array:
  """Return the logits of a module's decoder, [batch, length, vocab]."""
  names = 'encoder_segment_ids', 'decoder_segment_ids', 'decoder_positions'
  return module.apply(
      {'params': params},
      encoded,
      batch['encoder_input_tokens'],
      batch['decoder_input_tokens'],
      batch['decoder_target_tokens'],
      **{name: batch.get(name) for name in names},
      **_dropout(dropout_rng),
      method='decode',
  )


def _dropout(key: jax.Array | None) -> dict[str, Any]:
  rngs = None if key is None else {'dropout': key}
  return {'enable_dropout': key is not None, 'rngs': rngs}


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

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Cross entropy with z-loss, as T5X computes it.

The loss is summed over the batch unless a normalizer is set. A place without
a token (`contracts.NO_TOKEN`) has weight 0.

Legend: batch, length (of the targets), vocab, num_steps.
"""

import dataclasses

from flax import struct
import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float, Int
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

_NORMALIZERS = ('NUM_REAL_TARGET_TOKENS', 'NUM_TOTAL_TARGET_TOKENS')
_NORMALIZER = dataclasses.replace(
    ranges.POSITIVE,
    allowed=f'be None, one of {_NORMALIZERS}, or a number above 0',
)


@dataclasses.dataclass(frozen=True)
class LossConfig:
  """The configuration of the training loss, under T5X's names.

  Attributes:
    z_loss: Weight of the squared log of the softmax normalizer, a term that
      keeps logits from drifting.
    label_smoothing: Probability spread over the other tokens, in [0, 1).
    loss_normalizing_factor: Divisor of the batch's sum: a number,
      NUM_REAL_TARGET_TOKENS, NUM_TOTAL_TARGET_TOKENS (which counts padding
      too), or None for no division. None is T5X's default; Adafactor is almost
      invariant to the scale of gradients.
  """

  z_loss: float = 1e-4
  label_smoothing: float = 0.0
  loss_normalizing_factor: float | str | None = None

  def __post_init__(self):
    ranges.check_settings(ranges.COEFFICIENT, z_loss=self.z_loss)
    ranges.check_settings(
        ranges.RATE_BELOW_1, label_smoothing=self.label_smoothing
    )
    factor = self.loss_normalizing_factor
    if factor is not None and factor not in _NORMALIZERS:
      ranges.check_settings(_NORMALIZER, loss_normalizing_factor=factor)

  def divisor(self, metrics: 'Sums', num_positions: int) -> ArrayLike:
    """Return what the batch's sum is divided by; see `steps.Objective.divisor`.
    """
    match self.loss_normalizing_factor:
      case None:
        return 1.0
      case 'NUM_REAL_TARGET_TOKENS':
        return metrics.num_tokens
      case 'NUM_TOTAL_TARGET_TOKENS':
        return num_positions
      case number:
        return number


@struct.dataclass
class Sums:
  """Sums over target tokens, each [] float32, or [num_steps] for several steps.
  """

  loss: ArrayLike  # cross entropy and z-loss, before normalization
  num_correct: ArrayLike  # target tokens with the largest logit
  num_tokens: ArrayLike  # target tokens


def sums(
    logits: Float[Array, 'batch length vocab'],
    targets: Int[Array, 'batch length'],
    losses: Float[Array, 'batch length'],
) -> Sums:
  """Sum the losses of tokens over a batch, and count its tokens.

  Logits and losses are float32, targets int32.
  """
  is_token = targets != contracts.NO_TOKEN
  # Selected, because a loss may be inf where nothing is to be learnt.
  over_tokens = lambda x: jnp.sum(jnp.where(is_token, x, 0.0))
  is_correct = jnp.argmax(logits, axis=-1) == targets
  return Sums(
      loss=over_tokens(losses),
      num_correct=over_tokens(is_correct.astype(jnp.float32)),
      num_tokens=over_tokens(1.0),
  )


def cross_entropy(
    logits: Float[Array, '*shape vocab'],
    targets: Int[Array, '*shape'],
    *,
    z_loss: float = 0.0,
    label_smoothing: float = 0.0,
) -> Float[Array, '*shape']:
  """Compute the cross entropy of each token, plus z-loss, [...] float32.

  With label smoothing, the target token has probability 1 - label_smoothing and
  the other tokens share the rest equally. As in T5X, the entropy of that
  distribution is subtracted, so that the minimum of the loss is 0.

  Logits are float32, targets int32 in [0, vocab), or NO_TOKEN, whose loss means
  nothing; label_smoothing is static.
  """
  log_z = jax.nn.logsumexp(logits, axis=-1)
  target_logits = jnp.take_along_axis(logits, targets[..., None], axis=-1)
  loss = log_z - target_logits[..., 0]
  if label_smoothing:
    vocab = logits.shape[-1]
    share = label_smoothing / (vocab - 1)
    sum_of_all = vocab * log_z - logits.sum(axis=-1)
    confidence = 1.0 - label_smoothing
    loss = confidence * loss + share * (sum_of_all - loss)
    # The entropy of the smoothed label.
    loss -= -confidence * np.log(confidence) - label_smoothing * np.log(share)
  return loss + z_loss * jnp.square(log_z)


def batch_metrics(
    logits: Float[Array, 'batch length vocab'],
    targets: Int[Array, 'batch length'],
    config: LossConfig,
) -> Sums:
  """Compute the sums of a batch, the training loss among them; see `sums`."""
  losses = cross_entropy(
      logits,
      targets,
      z_loss=config.z_loss,
      label_smoothing=config.label_smoothing,
  )
  return sums(logits, targets, losses)

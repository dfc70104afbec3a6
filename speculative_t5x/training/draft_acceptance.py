# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Acceptance of a draft model's tokens, measured by teacher forcing.

Both models read the target's own decodes. At temperature 0 a draft token is
accepted if it is the target's argmax; at temperature 1 with probability
min(1, p / q). No draft is decoded: one pass over the decodes measures all of
their positions.

Legend: examples, length (of the decodes), vocab, gammas.
"""

from collections.abc import Mapping, Sequence
import functools
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import steps

GAMMAS = (3, 5, 7)


@struct.dataclass
class Counts:
  """Sums over the tokens of decodes, each a float32 array.

  Attributes:
    num_tokens: [].
    accepted: [], probabilities that a draft token at a position is accepted.
    made: [gammas], expected tokens of target calls that begin at a token.
    divergence: [], see `divergences`.
  """

  num_tokens: Array
  accepted: Array
  made: Array
  divergence: Array


def expected_tokens(
    reached: Float[Array, 'examples length'],
    is_token: Bool[Array, 'examples length'],
    gammas: Sequence[int] = GAMMAS,
) -> Float[Array, 'examples length gammas']:
  """Returns the expected tokens of a target call that begins at each token.

  A call makes its first token in any case, the next one if the first draft
  token is accepted, and so on up to gamma + 1, or to the end of the decode.

  Args:
    reached: probability that a call which reaches a token of the decode
      continues past it. At temperature 0 it is 1 or 0; at temperature 1,
      min(1, q / p) of the token. Over samples of the target, the mean of the
      product of successive values is the probability that all of these are
      accepted.
    is_token: False for padding.
    gammas: draft tokens per call (static).
  """
  is_token = is_token.astype(reached.dtype)
  accepted, total, totals = is_token, is_token, []
  for i in range(max(gammas)):
    accepted = accepted * _ahead(reached, i) * _ahead(is_token, i + 1)
    total = total + accepted
    totals.append(total)
  return jnp.stack([totals[gamma - 1] for gamma in gammas], axis=-1)


def _ahead(x: jax.Array, places: int) -> jax.Array:
  """Returns the entries so many places further on, 0 past the end."""
  return jnp.pad(x, ((0, 0), (0, places)))[:, places:]


def per_token(
    target_logits: Float[Array, '*shape vocab'],
    draft_logits: Float[Array, '*shape vocab'],
) -> dict[int, Float[Array, '*shape']]:
  """Returns the probability that a draft token is accepted, by temperature.

  Args:
    target_logits: [..., vocab] of a floating dtype.
    draft_logits: likewise.
  Returns:
    By temperature, [...] float32: for 0, 1 where both have the same argmax and
    0 elsewhere; for 1, the sum of min(p, q).
  """
  agrees = jnp.argmax(target_logits, -1) == jnp.argmax(draft_logits, -1)
  return {
      0: agrees.astype(jnp.float32),
      1: 1 - divergences.total_variation(target_logits, draft_logits),
  }


def _count(
    temperature: float,
    objective: distillation.Distillation,
    params: Any,
    batch: batches.Examples,
) -> Counts:
  """Returns the counts of a batch of decodes at a temperature of 0 or 1."""
  target_logits, draft_logits = objective.logits(
      params, batch, enable_dropout=False
  )
  is_token = batch.targets > 0
  accepted = per_token(target_logits, draft_logits)[temperature]
  reached = accepted  # the tokens are the target's argmax, up to near ties
  if temperature == 1:
    reached = _reached(target_logits, draft_logits, batch.targets)
  over_tokens = lambda x: jnp.sum(jnp.where(is_token, x, 0))
  return Counts(
      num_tokens=jnp.sum(is_token, dtype=jnp.float32),
      accepted=over_tokens(accepted),
      made=jnp.sum(expected_tokens(reached, is_token), axis=(0, 1)),
      divergence=over_tokens(
          objective.divergence(target_logits, draft_logits, batch.targets)
      ),
  )


def _reached(target_logits, draft_logits, tokens):
  """Returns the probability that a token is accepted if it is drafted."""
  p, q = (
      jnp.take_along_axis(jax.nn.log_softmax(x), tokens[..., None], -1)[..., 0]
      for x in (target_logits, draft_logits)
  )
  return jnp.exp(jnp.minimum(q - p, 0))


class Validation:
  """Measures acceptance on the target's decodes; see `trainer.Validation`."""

  def __init__(
      self,
      objective: distillation.Distillation,
      decodes: Mapping[int, batches.Examples],
  ):
    """Puts the decodes on the device.

    Args:
      objective: of the training.
      decodes: the target's, [num_batches, batch, length], by their temperature,
        0 and 1.
    """
    self._objective = objective
    self._decodes = jax.device_put(dict(decodes))
    self._evaluate = {
        temperature: steps.make_evaluate(functools.partial(_count, temperature))
        for temperature in decodes
    }

  def __call__(self, params: Any) -> Mapping[str, float]:
    """See `trainer.Validation`."""
    found = {}
    for temperature, decodes in self._decodes.items():
      counts = self._evaluate[temperature](self._objective, params, decodes)
      name = lambda what: f'{what}_t{temperature}'  # noqa: B023
      per_token = lambda x: float(x / counts.num_tokens)  # noqa: B023
      found[name('acceptance')] = per_token(counts.accepted)
      found[name('divergence')] = per_token(counts.divergence)
      for gamma, made in zip(GAMMAS, counts.made, strict=True):
        found[name(f'tokens_per_call_{gamma}')] = per_token(made)
    return found

  def score(self, measured: Mapping[str, float]) -> float:
    """Returns the mean of both acceptance rates."""
    return (measured['acceptance_t0'] + measured['acceptance_t1']) / 2

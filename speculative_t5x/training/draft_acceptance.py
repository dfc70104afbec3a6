# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Acceptance of a draft model's tokens, measured by teacher forcing.

Both models read the target's own decodes. At temperature 0 a draft token is
accepted if it is the target's argmax; at temperature 1 with probability
min(1, p / q). No draft is decoded: one pass over the decodes measures all of
their positions.

Legend: examples, length (of the decodes), vocab, gammas.
"""

from collections.abc import Mapping
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import steps

GAMMAS = (3, 5, 7)


def expected_tokens(
    reached: Float[Array, 'examples length'],
    is_token: Bool[Array, 'examples length'],
) -> Float[Array, 'examples length gammas']:
  """Compute the expected tokens of a call that begins at each token, by gamma.

  A call makes its first token in any case, the next one if the first draft
  token is accepted, and so on up to gamma + 1, or to the end of the decode.

  Args:
    reached: [examples, length]. Probability that a call which reaches a token
      of the decode continues past it. At temperature 0 it is 1 or 0; at
      temperature 1, min(1, q / p) of the token. Over samples of the target, the
      mean of the product of successive values is the probability that all of
      these are accepted.
    is_token: [examples, length]. False past the end of a decode.
  """
  is_token = is_token.astype(reached.dtype)
  accepted, total, totals = is_token, is_token, []
  for i in range(max(GAMMAS)):
    accepted = accepted * _ahead(reached, i) * _ahead(is_token, i + 1)
    total = total + accepted
    totals.append(total)
  return jnp.stack([totals[gamma - 1] for gamma in GAMMAS], axis=-1)


def _ahead(x: jax.Array, places: int) -> jax.Array:
  """Return the entries so many places further on, 0 past the end."""
  return jnp.pad(x, ((0, 0), (0, places)))[:, places:]


def per_token(
    target_logits: Float[Array, '*shape vocab'],
    draft_logits: Float[Array, '*shape vocab'],
) -> dict[int, Float[Array, '*shape']]:
  """Compute the probability that a draft token is accepted, by temperature.

  Logits have a floating dtype.

  Returns:
    By temperature, [...] float32: for 0, 1 where both have the same argmax and
    0 elsewhere; for 1, the sum of min(p, q).
  """
  agrees = jnp.argmax(target_logits, -1) == jnp.argmax(draft_logits, -1)
  return {
      0: agrees.astype(jnp.float32),
      1: 1 - divergences.total_variation(target_logits, draft_logits),
  }


def _measure(
    temperature: int,
    objective: distillation.Distillation,
    params: Any,
    batch: batches.TokenPairs,
) -> dict[str, jax.Array]:
  """Sum up a batch of decodes of a temperature, 0 or 1; see `steps.Measure`."""
  target_logits, draft_logits = objective.logits(params, batch)
  is_token = batch.targets != contracts.NO_TOKEN
  accepted = per_token(target_logits, draft_logits)[temperature]
  reached = accepted  # the tokens are the target's argmax, up to near ties
  if temperature == 1:
    log_p, log_q = (
        -divergences.cross_entropy(x, x, batch.targets)
        for x in (target_logits, draft_logits)
    )
    # Cut before the exponential, which would overflow at tokens that the
    # target hardly ever writes.
    reached = jnp.exp(jnp.minimum(log_q - log_p, 0))
  made = expected_tokens(reached, is_token)
  values = {
      'num_tokens': 1.0,
      'acceptance': accepted,
      'divergence': objective.divergence(
          target_logits, draft_logits, batch.targets
      ),
      **{
          f'tokens_per_call_{gamma}': made[..., i]
          for i, gamma in enumerate(GAMMAS)
      },
  }
  return {
      name: jnp.sum(jnp.where(is_token, x, 0.0)) for name, x in values.items()
  }


def validation(
    objective: distillation.Distillation,
    decodes: Mapping[int, batches.TokenPairs],
) -> steps.Validation:
  """Return what measures acceptance on the target's decodes.

  These are [num_batches, batch, length], by their temperature, 0 and 1. The
  score is the mean of both acceptance rates.
  """
  return steps.Validation(
      objective,
      {
          f'_t{temperature}': (
              functools.partial(_measure, temperature), examples
          )
          for temperature, examples in decodes.items()
      },
      lambda found: (found['acceptance_t0'] + found['acceptance_t1']) / 2,
  )  # fmt: skip

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
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches
from speculative_t5x.training import distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import steps

GAMMAS = (3, 5, 7)


def accepted_up_to(
    reached: Float[Array, '*shape'], is_token: Bool[Array, '*or_one_longer']
) -> Float[Array, 'examples length most']:
  """Compute the probability that the first 1, 2, ... draft tokens are accepted.

  A call that begins at a token of the decode makes it in any case, the next one
  if the first draft token is accepted, and so on to the end of the decode.

  Args:
    reached: [examples, length]. Probability that a call which reaches a token
      of the decode continues past it. At temperature 0 it is 1 or 0; at
      temperature 1, min(1, q / p) of the token. Over samples of the target, the
      mean of the product of successive values is the probability that all of
      these are accepted. Of blocks it is [examples, blocks, gamma].
    is_token: [examples, length], of blocks [examples, blocks, gamma + 1]. False
      past the end of a decode.
  """
  most, is_token = max(GAMMAS), is_token.astype(reached.dtype)
  if reached.ndim == 2:
    ahead = lambda x: jnp.pad(x, ((0, 0), (0, most)))[
        :, np.arange(x.shape[1])[:, None] + np.arange(most + 1)
    ]
    reached, is_token = ahead(reached), ahead(is_token)
  gamma = min(is_token.shape[-1] - 1, most)
  continued = reached[..., :gamma] * is_token[..., 1 : gamma + 1]
  accepted = is_token[..., :1] * jnp.cumprod(continued, axis=-1)
  # A short block has no more than its own tokens.
  return jnp.pad(accepted, ((0, 0), (0, 0), (0, most - gamma)))


def per_token(
    target_logits: Float[Array, '*shape vocab'],
    draft_logits: Float[Array, '*shape vocab'],
) -> dict[int, Float[Array, '*shape']]:
  """Compute the probability that a draft token is accepted, by temperature.

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
  """Sum up a batch of decodes of a temperature, 0 or 1; see `steps.Measure`.

  `accepted_3` is the rate of drafts of which the first 3 tokens are accepted.
  """
  target_logits, draft_logits, tokens = objective.read(params, batch)
  is_token, is_block = tokens != contracts.NO_TOKEN, tokens.ndim > 2
  if is_block:  # the last token is behind the block
    tokens = tokens[..., :-1]
  accepted = per_token(target_logits, draft_logits)[temperature]
  reached = accepted  # the tokens are the target's argmax, up to near ties
  if temperature == 1:
    log_p, log_q = (
        -divergences.cross_entropy(x, x, tokens)
        for x in (target_logits, draft_logits)
    )
    # Cut before the exponential, which would overflow at tokens that the
    # target hardly ever writes.
    reached = jnp.exp(jnp.minimum(log_q - log_p, 0))
  divergence = objective.divergence(target_logits, draft_logits, tokens)
  up_to = accepted_up_to(reached, is_token)
  if is_block:  # of a block its first token, as of other drafts
    is_token, accepted, divergence = (
        x[..., 0] for x in (is_token, accepted, divergence)
    )
  values = {
      'num_tokens': 1.0,
      'acceptance': accepted,
      'divergence': divergence,
      **{
          f'tokens_per_call_{gamma}': 1 + up_to[..., :gamma].sum(axis=-1)
          for gamma in GAMMAS
      },
      **{f'accepted_{i + 1}': up_to[..., i] for i in range(max(GAMMAS))},
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
  score is the mean of the objective's `score_name` at both.
  """
  return steps.Validation(
      objective,
      {
          f'_t{temperature}': (
              functools.partial(_measure, temperature), examples
          )
          for temperature, examples in decodes.items()
      },
      lambda found: sum(found[f'{objective.score_name}_t{x}'] for x in (0, 1))
      / 2,
  )  # fmt: skip

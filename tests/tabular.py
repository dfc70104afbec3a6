# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Outputs of `speculative_t5x.testing.table_model`, and a decoder alone."""

import dataclasses
import itertools

import jax.numpy as jnp
import numpy as np

from speculative_t5x import testing
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.testing import table_model


def exact_distribution(
    probs: np.ndarray, limit: int
) -> dict[tuple[int, ...], float]:
  """Returns the probability of every output, from one table of probabilities.

  Args:
    probs: [vocab + 1, vocab + 1, vocab], rows sum to 1.
    limit: most tokens.
  """
  return testing.exact_distribution(
      lambda tokens: probs[table_model.place(tokens)],
      limit,
      t5.SPECIAL_IDS.end,
  )


def outputs(vocab_size: int, limit: int) -> list[tuple[int, ...]]:
  """Returns every possible output, in a fixed order."""
  found = []
  for length in range(1, limit + 1):
    for tokens in itertools.product(range(vocab_size), repeat=length):
      inner = t5.SPECIAL_IDS.end in tokens[:-1]
      complete = tokens[-1] == t5.SPECIAL_IDS.end or length == limit
      if complete and not inner:
        found.append(tokens)
  return found


@dataclasses.dataclass(frozen=True)
class Prompted(table_model.Model):
  """A decoder alone: its inputs are prompts, which are its first tokens.

  The inputs are the table, the prompt's length and the prompt of each example,
  [examples, 2 + longest].
  """

  def start(self, params, inputs, rows, slots) -> contracts.Started:
    """See `contracts.Model.start`."""
    inputs = jnp.asarray(inputs)
    repeats = rows // inputs.shape[0]
    offsets = jnp.repeat(inputs[:, 1] - 1, repeats)
    prompts = jnp.repeat(inputs[:, 2:], repeats, axis=0)
    fed = jnp.where(
        jnp.arange(prompts.shape[1]) < offsets[:, None],
        prompts,
        table_model.STALE,
    )
    cache = jnp.pad(
        fed, ((0, 0), (0, slots)), constant_values=table_model.STALE
    )
    first = jnp.take_along_axis(prompts, offsets[:, None], axis=1)[:, 0]
    return contracts.Started(inputs[:, 0], cache, offsets, first)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several decodes per example, in T5X's order."""

from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import beam_rows


def best_last(log_probs: jax.Array, tree: Any, num_decodes: int) -> Any:
  """Order the decodes of each example by score, as T5X does.

  Args:
    log_probs: [rows], an example's decodes next to each other.
    tree: Pytree of arrays [rows, ...].
    num_decodes: Rows per example (static).
  Returns:
    The tree of arrays [examples, num_decodes, ...], scores ascending; equal
    ones as they were decoded.
  """
  by_example = lambda x: x.reshape(
      x.shape[0] // num_decodes, num_decodes, *x.shape[1:]
  )  # not -1, which is ambiguous where a position's axis has size 0
  order = jnp.argsort(by_example(log_probs), axis=1, stable=True)
  return beam_rows.gather(jax.tree.map(by_example, tree), order)

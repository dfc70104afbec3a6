# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The widths of verification: short drafts take less time than long ones.

A compiled program has fixed shapes. Verification is therefore compiled at a few
widths, and each step runs at the smallest one that holds the longest draft of
the batch.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import forms


def of_block(size: int) -> tuple[int, ...]:
  """Return the widths to compile: powers of two, and the whole block."""
  powers = (1 << i for i in range(size.bit_length()))
  return (*(power for power in powers if power < size), size)


def of(form: forms.Chain | forms.Tree, is_constant: bool) -> tuple[int, ...]:
  """Return the widths of verification; one if drafts are all of one length.

  Args:
    form: That of the drafter.
    is_constant: Whether it is always asked for gamma tokens.
  """
  if form.drafts_all_wanted and is_constant:
    return (form.num_nodes,)
  return of_block(form.num_nodes)


def at_smallest(
    widths: Sequence[int],
    num_needed: jax.Array,
    run: Callable[[int, Any], Any],
    carry: Any,
) -> Any:
  """Call `run` at the smallest width that is enough.

  Args:
    widths: Ascending (static). If there is one, there is no branch.
    num_needed: int32 scalar in [0, the last width]; for 0 it may call nothing.
    run: Takes a width and the carry, and returns the next carry.
  """
  if len(widths) == 1:
    return run(widths[0], carry)
  for width, is_chosen in zip(widths, chosen(widths, num_needed), strict=True):
    carry = when(is_chosen, lambda x, width=width: run(width, x), carry)
  return carry


def chosen(widths: Sequence[int], num_needed: jax.Array) -> list[jax.Array]:
  """Return which width is the smallest one that is enough, bool scalars."""
  # If nothing is needed, as no row is active, no width is chosen.
  pairs = zip((0, *widths), widths)
  return [(below < num_needed) & (num_needed <= top) for below, top in pairs]


def when(is_wanted: jax.Array, run: Callable[[Any], Any], carry: Any) -> Any:
  """Return `run(carry)` if it is wanted, and otherwise the carry.

  A loop of at most one step: `lax.cond` and `lax.switch` copy every cache that
  passes through them on CPU, and a loop copies none.
  """
  _, carry = lax.while_loop(
      lambda state: state[0],
      lambda state: (jnp.zeros_like(state[0]), run(state[1])),
      (is_wanted, carry),
  )
  return carry

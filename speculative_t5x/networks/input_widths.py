# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The widths of the encoder: short inputs take less time than long ones.

A compiled program has fixed shapes. What reads the inputs is therefore compiled
at a few widths, and each batch runs at the smallest one that holds its longest
input; the padding behind it is not computed.
"""

from collections.abc import Callable
from typing import TypeVar

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import widths

_MIN_WIDTH = 16  # below it, most of the time goes into reading the weights
_MAX_HALVINGS = 2  # each compiles the encoder once more

# The scope of what reads inputs in a loop, in traces.
SCOPE = 'input_width'

_Tree = TypeVar('_Tree')


def of_inputs(length: int) -> tuple[int, ...]:
  """Return the widths to compile: halves of the length, and itself."""
  halves = (-(-length // 2**i) for i in range(_MAX_HALVINGS, 0, -1))
  return (*(width for width in halves if width >= _MIN_WIDTH), length)


def at_smallest(
    is_input: jax.Array, axis: int, run: Callable[[int], _Tree]
) -> _Tree:
  """Call `run` at the smallest width that holds every input of the batch.

  A row without any token attends to all positions alike, so that its output
  depends on all of them: such a batch runs at the whole width.

  The result has no reverse-mode gradient (`widths.when` is a loop). It is what
  `run` returns, arrays of the width on the axis of positions, with zeros at
  those that it did not read; `is_input` is [examples, inputs_length] bool.
  """
  length = is_input.shape[-1]
  sizes = of_inputs(length)
  if len(sizes) == 1:
    return run(length)
  numbers = jnp.arange(1, length + 1)
  lengths = jnp.max(jnp.where(is_input, numbers, 0), axis=-1)
  longest = jnp.max(jnp.where(lengths > 0, lengths, length))

  def fill(width: int, carry: _Tree) -> _Tree:
    put = lambda old, new: lax.dynamic_update_slice_in_dim(old, new, 0, axis)
    return jax.tree.map(put, carry, run(width))

  empty = jax.tree.map(
      lambda x: jnp.zeros(x.shape, x.dtype), jax.eval_shape(lambda: run(length))
  )
  with jax.named_scope(SCOPE):
    return widths.at_smallest(sizes, longest, fill, empty)

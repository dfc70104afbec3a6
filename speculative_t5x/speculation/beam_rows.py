# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows of the beams of an example, which continue each other.

Legend: examples, beams, rows (examples times beams, the beams of an example
next to each other).
"""

from typing import TypeVar

import jax
from jax import lax
import jax.numpy as jnp

_Tree = TypeVar('_Tree')


def take(tree: _Tree, parents: jax.Array) -> _Tree:
  """Give each row a copy of the row that it continues.

  Args:
    tree: Arrays [rows, ...]. With one beam they are returned as they are, since
      a single row may have no axis for it.
    parents: [examples, beams] int32, the beam that each continues.
  """
  if parents.shape[1] == 1:
    return tree
  # A TPU gathers rows of such arrays in several passes over them, in a layout
  # that no other part of a step wants; a CPU copies the rows alone.
  return lax.platform_dependent(
      tree, parents, tpu=select_each, default=take_each
  )


def take_each(tree: _Tree, parents: jax.Array) -> _Tree:
  """Copy the rows; see `take`."""
  examples, beams = parents.shape
  first = jnp.arange(examples, dtype=parents.dtype)[:, None] * beams
  rows = (first + parents).reshape(-1)
  # Without a mode it would also select per element whether a row is there.
  return jax.tree.map(lambda x: jnp.take(x, rows, axis=0, mode='clip'), tree)


def select_each(tree: _Tree, parents: jax.Array) -> _Tree:
  """Select among all beams; see `take`."""

  def of_beams(x: jax.Array) -> jax.Array:
    by_beam = x.reshape(*parents.shape, *x.shape[1:])
    place = _lengthened(parents, x.ndim + 1)
    return choose(
        place, [by_beam[:, i : i + 1] for i in range(parents.shape[1])]
    ).reshape(x.shape)

  return jax.tree.map(of_beams, tree)


def gather(tree: _Tree, index: jax.Array) -> _Tree:
  """Return entries of arrays [examples, any, ...], by index [examples, any]."""
  take = lambda x: jnp.take_along_axis(x, _lengthened(index, x.ndim), axis=1)
  return jax.tree.map(take, tree)


def where(is_chosen: jax.Array, chosen: _Tree, other: _Tree) -> _Tree:
  """Choose one of two trees of arrays [examples, ...] in each example."""
  choose_array = lambda one, two: jnp.where(
      _lengthened(is_chosen, one.ndim), one, two
  )
  return jax.tree.map(choose_array, chosen, other)


def _lengthened(x: jax.Array, ndim: int) -> jax.Array:
  return x.reshape(*x.shape, *[1] * (ndim - x.ndim))


def choose(index: jax.Array, options: list[jax.Array]) -> jax.Array:
  """Return, element by element, the option of an index; they broadcast."""
  chosen, *others = options
  for number, option in enumerate(others, start=1):
    chosen = jnp.where(index == number, option, chosen)
  return chosen

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of tokens, of a shape of their own per example.

Legend: examples, roots (per example), nodes (of a tree, its roots included),
width (most children of a node).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts


class Candidates(NamedTuple):
  """Roots and draft tokens. The first nodes are the roots.

  A node's children are tested in their order.

  Attributes:
    tokens: [examples, nodes] int32. Those of the roots do not matter to the
      target, which is fed its own.
    parents: [examples, nodes] int32, the node that each continues, itself of a
      root. It comes before the node.
    is_there: [examples, nodes] bool, False where a node only fills the tree.
    logits: [examples, nodes that may have children, vocab], of the draft model:
      what the children of each node were drawn from. None if they were not
      drawn: then they follow from the tokens before them, and no two of a node
      are equal.
  """

  tokens: jax.Array
  parents: jax.Array
  is_there: jax.Array
  logits: jax.Array | None = None


def of_roots(tokens: jax.Array) -> Candidates:
  """Return trees of roots alone, by their tokens [examples, roots] int32."""
  index = jnp.arange(tokens.shape[1], dtype=jnp.int32)
  return Candidates(
      tokens,
      jnp.broadcast_to(index, tokens.shape),
      jnp.ones(tokens.shape, bool),
  )


def of_chains(draft: contracts.Draft, roots: int) -> Candidates:
  """Return the trees of drafts, a chain behind each root.

  Draft tokens are [rows, gamma], the rows of an example next to each other.
  """
  rows, gamma = draft.tokens.shape
  examples = rows // roots
  is_there = jnp.arange(gamma, dtype=jnp.int32) < draft.lengths[:, None]
  # Depth by depth: the parent of a node is `roots` places before it.
  by_depth = lambda x: jnp.moveaxis(
      x.reshape(examples, roots, gamma), 1, 2
  ).reshape(examples, gamma * roots)
  parents = jnp.arange(gamma * roots, dtype=jnp.int32)
  drafted = Candidates(
      by_depth(draft.tokens),
      jnp.broadcast_to(parents, (examples, gamma * roots)),
      by_depth(is_there),
  )
  join = lambda *x: jnp.concatenate(x, axis=1)
  fill = jnp.zeros((examples, roots), jnp.int32)
  return jax.tree.map(join, of_roots(fill), drafted)


def nodes_of(
    tree: Candidates, positions: jax.Array, roots: int, gamma: int
) -> contracts.Nodes:
  """Return a tree of at most a depth as what a model decodes.

  The positions are those of the roots, [examples] int32.
  """
  index = jnp.arange(tree.tokens.shape[1], dtype=jnp.int32)
  is_near = (tree.parents[..., None] == index) | (index[:, None] == index)
  sees = is_near.astype(jnp.float32)
  # Each time the path is known twice as far. Gathers are slow on a TPU.
  for _ in range(max(gamma - 1, 0).bit_length()):
    sees = (sees @ sees > 0).astype(jnp.float32)
  sees = sees > 0
  depths = jnp.sum(sees, axis=-1, dtype=jnp.int32) - 1
  return contracts.Nodes(
      tree.tokens,
      positions[:, None] + depths,
      # Of the roots, which come first, each node sees its own alone.
      jnp.argmax(sees[..., :roots], axis=-1).astype(jnp.int32),
      sees,
  )


def children_of(
    tree: Candidates, nodes: jax.Array, width: int
) -> tuple[jax.Array, jax.Array]:
  """Return the children of one node per example, in their order in the tree.

  Args:
    tree: Trees of one root each.
    nodes: [examples] int32.
    width: The most children to return (static).
  Returns:
    The children, [examples, width] int32, and which of them are there.
  """
  is_child = tree.is_there & (tree.parents == nodes[:, None])
  is_child = is_child.at[:, 0].set(False)  # the root is nobody's
  # Nodes that are no children repeat a rank, and are masked below.
  ranks = jnp.cumsum(is_child, axis=1) - 1
  is_of_rank = is_child[:, None] & (
      ranks[:, None] == jnp.arange(width)[:, None]
  )
  children = jnp.argmax(is_of_rank, axis=-1).astype(jnp.int32)
  return children, jnp.any(is_of_rank, axis=-1)


def fill(tree: Candidates, count: int) -> Candidates:
  """Return a tree of so many nodes, of which those behind its own fill it."""
  # Zeros: what fills a tree is a child of node 0 that is not there.
  missing = ((0, 0), (0, count - tree.tokens.shape[1]))
  return jax.tree.map(lambda x: jnp.pad(x, missing), tree)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees from a draft model: the shell of all drafters of trees.

Legend: trees, roots (per tree), rows (trees times roots, the roots of a tree
next to each other), nodes (of a tree, its roots included).
"""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import views


class Drafted(NamedTuple):
  """All that a commit needs.

  Attributes:
    block: The nodes that the draft model has decoded.
    positions: [trees] int32, slots before the roots.
    kept: [trees, nodes] int32, the node of the block that each node of the tree
      is; None if they are the same.
  """

  block: Any
  positions: jax.Array
  kept: jax.Array | None = None


@dataclasses.dataclass(frozen=True)
class DraftTree:
  """Drafts trees with a draft model; a subclass says which nodes.

  The state is the cache of the draft model, or of a head all of its state.

  Attributes:
    drafter: The draft model, and gamma, the depth.
  """

  drafter: draft_model.ModelDrafter

  def init(
      self, params, context: views.Context, rows: int, slots: int
  ) -> tuple[draft_model.DraftModelMemory, contracts.Cache]:
    memory, state = self.drafter.init(params, context, rows, slots)
    roots = self.form.roots
    return memory, self.drafter.share_rows(state, rows // roots, roots)

  def begin(
      self,
      params: contracts.Params,
      memory: draft_model.DraftModelMemory,
      state: Any,
      view: views.View,
      size: int,
  ) -> tuple[contracts.Memory, jax.Array, token_trees.Candidates, Any]:
    """Return the model's memory per tree, and trees without draft tokens.

    The root is fed as the draft model reads it, which may begin with another
    token than the target.

    Returns:
      The memory, the roots' positions, [trees] int32, the roots, and a block
      for `size` nodes.
    """
    roots = self.form.roots
    trees = view.num_tokens.shape[0] // roots
    block = self.drafter.new_block(params, memory, state, view, trees, size)
    memory = candidates.memory_of_rows(memory, trees)
    tokens = state_lib.decoder_inputs(
        view.sequences,
        jnp.repeat(memory.first_tokens, roots),
        view.num_tokens,
        1,
    )
    return (
        memory.memory,
        # All hypotheses of a search are equally long.
        memory.offsets + view.num_tokens[::roots],
        token_trees.of_roots(tokens.reshape(trees, roots)),
        block,
    )

  def decode(
      self,
      params: contracts.Params,
      memory: contracts.Memory,
      state: contracts.Cache,
      block: Any,
      tree: token_trees.Candidates,
      positions: jax.Array,
      first: int,
      count: int,
  ) -> tuple[jax.Array, Any]:
    """Decode `count` nodes of trees from `first` on (both static).

    Returns:
      Their logits, as wide as the target's, and the next block.
    """
    nodes = token_trees.nodes_of(
        tree, positions, self.form.roots, self.form.gamma
    )
    return self.drafter.decode_tree(
        params, memory, state, block, nodes, first, count, positions
    )

  def commit(
      self,
      state: contracts.Cache,
      made: Drafted,
      rows: jax.Array,
      paths: jax.Array,
  ) -> contracts.Cache:
    if made.kept is not None:
      # Paths are places in the tree, and keys lie at those of the block.
      nodes = paths.reshape(len(paths), -1)
      nodes = jnp.take_along_axis(made.kept, nodes, axis=1)
      paths = nodes.reshape(paths.shape)
    return self.drafter.commit(
        state, made.block, rows, paths, made.positions
    )

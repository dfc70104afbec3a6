# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of the likeliest nodes: several candidates where a draft is unsure.

Legend: rows, nodes (of a tree, its root included), gamma (depth of a tree),
width (nodes that are drafted per depth).
"""

import dataclasses
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import tree_growth
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import token_trees


class _Drafted(NamedTuple):
  """What a commit needs.

  Attributes:
    block: All nodes that were drafted.
    kept: [rows, nodes] int32, which of them each node of the tree is.
    positions: [rows] int32, slots before the root.
  """

  block: contracts.Cache
  kept: jax.Array
  positions: jax.Array


@dataclasses.dataclass(frozen=True)
class LikeliestTree(tree_growth.DraftModelTrees):
  """Drafts the likeliest nodes: a `candidates.CandidateDrafter`.

  The draft model decodes the `width` likeliest continuations of each depth, and
  the tree has the likeliest of all of these. The probability of a node is the
  product of the draft model's probabilities on its path, at temperature 1
  whatever the sampling is: no candidate is drawn. It is at most that of its
  parent, so that parents belong to the tree too.

  Attributes:
    drafter: The draft model, and gamma, the depth.
    num_nodes: Nodes of a tree, its root included; at most those drafted.
    width: Nodes that are drafted per depth, at most the vocabulary.

  Reference: Li et al. (2024), "EAGLE-2: Faster Inference of Language Models
    with Dynamic Draft Trees", Section 4, arXiv:2406.16858.
  """

  num_nodes: int
  width: int
  num_uniforms = 0

  def model_calls(self) -> tuple[contracts.ModelCall, ...]:
    """See `contracts.Drafter`; a depth counts as a block of as many tokens."""
    call = self.drafter.model_calls()[0]._replace(wants_one=False)
    return (
        call._replace(block=1, count=1),
        call._replace(block=self.width, count=self.max_draft_tokens),
    )

  def propose_tree(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      view: contracts.View,
      rule: contracts.CandidateRule,
  ) -> tuple[candidates.Candidates, _Drafted]:
    del rule  # nothing is drawn
    memory, positions, root = self.root(memory, view)
    roots = token_trees.Tree(
        root, jnp.zeros_like(root), jnp.ones(root.shape, bool)
    )
    drafted, scores, block = tree_growth.grow(
        self.drafter,
        params,
        memory.memory,
        state,
        roots,
        jnp.zeros(root.shape),
        positions,
        self.width,
    )
    tree, kept = _likeliest(drafted, scores, self.num_nodes)
    return candidates.Candidates(tree), _Drafted(block, kept, positions)

  def commit(
      self, state: contracts.Cache, drafted: _Drafted, paths: jax.Array
  ) -> contracts.Cache:
    paths = jnp.take_along_axis(drafted.kept, paths, axis=1)
    return self.commit_paths(
        state, drafted.block, paths, drafted.positions
    )


def _likeliest(
    tree: token_trees.Tree, scores: jax.Array, count: int
) -> tuple[token_trees.Tree, jax.Array]:
  """Return the tree of the best nodes, and which they are, [rows, count]."""
  # Of equal scores the first is taken, which is the parent before its child.
  _, kept = lax.top_k(scores, count)
  tree = jax.tree.map(lambda x: jnp.take_along_axis(x, kept, axis=1), tree)
  is_parent = tree.parents[..., None] == kept[:, None]
  parents = jnp.argmax(is_parent, axis=-1).astype(jnp.int32)
  return tree._replace(parents=parents), kept

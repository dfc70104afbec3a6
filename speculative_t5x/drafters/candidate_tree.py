# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates from a draft model, in a fixed shape.

Legend: rows, nodes (of a tree, its root included), gamma (depth of a tree),
width (most children of a node), vocab.
"""

import dataclasses
from typing import NamedTuple

from flax.linen import partitioning
import jax
import jax.numpy as jnp

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import tree_growth
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import token_trees


class _Drafted(NamedTuple):
  """What a commit needs: the nodes' block, and the slots before it, [rows]."""

  block: contracts.Cache
  positions: jax.Array


@dataclasses.dataclass(frozen=True)
class CandidateTree(tree_growth.DraftModelTrees):
  """Drafts a tree of candidates: a `candidates.CandidateDrafter`.

  A call of the draft model decodes all nodes of one depth. The last depth is
  fed for its keys and values alone.

  Attributes:
    drafter: The draft model, and gamma, the depth.
    shape: Shape of the trees.
  """

  shape: candidates.Shape

  @property
  def num_uniforms(self) -> int:
    """One per node but the root."""
    return self.num_nodes - 1

  @property
  def num_nodes(self) -> int:
    """See `candidates.CandidateDrafter`."""
    return self.shape.num_nodes

  @property
  def width(self) -> int:
    """See `candidates.CandidateDrafter`."""
    return self.shape.children.shape[1]

  def model_calls(self) -> tuple[contracts.ModelCall, ...]:
    """See `contracts.Drafter`; a depth counts as a block of as many tokens."""
    first = self.drafter.model_calls()[0]
    return tuple(
        first._replace(block=len(level), count=1, wants_one=False)
        for level in self.shape.levels
    )

  def propose_tree(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      view: contracts.View,
      rule: contracts.CandidateRule,
  ) -> tuple[candidates.Candidates, _Drafted]:
    shape, model = self.shape, self.drafter.model
    memory, positions, tokens = self.root(memory, view)
    uniforms = view.uniforms.split(*map(len, shape.levels[1:]))
    block = model.new_block(state, len(tokens), shape.num_nodes)
    all_logits = []
    for depth, level in enumerate(shape.levels):
      nodes = token_trees.nodes_of(
          shape.tree(tokens), positions, 1, self.max_draft_tokens
      )
      with partitioning.axis_rules(self.drafter.rules):
        logits, block = model.decode_tree(
            params, memory.memory, state, block, nodes, level.start,
            len(level), positions,
        )  # fmt: skip
      if depth < self.max_draft_tokens:
        all_logits.append(self.drafter.fit_width(logits))
        drawn = self._draw(rule, all_logits[-1], view, uniforms[depth], depth)
        tokens = jnp.concatenate([tokens, drawn], axis=1)
    tree = candidates.Candidates(
        shape.tree(tokens), jnp.concatenate(all_logits, axis=1)
    )
    return tree, _Drafted(block, positions)

  def _draw(
      self,
      rule: contracts.CandidateRule,
      logits: jax.Array,
      view: contracts.View,
      uniforms: jax.Array,
      depth: int,
  ) -> jax.Array:
    """Draw the children of all nodes of a depth, [rows, children]."""
    shape = self.shape
    above, level = shape.levels[depth], shape.levels[depth + 1]
    ranks = shape.ranks[level.start : level.stop]
    # As many for each node as the one with the most children has: those that a
    # node does not have are drawn last, and left out.
    children = shape.children[above.start : above.stop, : max(ranks) + 1]
    places = jnp.maximum(children - level.start, 0)
    drawn = rule.draw_candidates(logits, view.sampling, uniforms[:, places])
    parents = [shape.parents[node] - above.start for node in level]
    return drawn[:, jnp.array(parents), ranks]

  def commit(
      self, state: contracts.Cache, drafted: _Drafted, paths: jax.Array
  ) -> contracts.Cache:
    return self.commit_paths(
        state, drafted.block, paths, drafted.positions
    )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates from a draft model, in a fixed shape.

Legend: rows, nodes (of a tree, its root included), gamma (depth of a tree),
width (most children of a node), vocab.
"""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import draft_tree
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import views


@dataclasses.dataclass(frozen=True)
class ShapedTree(draft_tree.DraftTree):
  """Draws the candidates of trees that all have one shape.

  A call of the draft model decodes all nodes of one depth. The last depth is
  fed for its keys and values alone.

  Attributes:
    drafter: The draft model, and gamma, the depth.
    shape: Shape of the trees.
  """

  shape: candidates.TreeShape

  @property
  def form(self) -> forms.Tree:
    chain, num_nodes = self.drafter.form, self.shape.num_nodes
    return forms.Tree(
        chain.gamma,
        num_uniforms=num_nodes - 1,  # one per node but the root
        num_nodes=num_nodes,
        width=max(self.shape.branching),
        special_ids=chain.special_ids,
        chain=self.drafter,
    )

  def propose(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      view: views.View,
  ) -> tuple[token_trees.Candidates, draft_tree.Drafted]:
    shape = self.shape
    memory, positions, roots, block = self.begin(
        params, memory, state, view, shape.num_nodes
    )
    tokens = roots.tokens
    uniforms = view.uniforms.split(*map(len, shape.levels[1:]))
    all_logits = []
    for depth, level in enumerate(shape.levels):
      logits, block = self.decode(
          params, memory, state, block, shape.tree(tokens), positions,
          level.start, len(level),
      )  # fmt: skip
      if depth < self.form.gamma:
        all_logits.append(logits)
        drawn = self._draw(logits, view, uniforms[depth], depth)
        tokens = jnp.concatenate([tokens, drawn], axis=1)
    logits = jnp.concatenate(all_logits, axis=1)
    tree = shape.tree(tokens)._replace(logits=logits)
    return tree, draft_tree.Drafted(block, positions)

  def _draw(
      self,
      logits: jax.Array,
      view: views.View,
      uniforms: jax.Array,
      depth: int,
  ) -> jax.Array:
    """Draw the children of all nodes of a depth, [rows, children]."""
    rows, nodes = logits.shape[:2]
    # The children of a node, and their uniforms, lie next to each other.
    count = self.shape.branching[depth]
    drawn = view.draw_candidates(
        logits, view.sampling, uniforms.reshape(rows, nodes, count, 2)
    )
    return drawn.reshape(rows, nodes * count)

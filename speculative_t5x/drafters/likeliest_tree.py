# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of the likeliest nodes: several candidates where a draft is unsure.

Legend: trees, roots (per tree), nodes (of a tree, its roots included), gamma
(depth of a tree), width (nodes that are drafted per depth), vocab.
"""

import dataclasses
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import draft_tree
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import views


@dataclasses.dataclass(frozen=True)
class LikeliestTree(draft_tree.DraftTree):
  """Drafts the likeliest nodes.

  The draft model decodes the `width` likeliest continuations of each depth, and
  the tree has the likeliest of all of these. The probability of a node is the
  product of the draft model's probabilities on its path, at temperature 1
  whatever the sampling is: no candidate is drawn. It is at most that of its
  parent, so that parents belong to the tree too.

  Behind the live hypotheses of a beam search it searches on with their scores,
  so that its nodes lie where the target's hypotheses compete (Leviathan et al.,
  2023, A.4: a draft of width u at or above the target's w).

  Attributes:
    drafter: The draft model, and gamma, the depth.
    num_nodes: Nodes of a tree, its roots included; at most those drafted.
    width: Nodes that are drafted per depth, at most the continuations of the
      roots.
    roots: The beams of a search; 1 for rows that are samples.

  Reference: Li et al. (2024), "EAGLE-2: Faster Inference of Language Models
    with Dynamic Draft Trees", Section 4, arXiv:2406.16858.
  """

  num_nodes: int
  width: int
  roots: int = 1

  @property
  def form(self) -> forms.Tree:
    chain = self.drafter.form
    return forms.Tree(
        chain.gamma,
        num_nodes=self.num_nodes,
        width=self.width,
        roots=self.roots,
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
    size = self.form.roots + self.form.gamma * self.width
    memory, positions, roots, block = self.begin(
        params, memory, state, view, size
    )
    scores, forbidden = jnp.zeros(roots.tokens.shape), ()
    if view.scores is not None:
      scores = view.scores.reshape(roots.tokens.shape)
      # An end is not a live hypothesis: it needs no node.
      forbidden = self.drafter.model.special_ids.ends
    tree, scores, block = self._grow(
        params, memory, state, roots, scores, positions, forbidden, block
    )
    if self.num_nodes == tree.tokens.shape[1]:
      return tree, draft_tree.Drafted(block, positions)
    tree, kept = _likeliest(tree, scores, self.num_nodes)
    return tree, draft_tree.Drafted(block, positions, kept)

  def _grow(
      self,
      params: contracts.Params,
      memory: contracts.Memory,
      cache: contracts.Cache,
      roots: token_trees.Candidates,
      scores: jax.Array,
      positions: jax.Array,
      forbidden: tuple[int, ...],
      block: Any,
  ) -> tuple[token_trees.Candidates, jax.Array, Any]:
    """Continue roots by the `width` best nodes of each depth.

    A call of the draft model decodes all nodes of one depth. The last depth is
    fed for its keys and values alone.

    Args:
      params: Parameters of the draft model.
      memory: Its memory, with a row per example.
      cache: Its cache.
      roots: Trees of roots alone.
      scores: [examples, roots] float32, log-probabilities that those of tokens
        are added to.
      positions: [examples] int32, of the roots.
      forbidden: Ids that no node has.
      block: For all nodes.
    Returns:
      The trees, the score of each node, and the block with all of them.
    """
    num_roots, model = scores.shape[1], self.drafter.model
    size = num_roots + self.form.gamma * self.width
    decode = lambda block, tree, *which: self.decode(
        params, memory, cache, block, token_trees.fill(tree, size), positions,
        *which,
    )  # fmt: skip
    join = lambda *x: jnp.concatenate(x, axis=1)
    tree, all_scores, first = roots, scores, 0
    logits, block = decode(block, tree, 0, num_roots)
    for _ in range(self.form.gamma):
      parents, tokens, best = _best(
          contracts.mask(jax.nn.log_softmax(logits), forbidden),
          scores,
          self.width,
      )
      new = token_trees.Candidates(tokens, first + parents, best > -jnp.inf)
      first = tree.tokens.shape[1]
      tree = jax.tree.map(join, tree, new)
      all_scores = join(all_scores, best)
      # Nothing comes after an end.
      scores = jnp.where(model.special_ids.is_end(tokens), -jnp.inf, best)
      logits, block = decode(block, tree, first, self.width)
    return tree, all_scores, block


def _best(
    log_probs: jax.Array, scores: jax.Array, width: int
) -> tuple[jax.Array, jax.Array, jax.Array]:
  """Return parents, tokens and scores of the best continuations."""
  scores = log_probs + scores[..., None]
  # Of logits that are not finite, a score may not be a number.
  scores = jnp.where(scores > -jnp.inf, scores, -jnp.inf)
  scores, index = lax.top_k(scores.reshape(scores.shape[0], -1), width)
  size = log_probs.shape[-1]
  return index // size, index % size, scores


def _likeliest(
    tree: token_trees.Candidates, scores: jax.Array, count: int
) -> tuple[token_trees.Candidates, jax.Array]:
  """Return the tree of the best nodes, and which they are, [rows, count]."""
  # Of equal scores the first is taken, which is the parent before its child.
  _, kept = lax.top_k(scores, count)
  tree = jax.tree.map(lambda x: jnp.take_along_axis(x, kept, axis=1), tree)
  is_parent = tree.parents[..., None] == kept[:, None]
  parents = jnp.argmax(is_parent, axis=-1).astype(jnp.int32)
  return tree._replace(parents=parents), kept

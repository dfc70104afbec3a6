# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees for a speculative beam search: the beams of a draft model.

It searches on from the live hypotheses of the target, with their scores, so
that its nodes lie where the target's hypotheses compete (Leviathan et al.,
2023, A.4: a draft of width u at or above the target's w).

Legend: examples, beams, width (draft beams), nodes, vocab.
"""

import dataclasses
from typing import Any

from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.drafters import beam_chains
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import network
from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class BeamDrafts:
  """Drafts a tree of `width` nodes per depth.

  Attributes:
    drafter: The draft model, and gamma, the depth.
    width: Nodes per depth, at least as many as the search has beams.
  """

  drafter: draft_model.DraftModel
  width: int

  @property
  def max_draft_tokens(self) -> int:
    """gamma."""
    return self.drafter.max_draft_tokens

  def init(
      self, params, context: contracts.Context, rows: int, slots: int
  ) -> tuple[draft_model.DraftModelMemory, contracts.Cache]:
    memory, state = self.drafter.init(params, context, rows, slots)
    return memory, state.cache

  def propose(
      self,
      params: contracts.Params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      roots: beam_trees.Roots,
  ) -> tuple[beam_trees.Tree, Any]:
    examples, beams = roots.tokens.shape
    gamma, model = self.max_draft_tokens, self.drafter.model
    # It may read a prompt otherwise than the target, as without a start token.
    positions = memory.offsets + roots.num_tokens
    size = beams + gamma * self.width
    block = model.new_block(state, examples, size)

    def decode(block, tree, first, count):
      filled = _filled(tree, size)
      nodes = beam_trees.nodes_of(filled, positions, beams, gamma)
      with partitioning.axis_rules(self.drafter.rules):
        return model.decode_tree(
            params, memory.memory, state, block, nodes, first, count,
            positions,
        )  # fmt: skip

    tree, scores, first = roots.tree(), roots.scores, 0
    logits, block = decode(block, tree, 0, beams)
    for _ in range(gamma):
      parents, tokens, scores = self._best(logits, scores)
      new = beam_trees.Tree(tokens, first + parents, scores > -jnp.inf)
      first = tree.tokens.shape[1]
      tree = jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), tree, new)
      # The last depth is fed for its keys and values alone.
      logits, block = decode(block, tree, first, self.width)
    return tree, (block, positions)

  def _best(
      self, logits: jax.Array, scores: jax.Array
  ) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Return parents, tokens and scores of the best continuations.

    An end needs no node: nothing comes after it.
    """
    log_probs = jax.nn.log_softmax(self.drafter.fit_width(logits))
    ids = jnp.arange(log_probs.shape[-1], dtype=jnp.int32)
    is_end = self.drafter.special_ids.is_end(ids)
    scores = jnp.where(is_end, -jnp.inf, log_probs + scores[..., None])
    scores, index = lax.top_k(
        scores.reshape(scores.shape[0], -1), self.width
    )
    size = log_probs.shape[-1]
    return index // size, index % size, scores

  def commit(
      self, state: contracts.Cache, drafted: Any, rows, paths
  ) -> contracts.Cache:
    block, num_cached = drafted
    return self.drafter.model.commit(state, block, rows, paths, num_cached)


def of(
    drafter: contracts.Drafter, beams: int, width: int | None = None
) -> beam_trees.TreeDrafter:
  """Return the trees of a drafter: those of a draft model, else chains.

  Args:
    drafter: The drafter.
    beams: Beams of the search.
    width: See `BeamDrafts`; None for twice the beams. Chains have none.
  Raises:
    ValueError: for a width below the beams or above their continuations, or for
      a drafter that reads the last features of the target, which a tree has of
      no row.
  """
  width = 2 * beams if width is None else width
  ranges.check_settings(ranges.COUNT, draft_beams=width)
  most = beams * drafter.vocab_size if drafts_trees(drafter) else width
  if not beams <= width <= most:
    raise ranges.ArgumentError(
        f'draft_beams must be at least beams, {beams}, or no tree has all of'
        f' them, and at most the tokens behind them, {most}, got {width}.',
        draft_beams=width,
    )
  if getattr(drafter, 'reads_last_features', False):
    raise ValueError(
        'A beam search has no last features for the drafter'
        f' {type(drafter).__name__}. Give another one, or search plainly.'
    )
  if drafts_trees(drafter):
    return BeamDrafts(drafter, width)
  return beam_chains.BeamChains(drafter)


def drafts_trees(drafter: contracts.Drafter) -> bool:
  """Return whether a drafter is a draft model that decodes trees."""
  if not isinstance(drafter, draft_model.DraftModel):
    return False
  model = drafter.model
  return network.offers(
      getattr(model, 'network', model), contracts.DecodesTrees
  )


def _filled(tree: beam_trees.Tree, size: int) -> beam_trees.Tree:
  """Return a tree with nodes that are not there yet."""
  examples, count = tree.tokens.shape
  shape = examples, size - count
  rest = beam_trees.Tree(
      jnp.zeros(shape, jnp.int32),
      jnp.broadcast_to(jnp.arange(count, size, dtype=jnp.int32), shape),
      jnp.zeros(shape, bool),
  )
  return jax.tree.map(lambda *x: jnp.concatenate(x, axis=1), tree, rest)

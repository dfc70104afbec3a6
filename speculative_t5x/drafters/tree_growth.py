# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of a draft model, and how one grows them by the probability of paths.

Legend: examples, roots (per example), nodes (of a tree, its roots included),
width (nodes per depth), vocab.
"""

from collections.abc import Callable
import dataclasses
from typing import Any

from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import token_trees


@dataclasses.dataclass(frozen=True)
class DraftModelTrees:
  """What all drafters of trees from a draft model have in common.

  Their state is the cache of the draft model.

  Attributes:
    drafter: The draft model, and gamma, the depth.
  """

  drafter: draft_model.DraftModel

  @property
  def max_draft_tokens(self) -> int:
    """gamma."""
    return self.drafter.max_draft_tokens

  @property
  def special_ids(self) -> contracts.SpecialIds:
    """Those of the draft model."""
    return self.drafter.special_ids

  def init(
      self, params, context: contracts.Context, rows: int, slots: int
  ) -> tuple[draft_model.DraftModelMemory, contracts.Cache]:
    memory, state = self.drafter.init(params, context, rows, slots)
    return memory, state.cache

  def root(
      self, memory: draft_model.DraftModelMemory, view: contracts.View
  ) -> tuple[draft_model.DraftModelMemory, jax.Array, jax.Array]:
    """Return memory, position and token of each row's last committed token.

    The memory has a row per sequence; positions [rows] int32; tokens [rows, 1]
    int32, as the draft model is fed them.
    """
    memory = candidates.memory_of_rows(memory, view.num_tokens.shape[0])
    tokens = state_lib.decoder_inputs(
        view.sequences, memory.first_tokens, view.num_tokens, 1
    )
    return memory, memory.offsets + view.num_tokens, tokens

  def commit_rows(
      self,
      cache: contracts.Cache,
      block: Any,
      rows: jax.Array,
      paths: jax.Array,
      num_cached: jax.Array,
  ) -> contracts.Cache:
    """Return the next cache; see `contracts.DecodesTrees.commit`."""
    with partitioning.axis_rules(self.drafter.rules):
      return self.drafter.model.commit(cache, block, rows, paths, num_cached)

  def commit_paths(
      self,
      cache: contracts.Cache,
      block: Any,
      paths: jax.Array,
      num_cached: jax.Array,
  ) -> contracts.Cache:
    """Return the next cache of one row per example, by paths [rows, length]."""
    row = jnp.zeros_like(paths[:, :1])
    return self.commit_rows(cache, block, row, paths[:, None], num_cached)


def grow(
    drafter: draft_model.DraftModel,
    params: contracts.Params,
    memory: contracts.Memory,
    cache: contracts.Cache,
    roots: token_trees.Tree,
    scores: jax.Array,
    positions: jax.Array,
    width: int,
    log_probs: Callable[[jax.Array], jax.Array] = jax.nn.log_softmax,
) -> tuple[token_trees.Tree, jax.Array, Any]:
  """Continue roots by the `width` best nodes of each depth.

  A call of the draft model decodes all nodes of one depth. The last depth is
  fed for its keys and values alone.

  Args:
    drafter: The draft model, and gamma, the depth.
    params: Parameters of the draft model.
    memory: Its memory, with a row per example.
    cache: Its cache.
    roots: Trees of roots alone.
    scores: [examples, roots] float32, log-probabilities that those of tokens
      are added to.
    positions: [examples] int32, of the roots.
    width: Nodes per depth, at most as many as there are tokens (static).
    log_probs: Takes logits, [..., vocab], and returns the log-probabilities of
      tokens; of those at -inf there is no node.
  Returns:
    The trees, the score of each node, and the block with all of them.
  """
  examples, num_roots = scores.shape
  gamma, model = drafter.max_draft_tokens, drafter.model
  size = num_roots + gamma * width
  block = model.new_block(cache, examples, size)

  def decode(block, tree, first, count):
    nodes = token_trees.nodes_of(
        token_trees.fill(tree, size), positions, num_roots, gamma
    )
    with partitioning.axis_rules(drafter.rules):
      return model.decode_tree(
          params, memory, cache, block, nodes, first, count, positions
      )

  join = lambda *x: jnp.concatenate(x, axis=1)
  tree, all_scores, first = roots, scores, 0
  logits, block = decode(block, tree, 0, num_roots)
  for _ in range(gamma):
    parents, tokens, best = _best(
        log_probs(drafter.fit_width(logits)), scores, width
    )
    new = token_trees.Tree(tokens, first + parents, best > -jnp.inf)
    first = tree.tokens.shape[1]
    tree = jax.tree.map(join, tree, new)
    all_scores = join(all_scores, best)
    # Nothing comes after an end.
    scores = jnp.where(drafter.special_ids.is_end(tokens), -jnp.inf, best)
    logits, block = decode(block, tree, first, width)
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

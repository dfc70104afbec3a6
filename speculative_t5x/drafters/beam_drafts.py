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

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import beam_chains
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import tree_growth
from speculative_t5x.networks import network
from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import token_trees


@dataclasses.dataclass(frozen=True)
class BeamDrafts(tree_growth.DraftModelTrees):
  """Drafts a tree of `width` nodes per depth.

  Attributes:
    drafter: The draft model, and gamma, the depth.
    width: Nodes per depth, at least as many as the search has beams.
  """

  width: int

  def init(
      self, params, context: contracts.Context, rows: int, slots: int
  ) -> tuple[draft_model.DraftModelMemory, contracts.Cache]:
    memory, cache = super().init(params, context, rows, slots)
    examples = jax.tree.leaves(context.inputs)[0].shape[0]
    return memory, self.drafter.model.share_rows(cache, examples)

  def propose(
      self,
      params: contracts.Params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      roots: beam_trees.Roots,
  ) -> tuple[token_trees.Tree, Any]:
    # It may read a prompt otherwise than the target, as without a start token,
    # and begin with another one.
    positions = memory.offsets + roots.num_tokens
    is_first = roots.num_tokens[:, None] == 0
    tokens = jnp.where(is_first, memory.first_tokens[:, None], roots.tokens)
    tree, _, block = tree_growth.grow(
        self.drafter,
        params,
        memory.memory,
        state,
        roots._replace(tokens=tokens).tree(),
        roots.scores,
        positions,
        self.width,
        self._log_probs,
    )
    tokens = tree.tokens.at[:, : tokens.shape[1]].set(roots.tokens)
    tree = tree._replace(tokens=tokens)
    return tree, (block, positions)

  def _log_probs(self, logits: jax.Array) -> jax.Array:
    # An end needs no node: nothing comes after it.
    ids = jnp.arange(logits.shape[-1], dtype=jnp.int32)
    is_end = self.drafter.special_ids.is_end(ids)
    return jnp.where(is_end, -jnp.inf, jax.nn.log_softmax(logits))

  def commit(
      self, state: contracts.Cache, drafted: Any, rows, paths
  ) -> contracts.Cache:
    block, num_cached = drafted
    return self.commit_rows(state, block, rows, paths, num_cached)


def of(
    drafter: contracts.Drafter, beams: int, width: int | None = None
) -> beam_trees.TreeDrafter:
  """Return the trees of a drafter: those of a draft model, else chains.

  Args:
    drafter: The drafter.
    beams: Beams of the search.
    width: See `BeamDrafts`; None for twice the beams. Chains have none.
  Raises:
    ValueError: for a width below the beams or above their continuations, for a
      tree of more than `candidates.MAX_NODES`, which would take minutes to
      compile, for a drafter that reads the last features of the target, which a
      tree has of no row, or for trees of candidates that no draft model makes.
  """
  if isinstance(drafter, tree_growth.DraftModelTrees):
    drafter = drafter.drafter  # a search has trees of its own
  width = 2 * beams if width is None else width
  ranges.check_settings(ranges.COUNT, draft_beams=width)
  most = beams * drafter.vocab_size if _decodes_trees(drafter) else width
  if not beams <= width <= most:
    raise ranges.ArgumentError(
        f'draft_beams must be at least {beams}, the number of beams, and at'
        f' most {most}, all their continuations, got {width}.',
        draft_beams=width,
    )
  if getattr(drafter, 'reads_last_features', False):
    raise ValueError(
        'A beam search has no last features for the drafter'
        f' {type(drafter).__name__}. Give another one, or search plainly.'
    )
  if isinstance(drafter, candidates.CandidateDrafter):
    raise ValueError(
        f'The drafter {type(drafter).__name__} drafts behind one row, and not'
        ' for a beam search. Give another one, or search plainly.'
    )
  if not _decodes_trees(drafter):
    return beam_chains.BeamChains(drafter)
  gamma = drafter.max_draft_tokens
  if (nodes := beams + gamma * width) > candidates.MAX_NODES:
    raise ranges.ArgumentError(
        f'draft_beams {width} and gamma {gamma} make a tree of {nodes} nodes'
        f' with its {beams} roots, and it may have {candidates.MAX_NODES}. Give'
        ' smaller ones, or search plainly.',
        draft_beams=width,
        gamma=gamma,
    )
  return BeamDrafts(drafter, width)


def _decodes_trees(drafter: contracts.Drafter) -> bool:
  """Return whether a drafter is a draft model that decodes trees."""
  if not isinstance(drafter, draft_model.DraftModel):
    return False
  model = drafter.model
  return network.offers(
      getattr(model, 'network', model), contracts.DecodesTrees
  )

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
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib


class _Drafted(NamedTuple):
  """What a commit needs: the nodes' block, and the slots before it, [rows]."""

  block: contracts.Cache
  positions: jax.Array


@dataclasses.dataclass(frozen=True)
class CandidateTree:
  """Drafts a tree of candidates: a `candidates.CandidateDrafter`.

  A call of the draft model decodes all nodes of one depth. The last depth is
  fed for its keys and values alone.

  Attributes:
    drafter: The draft model, and gamma, the depth.
    shape: Shape of the trees.
  """

  drafter: draft_model.DraftModel
  shape: candidates.Shape

  @property
  def max_draft_tokens(self) -> int:
    """gamma."""
    return self.drafter.max_draft_tokens

  @property
  def num_uniforms(self) -> int:
    """One per node but the root."""
    return self.shape.num_nodes - 1

  @property
  def num_tests(self) -> int:
    """The width per depth, as a walk tests the children of one node there."""
    return self.max_draft_tokens * self.shape.children.shape[1]

  @property
  def special_ids(self) -> contracts.SpecialIds:
    """Those of the draft model."""
    return self.drafter.special_ids

  def model_calls(self) -> tuple[contracts.ModelCall, ...]:
    """See `contracts.Drafter`; a depth counts as a block of as many tokens."""
    first = self.drafter.model_calls()[0]
    return tuple(
        first._replace(block=len(level), count=1, wants_one=False)
        for level in self.shape.levels
    )

  def init(
      self, params, context: contracts.Context, rows, slots
  ) -> tuple[draft_model.DraftModelMemory, contracts.Cache]:
    memory, state = self.drafter.init(params, context, rows, slots)
    return memory, state.cache

  def propose_tree(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      view: contracts.View,
      rule: contracts.CandidateRule,
  ) -> tuple[candidates.Candidates, _Drafted]:
    shape, model = self.shape, self.drafter.model
    rows = view.num_tokens.shape[0]
    memory = candidates.memory_of_rows(memory, rows)
    positions = memory.offsets + view.num_tokens
    uniforms = view.uniforms.split(*map(len, shape.levels[1:]))
    block = model.new_block(state, rows, shape.num_nodes)
    tokens = state_lib.decoder_inputs(
        view.sequences, memory.first_tokens, view.num_tokens, 1
    )
    all_logits = []
    for depth, level in enumerate(shape.levels):
      # Nodes that are not drawn yet lie past those that these see.
      missing = shape.num_nodes - tokens.shape[1]
      nodes = shape.place(jnp.pad(tokens, ((0, 0), (0, missing))), positions)
      with partitioning.axis_rules(self.drafter.rules):
        logits, block = model.decode_tree(
            params, memory.memory, state, block, nodes, level.start,
            len(level), positions,
        )  # fmt: skip
      if depth < self.max_draft_tokens:
        all_logits.append(self.drafter.fit_width(logits))
        drawn = self._draw(rule, all_logits[-1], view, uniforms[depth], depth)
        tokens = jnp.concatenate([tokens, drawn], axis=1)
    tree = candidates.Candidates(tokens, jnp.concatenate(all_logits, axis=1))
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
    return self.drafter.model.commit(
        state,
        drafted.block,
        jnp.zeros_like(paths[:, :1]),
        paths[:, None],
        drafted.positions,
    )

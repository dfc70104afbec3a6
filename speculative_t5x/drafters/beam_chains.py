# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees for a speculative beam search: a chain behind each live hypothesis.

Any drafter makes them, as lookup, which copies from hints, input and output. A
target call makes more than one step where each hypothesis goes on by its chain,
as in what all of them copy.

Legend: examples, beams (live hypotheses per example), rows (examples times
beams), gamma (tokens of a chain).
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import beam_rows
from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import uniforms as uniforms_lib


@dataclasses.dataclass(frozen=True)
class BeamChains:
  """Drafts by a drafter of chains, as it drafts at temperature 0.

  Attributes:
    drafter: The drafter, whose state has one entry per row.
  """

  drafter: contracts.Drafter

  @property
  def max_draft_tokens(self) -> int:
    """gamma."""
    return self.drafter.max_draft_tokens

  def init(
      self, params, context: contracts.Context, rows: int, slots: int
  ) -> tuple[contracts.Memory, Any]:
    return self.drafter.init(params, context, rows, slots)

  def propose(
      self, params, memory: contracts.Memory, state: Any,
      roots: beam_trees.Roots,
  ) -> tuple[token_trees.Tree, Any]:  # fmt: skip
    examples, beams = roots.tokens.shape
    rows, of_rows = examples * beams, lambda x: jnp.repeat(x, beams)
    # Argmax draws nothing.
    shape = rows, self.drafter.num_uniforms, 2
    view = contracts.View(
        sequences=roots.sequences.reshape(rows, -1),
        num_tokens=of_rows(roots.num_tokens),
        num_wanted=of_rows(roots.num_wanted),
        uniforms=uniforms_lib.Uniforms(
            jnp.zeros(shape, jnp.uint32), uniforms_lib.user_name(self.drafter)
        ),
        sampling=sampling_lib.GREEDY.of_rows(rows),
        target=roots.target,
        last_outcome=None,
    )
    draft, state, _ = self.drafter.propose(params, memory, state, view)
    index = jnp.arange(self.max_draft_tokens, dtype=jnp.int32)
    is_there = index < draft.lengths[:, None]
    # Depth by depth: the parent of a node is `beams` places before it.
    by_depth = lambda x: jnp.moveaxis(
        x.reshape(examples, beams, -1), 1, 2
    ).reshape(examples, -1)
    parents = jnp.arange(index.size * beams, dtype=jnp.int32)
    drafted = token_trees.Tree(
        by_depth(draft.tokens),
        jnp.broadcast_to(parents, (examples, parents.size)),
        by_depth(is_there),
    )
    join = lambda *x: jnp.concatenate(x, axis=1)
    return jax.tree.map(join, roots.tree(), drafted), state

  def commit(self, state: Any, drafted: Any, rows, paths) -> Any:
    del state, paths  # what it was fed along another chain is fed again
    return beam_rows.take(drafted, rows)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The two forms of drafts, chains and trees, and what a drafter states of its.

A form is static. Step and search ask it how to score, accept and commit.

Legend: gamma (draft tokens per block, or depths of a tree).
"""

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class _Form:
  """The part that both forms have.

  Attributes:
    gamma: The most draft tokens per block, or depths of a tree.
    num_uniforms: Uniforms that the drafter uses per block and row; 0 if it
      draws no token.
    reads_hints: Whether it reads `views.Context.hints`, which others may get
      None for.
    special_ids: `contracts.SpecialIds` of its vocabulary, which must be the
      target's; None for the target's own.
  """

  gamma: int
  num_uniforms: int = 0
  _: dataclasses.KW_ONLY
  reads_hints: bool = False
  special_ids: Any = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class Chain(_Form):
  """One draft token per position.

  Attributes:
    drafts_all_wanted: Whether it always drafts `num_wanted` tokens, unless
      `continues` stops it: then verification has one width.
    reads_last_features: Whether it reads `views.TargetView.last_features`; then
      its target must be a `contracts.ShowsFeatures`.
    grows_trees: Whether it is a draft model that decodes trees, of which
      drafters of trees are made.
  """

  drafts_all_wanted: bool = False
  reads_last_features: bool = False
  grows_trees: bool = False
  width = 1

  @property
  def num_nodes(self) -> int:
    """Positions of a target call: the last committed token and the draft."""
    return self.gamma + 1


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tree(_Form):
  """Several draft tokens per position.

  Attributes:
    num_nodes: Nodes of a tree, its roots and those that only fill it included.
    width: The most children of a node.
    roots: Sequences that a tree continues: 1, or the beams of a search.
    chain: A drafter that drafts chains likewise, which have an alpha; None if
      there is none.
  """

  num_nodes: int
  width: int
  roots: int = 1
  chain: Any = None
  drafts_all_wanted = True  # all trees have one size
  reads_last_features = False  # a tree has those of no row

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The drafter of a speculative beam search: trees of a draft model, or chains.

Any drafter of chains will do, as lookup, which copies from hints, input and
output. A target call makes more than one step where each hypothesis goes on by
its chain, as in what all of them copy.
"""

from speculative_t5x.drafters import likeliest_tree
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import ranges


def of(
    drafter: contracts.Drafter, beams: int, width: int | None = None
) -> contracts.Drafter:
  """Return the drafter for a search: the trees of a draft model, else chains.

  Args:
    drafter: The drafter.
    beams: Beams of the search.
    width: Nodes per depth, at least as many as beams; None for twice the beams.
      Chains have none.
  Raises:
    ValueError: for a width below the beams or above their continuations, for a
      tree of more than `candidates.MAX_NODES`, which would take minutes to
      compile, for a drafter that reads the last features of the target, which a
      tree has of no row, or for trees of candidates that no draft model makes.
  """
  name = type(drafter).__name__
  if isinstance(drafter.form, forms.Tree):
    drafter = drafter.form.chain  # a search has trees of its own
  width = 2 * beams if width is None else width
  ranges.check_settings(ranges.COUNT, draft_beams=width)
  if drafter is None:
    raise ValueError(
        f'The drafter {name} drafts behind one row, and not for a beam search.'
        ' Give another one, or search plainly.'
    )
  grows_trees, gamma = drafter.form.grows_trees, drafter.form.gamma
  most = beams * drafter.vocab_size if grows_trees else width
  if not beams <= width <= most:
    raise ranges.ArgumentError(
        f'draft_beams must be at least {beams}, the number of beams, and at'
        f' most {most}, all their continuations, got {width}.',
        draft_beams=width,
    )
  if drafter.form.reads_last_features:
    raise ValueError(
        f'A beam search has no last features for the drafter {name}. Give'
        ' another one, or search plainly.'
    )
  if not grows_trees:
    return drafter
  if (nodes := beams + gamma * width) > candidates.MAX_NODES:
    raise ranges.ArgumentError(
        f'draft_beams {width} and gamma {gamma} make a tree of {nodes} nodes'
        f' with its {beams} roots, and it may have {candidates.MAX_NODES}. Give'
        ' smaller ones, or search plainly.',
        draft_beams=width,
        gamma=gamma,
    )
  return likeliest_tree.LikeliestTree(drafter, nodes, width, beams)

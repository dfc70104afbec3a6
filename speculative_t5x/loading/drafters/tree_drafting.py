# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates from a draft model, as a way to draft."""

import dataclasses

from speculative_t5x.drafters import candidate_tree
from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import network
from speculative_t5x.speculation import candidates as candidates_lib

KIND = 'candidate_tree'  # in a run record
_ASKS = 'A tree of candidates'


@dataclasses.dataclass(frozen=True)
class CandidateTree:
  """A draft model, or a table, that drafts several candidates: a `Choice`.

  Attributes:
    model: The draft model: what `drafters.find` takes.
    candidates: Candidates per position: (3, 2) has three for the first, two
      after each of these, and one after each of those, up to gamma. An entry
      may be several numbers: in (3, (2, 1)) the first candidate is followed by
      two and the others by one. See `candidates.Branching`.
  """

  model: drafting.Choice | models.Model | checkpoints.Path
  candidates: candidates_lib.Branching

  def __post_init__(self):
    candidates = candidates_lib.check(self.candidates)
    object.__setattr__(self, 'candidates', candidates)  # hashable

  def find(self, target, vocabulary) -> drafting.Drafting:
    network.check_offers(target.config, network.DecodesTrees, _ASKS)
    return _of(
        model_drafting.find(self.model, target, vocabulary), self.candidates
    )


def _of(
    chain: drafting.Drafting, candidates: candidates_lib.Branching
) -> drafting.Drafting:
  """Return the drafting of trees by what drafts chains."""
  # No parameters in the closure: it would keep them where they lie.
  bare = dataclasses.replace(chain, params=None, models=(), read=None)

  def make(
      target: network.NetworkModel, gamma: int
  ) -> candidate_tree.CandidateTree:
    drafter = bare.drafter(target, gamma)
    # A head on last features is one too, and cannot: it is fed features.
    if type(drafter) is not draft_model.DraftModel:
      raise ValueError(
          f"{_ASKS} needs a draft model, or a decoder on the target's encoder,"
          f' and {type(drafter).__name__} is neither. Give one, or draft'
          ' chains.'
      )
    # A table is a model without a network.
    drafts = getattr(drafter.model, 'network', drafter.model)
    network.check_offers(drafts, network.DecodesTrees, _ASKS)
    shape = candidates_lib.as_shape(candidates, gamma)
    return candidate_tree.CandidateTree(drafter, shape)

  return dataclasses.replace(
      chain,
      make=make,
      description=dataclasses.replace(
          chain.description, kind=KIND, candidates=str(candidates)
      ),
      read=chain.read and (lambda: _of(chain.load(), candidates)),
  )

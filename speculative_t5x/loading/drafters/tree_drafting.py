# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates from a draft model, as a way to draft."""

import dataclasses

from speculative_t5x.drafters import likeliest_tree
from speculative_t5x.drafters import shaped_tree
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import network
from speculative_t5x.speculation import candidates as candidates_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

KIND = 'candidate_tree'  # in a run record
_ASKS = 'A tree of candidates'


@dataclasses.dataclass(frozen=True)
class CandidateTree:
  """A draft model, or a table, that drafts several candidates: a `Drafting`.

  Give `candidates` for a tree of a fixed shape, or `nodes` for the likeliest
  nodes, which are other ones in each call.

  Attributes:
    model: The draft model: what `drafters.find` takes.
    candidates: Candidates per position: (3, 2) has three for the first, two
      after each of these, and one after each of those, up to gamma.
    nodes: Nodes of a tree, its root included, at most 256. They are the
      likeliest ones by the draft model's probability of the path to each. No
      candidate is drawn, at any temperature.
    width: With `nodes`, how many nodes the draft model decodes per depth, from
      which the likeliest are taken. It costs draft calls of so many positions.
  Raises:
    ranges.ArgumentError: for a value out of range, or for both ways or none.
  """

  model: drafting.Drafting | models.Model | checkpoints.Path
  candidates: candidates_lib.Branching | None = None
  nodes: int | None = None
  width: int = 6

  def __post_init__(self):
    if (self.candidates is None) == (self.nodes is None):
      raise ranges.ArgumentError(
          'Give candidates, the shape of the tree, or nodes, how many of the'
          f' likeliest it has, and not both. Got {self.candidates!r} and'
          f' {self.nodes!r}.',
          candidates=self.candidates,
          nodes=self.nodes,
      )
    ranges.check_settings(ranges.COUNT, width=self.width)
    if self.nodes is None:
      candidates = candidates_lib.check(self.candidates)
      object.__setattr__(self, 'candidates', candidates)  # hashable
    else:
      kind = ranges.whole(2, candidates_lib.MAX_NODES)
      ranges.check_settings(kind, nodes=self.nodes)

  def find(self, target) -> drafting.Drafting:
    network.check_offers(target.config, _ASKS, *network.DECODES_TREES)
    return self._of(model_drafting.find(self.model, target))

  def _of(self, chain: drafting.Drafting) -> drafting.Drafting:
    """Return the drafting of trees by what drafts chains."""
    # No parameters in the closure: it would keep them where they lie.
    bare = dataclasses.replace(chain, params=None, models=(), read=None)
    shape = dataclasses.replace(self, model=None)

    def make(target: network.NetworkModel, gamma: int) -> contracts.Drafter:
      return shape._drafter(bare.drafter(target, gamma))

    return dataclasses.replace(
        chain,
        make=make,
        description=dataclasses.replace(
            chain.description, kind=KIND, candidates=self._name
        ),
        read=chain.read and (lambda: self._of(chain.load())),
    )

  @property
  def _name(self) -> str:
    if self.nodes is None:
      return str(self.candidates)
    # A gamma or a vocabulary may be too small for so many.
    return f'at most {self.nodes} nodes, {self.width} per depth'

  def _drafter(self, drafter: contracts.Drafter) -> contracts.Drafter:
    if drafter.form.reads_last_features:
      raise ValueError(
          f"{_ASKS} has none of the target's last features, which this head"
          ' reads. Give one that was trained without them, or draft chains.'
      )
    if not drafter.form.grows_trees:
      raise ValueError(
          f"{_ASKS} needs a draft model that decodes trees, or such a decoder"
          f" on the target's encoder, and {type(drafter).__name__} is neither."
          ' Give one, or draft chains.'
      )
    gamma = drafter.form.gamma
    if self.nodes is None:
      shape = candidates_lib.as_shape(self.candidates, gamma)
      return shaped_tree.ShapedTree(drafter, shape)
    # No tree has more nodes at a depth.
    width = min(self.width, drafter.vocab_size, self.nodes - 1)
    nodes = min(self.nodes, 1 + gamma * width)
    return likeliest_tree.LikeliestTree(drafter, nodes, width)

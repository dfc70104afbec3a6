# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several drafters in a given order."""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

from speculative_t5x.drafters import in_order
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.speculation import contracts

# What else tells drafters of one name apart, in a run record.
_IDENTITY = 'checkpoint', 'dtype', 'model_parallel', 'short_vocabulary', 'table'


@dataclasses.dataclass(frozen=True)
class FromSources:
  """Drafters in a given order: see `source.Source`.

  Attributes:
    sources: Where the drafters come from, the first one first.
  """

  sources: Sequence[source.Source]

  def __post_init__(self):
    object.__setattr__(self, 'sources', tuple(self.sources))
    if len(self.sources) < 2:
      raise ValueError(
          f'There must be at least two drafters in order, got'
          f' {len(self.sources)}. Name a single one as DRAFTER itself.'
      )
    for each in self.sources:
      source.check_source(each)

  def find(
      self,
      target: models.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> Callable[[], source.Drafting]:
    found = [each.find(target, vocabulary) for each in self.sources]
    return source.Found(
        lambda: from_drafters([read() for read in found]),
        tuple(x for each in found for x in getattr(each, 'models', ())),
        sum(getattr(each, 'num_bytes', 0) for each in found),
    )


def from_drafters(drafters: Sequence[source.Drafting]) -> source.Drafting:
  """Return the drafter that drafts by several, the first one first."""
  without_params = [
      dataclasses.replace(each, params=None, models=()) for each in drafters
  ]

  def make(target: contracts.Model, gamma: int) -> in_order.InOrder:
    made = (each.drafter(target, gamma) for each in without_params)
    return in_order.InOrder(tuple(made), target)

  described = [each.description for each in drafters]
  meshes = [each.mesh for each in drafters if each.params is not None]
  return source.Drafting(
      make,
      descriptions.DrafterDescription(
          kind=' then '.join(each.kind for each in described),
          name=' then '.join(each.name or each.kind for each in described),
          **{key: _join(described, key) for key in _IDENTITY},
      ),
      params=tuple(each.params for each in drafters),
      axes=tuple(each.axes for each in drafters),
      models=tuple(model for each in drafters for model in each.models),
      mesh=meshes[0] if meshes else None,
  )


def _join(
    described: Sequence[descriptions.DrafterDescription], key: str
) -> Any:
  """Return the only value of a key, several as one text, or None."""
  values = [getattr(each, key) for each in described]
  values = [each for each in values if each is not None]
  if len(values) == 1:
    return values[0]
  return ' then '.join(map(str, values)) or None

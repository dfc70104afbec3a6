# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several drafters in a given order."""

from collections.abc import Sequence
import dataclasses
from typing import Any

from speculative_t5x.drafters import in_order
from speculative_t5x.loading import descriptions
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms

# What else tells drafters of one name apart, in a run record.
_IDENTITY = 'checkpoint', 'dtype', 'model_parallel', 'short_vocabulary', 'table'


@dataclasses.dataclass(frozen=True)
class InOrder:
  """Drafters in a given order: a `drafting.Drafting`.

  Attributes:
    drafters: What `drafters.find` takes, of each; the first one drafts first,
      and where it stops the next one goes on.
  """

  drafters: Sequence[drafting.Drafting]

  def __post_init__(self):
    object.__setattr__(self, 'drafters', tuple(self.drafters))  # hashable

  def find(self, target) -> drafting.Drafting:
    find = lambda each: model_drafting.find(each, target)
    return joined([*map(find, self.drafters)])


def joined(parts: Sequence[drafting.Drafting]) -> drafting.Drafting:
  """Return the drafting by several, the first one first."""
  without_params = [
      dataclasses.replace(each, params=None, models=(), read=None)
      for each in parts
  ]

  def make(target: contracts.Model, gamma: int) -> in_order.DraftersInOrder:
    made = tuple(each.drafter(target, gamma) for each in without_params)
    for each in made:
      if isinstance(each.form, forms.Tree):
        raise ValueError(
            f'{type(each).__name__} drafts trees, and drafting in order needs'
            ' chains. Give its draft model alone.'
        )
    return in_order.DraftersInOrder(made, target)

  described = [each.description for each in parts]
  join = descriptions.JOINED.join
  is_read = all(each.read is None for each in parts)
  return drafting.Drafting(
      make,
      descriptions.DrafterDescription(
          kind=join(each.kind for each in described),
          name=join(each.name or each.kind for each in described),
          **{key: _join(described, key) for key in _IDENTITY},
      ),
      models=tuple(model for each in parts for model in each.models),
      num_bytes=sum(each.num_bytes for each in parts),
      params=tuple(each.params for each in parts),
      axes=tuple(each.axes for each in parts),
      mesh=next((each.mesh for each in parts if each.mesh), None),
      read=None if is_read else lambda: joined([x.load() for x in parts]),
  )


def _join(
    described: Sequence[descriptions.DrafterDescription], key: str
) -> Any:
  """Return the only value of a key, several as one text, or None."""
  values = [getattr(each, key) for each in described]
  values = [each for each in values if each is not None]
  if len(values) == 1:
    return values[0]
  return descriptions.JOINED.join(map(str, values)) or None

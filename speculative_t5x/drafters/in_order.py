# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several drafters in a given order: each drafts on where those before it stop.

Legend: rows, gamma (draft tokens per block), vocab.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.research import run_record
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import uniforms as uniforms_lib

# What else tells drafters of one name apart, in a run record.
_IDENTITY = 'checkpoint', 'dtype', 'model_parallel', 'short_vocabulary', 'table'


@dataclasses.dataclass(frozen=True)
class InOrder:
  """Drafts by the first drafter, then by the second after its tokens, ...

  A row that the first one has no token for is left to the second, which drafts
  also after a draft of the first that is shorter than wanted.

  Attributes:
    drafters: in this order, all of one gamma.
    target: whose end of sequence ends a draft.
  """

  drafters: tuple[contracts.Drafter, ...]
  target: contracts.Model

  @property
  def max_draft_tokens(self) -> int:
    """Of each drafter."""
    return self.drafters[0].max_draft_tokens

  @property
  def num_uniforms(self) -> int:
    """Those of all drafters."""
    return sum(each.num_uniforms for each in self.drafters)

  @property
  def drafts_all_wanted(self) -> bool:
    """The last one drafts what the others leave."""
    return getattr(self.drafters[-1], 'drafts_all_wanted', False)

  @property
  def reads_hints(self) -> bool:
    """Whether any does."""
    return any(getattr(each, 'reads_hints', False) for each in self.drafters)

  def model_calls(self) -> tuple[contracts.ModelCall, ...]:
    """See `contracts.ModelCall`."""
    return tuple(
        call._replace(begin=_with_params_of(index, call.begin))
        for index, each in enumerate(self.drafters)
        for call in getattr(each, 'model_calls', tuple)()
    )

  def init(self, params, context: contracts.Context, rows, slots):
    """See `contracts.Drafter.init`."""
    begun = [
        drafter.init(own, context, rows, slots)
        for drafter, own in zip(self.drafters, params, strict=True)
    ]
    memories, states = zip(*begun, strict=True)
    return memories, states

  def propose(
      self, params, memory, state, view: contracts.View
  ) -> tuple[contracts.Draft, Any, contracts.Cache]:
    """See `contracts.Drafter.propose`."""
    counts = [each.num_uniforms for each in self.drafters]
    uniforms = view.uniforms.split(*counts)
    draft, states = None, []
    for drafter, own, memory_of, before, values in zip(
        self.drafters, params, memory, state, uniforms, strict=True
    ):
      name = f'The drafter {type(drafter).__name__}'
      seen = view if draft is None else self._after(draft, view)
      seen = seen._replace(uniforms=uniforms_lib.Uniforms(values, name))
      more, after, cache = drafter.propose(own, memory_of, before, seen)
      more = more.replace(lengths=jnp.clip(more.lengths, 0, seen.num_wanted))
      draft = more if draft is None else join(draft, more)
      states.append(after)
      view = view._replace(target=view.target._replace(cache=cache))
    return draft, tuple(states), view.target.cache

  def _after(
      self, draft: contracts.Draft, view: contracts.View
  ) -> contracts.View:
    """Returns the view of a drafter that goes on after a draft."""
    slots = jnp.arange(view.sequences.shape[1], dtype=jnp.int32)[None]
    index = slots - view.num_tokens[:, None]
    gamma = draft.tokens.shape[1]
    tokens = jnp.take_along_axis(
        draft.tokens, jnp.clip(index, 0, gamma - 1), axis=1
    )
    is_draft = (index >= 0) & (index < draft.lengths[:, None])
    is_end = draft.tokens == self.target.special_ids.end
    is_end &= jnp.arange(gamma) < draft.lengths[:, None]
    num_wanted = view.num_wanted - draft.lengths
    return view._replace(
        sequences=jnp.where(is_draft, tokens, view.sequences),
        num_tokens=view.num_tokens + draft.lengths,
        num_pending=view.num_pending + draft.lengths,
        num_wanted=jnp.where(jnp.any(is_end, axis=1), 0, num_wanted),
    )


def _with_params_of(index: int, begin: Callable) -> Callable:
  """Returns a `ModelCall.begin` that takes the parameters of all drafters."""
  return lambda params, *rest: begin(params[index], *rest)


def join(first: contracts.Draft, second: contracts.Draft) -> contracts.Draft:
  """Returns one draft, then the other, in every row.

  Args:
    first: draft tokens after the committed ones.
    second: draft tokens after those; together at most gamma per row.
  """
  gamma = first.tokens.shape[1]
  index = jnp.arange(gamma, dtype=jnp.int32)[None]
  is_first = index < first.lengths[:, None]
  at = jnp.clip(index - first.lengths[:, None], 0, gamma - 1)

  def choose(one, other):
    shape = (*at.shape, *[1] * (other.ndim - 2))
    other = jnp.take_along_axis(other, at.reshape(shape), axis=1)
    return jnp.where(is_first.reshape(shape), one, other)

  tokens = choose(first.tokens, second.tokens)
  lengths = first.lengths + second.lengths
  if first.probs is None and second.probs is None:
    return contracts.Draft(tokens, lengths)
  some = second.probs if first.probs is None else first.probs
  probs = [
      jnp.zeros_like(some) if draft.probs is None else draft.probs
      for draft in (first, second)
  ]
  masses = [_is_point_mass(draft) for draft in (first, second)]
  return contracts.Draft(tokens, lengths, choose(*probs), choose(*masses))


def _is_point_mass(draft: contracts.Draft) -> jax.Array:
  """Returns which tokens are point masses, [rows, gamma] bool."""
  if draft.is_point_mass is not None:
    return draft.is_point_mass
  return jnp.full(draft.tokens.shape, draft.probs is None)


@dataclasses.dataclass(frozen=True)
class FromSources:
  """Drafters in a given order: see `source.Source`.

  Attributes:
    sources: where the drafters come from, the first one first.
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
  ) -> source.FoundDrafter:
    """See `source.Source.find`."""
    found = [each.find(target, vocabulary) for each in self.sources]
    return source.FoundDrafter(
        lambda: in_order([each.load() for each in found]),
        tuple(model for each in found for model in each.models),
    )


def in_order(drafters: Sequence[source.LoadedDrafter]) -> source.LoadedDrafter:
  """Returns the drafter that drafts by several in order.

  Args:
    drafters: loaded, the first one first.
  """

  def make(target: contracts.Model, gamma: int) -> InOrder:
    made = (source.make_drafter(each.make, target, gamma) for each in drafters)
    return InOrder(tuple(made), target)

  descriptions = [each.description for each in drafters]
  meshes = [each.mesh for each in drafters if each.params is not None]
  return source.LoadedDrafter(
      make,
      run_record.DrafterDescription(
          kind=' then '.join(each.kind for each in descriptions),
          name=' then '.join(each.name or each.kind for each in descriptions),
          **{key: _join(descriptions, key) for key in _IDENTITY},
      ),
      params=tuple(each.params for each in drafters),
      models=tuple(model for each in drafters for model in each.models),
      mesh=meshes[0] if meshes else None,
  )


def _join(
    descriptions: Sequence[run_record.DrafterDescription], key: str
) -> Any:
  """Returns the only value of a key, several as one text, or None."""
  values = [getattr(each, key) for each in descriptions]
  values = [each for each in values if each is not None]
  if len(values) == 1:
    return values[0]
  return ' then '.join(map(str, values)) or None

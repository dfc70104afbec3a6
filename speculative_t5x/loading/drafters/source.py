# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafters as jobs and the Python interface take them.

A gin file or a program names a `Source`. Found for a target it gives a
`FoundDrafter`, which loads a `LoadedDrafter`, which makes the drafter of any
number of draft tokens.
"""

from collections.abc import Callable
import dataclasses
import inspect
import numbers
from typing import Protocol

import jax

from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import t5_model
from speculative_t5x.research import run_record
from speculative_t5x.speculation import contracts

# Makes the drafter for a target and a number of draft tokens per block.
MakeDrafter = Callable[[contracts.Model, int], contracts.Drafter]


@dataclasses.dataclass(frozen=True)
class LoadedDrafter:
  """A drafter that is ready to draft for one target.

  Attributes:
    make: takes the target, as a `contracts.Model`, and the number of draft
      tokens per block, and returns the drafter. Cheap: it reads nothing.
    description: for the run record; what does not apply is left out.
    params: the drafter's parameters; None if it has none.
    models: the networks that it runs beside the target.
    mesh: mesh of the parameters; None for one device.
  """

  make: MakeDrafter
  description: run_record.DrafterDescription
  params: contracts.Params = dataclasses.field(default=None, repr=False)
  models: tuple[models_lib.Model, ...] = ()
  mesh: jax.sharding.Mesh | None = None


@dataclasses.dataclass(frozen=True)
class FoundDrafter:
  """A drafter that fits a target; its weights are still to be read.

  Attributes:
    load: reads the weights.
    models: the networks that it runs beside the target.
  """

  load: Callable[[], LoadedDrafter]
  models: tuple[models_lib.ModelSource, ...] = ()


class Source(Protocol):
  """Where a drafter comes from."""

  def find(
      self,
      target: models_lib.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> FoundDrafter:
    """Finds the drafter for a target and checks that it fits.

    A job with several drafters finds them all before it loads the first.

    Args:
      target: the target, whose weights are not yet read.
      vocabulary: the target's; None if there is none to compare with.
    Raises:
      ValueError: if the drafter cannot draft for the target.
    """


@dataclasses.dataclass(frozen=True)
class WithoutParameters:
  """A drafter that has no parameters of its own.

  Attributes:
    make: see `LoadedDrafter`; the class of the drafter will often do.
    kind: kind of drafter, for the run record.
  """

  make: MakeDrafter
  kind: str

  def find(
      self,
      target: models_lib.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> FoundDrafter:
    """See `Source.find`."""
    model = t5_model.T5Model(target.config, special_ids=target.special_ids)
    make_drafter(self.make, model, 1)
    return FoundDrafter(self.load)

  def load(self) -> LoadedDrafter:
    """Returns the drafter; there is nothing to read."""
    description = run_record.DrafterDescription(self.kind, self.kind)
    return LoadedDrafter(self.make, description)


def check_source(source: Source) -> None:
  """Checks that something given as a source of a drafter is one.

  Raises:
    ValueError: for anything else, such as a class or None.
  """
  if isinstance(source, type) or not hasattr(source, 'find'):
    raise ValueError(
        'DRAFTER must be a source of a drafter, with parentheses:'
        ' @draft_model.FromCheckpoint(), or @source.WithoutParameters() for a'
        f' class of your own. Got {source!r}.'
    )


def check_loaded(drafter: LoadedDrafter) -> None:
  """Checks that a drafter is one that was loaded.

  Raises:
    ValueError: for anything else, such as the class of a drafter.
  """
  if not isinstance(drafter, LoadedDrafter):
    remedy = (
        'Make one by draft_model.from_model, or of the class of a drafter by'
        ' source.WithoutParameters(...).load().'
    )
    if hasattr(drafter, 'load') and not isinstance(drafter, type):
      remedy = f'Give {type(drafter).__name__}(...).load().'
    raise ValueError(
        f'drafter must be a LoadedDrafter, got {drafter!r}. {remedy}'
    )


def make_drafter(
    make: MakeDrafter, target: contracts.Model, gamma: int
) -> contracts.Drafter:
  """Makes the drafter of gamma draft tokens per block for a target.

  Raises:
    ValueError: if gamma is not an integer of at least 1; or if the drafter
      lacks a part of `contracts.Drafter`, has another gamma, is not hashable,
      or has special ids that differ from the target's. A drafter without
      `special_ids` uses the target's.
  """
  if isinstance(gamma, bool) or not isinstance(gamma, numbers.Integral):
    raise ValueError(f'gamma must be an integer, got {gamma!r}.')
  if gamma < 1:
    raise ValueError(
        f'gamma must be at least 1, got {gamma}. Decode plainly for no draft'
        ' tokens at all.'
    )
  try:
    inspect.signature(make).bind(target, gamma)
  except TypeError as error:
    raise ValueError(
        f'{make!r} cannot make a drafter of a target and gamma: {error}. Let it'
        ' take these two arguments.'
    ) from error
  drafter = make(target, gamma)
  name = type(drafter).__name__
  needed = 'max_draft_tokens', 'num_uniforms', 'init', 'propose'
  if missing := [x for x in needed if not hasattr(drafter, x)]:
    raise ValueError(
        f'The drafter {name} lacks {", ".join(missing)}. See contracts.Drafter.'
    )
  if not isinstance(drafter.num_uniforms, int) or drafter.num_uniforms < 0:
    raise ValueError(
        f'The drafter {name} has num_uniforms {drafter.num_uniforms!r}, which'
        ' must be an integer of at least 0.'
    )
  if drafter.max_draft_tokens != gamma:
    raise ValueError(
        f'The drafter {name} was made for {gamma} draft tokens and has'
        f' max_draft_tokens {drafter.max_draft_tokens}. Let `make` pass on its'
        ' second argument.'
    )
  try:
    hash(drafter)
  except TypeError as error:
    raise ValueError(
        f'The drafter {name} is not hashable ({error}). Make it a frozen'
        ' dataclass.'
    ) from error
  own = getattr(drafter, 'special_ids', target.special_ids)
  check_special_ids(own, target.special_ids)
  return drafter


def check_special_ids(
    own: contracts.SpecialIds, target: contracts.SpecialIds
) -> None:
  """Checks that a drafter and a target have the same special ids.

  Raises:
    ValueError: naming both.
  """
  if own != target:
    raise ValueError(
        f'The drafter has the special ids {_shown(own)}, the target'
        f' {_shown(target)}. Draft tokens are ids, so both must be of one'
        ' vocabulary.'
    )


def _shown(ids: contracts.SpecialIds) -> str:
  return f'end {ids.end}, padding {ids.padding}, start {ids.start}'

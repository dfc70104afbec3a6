# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Drafters as jobs and the Python interface take them.

A gin file or a program names a `Source`. It finds the drafter for a target and
reads it: a `Drafting`.
"""

from collections.abc import Callable
import dataclasses
import inspect
from typing import Any, Protocol

import jax

from speculative_t5x.drafters import nothing
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading import vocabularies
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class Drafting:
  """A drafter whose parameters are read, for any number of draft tokens.

  Attributes:
    make: Takes the target, as a `contracts.Model`, and the number of draft
      tokens per block, and returns the drafter. Cheap: it reads nothing.
    description: Describes the drafter in run records; what does not apply is
      left out.
    params: Parameters of the drafter; None if it has none.
    axes: Names of the axes of each parameter, in a tree like `params` or the
      top of one; None where every device of a mesh holds all of it.
    models: Networks that it runs beside the target.
    mesh: Mesh of the parameters; None for one device.
  """

  make: Callable[[contracts.Model, int], contracts.Drafter]
  description: descriptions.DrafterDescription
  params: contracts.Params = dataclasses.field(default=None, repr=False)
  axes: Any = dataclasses.field(default=None, repr=False)
  models: tuple[models_lib.Model, ...] = ()
  mesh: jax.sharding.Mesh | None = None

  def __repr__(self) -> str:
    return f'Drafting({self.description})'

  def drafter(
      self, target: contracts.Model, gamma: int
  ) -> contracts.Drafter:
    """Make the drafter of gamma draft tokens per block for a target.

    Raises:
      ValueError: if gamma is not a whole number from 1 on; or if the drafter
        lacks a part of `contracts.Drafter`, has another gamma, is not hashable,
        or has special ids that differ from the target's. A drafter without
        `special_ids` uses the target's.
    """
    ranges.check_settings(ranges.COUNT, gamma=gamma)
    try:
      inspect.signature(self.make).bind(target, gamma)
    except TypeError as error:
      raise ValueError(
          f'{self.make!r} cannot make a drafter of a target and gamma: {error}.'
          ' Let it take these two arguments.'
      ) from error
    drafter = self.make(target, gamma)
    if problem := _problem(drafter, gamma):
      raise ValueError(f'The drafter {type(drafter).__name__} {problem}')
    own = getattr(drafter, 'special_ids', target.special_ids)
    check_special_ids(own, target.special_ids)
    return drafter


def _problem(drafter: contracts.Drafter, gamma: int) -> str | None:
  """Return what a drafter lacks of `contracts.Drafter`, as a predicate."""
  needed = 'max_draft_tokens', 'num_uniforms', 'init', 'propose'
  if missing := [x for x in needed if not hasattr(drafter, x)]:
    return f'lacks {", ".join(missing)}. See contracts.Drafter.'
  if not ranges.NATURAL.includes(drafter.num_uniforms):
    return (
        f'has num_uniforms {drafter.num_uniforms!r}, which must'
        f' {ranges.NATURAL.allowed}.'
    )
  if drafter.max_draft_tokens != gamma:
    return (
        f'was made for {gamma} draft tokens and has max_draft_tokens'
        f' {drafter.max_draft_tokens}. Let `make` pass on its second argument.'
    )
  try:
    hash(drafter)
  except TypeError as error:
    return f'is not hashable ({error}). Make it a frozen dataclass.'
  return None


# What plain decoding takes: no drafter is called.
NOTHING = Drafting(
    lambda target, gamma: nothing.Nothing(gamma),
    descriptions.DrafterDescription(),
)


@dataclasses.dataclass(frozen=True)
class Found:
  """A drafter that fits a target; its weights are still to be read.

  Attributes:
    read: Reads the weights.
    models: The networks that it will run beside the target.
    num_bytes: Bytes of its other parameters per device, at most.
  """

  read: Callable[[], Drafting]
  models: tuple[models_lib.ModelSource, ...] = ()
  num_bytes: int = 0

  def __call__(self) -> Drafting:
    return self.read()


class Source(Protocol):
  """Where a drafter comes from: what a gin file or a program names."""

  def find(
      self,
      target: models_lib.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> Callable[[], Drafting]:
    """Check that the drafter fits a target, and return what reads it.

    A job with several drafters finds them all before it reads the first.

    Args:
      target: The target, whose weights are not yet read.
      vocabulary: Vocabulary of the target; None if there is none to compare
        with.
    Returns:
      A function that reads the weights. A `Found` also says what memory they
      take, which is not counted otherwise.
    Raises:
      ValueError: if the drafter cannot draft for the target.
    """


@dataclasses.dataclass(frozen=True)
class WithoutParameters:
  """A drafter that has no parameters of its own.

  Attributes:
    make: See `Drafting`; the class of the drafter will often do.
    kind: Kind of drafter in run records.
  """

  make: Callable[[contracts.Model, int], contracts.Drafter]
  kind: str

  def find(
      self,
      target: models_lib.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> Callable[[], Drafting]:
    model = network.NetworkModel(target.config, target.special_ids)
    self.load().drafter(model, 1)
    return self.load

  def load(self) -> Drafting:
    """Return the drafter; there is nothing to read."""
    description = descriptions.DrafterDescription(self.kind, self.kind)
    return Drafting(self.make, description)


def check_source(source: Source) -> None:
  """Check that something given as a source of a drafter is one.

  Raises:
    ValueError: for anything else, such as a class or None.
  """
  if isinstance(source, type) or not hasattr(source, 'find'):
    raise ValueError(
        'A drafter must be a loaded model or a source, with parentheses and in'
        ' gin with @: lookup_source.FromContext(), or for a class of your own'
        f" source.WithoutParameters(<class>, '<name>'). Got {source!r}."
    )


def check_reads_hints(
    drafter: contracts.Drafter, description: descriptions.DrafterDescription
) -> None:
  """Check that a drafter uses the hints of a request.

  Raises:
    ValueError: naming the drafter, if it does not.
  """
  if not getattr(drafter, 'reads_hints', False):
    name = description.name or description.kind
    who = f'The drafter {name}' if name else 'Plain decoding'
    raise ValueError(
        f'{who} does not read hints or earlier answers. Use a'
        ' drafter that does: lookup_source.FromContext, in jobs'
        ' configs/drafters/lookup.gin.'
    )


def check_special_ids(
    own: contracts.SpecialIds, target: contracts.SpecialIds
) -> None:
  """Check that a drafter and a target have the same special ids.

  Raises:
    ValueError: naming both.
  """
  if own != target:
    raise ValueError(
        f"The drafter has {own}, the target {target}. Draft tokens are ids, so"
        ' both must be of one vocabulary.'
    )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A drafter for a target, before and after its parameters are read."""

from collections.abc import Callable
import dataclasses
from typing import Any

import jax

from speculative_t5x.drafters import nothing
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models as models_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import ranges


@dataclasses.dataclass(frozen=True)
class Drafting:
  """A drafter for a target and any number of draft tokens; drafts none itself.

  It is found first, from metadata alone, and then loaded. A program or a gin
  file chooses one that has `find` alone, such as `Lookup`. One without anything
  to read is both. `Drafting(MyDrafter, 'my_drafter')` is that of a class of
  your own; without arguments, decoding is plain.

  Attributes:
    make: Takes the target, as a `contracts.Model`, and the number of draft
      tokens per block, and returns the drafter. Cheap: it reads nothing.
    description: Describes the drafter in run records, where what does not apply
      is left out; a string is its kind and its name.
    models: Networks that it runs beside the target: a `models.Found` each,
      and a `models.Model` once they are loaded.
    num_bytes: Bytes of its other parameters per device, at most.
    params: Parameters of the drafter; None if it has none, or not yet.
    axes: Names of the axes of each parameter, in a tree like `params` or the
      top of one; None where every device of a mesh holds all of it.
    mesh: Mesh of the parameters; None for one device.
    read: Reads the parameters, and returns the loaded drafting; None if there
      is nothing to read any more.
  """

  make: Callable[[contracts.Model, int], contracts.Drafter] = (
      lambda target, gamma: nothing.NoDrafter(gamma)
  )
  description: descriptions.DrafterDescription | str = (
      descriptions.DrafterDescription()
  )
  models: tuple[models_lib.Found, ...] = ()
  num_bytes: int = 0
  params: contracts.Params = dataclasses.field(default=None, repr=False)
  axes: Any = dataclasses.field(default=None, repr=False)
  mesh: jax.sharding.Mesh | None = None
  read: Callable[[], 'Drafting'] | None = None

  def __post_init__(self):
    if isinstance(name := self.description, str):
      description = descriptions.DrafterDescription(kind=name, name=name)
      object.__setattr__(self, 'description', description)

  def __repr__(self) -> str:
    return f'Drafting({self.description})'

  def find(self, target: models_lib.Found) -> 'Drafting':
    """Find the drafter for a target, as `drafters.find`; read no weights.

    A job with several drafters finds them all before it reads the first.
    """
    return self

  def load(self) -> 'Drafting':
    return self.read() if self.read else self

  def drafter(self, target: contracts.Model, gamma: int) -> contracts.Drafter:
    """Make the drafter of gamma draft tokens per block for a target.

    Raises:
      ValueError: if it lacks a part of `contracts.Drafter`, has another gamma,
        or has special ids that differ from the target's.
    """
    ranges.check_settings(ranges.COUNT, gamma=gamma)
    drafter = self.make(target, gamma)
    if problem := _problem(drafter, gamma, target.special_ids):
      raise ValueError(f'The drafter {type(drafter).__name__} {problem}')
    return drafter


def _problem(
    drafter: contracts.Drafter, gamma: int, special_ids: contracts.SpecialIds
) -> str | None:
  """Return what a drafter lacks of `contracts.Drafter`, as a predicate."""
  form = getattr(drafter, 'form', None)
  if not isinstance(form, forms.Chain | forms.Tree):
    return (
        'lacks a form, as forms.Chain(gamma, num_uniforms=...). See'
        ' docs/own.md.'
    )
  needed = ['init', 'propose', *['commit'] * isinstance(form, forms.Tree)]
  if missing := [x for x in needed if not hasattr(drafter, x)]:
    return f'lacks {", ".join(missing)}. See docs/own.md.'
  if form.gamma != gamma:
    return (
        f'was made for {gamma} draft tokens, and its form has gamma'
        f' {form.gamma}. Let `make` pass on its second argument.'
    )
  own = special_ids if form.special_ids is None else form.special_ids
  # What a decoder is fed first is its own affair.
  if dataclasses.replace(own, start=special_ids.start) != special_ids:
    return (
        f'has {own}, the target {special_ids}. Draft tokens are ids, so both'
        ' must be of one vocabulary.'
    )
  return None


def check_reads_hints(
    drafter: contracts.Drafter, description: descriptions.DrafterDescription
) -> None:
  """Check that a drafter uses the hints of a request."""
  if not drafter.form.reads_hints:
    name = description.name or description.kind
    who = f'The drafter {name}' if name else 'Plain decoding'
    raise ValueError(
        f'{who} does not read hints. Use a drafter that does:'
        ' drafters.Lookup, in jobs configs/drafters/lookup.gin.'
    )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Families of checkpoints: which network one holds, and how it names its parts.

Each module of this folder is a family, see `Family`. Nothing else names them.
"""

from collections.abc import Callable, Collection, Mapping
import functools
import importlib
import math
import pkgutil
from typing import Any, NamedTuple, Protocol

from etils import epath
import jax
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.networks import network


class Source(NamedTuple):
  """Where a parameter lies in a Hugging Face folder.

  Attributes:
    tensor: Name of the tensor.
    is_transposed: Whether the tensor is the transpose: PyTorch's linear layers
      store [out, in], Flax [in, out].
    part: Which of the equal parts along the last axis, once transposed, it is.
    parts: How many parts the tensor has.
  """

  tensor: str
  is_transposed: bool = False
  part: int = 0
  parts: int = 1

  def shape(self, stored: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parameter's shape; the whole one if it has no such parts."""
    shape = stored[::-1] if self.is_transposed else stored
    if self.parts == 1 or not shape or shape[-1] % self.parts:
      return shape
    return *shape[:-1], shape[-1] // self.parts

  def take(self, array: np.ndarray) -> np.ndarray:
    """Return the parameter of the tensor's array."""
    array = array.T if self.is_transposed else array
    if self.parts == 1:
      return array
    return np.split(array, self.parts, axis=-1)[self.part]


# Kinds of values that a field may have.
ID, SIZE, NUMBER = 'an id', 'a size', 'a positive number'
NUMBER_OR_NONE = 'a positive number or null'


def _is_number(value: Any) -> bool:
  return type(value) in (int, float) and 0 < value < math.inf


_IS_OF_KIND: Mapping[str, Callable[[Any], bool]] = {
    ID: lambda x: type(x) is int and x >= 0,
    SIZE: lambda x: type(x) is int and x > 0,
    NUMBER: _is_number,
    NUMBER_OR_NONE: lambda x: x is None or _is_number(x),
}
FLAG = False, True, None  # None is false


class Field(NamedTuple):
  """A field of config.json that decides what a network computes.

  Attributes:
    default: Its value where a file lacks it, as in transformers. A function of
      the fields before it stands for null too, and returns the value.
    values: A kind of values, or the values that the network here has, or a
      function of the fields before it that returns those; None if the family
      checks them. One value alone means: a part that no network here has.
    alias: Another name that transformers reads.
  """

  default: Any
  values: Any = None
  alias: str | None = None


Fields = Mapping[str, Field]
# Of all families: parts that no network here has.
ABSENT: Fields = {
    'quantization_config': Field(None, (None,)),
    'pruned_heads': Field({}, ({}, None)),
}


def with_defaults(fields: Fields, **defaults: Any) -> Fields:
  """Return fields of which some have other defaults."""
  changed = {
      name: fields[name]._replace(default=x) for name, x in defaults.items()
  }
  return {**fields, **changed}


class Family(Protocol):
  """Contents of a module of this folder.

  `folder` and `file`, of the checkpoint and of its config.json, are for
  messages; networks compute in float32. Families that T5X does not train have
  no `of_shapes`, those whose config.json says all have no `of_tensors`, and
  those that are T5X's alone have no model_type and nothing for one. Each
  function raises `errors.CheckpointError`: if parameters are of another family,
  the family has no such network, or tensors are missing or unknown.

  Attributes:
    NAME: Names the family in errors.
    FIELDS: The fields of config.json that are read, by its model_type. All
      others change nothing that is computed.
  """

  NAME: str
  FIELDS: Mapping[str, Fields]

  def of_shapes(
      self, specs: Mapping[str, jax.ShapeDtypeStruct]
  ) -> network.Network:
    """Return the network of parameters in T5X's layouts.

    A name of `specs` is e.g. `decoder/layers_0/mlp/wo/kernel`.
    """

  def of_config(
      self, file: epath.Path, config: Mapping[str, Any]
  ) -> network.Network:
    """Return the network that a config.json states, as `complete` returns it.
    """

  def of_tensors(
      self, network: Any, stored: Collection[str]
  ) -> network.Network:
    """Return the network from `of_config` with the parts that are stored."""

  def tensor_names(
      self, folder: epath.Path, stored: Collection[str], network: Any
  ) -> tuple[dict[str, Source], dict[str, str]]:
    """Return which tensor of a Hugging Face folder is which parameter.

    Returns:
      Where each parameter of the network from `of_config` lies, of those that
      are stored, and the tensor that each other one must equal.
    """


@functools.cache
def _known() -> tuple[Family, ...]:
  modules = sorted(each.name for each in pkgutil.iter_modules(__path__))
  return tuple(importlib.import_module(f'{__name__}.{x}') for x in modules)


def of_shapes(
    folder: epath.Path, specs: Mapping[str, jax.ShapeDtypeStruct]
) -> network.Network:
  """Return the network of the first family that parameters belong to."""
  problems = []
  for family in (x for x in _known() if hasattr(x, 'of_shapes')):
    try:
      return family.of_shapes(specs)
    except errors.CheckpointError as error:
      problems.append(f'{family.NAME}: {error}')
  raise errors.CheckpointError(
      f'{folder} is not of a family that is known here. {" ".join(problems)}'
  )


def of_model_type(file: epath.Path, model_type: Any) -> Family:
  """Return the family of the model_type, of any kind, in a config.json."""
  types = {name: family for family in _known() for name in family.FIELDS}
  if model_type not in list(types):  # which may be unhashable
    raise errors.CheckpointError(
        f'{file} is of a network of type {errors.shown(model_type)}; only'
        f' {" and ".join(map(repr, types))} are known here. Pass a model of one'
        ' of them.'
    )
  return types[model_type]


def complete(
    file: epath.Path, config: Mapping[str, Any], fields: Fields, network: str
) -> dict[str, Any]:
  """Return a config.json, or a part of one, with all fields that are read.

  Args:
    file: For messages.
    config: The fields that the file has.
    fields: Those that are read.
    network: Names the network in messages.
  Raises:
    errors.CheckpointError: naming the first field with a value that the network
      does not have.
  """
  found = dict(config)
  for name, field in fields.items():
    if name not in found and field.alias in found:
      found[name] = found[field.alias]
    is_derived = callable(field.default)
    value = found.get(name, None if is_derived else field.default)
    with errors.reading(file):
      if is_derived and value is None:
        value = field.default(found)
      right = field.values(found) if callable(field.values) else field.values
    found[name] = value
    if right is None or _is_right(value, right):
      if field.alias is None or found.get(field.alias, value) == value:
        continue
      right = f'{errors.shown(found[field.alias])} as {field.alias}'
    elif not isinstance(right, str):
      right = ' or '.join(map(str, right))
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(value)}, and the {network} that runs'
        f' here has {right}. Pass one of that kind, or correct the file, or'
        ' download it again if it is damaged.'
    )
  return found


def _is_right(value: Any, right: Any) -> bool:
  if isinstance(right, str):
    return _IS_OF_KIND[right](value)
  return value in right


def check_all_known(
    folder: epath.Path, network: str, unknown: Collection[str]
) -> None:
  """Raise CheckpointError if a folder has tensors of unknown names."""
  if unknown:
    raise errors.CheckpointError(
        f'{folder} holds tensors that {network} does not have:'
        f' {errors.listing(sorted(unknown))}. It is of another network, or'
        ' quantized, or holds adapters: pass the plain model.'
    )

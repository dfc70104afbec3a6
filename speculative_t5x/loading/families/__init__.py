# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Families of checkpoints: which network one holds, and how it names its parts.

Each module of this folder is a family, and nothing else names them. It has

    NAME           names the family in errors
    FIELDS         fields of config.json that are read, by its model_type; all
                   others change nothing that is computed
    of_config      (file, config) -> the network that a config.json states, as
                   `complete` returns it
    tensor_names   (folder, stored, network) -> where each parameter of that
                   network lies, of those whose tensors are stored, and the
                   tensor that each other one must equal: `TensorMap.sources`

and it may have

    of_tensors     (network, stored) -> the network with the parts that are
                   stored, where config.json does not say all

T5X's layouts have none: see `t5_checkpoints.of_shapes`.

A `file` and a `folder` are for messages; networks compute in float32. Each
function raises `errors.CheckpointError`: if parameters are of another family,
the family has no such network, or tensors are missing or unknown.
"""

from collections.abc import Mapping
import functools
import importlib
import math
import pkgutil
import types
from typing import Any, NamedTuple

from etils import epath
import numpy as np

from speculative_t5x.loading import errors


class Location(NamedTuple):
  """Where a parameter lies in a Hugging Face folder."""

  tensor: str  # name of the tensor
  # Whether the tensor is the transpose: PyTorch's linear layers store [out,
  # in], Flax [in, out].
  is_transposed: bool = False
  # Which of the equal parts along the last axis, once transposed, it is.
  part: int = 0
  parts: int = 1  # how many parts the tensor has
  # Whether the parameter is [1, n], and the tensor may be [n].
  is_row: bool = False

  def shape(self, stored: tuple[int, ...]) -> tuple[int, ...]:
    """Return the parameter's shape."""
    # A view of one number: nothing of the shape is allocated.
    return self.take(np.broadcast_to(np.int8(0), stored)).shape

  def take(self, array: np.ndarray) -> np.ndarray:
    """Return the parameter of the tensor's array."""
    array = array.T if self.is_transposed else array
    array = array[None] if self.is_row and array.ndim == 1 else array
    if self.parts == 1 or not array.ndim:
      return array
    # Unequal parts are refused as shapes, by the parameter's name.
    return np.array_split(array, self.parts, axis=-1)[self.part]


# Kinds of values that a field may have.
ID, SIZE, NUMBER = 'an id', 'a size', 'a positive number'
NUMBER_OR_NONE = 'a positive number or null'


def _is_number(value: Any) -> bool:
  return type(value) in (int, float) and 0 < value < math.inf


_IS_OF_KIND = {
    ID: lambda x: type(x) is int and x >= 0,
    SIZE: lambda x: type(x) is int and x > 0,
    NUMBER: _is_number,
    NUMBER_OR_NONE: lambda x: x is None or _is_number(x),
}
# Of activations, Flax's by Hugging Face's.
_FLAX = {
    'gelu_new': 'gelu',
    'gelu_pytorch_tanh': 'gelu',
    'relu': 'relu',
    'silu': 'silu',
    'swish': 'silu',
}
ACTIVATIONS = {theirs: (ours,) for theirs, ours in _FLAX.items()}
GATED_ACTIVATIONS = {x: (ours, 'linear') for x, ours in _FLAX.items()}
FLAG = {False: False, True: True, None: False}


class Field(NamedTuple):
  """A field of config.json that decides what a network computes."""

  # Its value where a file lacks it, as in transformers. A function of the
  # fields before it stands for null too, and returns the value.
  default: Any
  # A kind of values, or the values that the network here has, which may be a
  # mapping to the network's own, or a function of the fields before it that
  # returns those; None if the family checks them. One value alone means: a part
  # that no network here has.
  values: Any = None
  ours: str = ''  # fields of the network that have the value, divided by spaces


Fields = dict[str, Field]


def of_sizes(**fields: tuple[Any, str]) -> Fields:
  """Return fields that are sizes, of each its default and ours."""
  return {
      name: Field(default, SIZE, ours)
      for name, (default, ours) in fields.items()
  }


def unchecked(**defaults: Any) -> Fields:
  """Return fields with defaults that the family or its reader checks."""
  return {name: Field(default) for name, default in defaults.items()}


def absent(default: Any, *names: str) -> Fields:
  """Return fields of parts that there are not: of a default, or null."""
  return dict.fromkeys(names, Field(default, (default, None)))


# Of all families.
ABSENT = absent(None, 'quantization_config') | absent({}, 'pruned_heads')


def with_defaults(fields: Fields, **defaults: Any) -> Fields:
  """Return fields of which some have other defaults."""
  changed = {
      name: fields[name]._replace(default=x) for name, x in defaults.items()
  }
  return {**fields, **changed}


@functools.cache
def _known() -> tuple[types.ModuleType, ...]:
  modules = sorted(each.name for each in pkgutil.iter_modules(__path__))
  return tuple(importlib.import_module(f'{__name__}.{x}') for x in modules)


def of_model_type(file: epath.Path, model_type: Any) -> types.ModuleType:
  """Return the family of the model_type, of any kind, in a config.json."""
  known = {name: family for family in _known() for name in family.FIELDS}
  if model_type not in list(known):  # which may be unhashable
    raise errors.CheckpointError(
        f'{file} is of a network of type {errors.shown(model_type)}; only'
        f' {" and ".join(map(repr, known))} are known here. Pass a model of one'
        ' of them.'
    )
  return known[model_type]


def complete(
    file: epath.Path, config: Mapping[str, Any], fields: Fields, network: str
) -> dict[str, Any]:
  """Return a config.json, or a part of one, with all fields that are read.

  Messages name the file and the network.

  Raises:
    errors.CheckpointError: naming the first field with a value that the network
      does not have.
  """
  found = dict(config)
  for name, field in fields.items():
    is_derived = callable(field.default)
    value = found.get(name, None if is_derived else field.default)
    with errors.reading(file):
      if is_derived and value is None:
        value = field.default(found)
      right = field.values(found) if callable(field.values) else field.values
    found[name] = value
    if right is None or _is_right(value, right):
      continue
    if not isinstance(right, str):
      right = ' or '.join('null' if x is None else str(x) for x in right)
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(value)}, and the {network} that runs'
        f' here has {right}. Pass one of that kind, or correct the file, or'
        ' download it again if it is damaged.'
    )
  return found


def _is_right(value: Any, right: Any) -> bool:
  if isinstance(right, str):
    return _IS_OF_KIND[right](value)
  return value in list(right)  # it may be unhashable


def sizes(fields: Fields, config: Mapping[str, Any]) -> dict[str, Any]:
  """Return the fields of a network that those of a complete config.json are."""
  found = {}
  for name, field in fields.items():
    value = config[name]
    if isinstance(field.values, Mapping):
      value = field.values[value]
    found |= dict.fromkeys(field.ours.split(), value)
  return found

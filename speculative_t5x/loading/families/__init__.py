# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Families of checkpoints: which network one holds, and how it names its parts.

Each module of this folder is a family, see `Family`. Nothing else names them.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
import functools
import importlib
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


class Family(Protocol):
  """What a module of this folder holds.

  `folder` and `file`, of the checkpoint and of its config.json, are for
  messages. Families that T5X does not train have no `of_shapes`, those whose
  config.json says all have no `of_tensors`, and those that are T5X's alone have
  no model_type and nothing for one. Each function raises
  `errors.CheckpointError`: if parameters are of another family, the family has
  no such network, or tensors are missing or unknown.

  Attributes:
    NAME: Names the family in errors.
    DEFAULTS: What a Hugging Face config.json means where it is silent, by its
      model_type.
  """

  NAME: str
  DEFAULTS: Mapping[str, Mapping[str, Any]]

  def of_shapes(
      self, specs: Mapping[str, jax.ShapeDtypeStruct], dtype: Any
  ) -> network.Network:
    """Return the network of parameters in T5X's layouts, to decode in a dtype.

    A name of `specs` is e.g. `decoder/layers_0/mlp/wo/kernel`.
    """

  def of_config(
      self, file: epath.Path, config: Mapping[str, Any], dtype: Any
  ) -> network.Network:
    """Return the network that a config.json with `DEFAULTS` states."""

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
    folder: epath.Path, specs: Mapping[str, jax.ShapeDtypeStruct], dtype: Any
) -> network.Network:
  """Return the network of the first family that parameters belong to."""
  problems = []
  for family in (x for x in _known() if hasattr(x, 'of_shapes')):
    try:
      return family.of_shapes(specs, dtype)
    except errors.CheckpointError as error:
      problems.append(f'{family.NAME}: {error}')
  raise errors.CheckpointError(
      f'{folder} is not of a family that is known here. {" ".join(problems)}'
  )


def matrices(
    specs: Mapping[str, jax.ShapeDtypeStruct], names: Sequence[str]
) -> tuple[list[tuple[int, ...]], list[str]]:
  """Return the shapes of parameters, and the names of those that are no matrix.

  A parameter that is not there has no shape.
  """
  shapes = [specs[x].shape if x in specs else () for x in names]
  return shapes, [x for x, shape in zip(names, shapes) if len(shape) != 2]


def of_model_type(file: epath.Path, model_type: Any) -> Family:
  """Return the family of the model_type, of any kind, in a config.json."""
  types = {name: family for family in _known() for name in family.DEFAULTS}
  if model_type not in list(types):  # which may be unhashable
    raise errors.CheckpointError(
        f'{file} is of a network of type {errors.shown(model_type)}; only'
        f' {" and ".join(map(repr, types))} are known here. Pass a model of one'
        ' of them.'
    )
  return types[model_type]


def check_config(
    file: epath.Path,
    config: Mapping[str, Any],
    sizes: Iterable[str],
    allowed: Mapping[str, tuple[Any, ...]],
    model: str,
) -> None:
  """Check the fields of a config.json that the network depends on.

  Args:
    file: For messages.
    config: All fields.
    sizes: Fields that must be sizes.
    allowed: Other fields, and the values that the network has.
    model: What to pass instead, as 'a T5 1.0'.
  Raises:
    errors.CheckpointError: naming the first field with another value.
  """
  wrong = {
      name: ' or '.join(map(str, values))
      for name, values in allowed.items()
      if config.get(name) not in values
  }
  for name in sizes:
    if type(config.get(name)) is not int or config[name] < 1:
      wrong[name] = 'a size'
  for name, right in wrong.items():
    raise errors.CheckpointError(
        f'{file} has {name} {errors.shown(config.get(name))}, and the network'
        f' that runs here has {right}. Pass {model} of that kind, or download'
        ' the file again if it is damaged.'
    )


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

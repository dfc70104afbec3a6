# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Families of checkpoints: which network one holds, and how it names its parts.

Each module of this folder is a family, see `Family`. Nothing else names them.
"""

from collections.abc import Collection, Mapping
import functools
import importlib
import pkgutil
from typing import Any, Protocol

from etils import epath
import jax

from speculative_t5x.loading import errors
from speculative_t5x.networks import network


class Family(Protocol):
  """What a module of this folder holds.

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
    """Returns the network that parameters of T5X's layouts belong to.

    Args:
      specs: Shapes by name, e.g. `decoder/layers_0/mlp/wo/kernel`.
      dtype: Dtype to decode in.
    Raises:
      errors.CheckpointError: if they are of another family.
    """

  def of_config(
      self, file: epath.Path, config: Mapping[str, Any], dtype: Any
  ) -> network.Network:
    """Returns the network that a config.json states.

    Args:
      file: Path of the config.json, for messages.
      config: Its contents, with `DEFAULTS`.
      dtype: Dtype to decode in.
    Raises:
      errors.CheckpointError: if the family has no such network.
    """

  def tensor_names(
      self,
      folder: epath.Path,
      stored: Collection[str],
      network: network.Network,
  ) -> tuple[dict[str, str], dict[str, str]]:
    """Returns which tensor is which parameter.

    Args:
      folder: Path of the Hugging Face folder, for messages.
      stored: Names of all tensors of the folder.
      network: The network, from `of_config`.
    Returns:
      The tensor of each parameter, by the parameter's name, and the tensor that
      each other one must equal.
    Raises:
      errors.CheckpointError: if a needed tensor is missing, or one is there
        that the family does not have.
    """

  def is_transposed(self, name: str) -> bool:
    """Returns whether the tensor of a parameter is its transpose."""


@functools.cache
def _known() -> tuple[Family, ...]:
  modules = sorted(each.name for each in pkgutil.iter_modules(__path__))
  return tuple(importlib.import_module(f'{__name__}.{x}') for x in modules)


def of_shapes(
    folder: epath.Path, specs: Mapping[str, jax.ShapeDtypeStruct], dtype: Any
) -> network.Network:
  """Returns the network of the first family that parameters belong to.

  Args:
    folder: Path of the checkpoint, for messages.
    specs: See `Family.of_shapes`.
    dtype: Dtype to decode in.
  Raises:
    errors.CheckpointError: in one line that names the families, if they are of
      none.
  """
  problems = []
  for family in _known():
    try:
      return family.of_shapes(specs, dtype)
    except errors.CheckpointError as error:
      problems.append(f'{family.NAME}: {error}')
  raise errors.CheckpointError(
      f'{folder} is not of a family that is known here. {" ".join(problems)}'
  )


def of_model_type(file: epath.Path, model_type: Any) -> Family:
  """Returns the family of a Hugging Face model_type.

  Args:
    file: Path of the config.json, for messages.
    model_type: What it holds; anything.
  Raises:
    errors.CheckpointError: if no family has it.
  """
  types = {name: family for family in _known() for name in family.DEFAULTS}
  if model_type not in list(types):  # which may be unhashable
    raise errors.CheckpointError(
        f'{file} is of a network of type {errors.shown(model_type)}; only'
        f' {" and ".join(map(repr, types))} are known here. Pass a model of one'
        ' of them.'
    )
  return types[model_type]

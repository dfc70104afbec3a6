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

  `folder` and `file`, of the checkpoint and of its config.json, are for
  messages. Each function raises `errors.CheckpointError`: if parameters are of
  another family, the family has no such network, or tensors are missing or
  unknown.

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

  def tensor_names(
      self, folder: epath.Path, stored: Collection[str], network: Any
  ) -> tuple[dict[str, str], dict[str, str]]:
    """Return which tensor of a Hugging Face folder is which parameter.

    Returns:
      Of all names that are stored, the tensor of each parameter of the network
      from `of_config`, and the tensor that each other one must equal.
    """

  def is_transposed(self, name: str) -> bool:
    """Return whether the tensor of a parameter is its transpose."""


@functools.cache
def _known() -> tuple[Family, ...]:
  modules = sorted(each.name for each in pkgutil.iter_modules(__path__))
  return tuple(importlib.import_module(f'{__name__}.{x}') for x in modules)


def of_shapes(
    folder: epath.Path, specs: Mapping[str, jax.ShapeDtypeStruct], dtype: Any
) -> network.Network:
  """Return the network of the first family that parameters belong to."""
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
  """Return the family of the model_type, of any kind, in a config.json."""
  types = {name: family for family in _known() for name in family.DEFAULTS}
  if model_type not in list(types):  # which may be unhashable
    raise errors.CheckpointError(
        f'{file} is of a network of type {errors.shown(model_type)}; only'
        f' {" and ".join(map(repr, types))} are known here. Pass a model of one'
        ' of them.'
    )
  return types[model_type]

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters of any drafter as T5X holds parameters: arrays in nested dicts.

Those of drafters in order are a tuple, and those of a table a dataclass. T5X
saves, partitions and lists dicts alone.
"""

from typing import Any

from flax import core as flax_core
from flax.linen import partitioning
import jax

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.drafters import drafting as drafting_lib
from speculative_t5x.speculation import contracts


def nest(params: contracts.Params) -> dict[str, Any]:
  """Return the parameters in nested dicts, empty without any."""
  leaves = jax.tree.leaves(params)
  return checkpoints.nest(dict(zip(_names(params), leaves, strict=True)))


def restore(like: contracts.Params, nested: Any) -> contracts.Params:
  """Return what `nest` has put in dicts, in the structure of `like`."""
  flat = checkpoints.flatten(flax_core.unfreeze(nested))
  leaves = [flat[name] for name in _names(like)]
  return jax.tree.unflatten(jax.tree.structure(like), leaves)


def axes(drafting: drafting_lib.Drafting) -> dict[str, Any]:
  """Return the axes of all parameters, as T5X has them beside `nest`'s."""
  params = drafting.params
  structure = jax.tree.structure(params)
  each = jax.tree.broadcast(
      drafting.axes, params, is_leaf=lambda axes: axes is None
  )
  found = {}
  for name, axes, param in zip(
      _names(params),
      structure.flatten_up_to(each),
      jax.tree.leaves(params),
      strict=True,
  ):
    whole = (None,) * param.ndim  # each device holds all of it
    found[f'{name}_axes'] = partitioning.AxisMetadata(tuple(axes or whole))
  return checkpoints.nest(found)


def _names(params: contracts.Params) -> list[str]:
  return [
      jax.tree_util.keystr(path, simple=True, separator='/')
      for path, _ in jax.tree.leaves_with_path(params)
  ]

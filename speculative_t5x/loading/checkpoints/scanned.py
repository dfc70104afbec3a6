# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Scanned layers of T5X: a stored array holds a parameter of all layers.

`decoder/decoder/mlp/wo/kernel` is [mlp, layers, embed] where T5X's
`param_scan_axis` is 1, its default, and `decoder/layers_i/mlp/wo/kernel` here
is a slice of it. The networks that scan layers (`t5x.examples.scalable_t5`)
keep heads apart too: [embed, heads, head_dim] is [embed, heads * head_dim]
here, also where their layers are not scanned.
"""

from collections.abc import Collection, Mapping
import re
from typing import NamedTuple

from etils import epath
import jax
import numpy as np

from speculative_t5x.loading import errors

_OF_LAYERS = re.compile(r'(encoder|decoder)/\1/(.+)')
_WITH_HEADS = re.compile(
    r'(?:encoder|decoder)/layers_\d+/\w+/(query|key|value|out)/kernel'
)
_AXES = 1, 0  # of layers; T5X's default first
_MOST_LAYERS = 1024  # more than any T5 has; a damaged file may state any number


class Part(NamedTuple):
  """A parameter that is not stored as it is."""

  array: str  # name of the stored array
  shape: tuple[int, ...]  # the parameter's
  # Axis of the layers in the array; None if it has none.
  axis: int | None = None
  layer: int = 0  # which layer the parameter is of

  def take(self, array: np.ndarray) -> np.ndarray:
    """Return the parameter of the stored array."""
    if self.axis is not None:
      array = np.take(array, self.layer, self.axis)
    return array.reshape(self.shape)


def parts(
    folder: epath.Path, specs: Mapping[str, jax.ShapeDtypeStruct]
) -> dict[str, Part]:
  """Return the parameters that are parts of stored arrays, by their names.

  The specs are of the stored arrays, by name; messages name the folder.

  Raises:
    errors.CheckpointError: if arrays of scanned layers do not fit each other.
  """
  found = {}
  stacks: dict[str, dict[str, str]] = {}
  for name in specs:
    if match := _OF_LAYERS.fullmatch(name):
      stacks.setdefault(match[1], {})[match[2]] = name
    elif with_heads := _join_heads(name, specs[name].shape):
      found[name] = Part(name, with_heads)
  for stack, arrays in stacks.items():
    shapes = {name: specs[name].shape for name in arrays.values()}
    axis = _axis_of_layers(shapes.values())
    if axis is None:
      raise errors.CheckpointError(
          f'{folder} has scanned layers in {errors.listing(sorted(shapes))},'
          f' whose axis of layers is neither {_AXES[0]} nor {_AXES[1]}, or of'
          ' unequal sizes. Pass another checkpoint, or one that is converted to'
          ' an array per layer.'
      )
    for inner, name in arrays.items():
      shape = shapes[name]
      rest = *shape[:axis], *shape[axis + 1 :]
      for layer in range(shape[axis]):
        own = f'{stack}/layers_{layer}/{inner}'
        found[own] = Part(name, _join_heads(own, rest) or rest, axis, layer)
  return found


def _axis_of_layers(shapes: Collection[tuple[int, ...]]) -> int | None:
  """Return the axis on which all arrays of a stack have one size, the layers.

  None if there is none. Other axes have different ones: embed, mlp, heads.
  """
  for axis in _AXES:
    counts = {shape[axis : axis + 1] for shape in shapes}
    if len(counts) == 1 and () < min(counts) <= (_MOST_LAYERS,):
      return axis
  return None


def _join_heads(name: str, shape: tuple[int, ...]) -> tuple[int, ...] | None:
  """Return a kernel's shape with heads and their width on one axis.

  It is None for what has not both on axes of their own.
  """
  match = _WITH_HEADS.fullmatch(name)
  if not match or len(shape) != 3:
    return None
  first, second, third = shape
  if match[1] == 'out':
    return first * second, third
  return first, second * third

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameter trees, and the names that stand for their leaves.

A name joins the keys on the way to a leaf: `decoder/layers_0/mlp/wo/kernel`.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
import dataclasses
from typing import Any

from etils import epath
from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.loading import errors

Params = Any  # nested mappings

# What Orbax reads or writes in one call, which costs some 0.1 s.
_BATCH = 64 * 2**20  # bytes


@dataclasses.dataclass(frozen=True)
class StoredTensor:
  """A tensor of a file, not yet read; `load` reads it."""

  file: epath.Path
  name: str
  shape: tuple[int, ...]
  dtype: np.dtype
  load: Callable[[], np.ndarray]

  def read(self) -> np.ndarray:
    """Return the tensor, which must not be written to."""
    with errors.reading(f'{self.name} of {self.file}'):
      return self.load()


def flatten(tree: Params) -> dict[str, Any]:
  """Return the leaves of a tree, by name."""
  return traverse_util.flatten_dict(tree, sep='/')


def nest(flat: Mapping[str, Any]) -> Params:
  """Return the tree of named leaves; the inverse of `flatten`."""
  return traverse_util.unflatten_dict(flat, sep='/')


def is_finite(x: jax.Array) -> jax.Array | bool:
  """Return whether no number is NaN or infinite, [] bool."""
  if [device.platform for device in x.devices()] == ['cpu']:
    # A program would be compiled for each shape, which takes longer than this.
    # NumPy reads the memory in place, and both bounds are NaN if a number is.
    values = np.asarray(x)
    with np.errstate(invalid='ignore'):
      bounds = np.min(values, initial=0), np.max(values, initial=0)
    return bool(np.isfinite(bounds).all())
  return _is_finite(x)


_is_finite = jax.jit(lambda x: jnp.isfinite(x).all())


def batches(leaves: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
  """Yield batches of named arrays or specs, of about 64 MB or one leaf."""
  batch: dict[str, Any] = {}
  num_bytes = 0
  for name, leaf in leaves:
    batch[name] = leaf
    num_bytes += leaf.size * leaf.dtype.itemsize
    del leaf  # or it would stay while the next batch is made
    if num_bytes >= _BATCH:
      yield batch
      batch, num_bytes = {}, 0
  if batch:
    yield batch

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameter trees, and the names that stand for their leaves.

A name joins the keys on the way to a leaf: `decoder/layers_0/mlp/wo/kernel`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

Params = Any  # nested mappings

# What Orbax reads or writes in one call, which costs some 0.1 s.
_BATCH = 64 * 2**20  # bytes


def flatten(tree: Params, prefix: str = '') -> dict[str, Any]:
  """Returns the leaves of a tree, by name."""
  flat = {}
  for name, part in tree.items():
    if isinstance(part, Mapping):
      flat.update(flatten(part, f'{prefix}{name}/'))
    else:
      flat[prefix + name] = part
  return flat


def nest(flat: Mapping[str, Any]) -> Params:
  """Returns the tree of named leaves; the inverse of `flatten`."""
  tree: dict[str, Any] = {}
  for name, leaf in flat.items():
    *parents, key = name.split('/')
    node = tree
    for parent in parents:
      node = node.setdefault(parent, {})
    node[key] = leaf
  return tree


def is_finite(x: jax.Array) -> jax.Array | bool:
  """Returns whether no number is NaN or infinite, [] bool."""
  if [device.platform for device in x.devices()] == ['cpu']:
    # A program would be compiled for each shape, which takes longer than this.
    # NumPy reads the memory in place, and both bounds are NaN if a number is.
    values = np.asarray(x)
    with np.errstate(invalid='ignore'):
      bounds = np.min(values, initial=0), np.max(values, initial=0)
    return bool(np.isfinite(bounds).all())
  return _is_finite(x)


@jax.jit
def _is_finite(x: jax.Array) -> jax.Array:
  return jnp.isfinite(x).all()


def batches(leaves: Iterable[tuple[str, Any]]) -> Iterator[dict[str, Any]]:
  """Yields batches of named arrays or specs, of about 64 MB or one leaf."""
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

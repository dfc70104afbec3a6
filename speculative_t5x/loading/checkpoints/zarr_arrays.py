# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arrays in zarr's format, which TensorStore reads: those of T5X's layouts."""

import abc
from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import os
from typing import Any

from etils import epath
import jax
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import checkpoint
from speculative_t5x.loading.checkpoints import trees

Array = Any  # a `tensorstore.TensorStore`, or NumPy's where the index holds it


class ZarrCheckpoint(checkpoint.Checkpoint):
  """A checkpoint whose parameters are zarr arrays."""

  @property
  @abc.abstractmethod
  def _arrays(self) -> Mapping[str, Array]:
    """The arrays of the parameters by name, opened once."""

  @functools.cached_property
  def _stored_specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    return specs(self._arrays)

  def _read(self, wanted) -> Iterator[tuple[str, jax.Array]]:
    arrays = {name: self._arrays[self._prefix + name] for name in wanted}
    return self._read_arrays(arrays, wanted)

  def _read_arrays(
      self,
      arrays: Mapping[str, Array],
      wanted: Mapping[str, jax.ShapeDtypeStruct],
  ) -> Iterator[tuple[str, jax.Array]]:
    """Read arrays to their devices, each device's part alone."""
    # Side by side: in a bucket, each read takes a round trip.
    for batch in trees.batches(wanted.items()):
      waits = {x: _begin(arrays[x], spec) for x, spec in batch.items()}
      for name in batch:
        with self._reading(name):
          # Held by no name here, or it would stay while the next one is read.
          yield name, waits.pop(name)()

  def _read_array(self, name: str) -> np.ndarray:
    with self._reading(name):
      array = self._arrays[name]
      return array if isinstance(array, np.ndarray) else array.read().result()

  def _open(self, kvstores: Mapping[str, Any], **spec: Any) -> dict[str, Array]:
    """Open arrays by their key-value stores, side by side."""
    import tensorstore as ts  # slow to import: only where it is needed

    context = ts.Context({'cache_pool#ocdbt': {'total_bytes_limit': 10**8}})
    opening, arrays = {}, {}
    for name, store in kvstores.items():
      with self._reading(name):
        whole = {'driver': 'zarr', 'kvstore': store, **spec}
        opening[name] = ts.open(whole, read=True, open=True, context=context)
    for name, future in opening.items():
      with self._reading(name):
        arrays[name] = future.result()
    return arrays

  def _reading(self, name: str) -> contextlib.AbstractContextManager[None]:
    return errors.reading(f'The parameter {name} of {self.folder}')


def specs(arrays: Mapping[str, Array]) -> dict[str, jax.ShapeDtypeStruct]:
  """Return shapes and stored dtypes of arrays."""
  return {
      name: jax.ShapeDtypeStruct(
          tuple(array.shape), getattr(array.dtype, 'numpy_dtype', array.dtype)
      )
      for name, array in arrays.items()
  }


def files(folder: epath.Path) -> dict[str, Any]:
  """Return TensorStore's spec of the files in a folder."""
  text = os.fspath(folder)
  if text.startswith('gs://'):
    bucket, _, path = text.removeprefix('gs://').partition('/')
    return {'driver': 'gcs', 'bucket': bucket, 'path': f'{path}/'}
  return {'driver': 'file', 'path': f'{text}/'}


def _begin(
    array: Array, wanted: jax.ShapeDtypeStruct
) -> Callable[[], jax.Array]:
  """Begin to read an array; return what waits for it and places it."""
  where = wanted.sharding.addressable_devices_indices_map(wanted.shape)
  # By their text: slices cannot be hashed.
  parts = {str(index): array[index] for index in where.values()}
  if not isinstance(array, np.ndarray):
    parts = {index: part.read() for index, part in parts.items()}

  def place(index: tuple[slice, ...]) -> np.ndarray:
    part = parts[str(index)]
    part = part if isinstance(part, np.ndarray) else part.result()
    return np.asarray(part, wanted.dtype, order='C')

  return lambda: jax.make_array_from_callback(
      wanted.shape, wanted.sharding, place
  )

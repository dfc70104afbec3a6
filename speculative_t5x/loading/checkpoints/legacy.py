# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's layout before Orbax, that of the public checkpoints.

`checkpoint_<step>/checkpoint` is a msgpack tree. Its leaves are arrays, or for
larger ones the TensorStore spec of a zarr folder beside it, such as
`target.decoder.layers_0.mlp.wo.kernel`.
"""

from collections.abc import Iterator, Mapping
import functools
import os
import pathlib
from typing import Any

from etils import epath
from flax import serialization
from flax import traverse_util
import jax
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import checkpoint
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.files import regular_files

_ZARR_DRIVERS = ('file', 'gfile', 'gcs')  # where T5X may have written them


class LegacyCheckpoint(checkpoint.Checkpoint):
  """A checkpoint of this layout."""

  layout = layouts.Layout.LEGACY

  @functools.cached_property
  def _stored_specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    return {
        name: jax.ShapeDtypeStruct(
            tuple(array.shape),
            getattr(array.dtype, 'numpy_dtype', array.dtype),  # TensorStore's
        )
        for name, array in self._arrays.items()
    }

  @functools.cached_property
  def _stored_step(self) -> Any:
    with self._reading('state'):
      step = self._state.get('state', {}).get('step')
    return step.tolist() if isinstance(step, np.ndarray | np.generic) else step

  def _read(
      self, wanted: Mapping[str, jax.ShapeDtypeStruct], at_once: bool
  ) -> Iterator[tuple[str, jax.Array]]:
    del at_once
    return self._read_each(wanted)

  def _read_array(self, name: str) -> np.ndarray:
    array = self._arrays[name]
    with self._reading(name):
      return array if isinstance(array, np.ndarray) else array.read().result()

  @functools.cached_property
  def _state(self) -> Mapping[str, Any]:
    """The tree of `target` and, with an optimizer, `state`."""
    file = self.folder / 'checkpoint'
    regular_files.check(file)
    with errors.reading(file):
      contents = serialization.msgpack_restore(file.read_bytes())
      return contents.get('optimizer', contents)

  @functools.cached_property
  def _arrays(self) -> dict[str, Any]:
    """By name, an array of the index or an open zarr folder."""
    file = self.folder / 'checkpoint'
    state = self._state
    with errors.reading(file):
      leaves = traverse_util.flatten_dict(
          state['target'], is_leaf=lambda _, x: 'kvstore' in x, sep='/'
      )
    arrays = {}
    for name, leaf in leaves.items():
      with self._reading(name):
        is_array = isinstance(leaf, np.ndarray | np.generic)
        arrays[name] = np.asarray(leaf) if is_array else self._open(leaf)
    # Opened side by side: in a bucket, each takes a round trip.
    return {name: self._opened(name, x) for name, x in arrays.items()}

  def _open(self, spec: Any) -> Any:
    """Begin to open the zarr folder of a TensorStore spec."""
    import tensorstore as ts  # slow to import: only where it is needed

    path = _zarr_path(spec)
    regular_files.check_tree(self.folder / path)
    return ts.open(_zarr_spec(self.folder, path), read=True)

  def _opened(self, name: str, array: Any) -> Any:
    if isinstance(array, np.ndarray):
      return array
    with self._reading(name):
      store = array.result()
      trees.check_chunks(store.shape, store.chunk_layout.read_chunk.shape)
      return store

  def _reading(self, name: str):
    return errors.reading(f'The parameter {name} of {self.folder}')


def _zarr_path(spec: Any) -> pathlib.PurePosixPath:
  """Return the path of an array's folder within the checkpoint."""
  match spec:
    # Before 0.1.14 TensorStore had the path beside the kvstore.
    case {
        'driver': 'zarr',
        'kvstore': {'driver': driver, 'path': str(text)},
    } | {
        'driver': 'zarr',
        'kvstore': {'driver': driver},
        'path': str(text),
    } if (
        driver in _ZARR_DRIVERS and text.isprintable()
    ):
      path = pathlib.PurePosixPath(text)
      if path.parts and not path.is_absolute() and '..' not in path.parts:
        return path
  raise ValueError(
      f'it is {errors.shown(spec)}, which is neither an array nor a zarr folder'
      ' of the checkpoint'
  )


def _zarr_spec(
    folder: epath.Path, path: pathlib.PurePosixPath
) -> dict[str, Any]:
  """Return the TensorStore spec of an array beside the index file.

  T5X writes a placeholder for the bucket, so that checkpoints can be copied.
  """
  text = os.fspath(folder)
  kvstore = {'driver': 'file', 'path': f'{text}/{path}/'}
  if text.startswith('gs://'):
    bucket, _, inner = text.removeprefix('gs://').partition('/')
    kvstore = {'driver': 'gcs', 'bucket': bucket, 'path': f'{inner}/{path}/'}
  return {
      'driver': 'zarr',
      'kvstore': kvstore,
      # By default zeros would stand in for a chunk that is not there.
      'fill_missing_data_reads': False,
  }

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's layout before Orbax, that of the public T5 checkpoints.

`checkpoint_<step>/checkpoint` is a msgpack tree. Its leaves are arrays, or for
larger ones the TensorStore spec of a zarr folder beside it, such as
`target.decoder.layers_0.mlp.wo.kernel`.
"""

from collections.abc import Iterable, Iterator, Mapping
import os
import pathlib
from typing import Any

from etils import epath
import jax
import numpy as np

from speculative_t5x.checkpoints import errors
from speculative_t5x.checkpoints import file_arrays
from speculative_t5x.checkpoints import msgpack_file

_OLDEST_VERSION = 2  # that T5X itself reads; before, parameters had other names
_ZARR_DRIVERS = ('file', 'gfile', 'gcs')  # where T5X may have written them


def read_specs(folder: epath.Path) -> dict[str, jax.ShapeDtypeStruct]:
  """Names, shapes and stored dtypes of the parameters.

  Raises:
    errors.CheckpointError: if the index or the head of an array is damaged.
  """
  leaves = _parameters(folder)
  stores = _open(folder, leaves)
  return {
      name: _spec(folder, name, stores.get(name, leaf))
      for name, leaf in leaves.items()
  }


def read(
    folder: epath.Path, names: Iterable[str]
) -> Iterator[tuple[str, np.ndarray]]:
  """Reads parameters one at a time, in the dtype that is stored.

  Raises:
    errors.CheckpointError: naming the parameter that cannot be read.
  """
  leaves = _parameters(folder)
  for name in names:
    yield name, _read_leaf(folder, name, leaves[name])


def read_step(folder: epath.Path) -> int | None:
  """The training step that is stored, None if it is not.

  Raises:
    errors.CheckpointError: if the index is damaged.
  """
  state = _training_state(folder).get('state')
  step = state.get('step') if isinstance(state, Mapping) else None
  if isinstance(step, file_arrays.FileArray):
    step = step.read()
  return None if step is None else int(step)


def _training_state(folder: epath.Path) -> Mapping[str, Any]:
  """The tree that holds `target` and, with an optimizer, `state`."""
  file = folder / 'checkpoint'
  try:
    contents = msgpack_file.read_tree(file)
  except Exception as error:  # anything may stand in a damaged file
    raise errors.CheckpointError(
        f'{file} is cut short or damaged: {errors.first_line(error)}. Copy the'
        ' checkpoint again.'
    ) from error
  if not isinstance(contents, Mapping):
    raise errors.CheckpointError(f'{file} holds no tree of parameters.')
  version = contents.get('version', _OLDEST_VERSION)
  if version < _OLDEST_VERSION:
    raise errors.CheckpointError(
        f'{file} is of version {version}, whose parameters had other names;'
        f' {_OLDEST_VERSION} and later are read. Save it by a newer T5X.'
    )
  return contents.get('optimizer', contents)


def _parameters(folder: epath.Path) -> dict[str, Any]:
  """A `FileArray` or TensorStore spec by the name of a parameter."""
  target = _training_state(folder).get('target')
  if not isinstance(target, Mapping) or not target:
    raise errors.CheckpointError(
        f'{folder / "checkpoint"} holds no parameters: there is no target in'
        ' it. Pass a checkpoint of a T5X model.'
    )
  return _leaves(target, '')


def _leaves(tree: Mapping[str, Any], prefix: str) -> dict[str, Any]:
  leaves = {}
  for key, part in tree.items():
    if isinstance(part, Mapping) and 'kvstore' not in part:
      leaves.update(_leaves(part, f'{prefix}{key}/'))
    else:
      leaves[prefix + key] = part
  return leaves


def _spec(folder: epath.Path, name: str, leaf: Any) -> jax.ShapeDtypeStruct:
  dtype = leaf.dtype
  dtype = getattr(dtype, 'numpy_dtype', dtype)  # TensorStore has its own
  if dtype == np.uint16:
    raise errors.CheckpointError(
        f'{folder} holds {name} as uint16, as T5X saved bfloat16 before version'
        ' 3. Save it by a newer T5X.'
    )
  return jax.ShapeDtypeStruct(tuple(leaf.shape), dtype)


def _read_leaf(folder: epath.Path, name: str, leaf: Any) -> np.ndarray:
  try:
    if isinstance(leaf, file_arrays.FileArray):
      return leaf.read()
    return _open(folder, {name: leaf})[name].read().result()
  except (OSError, EOFError, ValueError) as error:
    if isinstance(error, errors.CheckpointError):
      raise
    raise _unreadable(folder, name, error) from error


def _open(folder: epath.Path, leaves: Mapping[str, Any]) -> dict[str, Any]:
  """The zarr arrays among the leaves, opened side by side."""
  import tensorstore as ts  # slow to import: only where it is needed

  futures = {
      name: ts.open(_zarr_spec(folder, name, leaf), read=True)
      for name, leaf in leaves.items()
      if not isinstance(leaf, file_arrays.FileArray)
  }
  stores = {}
  for name, future in futures.items():
    try:
      stores[name] = future.result()
    except ValueError as error:
      raise _unreadable(folder, name, error) from error
  return stores


def _zarr_spec(folder: epath.Path, name: str, leaf: Any) -> dict[str, Any]:
  """A TensorStore spec of an array that lies where the checkpoint lies now."""
  if not isinstance(leaf, Mapping):
    raise _unreadable(folder, name, ValueError('it is no array'))
  kvstore = leaf['kvstore']
  # Before 0.1.14 TensorStore had the path beside the kvstore.
  path = pathlib.PurePosixPath(kvstore.get('path', leaf.get('path', '/')))
  if (
      leaf.get('driver') != 'zarr'
      or kvstore.get('driver') not in _ZARR_DRIVERS
      or path.is_absolute()
      or '..' in path.parts
  ):
    message = f'it is said to lie in {leaf}, no zarr folder of the checkpoint'
    raise _unreadable(folder, name, ValueError(message))
  return {
      'driver': 'zarr',
      'kvstore': _kvstore(folder, path),
      # By default zeros would stand in for a chunk that is not there.
      'fill_missing_data_reads': False,
  }


def _kvstore(
    folder: epath.Path, path: pathlib.PurePosixPath
) -> dict[str, str]:
  """The place of a zarr folder; the driver that wrote it is no matter.

  T5X writes a placeholder for the bucket, so that checkpoints can be copied.
  """
  folder_text = os.fspath(folder)
  if not folder_text.startswith('gs://'):
    return {'driver': 'file', 'path': f'{folder_text}/{path}/'}
  bucket, _, inner = folder_text.removeprefix('gs://').partition('/')
  return {'driver': 'gcs', 'bucket': bucket, 'path': f'{inner}/{path}/'}


def _unreadable(
    folder: epath.Path, name: str, error: Exception
) -> errors.CheckpointError:
  return errors.CheckpointError(
      f'The parameter {name} of {folder} cannot be read:'
      f' {errors.first_line(error)}. The checkpoint is damaged or incomplete;'
      ' copy it again.'
  )

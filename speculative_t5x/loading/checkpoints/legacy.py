# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's layout before Orbax, that of the public T5 checkpoints.

`checkpoint_<step>/checkpoint` is a msgpack tree. Its leaves are arrays, or for
larger ones the TensorStore spec of a zarr folder beside it, such as
`target.decoder.layers_0.mlp.wo.kernel`.
"""

from collections.abc import Iterable, Iterator, Mapping
import functools
import os
import pathlib
from typing import Any

from etils import epath
import jax
import numpy as np

from speculative_t5x.loading.checkpoints import array_chunks
from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import file_arrays
from speculative_t5x.loading.checkpoints import msgpack_file
from speculative_t5x.loading.files import regular_files

_OLDEST_VERSION = 2  # that T5X itself reads; before, parameters had other names
_ZARR_DRIVERS = ('file', 'gfile', 'gcs')  # where T5X may have written them


# A parameter in the file itself, or where its zarr folder lies.
_Leaf = file_arrays.FileArray | pathlib.PurePosixPath


class Reader:
  """Reads one checkpoint.

  Attributes:
    specs: shapes and stored dtypes of the parameters, by name.
    step: the training step that is stored, whatever its type; None if it is
      not stored.
  """

  def __init__(self, folder: epath.Path):
    """Binds the folder of a step; reads nothing yet."""
    self._folder = folder

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and dtypes, which the arrays in zarr folders tell themselves.

    Raises:
      errors.CheckpointError: if the index or the head of an array is damaged.
    """
    return {
        name: _spec(self._folder, name, array)
        for name, array in self._arrays.items()
    }

  @functools.cached_property
  def step(self) -> Any:
    """The training step.

    Raises:
      errors.CheckpointError: if the index is damaged.
    """
    state = self._training_state.get('state')
    step = state.get('step') if isinstance(state, Mapping) else None
    if isinstance(step, file_arrays.FileArray) and not step.shape:
      step = step.read().item()
    return step

  def read(self, names: Iterable[str]) -> Iterator[tuple[str, np.ndarray]]:
    """Reads parameters one at a time, in the dtype that is stored.

    Raises:
      errors.CheckpointError: naming the parameter that cannot be read.
    """
    for name in names:
      yield name, _read_array(self._folder, name, self._arrays[name])

  @functools.cached_property
  def _training_state(self) -> Mapping[str, Any]:
    return _read_training_state(self._folder)

  @functools.cached_property
  def _arrays(self) -> dict[str, Any]:
    """By name, an array in the index or an open zarr folder."""
    leaves = _parameters(self._folder, self._training_state)
    return leaves | _open(self._folder, leaves)


def _read_training_state(folder: epath.Path) -> Mapping[str, Any]:
  """Returns the tree of `target` and, with an optimizer, `state`."""
  file = folder / 'checkpoint'
  try:
    contents = msgpack_file.read_tree(file)
  except errors.CheckpointError:
    raise
  except (OSError, EOFError, ValueError) as error:
    raise errors.CheckpointError(
        f'{file} is cut short or damaged: {errors.first_line(error)}. Copy the'
        ' checkpoint again.'
    ) from error
  if not isinstance(contents, Mapping):
    raise errors.CheckpointError(
        f'{file} holds no tree of parameters. Pass a checkpoint of a T5X model.'
    )
  version = contents.get('version', _OLDEST_VERSION)
  if not isinstance(version, int) or version < _OLDEST_VERSION:
    raise errors.CheckpointError(
        f'{file} is of version {errors.shown(version)}, whose parameters had'
        f' other names; {_OLDEST_VERSION} and later are read. Save it by a'
        ' newer T5X.'
    )
  state = contents.get('optimizer', contents)
  return state if isinstance(state, Mapping) else {}


def _parameters(
    folder: epath.Path, training_state: Mapping[str, Any]
) -> dict[str, _Leaf]:
  """Returns the parameters that the index names, each checked to be one."""
  target = training_state.get('target')
  if not isinstance(target, Mapping) or not target:
    raise errors.CheckpointError(
        f'{folder / "checkpoint"} holds no parameters: there is no target in'
        ' it. Pass a checkpoint of a T5X model.'
    )
  leaves = {}
  for name, part in _flatten(target, ''):
    try:
      leaves[name] = _leaf(name, part, leaves)
    except ValueError as error:
      raise _unreadable(folder, name, error) from error
  return leaves


def _flatten(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
  for key, part in tree.items():
    if isinstance(part, Mapping) and 'kvstore' not in part:
      yield from _flatten(part, f'{prefix}{key}/')
    else:
      yield prefix + key, part


def _leaf(name: str, part: Any, others: Mapping[str, _Leaf]) -> _Leaf:
  """Returns an array, or the path of a zarr folder from a TensorStore spec.

  Raises:
    ValueError: for anything else.
  """
  if name in others:  # a key with a slash may spell another's name
    raise ValueError('it is there twice')
  if isinstance(part, file_arrays.FileArray):
    return part
  match part:
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
      f'it is {errors.shown(part)}, which is no array and no zarr folder of the'
      ' checkpoint'
  )


def _spec(folder: epath.Path, name: str, array: Any) -> jax.ShapeDtypeStruct:
  dtype = array.dtype
  dtype = getattr(dtype, 'numpy_dtype', dtype)  # TensorStore has its own
  if dtype == np.uint16:
    raise errors.CheckpointError(
        f'{folder} holds {name} as uint16, as T5X saved bfloat16 before version'
        ' 3. Save it by a newer T5X.'
    )
  return jax.ShapeDtypeStruct(tuple(array.shape), dtype)


def _read_array(folder: epath.Path, name: str, array: Any) -> np.ndarray:
  try:
    if isinstance(array, file_arrays.FileArray):
      return array.read()
    return array.read().result()
  except errors.CheckpointError:
    raise
  except (OSError, EOFError, ValueError) as error:
    raise _unreadable(folder, name, error) from error


def _open(folder: epath.Path, leaves: Mapping[str, _Leaf]) -> dict[str, Any]:
  """Opens the zarr arrays among the leaves, side by side."""
  import tensorstore as ts  # slow to import: only where it is needed

  futures = {}
  for name, leaf in leaves.items():
    if not isinstance(leaf, file_arrays.FileArray):
      regular_files.check_tree(folder / leaf)
      futures[name] = ts.open(_zarr_spec(folder, leaf), read=True)
  stores = {}
  for name, future in futures.items():
    try:
      store = future.result()
      array_chunks.check(store.shape, store.chunk_layout.read_chunk.shape)
    except ValueError as error:
      raise _unreadable(folder, name, error) from error
    stores[name] = store
  return stores


def _zarr_spec(
    folder: epath.Path, path: pathlib.PurePosixPath
) -> dict[str, Any]:
  """Returns the TensorStore spec of an array beside the index file."""
  return {
      'driver': 'zarr',
      'kvstore': _kvstore(folder, path),
      # By default zeros would stand in for a chunk that is not there.
      'fill_missing_data_reads': False,
  }


def _kvstore(folder: epath.Path, path: pathlib.PurePosixPath) -> dict[str, str]:
  """Returns the place of a zarr folder, whichever driver wrote it.

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

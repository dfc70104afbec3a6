# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the layout that T5X saves today, through Orbax.

`checkpoint_<step>/state` holds a zarr array per leaf under `target/...` (the
parameters), with the optimizer's state and the step beside it: in folders of
their own, or in one key-value store (OCDBT). `_METADATA` names them. They are
read without Orbax, whose import takes longer than reading a small model.
"""

from collections.abc import Mapping
import functools
from typing import Any

from etils import epath
import jax

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import checkpoint
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.checkpoints import zarr_arrays
from speculative_t5x.loading.files import json_files


class OrbaxCheckpoint(zarr_arrays.ZarrCheckpoint):
  """A checkpoint of this layout."""

  layout = layouts.Layout.ORBAX

  @property
  def _state_folder(self) -> epath.Path:
    return self.folder / 'state'

  @functools.cached_property
  def _arrays(self) -> dict[str, zarr_arrays.Array]:
    return self._arrays_in('target/')

  @functools.cached_property
  def _stored_step(self) -> int | None:
    return self._number('step')

  @functools.cached_property
  def exit_layer(self) -> int | None:
    return self._number('exit_layer')

  def _number(self, name: str) -> int | None:
    """Return a number beside the parameters; None if it is not stored."""
    array = self._arrays_in(f'state/{name}').get('')
    if array is None:
      return None
    with self._reading(name):
      # A training that T5X resumes has a step of the parameters' dtype.
      return int(array.read().result())

  def restore_state(self, params, param_states):
    self.check_shapes(params)
    arrays = self._arrays_in('state/param_states/')
    found = checkpoint.shapes(zarr_arrays.specs(arrays))
    if not found or found != checkpoint.shapes(trees.flatten(param_states)):
      return super().restore_state(params, param_states)  # which refuses
    both = (self._arrays, params), (arrays, param_states)
    return self.step, *(self._restored(*each) for each in both)

  def _restored(
      self, arrays: Mapping[str, zarr_arrays.Array], like: trees.Params
  ) -> trees.Params:
    """Read a tree of arrays in the dtypes of another one."""
    device = checkpoint.first_device()
    wanted = {
        name: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=device)
        for name, x in trees.flatten(like).items()
    }
    tree = trees.nest(dict(self._read_arrays(arrays, wanted)))
    self.check_finite(tree)
    return tree

  def _arrays_in(self, begin: str) -> dict[str, zarr_arrays.Array]:
    """Open the arrays whose names begin so; return them by what follows."""
    folder, (names, metadata) = self._state_folder, self._metadata
    store = {
        'driver': 'ocdbt',
        'base': zarr_arrays.files(folder),
        'cache_pool': 'cache_pool#ocdbt',  # or nodes are read per array
    }
    stores = {}
    for keys in names:
      name, path = '/'.join(keys), '.'.join(keys)
      if name.startswith(begin):
        stores[name.removeprefix(begin)] = (
            store | {'path': f'{path}/'}
            if metadata['use_ocdbt']
            else zarr_arrays.files(folder / path)
        )
    return self._open(
        stores,
        driver='zarr3' if metadata['use_zarr3'] else 'zarr',
        # Earlier versions of Orbax stored no chunk of zeros.
        fill_missing_data_reads=not metadata[
            'store_array_data_equal_to_fill_value'
        ],
    )

  @functools.cached_property
  def _metadata(self) -> tuple[list[list[str]], Mapping[str, Any]]:
    """The keys on the way to each array, and how all arrays are stored."""
    file = self._state_folder / '_METADATA'
    with errors.reading(file):
      metadata = {
          'use_ocdbt': None,
          'use_zarr3': False,
          'store_array_data_equal_to_fill_value': False,
          **json_files.read(file),
      }
      names = [
          [str(x['key']) for x in entry['key_metadata']]
          for entry in metadata['tree_metadata'].values()
          # Others are empty trees.
          if not entry['value_metadata']['skip_deserialize']
      ]
      if metadata['use_ocdbt'] is None:
        manifest = self._state_folder / 'manifest.ocdbt'
        metadata['use_ocdbt'] = manifest.exists()
    return names, metadata

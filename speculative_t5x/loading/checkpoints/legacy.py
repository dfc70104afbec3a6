# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's layout before Orbax, that of the public checkpoints.

`checkpoint_<step>/checkpoint` is a msgpack tree. Its leaves are arrays, or for
larger ones the TensorStore spec of a zarr folder beside it, such as
`target.decoder.layers_0.mlp.wo.kernel`.
"""

from collections.abc import Mapping
import functools
from typing import Any

from flax import serialization
from flax import traverse_util
import numpy as np

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import zarr_arrays


class LegacyCheckpoint(zarr_arrays.ZarrCheckpoint):
  """A checkpoint of this layout."""

  layout = layouts.Layout.LEGACY

  @functools.cached_property
  def _stored_step(self) -> Any:
    return self._state.get('state', {}).get('step')

  @functools.cached_property
  def _state(self) -> Mapping[str, Any]:
    """The tree of `target` and, with an optimizer, `state`."""
    file = self.folder / 'checkpoint'
    with errors.reading(file):
      contents = serialization.msgpack_restore(file.read_bytes())
      return contents.get('optimizer', contents)

  @functools.cached_property
  def _arrays(self) -> dict[str, zarr_arrays.Array]:
    with errors.reading(self.folder / 'checkpoint'):
      leaves = traverse_util.flatten_dict(
          self._state['target'], is_leaf=lambda _, x: 'kvstore' in x, sep='/'
      )
    kvstores = {}
    for name, leaf in leaves.items():
      with self._reading(name):
        if isinstance(leaf, np.ndarray | np.generic):
          leaves[name] = np.asarray(leaf)
        else:
          # T5X writes a placeholder for the bucket: a checkpoint may be copied.
          folder = self.folder / _zarr_path(leaf)
          kvstores[name] = zarr_arrays.files(folder)
    # By default zeros would stand in for a chunk that is not there.
    return leaves | self._open(kvstores, fill_missing_data_reads=False)


def _zarr_path(spec: Mapping[str, Any]) -> str:
  """Return the path of an array's folder within the checkpoint."""
  # Before 0.1.14 TensorStore had the path beside the kvstore.
  return spec['kvstore'].get('path') or spec['path']

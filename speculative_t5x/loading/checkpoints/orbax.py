# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the layout that T5X saves today, through Orbax.

`checkpoint_<step>/state` holds one array a leaf under `target/...` (the
parameters), with the optimizer's state and the step beside it.
"""

from collections.abc import Iterator, Mapping
import contextlib
import functools
import gc
from typing import Any
import warnings

from etils import epath
import jax
import jax.numpy as jnp

from speculative_t5x.loading.checkpoints import abandoned
from speculative_t5x.loading.checkpoints import errors
from speculative_t5x.loading.checkpoints import trees


class Reader:
  """Reads one checkpoint.

  Attributes:
    config_fields: None; T5X stores no network.
    special_ids: None; T5X stores no ids.
    unapplied_settings: None; T5X stores no settings.
  """

  config_fields = special_ids = unapplied_settings = None

  def __init__(self, folder: epath.Path):
    """Binds the folder of a step; reads nothing yet."""
    self._folder = folder / 'state'

  @functools.cached_property
  def specs(self) -> dict[str, jax.ShapeDtypeStruct]:
    """Shapes and stored dtypes of the parameters, by name."""
    return self.read_specs('target')

  def read_specs(self, *group: str) -> dict[str, jax.ShapeDtypeStruct]:
    """Returns names, shapes and stored dtypes of what lies under a group.

    Raises:
      errors.CheckpointError: if the metadata are damaged.
    """
    part = self._metadata
    for name in group:
      part = part.get(name, {})
    specs = {}
    for name, array in trees.flatten(part).items():
      with errors.reading(f'{name} of {self._folder}'):
        trees.check_chunks(array.shape, array.storage.chunk_shape)
        specs[name] = jax.ShapeDtypeStruct(tuple(array.shape), array.dtype)
    return specs

  @functools.cached_property
  def step(self) -> Any:
    """The training step that is stored, whatever it is; None if none is."""
    spec = self.read_specs('state').get('step')
    if spec is None:
      return None
    # A training that T5X resumes has a step of the parameters' dtype.
    is_integer = jnp.issubdtype(spec.dtype, jnp.integer)
    device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
    wanted = jax.ShapeDtypeStruct(
        (), jnp.int32 if is_integer else jnp.float32, sharding=device
    )
    step = self.restore({'state': {'step': wanted}})['state']['step'].tolist()
    is_whole = isinstance(step, float) and step.is_integer()
    return int(step) if is_whole else step

  def read(
      self, wanted: Mapping[str, jax.ShapeDtypeStruct], at_once: bool
  ) -> Iterator[tuple[str, jax.Array]]:
    """Reads parameters, each with the dtype and the sharding that is wanted.

    Args:
      wanted: shapes, dtypes and shardings, by name.
      at_once: whether all are read side by side; some 64 MB at a time if not.
    Raises:
      errors.CheckpointError: if a parameter cannot be read.
    """
    batches = [wanted] if at_once else trees.batches(wanted.items())
    for batch in batches:
      # T5X names all parameters the target.
      tree = self.restore({'target': trees.nest(batch)})['target']
      yield from trees.flatten(tree).items()
      del tree

  def restore(self, wanted: trees.Params) -> trees.Params:
    """Reads the named leaves of the training state.

    Args:
      wanted: tree of `jax.ShapeDtypeStruct`s with a sharding, which each leaf
        gets with the dtype as it is read.
    Raises:
      errors.CheckpointError: if a leaf cannot be read.
    """
    import orbax.checkpoint as ocp  # slow to import: only where it is needed

    restore_args = jax.tree.map(
        lambda x: ocp.ArrayRestoreArgs(sharding=x.sharding, dtype=x.dtype),
        wanted,
    )
    with self._reading(), ocp.PyTreeCheckpointer() as checkpointer:
      return checkpointer.restore(
          self._folder,
          args=ocp.args.PyTreeRestore(
              item=jax.tree.map(lambda _: 0, wanted),
              restore_args=restore_args,
              partial_restore=True,
          ),
      )

  @functools.cached_property
  def _metadata(self) -> Any:
    """The tree of what Orbax knows of each array."""
    with self._reading():
      return _read_metadata(self._folder)

  @contextlib.contextmanager
  def _reading(self) -> Iterator[None]:
    try:
      with errors.reading(self._folder), abandoned.silenced():
        yield
      return
    except errors.CheckpointError as error:
      # Without the frames of the error, which hold the reads given up.
      found = errors.CheckpointError(str(error))
    with warnings.catch_warnings():
      warnings.simplefilter('ignore', RuntimeWarning)  # coroutine not awaited
      gc.collect()
    raise found


def _read_metadata(folder: epath.Path) -> Any:
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  # Orbax asks the arrays themselves. Its metadata file alone would not do: it
  # gives the shape of a shard, and in older checkpoints none at all.
  return ocp.PyTreeCheckpointHandler().metadata(folder).tree

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads the layout that T5X saves today, through Orbax.

`checkpoint_<step>/state` holds one array a leaf under `target/...` (the
parameters), with the optimizer's state and the step beside it.
"""

from etils import epath
import jax
import jax.numpy as jnp

from speculative_t5x.checkpoints import errors
from speculative_t5x.checkpoints import trees


def read_specs(
    folder: epath.Path, group: tuple[str, ...] = ('target',)
) -> dict[str, jax.ShapeDtypeStruct]:
  """Names, shapes and stored dtypes of what lies under a group.

  Raises:
    errors.CheckpointError: if the metadata is damaged.
  """
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  state_folder = folder / 'state'
  try:
    # Orbax asks the arrays themselves. Its metadata file alone would not do:
    # it gives the shape of a shard, and in older checkpoints none at all.
    part = ocp.PyTreeCheckpointHandler().metadata(state_folder).tree
    for name in group:
      part = part.get(name, {})
    return {
        name: jax.ShapeDtypeStruct(tuple(x.shape), x.dtype)
        for name, x in trees.flatten(part).items()
    }
  except Exception as error:  # Orbax and TensorStore raise many kinds.
    raise errors.CheckpointError(
        f'The metadata in {state_folder} is damaged:'
        f' {errors.first_line(error)}. Copy or save the checkpoint again.'
    ) from error


def read_step(folder: epath.Path) -> int:
  """The training step that is stored.

  Raises:
    errors.CheckpointError: if there is none or it cannot be read.
  """
  device = jax.sharding.SingleDeviceSharding(jax.local_devices()[0])
  step = jax.ShapeDtypeStruct((), jnp.int32, sharding=device)
  return int(restore(folder, {'state': {'step': step}})['state']['step'])


def restore(folder: epath.Path, wanted: trees.Params) -> trees.Params:
  """Reads the named leaves of the training state.

  Args:
    folder: of the step.
    wanted: tree of `jax.ShapeDtypeStruct`s with a sharding, which each leaf
      gets with the dtype as it is read.
  Raises:
    errors.CheckpointError: if a leaf cannot be read.
  """
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  restore_args = jax.tree.map(
      lambda x: ocp.ArrayRestoreArgs(sharding=x.sharding, dtype=x.dtype), wanted
  )
  state_folder = folder / 'state'
  try:
    with ocp.PyTreeCheckpointer() as checkpointer:
      return checkpointer.restore(
          state_folder,
          args=ocp.args.PyTreeRestore(
              item=jax.tree.map(lambda _: 0, wanted),
              restore_args=restore_args,
              partial_restore=True,
          ),
      )
  except Exception as error:  # Orbax and TensorStore raise many kinds.
    raise errors.CheckpointError(
        f'{state_folder} cannot be read: {errors.first_line(error)}. The'
        ' checkpoint is damaged or incomplete; copy or save it again.'
    ) from error

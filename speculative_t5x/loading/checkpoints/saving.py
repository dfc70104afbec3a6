# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the layout that T5X saves today, through Orbax."""

from collections.abc import Iterable

from etils import epath
import jax
import jax.numpy as jnp

from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import trees
from speculative_t5x.loading.checkpoints import unfinished

# Orbax looks only whether it is there, and names the folder's path in it.
_MARKER = 'commit_success.txt'


def save(
    path: layouts.Path,
    step: int,
    params: trees.Params,
    param_states: trees.Params | None = None,
) -> epath.Path:
  """Writes `checkpoint_<step>` in T5X's Orbax layout.

  Args:
    path: folder that will hold `checkpoint_<step>`.
    step: training step.
    params: parameter tree of arrays.
    param_states: optimizer state, a tree with one mapping a parameter; None
      for parameters only.
  Returns:
    The folder written. It appears whole or not at all: where writing fails,
    nothing is left behind.
  Raises:
    errors.CheckpointError: if there is such a checkpoint already, or if it
      cannot be written, as on a full disk.
  """
  import orbax.checkpoint as ocp  # slow to import: only where it is needed

  step_folder = layouts.new_step_folder(path, step)
  state = {
      'state': {'step': jnp.asarray(step, jnp.int32)},
      'target': params,
  }
  if param_states is not None:
    state['state']['param_states'] = param_states
  with (
      unfinished.nothing_left_behind(step_folder),
      ocp.Checkpointer(
          ocp.CompositeCheckpointHandler(state=ocp.PyTreeCheckpointHandler())
      ) as checkpointer,
  ):
    checkpointer.save(
        step_folder,
        args=ocp.args.Composite(state=ocp.args.PyTreeSave(state)),
    )
  return step_folder


def save_each(
    path: layouts.Path, step: int, params: Iterable[tuple[str, jax.Array]]
) -> epath.Path:
  """Writes `checkpoint_<step>` like `save`, from parameters as they come.

  Some are held at a time, so that a model may be larger than the memory. What
  is written names no path of this machine, so that it may be passed on.

  Args:
    path: folder that will hold `checkpoint_<step>`.
    step: training step.
    params: names and parameters.
  Returns:
    The folder written. It appears whole or not at all: where reading or writing
    fails, nothing is left behind.
  Raises:
    errors.CheckpointError: if there is such a checkpoint already, or if it
      cannot be written, as on a full disk.
  """
  from orbax.checkpoint.experimental import v1 as ocp  # slow to import

  step_folder = layouts.new_step_folder(path, step)
  context = ocp.Context()
  context.array.saving.use_zarr3 = False  # T5X looks for version 2
  with unfinished.nothing_left_behind(step_folder), context:
    step_leaf = {'step': jnp.asarray(step, jnp.int32)}
    ocp.partial.save(step_folder, {'state': step_leaf})
    for batch in trees.batches(params):
      ocp.partial.save(step_folder, {'target': trees.nest(batch)})
      del batch  # or it would stay while the next one is read
    ocp.partial.finalize(step_folder)
    text = 'Checkpoint commit was successful'
    (step_folder / _MARKER).write_text(text, encoding='utf-8')
  return step_folder

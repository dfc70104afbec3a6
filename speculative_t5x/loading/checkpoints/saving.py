# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the layout that T5X saves today, through Orbax."""

from collections.abc import Iterable, Mapping
import contextlib
import os
import re
import time
import types
from typing import Any

from etils import epath
import jax
import jax.numpy as jnp

from speculative_t5x.loading import errors
from speculative_t5x.loading.checkpoints import layouts
from speculative_t5x.loading.checkpoints import trees

# Orbax looks only whether it is there, and names the folder's path in it.
_MARKER = 'commit_success.txt'
# What Orbax names a folder that it is writing to.
_UNFINISHED = ('orbax-checkpoint-tmp', 'partial_save')
# Where TensorStore says what the operating system refused.
_OS_ERROR_CODE = re.compile(r"\[os_error_code='(\d+)'\]")
# After an error TensorStore writes on for a moment, and nothing awaits it.
_PAUSE_S = 1.0
_MAX_PAUSES = 10


def save(
    path: layouts.Path,
    step: int,
    params: trees.Params,
    param_states: trees.Params | None = None,
    exit_layer: int | None = None,
) -> epath.Path:
  """Write `checkpoint_<step>` in T5X's Orbax layout; return its folder.

  An optimizer state is a tree with one mapping per parameter. Of a head for the
  first layers of a target, `exit_layer` is how many. The folder appears whole
  or not at all.

  Raises:
    errors.CheckpointError: if there is such a checkpoint already, or if it
      cannot be written, as on a full disk.
  """
  state = {}
  if param_states is not None:
    state['param_states'] = param_states
  if exit_layer is not None:
    state['exit_layer'] = jnp.asarray(exit_layer, jnp.int32)
  return save_each(path, step, trees.flatten(params).items(), state)


def save_each(
    path: layouts.Path,
    step: int,
    params: Iterable[tuple[str, jax.Array]],
    state: Mapping[str, Any] = types.MappingProxyType({}),
) -> epath.Path:
  """Write `checkpoint_<step>` like `save`, from parameters as they come.

  Some are held at a time, so that a model may be larger than the memory. What
  is written names no path of this machine, so that it may be passed on. `state`
  lies beside the step.
  """
  from orbax.checkpoint.experimental import v1 as ocp  # slow to import

  step_folder = layouts.new_step_folder(path, step)
  context = ocp.Context()
  context.array.saving.use_zarr3 = False  # T5X looks for version 2
  _remove_unfinished(step_folder)  # of a process that was killed
  try:
    with context:
      state = {'step': jnp.asarray(step, jnp.int32), **state}
      ocp.partial.save(step_folder, {'state': state})
      for batch in trees.batches(params):
        ocp.partial.save(step_folder, {'target': trees.nest(batch)})
        del batch  # or it would stay while the next one is read
      ocp.partial.finalize(step_folder)
      text = 'Checkpoint commit was successful'
      (step_folder / _MARKER).write_text(text, encoding='utf-8')
  except BaseException as error:
    _remove_unfinished(step_folder)
    if reason := _refused(error):
      raise errors.CheckpointError(
          f'The checkpoint {step_folder} cannot be written ({reason}). Earlier'
          ' ones are kept. Give another folder, or the space and the rights to'
          ' write there.'
      ) from error
    raise
  return step_folder


def _remove_unfinished(step_folder: epath.Path) -> None:
  """Remove what a save left, until nothing of it comes back."""
  for _ in range(_MAX_PAUSES):
    with contextlib.suppress(OSError, ValueError):  # is there again, or gone
      folders = _unfinished(step_folder)
      for folder in folders:
        folder.rmtree()
      if not folders:
        break
    time.sleep(_PAUSE_S)


def _unfinished(step_folder: epath.Path) -> list[epath.Path]:
  folders = [step_folder] if layouts.is_cut_off(step_folder) else []
  if step_folder.parent.exists():
    for name in _UNFINISHED:
      folders += step_folder.parent.glob(f'{step_folder.name}.{name}*')
  return folders


def _refused(error: BaseException) -> str | None:
  if isinstance(error, OSError):
    return error.strerror or str(error)
  match = _OS_ERROR_CODE.search(str(error))
  return match and os.strerror(int(match[1]))

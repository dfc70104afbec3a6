# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Restores two checkpoints in a T5X job, which normally restores one."""

from collections.abc import Mapping, Sequence
import os
import re
from typing import Any

from flax import core as flax_core
import jax
import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.t5x_guest import hosts


class PairRestorer:
  """Restores a target and its draft onto the partitioner's mesh.

  It serves as `RestoreCheckpointConfig.checkpoint_manager_cls` and as
  `checkpointer_cls`, so T5X's `use_orbax` makes no difference. It reads all
  layouts that `checkpoints` reads; the two models may have different ones. It
  never changes the folders, unlike T5X's own manager, which deletes a
  checkpoint that another job is saving.
  """

  def __init__(
      self,
      *,
      train_state: Any,
      partitioner: Any,
      draft_checkpoint_path: checkpoints.Path | None = None,
      restore_dtype: Any = None,
      **others: Any,
  ):
    """Stores T5X's arguments without reading any file.

    Args:
      train_state: shapes of a `t5x.train_state.InferenceState`.
      partitioner: T5X's partitioner.
      draft_checkpoint_path: a checkpoint of any layout, or a folder of several,
        of which the newest is used; None for a drafter without parameters.
      restore_dtype: dtype of the parameters; None for the stored dtype.
      **others: further arguments of T5X, for saving and data sets; unused.
    """
    del others
    self._train_state = train_state
    self._partitioner = partitioner
    self._draft_path = draft_checkpoint_path
    self._dtype = restore_dtype

  def restore(
      self,
      path: checkpoints.Path,
      *,
      state_transformation_fns: Sequence[Any] = (),
      fallback_state: Mapping[str, Any] | None = None,
      lazy_parameters: bool = False,
  ) -> Any:
    """Reads both checkpoints.

    Args:
      path: the target's checkpoint, in the same forms as
        `draft_checkpoint_path`.
      state_transformation_fns: not supported.
      fallback_state: not supported.
      lazy_parameters: not supported.
    Returns:
      The train state, with the target's step.
    Raises:
      checkpoints.CheckpointError: if a checkpoint cannot be used. Names the
        model and the problem. Both are checked before either is read.
      NotImplementedError: for an argument that is not supported.
    """
    _refuse(
        'state_transformation_fns or assignment_map', state_transformation_fns
    )
    _refuse('fallback_to_scratch', fallback_state)
    _refuse('lazy_parameters', lazy_parameters)
    if hosts.is_running('eval.py'):
      _check_step_in_name(path)
    paths = {'target': path}
    if 'draft' in self._train_state.params:
      paths['draft'] = self._draft_path
    params, steps = read(
        paths, self._train_state, self._partitioner, self._dtype
    )
    state = self._train_state.replace_params(flax_core.freeze(params))
    return state.replace_step(jnp.asarray(steps['target'], jnp.int32))

  def restore_from_tf_checkpoint(self, path, **options):
    """Raises NotImplementedError: TensorFlow checkpoints are not supported."""
    del options
    raise NotImplementedError(
        f'{path} is a TensorFlow checkpoint, which is not supported. Convert it'
        " with T5X's scripts first."
    )

  def save(self, *args, **kwargs):
    """Raises NotImplementedError: eval and infer jobs save nothing."""
    raise NotImplementedError(
        "A target and a draft cannot be saved by this class. T5X's train script"
        ' trains the draft with configs/t5x/distill.gin.'
    )


def read(
    paths: Mapping[str, checkpoints.Path],
    train_state: Any,
    partitioner: Any,
    dtype: Any = jnp.float32,
) -> tuple[dict[str, Any], dict[str, int]]:
  """Reads models onto the partitioner's mesh.

  Args:
    paths: of one model or both, by role. A checkpoint that holds a pair may be
      given for either.
    train_state: shapes of a train state of T5X.
    partitioner: T5X's partitioner.
    dtype: of the parameters; None for the stored dtype.
  Returns:
    Parameters and training steps, by role.
  Raises:
    checkpoints.CheckpointError: see `PairRestorer.restore`.
  """
  shapes = flax_core.unfreeze(train_state.params)
  opened = {
      role: _naming(role, _open, role, path)
      for role, path in paths.items()
  }
  for role, checkpoint in opened.items():
    _naming(role, checkpoint.check_shapes, shapes[role])
  shardings = _shardings(train_state, partitioner)
  params = {
      role: _naming(
          role, checkpoint.restore_params, shapes[role], dtype, shardings[role]
      )
      for role, checkpoint in opened.items()
  }
  return params, {role: each.step for role, each in opened.items()}


def _open(role: str, path: checkpoints.Path | None) -> checkpoints.Checkpoint:
  if path is None:
    raise checkpoints.CheckpointError('a path is needed, and none is given.')
  return checkpoints.open(path).of(role)


def _shardings(train_state: Any, partitioner: Any) -> Any:
  mesh_axes = partitioner.get_mesh_axes(train_state)
  return jax.tree.map(
      lambda spec: jax.sharding.NamedSharding(partitioner.mesh, spec),
      flax_core.unfreeze(mesh_axes.params),
      is_leaf=lambda x: isinstance(x, jax.sharding.PartitionSpec),
  )


def _refuse(name: str, value: Any) -> None:
  if value:
    raise NotImplementedError(
        f'{name} is not supported for a target and a draft. Remove it from'
        ' utils.RestoreCheckpointConfig.'
    )


def _check_step_in_name(path: checkpoints.Path) -> None:
  """Checks that a path ends in a step.

  T5X's eval job needs the step, but would fail only after all decoding.
  """
  if not re.search(r'\d/?$', os.fspath(path)):
    raise checkpoints.CheckpointError(
        f'The target (CHECKPOINT_PATH): {path} does not end in a step, which'
        " T5X's eval job needs. Pass a folder checkpoint_<step>; a Hugging Face"
        ' folder becomes one by `speculative-t5x convert`.'
    )


_MACROS = {'target': 'CHECKPOINT_PATH', 'draft': 'DRAFT_CHECKPOINT_PATH'}


def _naming(role: str, function, *args):
  """Calls a function of `checkpoints`; names the model in its errors."""
  try:
    return function(*args)
  except checkpoints.CheckpointError as error:
    raise checkpoints.CheckpointError(
        f'The {role} ({_MACROS[role]}): {error}'
    ) from error

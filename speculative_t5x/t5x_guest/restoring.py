# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Two checkpoints restored where T5X restores one."""

from collections.abc import Mapping, Sequence
import os
import re
from typing import Any

from flax import core as flax_core
import jax
import jax.numpy as jnp

from speculative_t5x import checkpoints
from speculative_t5x.t5x_guest import hosts


class PairRestorer:
  """Restores a target and its draft onto the partitioner's mesh.

  Stands for `RestoreCheckpointConfig.checkpoint_manager_cls` and for
  `checkpointer_cls`, so that T5X's `use_orbax` makes no difference. Reads
  every layout that `checkpoints` reads, the two models' may differ, and
  touches nothing in the folders: T5X's own manager deletes what another job
  is saving there.
  """

  def __init__(
      self,
      *,
      train_state: Any,
      partitioner: Any,
      draft_checkpoint_path: checkpoints.Path,
      restore_dtype: Any = None,
      **others: Any,
  ):
    """Binds what T5X says of the job; reads nothing yet.

    Args:
      train_state: shapes of a `t5x.train_state.InferenceState`.
      partitioner: T5X's.
      draft_checkpoint_path: a checkpoint of any layout, or a folder of
        several, the newest of which is taken.
      restore_dtype: of the parameters; None for what is stored.
      **others: what T5X says besides concerns saving and data sets.
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
      path: the target's, as `draft_checkpoint_path`.
      state_transformation_fns: not supported.
      fallback_state: not supported.
      lazy_parameters: not supported.
    Returns:
      The train state, with the target's step.
    Raises:
      checkpoints.CheckpointError: naming the model and what is wrong with its
        checkpoint. Both are looked at before either is read.
      NotImplementedError: for what is not supported.
    """
    _refuse(
        'state_transformation_fns or assignment_map', state_transformation_fns
    )
    _refuse('fallback_to_scratch', fallback_state)
    _refuse('lazy_parameters', lazy_parameters)
    if hosts.is_running('eval.py'):
      _check_step_in_name(path)
    paths = {'target': path, 'draft': self._draft_path}
    shapes = flax_core.unfreeze(self._train_state.params)
    for role, role_path in paths.items():
      _naming(role, checkpoints.check_shapes, role_path, shapes[role])
    shardings = self._shardings()
    params = {
        role: _naming(
            role,
            checkpoints.restore_params,
            role_path,
            shapes[role],
            self._dtype,
            shardings[role],
        )
        for role, role_path in paths.items()
    }
    step = jnp.asarray(checkpoints.read_step(path), jnp.int32)
    state = self._train_state.replace_params(flax_core.freeze(params))
    return state.replace_step(step)

  def restore_from_tf_checkpoint(self, path, **options):
    """Not supported; T5X calls it for a TensorFlow checkpoint."""
    del options
    raise NotImplementedError(
        f'{path} is a TensorFlow checkpoint, which is not supported. Convert it'
        " by T5X's scripts first."
    )

  def save(self, *args, **kwargs):
    """Not supported: a pair is not trained."""
    raise NotImplementedError(
        'A target and a draft are not saved together. Train each by T5X with'
        ' its own model.'
    )

  def _shardings(self) -> Any:
    mesh_axes = self._partitioner.get_mesh_axes(self._train_state)
    return jax.tree.map(
        lambda spec: jax.sharding.NamedSharding(self._partitioner.mesh, spec),
        flax_core.unfreeze(mesh_axes.params),
        is_leaf=lambda x: isinstance(x, jax.sharding.PartitionSpec),
    )


def _refuse(name: str, value: Any) -> None:
  if value:
    raise NotImplementedError(
        f'{name} is not supported for a target and a draft. Leave it out of'
        ' utils.RestoreCheckpointConfig.'
    )


def _check_step_in_name(path: checkpoints.Path) -> None:
  """T5X's eval job asks for it, but only after it has decoded everything."""
  if not re.search(r'\d/?$', os.fspath(path)):
    raise checkpoints.CheckpointError(
        f"The target (CHECKPOINT_PATH): {path} does not end in a step, which"
        " T5X's eval job needs. Pass a folder checkpoint_<step>; a Hugging Face"
        ' folder becomes one by `speculative-t5x convert`.'
    )


_MACROS = {'target': 'CHECKPOINT_PATH', 'draft': 'DRAFT_CHECKPOINT_PATH'}


def _naming(role: str, function, *args):
  """Calls a function of `checkpoints`; its error says which model's it was."""
  try:
    return function(*args)
  except checkpoints.CheckpointError as error:
    raise checkpoints.CheckpointError(
        f'The {role} ({_MACROS[role]}): {error}'
    ) from error

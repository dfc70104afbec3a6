# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Restores a target and its drafter in a T5X job, which restores one model."""

from collections.abc import Mapping
import os
import re
from typing import Any

from flax import core as flax_core
import jax
import jax.numpy as jnp
import numpy as np
from t5x import train_state as train_state_lib
from t5x import utils

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.files import user_paths
from speculative_t5x.t5x_guest import model as model_lib


class PairRestorer:
  """Restores a target and its drafter onto the partitioner's mesh.

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
      model: model_lib.GuestModel,
      restore_dtype: Any = None,
      step_in_path: bool = False,
      **others: Any,
  ):
    """Store T5X's arguments without reading any file.

    Args:
      train_state: Shapes of a `t5x.train_state.InferenceState`.
      partitioner: T5X's partitioner.
      model: The job's model, which has read the drafter.
      restore_dtype: The dtype of the target's parameters; None for the stored
        dtype.
      step_in_path: Whether the path must end in a step. T5X's eval job reads it
        off the path, after it has decoded.
      **others: Further arguments of T5X, for saving and data sets; unused.
    Raises:
      ValueError: if the job's model has no target beside a draft.
    """
    del others
    _check_is_guest(train_state)
    self._train_state = train_state
    self._partitioner = partitioner
    self._model = model
    self._dtype = restore_dtype
    self._step_in_path = step_in_path

  def restore(self, path: checkpoints.Path, **others: Any) -> Any:
    """Read the target, and place the drafter's parameters.

    Args:
      path: The target's checkpoint, of any layout, or a folder of several, of
        which the newest is used.
      **others: Further arguments of T5X, of which none is supported.
    Returns:
      The train state, with the target's step.
    Raises:
      ValueError: for a path without the step that the job needs.
      checkpoints.CheckpointError: if the checkpoint cannot be used. Names the
        model and the problem.
      NotImplementedError: for another argument.
    """
    if given := [name for name, value in others.items() if value]:
      raise NotImplementedError(
          f'{", ".join(given)} (fallback_to_scratch, assignment_map) is not'
          ' supported for a target and a draft. Remove it from'
          ' utils.RestoreCheckpointConfig.'
      )
    if self._step_in_path and not re.search(r'\d/?$', os.fspath(path)):
      raise ValueError(
          "T5X's eval job needs the step at the end of the target's path, as in"
          f' {user_paths.expand(path) / "checkpoint_1000"}. `speculative-t5x'
          ' convert` writes such a folder from a Hugging Face folder.'
      )
    opened = _open({'target': path}, self._train_state)
    params = _read(opened, self._train_state, self._partitioner, self._dtype)
    if draft := self._model.draft_params:
      shardings = _shardings(self._train_state, self._partitioner)
      params['draft'] = jax.tree.map(_place, draft, shardings['draft'])
    state = self._train_state.replace_params(flax_core.freeze(params))
    return state.replace_step(jnp.asarray(opened['target'].step, jnp.int32))


class PairInitializer(utils.TrainStateInitializer):
  """Makes the first state of a training, with the target's parameters.

  It serves as `train.train_state_initializer_cls`. T5X asks it for a first
  state only if the job's folder has no checkpoint; otherwise T5X resumes from
  there by itself. A `RestoreCheckpointConfig` cannot do that: T5X's train
  script saves and restores with the same manager.
  """

  def __init__(
      self,
      *,
      partitioner: Any,
      checkpoint_path: checkpoints.Path,
      draft_checkpoint_path: checkpoints.Path | None = None,
      **kwargs,
  ):
    """Store the paths without reading any file.

    Args:
      partitioner: T5X's partitioner.
      checkpoint_path: The target's checkpoint, of any layout, or a folder of
        several, of which the newest is used.
      draft_checkpoint_path: The draft model's checkpoint, in the same forms;
        None for random parameters.
      **kwargs: Arguments of `t5x.utils.TrainStateInitializer`.
    Raises:
      ValueError: if the job's model has no target beside a draft.
    """
    super().__init__(partitioner=partitioner, **kwargs)
    _check_is_guest(self.global_train_state_shape)
    self._partitioner = partitioner
    self._paths = {'target': checkpoint_path}
    if draft_checkpoint_path is not None:
      self._paths['draft'] = draft_checkpoint_path

  def from_scratch(
      self, init_rng: jax.Array
  ) -> train_state_lib.FlaxOptimTrainState:
    """Return the state of step 0; the key is for random parameters."""
    # Opened before T5X compiles what initializes the state: that takes minutes.
    opened = _open(self._paths, self.global_train_state_shape)
    state = super().from_scratch(init_rng)
    params = flax_core.unfreeze(state.params)
    for role in self._paths:
      # Freed before as much is read.
      jax.tree.map(lambda x: x.delete(), params[role])
    read = _read(opened, self.global_train_state_shape, self._partitioner)
    return state.replace_params(flax_core.freeze(params | read))


def _check_is_guest(train_state: Any) -> None:
  """Raise ValueError unless the model is one of this package's."""
  if 'target' not in train_state.params:
    raise ValueError(
        "The job's model is T5X's own. Give a model file of T5X"
        ' before configs/t5x/speculative.gin, or bind the model of the script'
        ' as configs/t5x/eval.gin does.'
    )


def _open(
    paths: Mapping[str, checkpoints.Path], train_state: Any
) -> dict[str, checkpoints.Checkpoint]:
  """Open the checkpoints of models, by role, and compare their shapes.

  A checkpoint that holds a pair may be given for either role.
  """
  shapes = flax_core.unfreeze(train_state.params)
  opened = {}
  for role, path in paths.items():
    opened[role] = pairing.open_checkpoint(role, path)
    with pairing.naming(role):
      opened[role].check_shapes(shapes[role])
  return opened


def _read(
    opened: Mapping[str, checkpoints.Checkpoint],
    train_state: Any,
    partitioner: Any,
    dtype: Any = jnp.float32,
) -> dict[str, Any]:
  """Read parameters, by role, onto the partitioner's mesh.

  They get the dtype, or keep the stored one if it is None.
  """
  shapes = flax_core.unfreeze(train_state.params)
  shardings = _shardings(train_state, partitioner)
  params = {}
  for role, checkpoint in opened.items():
    with pairing.naming(role):
      params[role] = checkpoint.restore_params(
          shapes[role], dtype, shardings[role]
      )
  return params


def _shardings(train_state: Any, partitioner: Any) -> dict[str, Any]:
  mesh_axes = partitioner.get_mesh_axes(train_state)
  return jax.tree.map(
      lambda spec: jax.sharding.NamedSharding(partitioner.mesh, spec),
      flax_core.unfreeze(mesh_axes.params),
      is_leaf=lambda x: isinstance(x, jax.sharding.PartitionSpec),
  )


def _place(
    param: jax.Array | np.ndarray, sharding: jax.sharding.Sharding
) -> jax.Array:
  """Put a parameter on a mesh, of several hosts too."""
  if isinstance(param, jax.Array):  # it lies on the only device
    return jax.device_put(param, sharding)
  return jax.make_array_from_callback(
      param.shape, sharding, lambda index: param[index]
  )

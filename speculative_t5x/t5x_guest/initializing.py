# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The first state of a distillation in T5X: the target's parameters in it."""

from typing import Any

from flax import core as flax_core
import jax
from t5x import train_state as train_state_lib
from t5x import utils

from speculative_t5x.loading import checkpoints
from speculative_t5x.t5x_guest import restoring


class PairInitializer(utils.TrainStateInitializer):
  """Makes the first state of a training, with the target's parameters.

  It serves as `train.train_state_initializer_cls`. T5X asks it for a first
  state only if MODEL_DIR has no checkpoint; otherwise T5X resumes from there by
  itself. A `RestoreCheckpointConfig` cannot do that: T5X's train script saves
  and restores with the same manager.
  """

  def __init__(
      self,
      *,
      partitioner: Any,
      checkpoint_path: checkpoints.Path,
      draft_checkpoint_path: checkpoints.Path | None = None,
      **kwargs,
  ):
    """Stores the paths; reads no file.

    Args:
      partitioner: T5X's partitioner.
      checkpoint_path: the target's, of any layout, or a folder of several, of
        which the newest is used.
      draft_checkpoint_path: the draft model's, likewise; None for random
        parameters.
      **kwargs: of `t5x.utils.TrainStateInitializer`.
    """
    super().__init__(partitioner=partitioner, **kwargs)
    self._partitioner = partitioner
    self._paths = {'target': checkpoint_path}
    if draft_checkpoint_path is not None:
      self._paths['draft'] = draft_checkpoint_path

  def from_scratch(
      self, init_rng: jax.Array
  ) -> train_state_lib.FlaxOptimTrainState:
    """Returns the state of step 0.

    Args:
      init_rng: of the draft model's random parameters.
    Raises:
      checkpoints.CheckpointError: see `PairRestorer.restore`.
    """
    state = super().from_scratch(init_rng)
    params = flax_core.unfreeze(state.params)
    for role in self._paths:
      # Freed before as much is read.
      jax.tree.map(lambda x: x.delete(), params[role])
    read, _ = restoring.read(
        self._paths, self.global_train_state_shape, self._partitioner
    )
    return state.replace_params(flax_core.freeze(params | read))

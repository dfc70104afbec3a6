# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The train job: trains a network on the targets of a task.

The splits are tokenized once, kept in memory and put on the device.
"""

from collections.abc import Mapping, Sequence
import functools

import jax

from speculative_t5x.jobs.outputs import training_settings
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import placement
from speculative_t5x.loading.files import folder_lock
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import network as network_lib
from speculative_t5x.training import batches
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from speculative_t5x.training import task_examples
from speculative_t5x.training import trainer

TASK_FEATURE_LENGTHS = {'inputs': 96, 'targets': 96}


def train(
    *,
    mixture_or_task_name: str,
    network_config: network_lib.Network,
    model_dir: checkpoints.Path,
    learning_rate_fn: schedules.LearningRateFn,
    settings: trainer.Settings,
    task_feature_lengths: Mapping[str, int] = TASK_FEATURE_LENGTHS,
    z_loss: float = 1e-4,
    train_split: str = 'train',
    validation_split: str = 'validation',
    mesh_shape: Sequence[int] | None = None,
) -> trainer.Trained:
  """Train from scratch, or resume from the newest checkpoint in `model_dir`.

  Prints its progress to stderr.

  The arguments are explained in `configs/runs/train.gin`.

  Raises:
    ValueError: if the network has no `score`, if an argument does not fit the
      data, if the data does not fit the network, or if the loss is not finite.
    checkpoints.CheckpointError: a ValueError, if the checkpoint in `model_dir`
      is of another network.
  """
  network_lib.check_offers(network_config, 'Training', *network_lib.SCORES)
  model_dir = user_paths.expand(model_dir)
  num_examples = settings.batch_size // settings.num_parts
  mesh = placement.training_mesh(num_examples, mesh_shape)
  read = lambda split: task_examples.References(
      mixture_or_task_name, split, task_feature_lengths
  ).read(network_config)
  with folder_lock.hold(model_dir):
    examples, validation = read(train_split), read(validation_split)
    training_settings.keep_data(
        model_dir,
        {
            'training examples': jax.tree.leaves(examples),
            'validation examples': jax.tree.leaves(validation),
        },
    )
    objective = cross_entropy.CrossEntropy(network_config, z_loss)
    return trainer.train(
        objective,
        cross_entropy.validation(
            objective, batches.in_order(validation, settings.batch_size)
        ),
        examples,
        learning_rate_fn,
        settings,
        model_dir,
        init=functools.partial(
            steps.init_params, network_config, settings.seed
        ),
        mesh=mesh,
    )

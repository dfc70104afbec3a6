# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether two checkpoints hold the networks that they are loaded as."""

import contextlib

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import errors
from speculative_t5x.loading import models
from speculative_t5x.networks import network

# The settings that give the checkpoints of a pair.
TARGET_PATH, DRAFT_PATH = 'CHECKPOINT_PATH', 'DRAFT_CHECKPOINT_PATH'
PATHS = {'target': TARGET_PATH, 'draft': DRAFT_PATH}  # by role
_ROLES = {path: role for role, path in PATHS.items()}
CONFIGS = {TARGET_PATH: 'TARGET_CONFIG', DRAFT_PATH: 'DRAFT_CONFIG'}


def naming(path_name: str) -> contextlib.AbstractContextManager[None]:
  """Name the setting that gave a checkpoint's path in errors within.

  Args:
    path_name: TARGET_PATH or DRAFT_PATH.
  """
  prefix = f'The {_ROLES[path_name]} ({path_name})'
  return errors.prefixed(prefix, checkpoints.CheckpointError)


def open_checkpoint(
    path_name: str, path: checkpoints.Path | None
) -> checkpoints.Checkpoint:
  """Open a checkpoint; errors name the setting that gave its path.

  Of a checkpoint that holds a pair, it is the model of the setting.

  Raises:
    checkpoints.CheckpointError: if there is none, or no path.
  """
  with naming(path_name):
    if path is None:
      raise checkpoints.CheckpointError('a path is needed.')
    return checkpoints.open(path).of(_ROLES[path_name])


def check_networks(
    target: models.ModelSource, draft: models.ModelSource
) -> None:
  """Check that both checkpoints hold the networks that are configured.

  Raises:
    checkpoints.CheckpointError: see `check_network`.
  """
  if target.checkpoint is None:
    check_network(DRAFT_PATH, draft, None)
    return
  check_network(TARGET_PATH, target, draft)
  check_network(DRAFT_PATH, draft, target)


def check_network(
    path_name: str,
    model: models.ModelSource,
    other: models.ModelSource | None,
) -> None:
  """Check that a checkpoint holds the network that it is loaded as.

  Args:
    path_name: TARGET_PATH or DRAFT_PATH, by which `model` is given.
    model: The model that is checked.
    other: The other one of the pair, None if it cannot be read.
  Raises:
    checkpoints.CheckpointError: naming the setting that is wrong, and whether
      the two look swapped.
  """
  holds = lambda one, by: one.checkpoint.holds(
      models.abstract_params(by.config)
  )
  with naming(path_name):
    try:
      model.checkpoint.check_shapes(models.abstract_params(model.config))
    except checkpoints.CheckpointError as error:
      message = str(error)
      if other is not None and holds(model, other):
        (other_name,) = CONFIGS.keys() - {path_name}
        message += f' It fits {CONFIGS[other_name]}.'
        if holds(other, model):
          message = (
              f'{model.checkpoint.folder} holds the network of'
              f' {CONFIGS[other_name]}, not that of {CONFIGS[path_name]}:'
              f' {path_name} and {other_name} look swapped.'
          )
      raise checkpoints.CheckpointError(message) from error


def check_width(target: network.Network, draft: network.Network) -> None:
  """Check that a draft decoder can read the output of a target's encoder.

  Raises:
    ValueError: if it reads another width.
  """
  width = network.features_width(target)
  if draft.width_of_inputs != width:
    raise ValueError(
        f'The draft decoder reads an encoder of width {draft.width_of_inputs},'
        f" and the target's encoder has width {width}. Pass a decoder that was"
        " trained on this target's encoder."
    )

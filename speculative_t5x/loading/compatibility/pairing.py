# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether two checkpoints hold the networks that they are loaded as."""

import dataclasses

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.networks import network

TARGET_PATH, DRAFT_PATH = 'CHECKPOINT_PATH', 'DRAFT_CHECKPOINT_PATH'
_ROLES = {TARGET_PATH: 'target', DRAFT_PATH: 'draft'}
_TARGET_CONFIG, _DRAFT_CONFIG = 'TARGET_CONFIG', 'DRAFT_CONFIG'


@dataclasses.dataclass(frozen=True)
class Role:
  """One of the two models, and the names of its settings.

  Attributes:
    path_name: of the setting that gives the checkpoint.
    checkpoint: opened; None if it cannot be.
    config_name: of the setting that gives the network.
    config: the network that is configured; None for the checkpoint's own.
  """

  path_name: str
  checkpoint: checkpoints.Checkpoint | None
  config_name: str
  config: network.Network | None


def open_checkpoint(
    path_name: str, path: checkpoints.Path
) -> checkpoints.Checkpoint:
  """Opens a checkpoint; errors name the setting that gave its path.

  Of a checkpoint that holds a pair, it is the model of the setting.

  Args:
    path_name: TARGET_PATH or DRAFT_PATH.
    path: of the checkpoint.
  """
  try:
    return checkpoints.open(path).of(_ROLES[path_name])
  except checkpoints.CheckpointError as error:
    raise checkpoints.CheckpointError(f'{path_name}: {error}') from error


def check_networks(
    target: models.ModelSource, draft: models.ModelSource
) -> None:
  """Checks that both checkpoints hold the networks that are configured.

  Raises:
    checkpoints.CheckpointError: naming the setting that is wrong, and whether
      the two look swapped.
  """
  roles = make_roles(
      target.checkpoint, draft.checkpoint, target.config, draft.config
  )
  for role, other in zip(roles, reversed(roles), strict=True):
    check_network(role, role.config, other)


def make_roles(
    target: checkpoints.Checkpoint | None,
    draft: checkpoints.Checkpoint | None,
    target_config: network.Network | None,
    draft_config: network.Network | None,
) -> tuple[Role, Role]:
  """Returns the target's role and the draft model's."""
  return (
      Role(TARGET_PATH, target, _TARGET_CONFIG, target_config),
      Role(DRAFT_PATH, draft, _DRAFT_CONFIG, draft_config),
  )


def check_network(role: Role, config: network.Network, other: Role) -> None:
  """Checks the shapes of a checkpoint against a network's.

  Args:
    role: whose checkpoint is checked.
    config: of the network that it should hold.
    other: to tell whether the two look swapped.
  """
  try:
    role.checkpoint.check_shapes(models.abstract_params(config))
  except checkpoints.CheckpointError as error:
    message = str(error)
    if _fits(role, other.config):
      message += f' It fits {other.config_name}.'
      if _fits(other, role.config):
        message = (
            f'{role.checkpoint.folder} holds the network of'
            f' {other.config_name}, not that of {role.config_name}:'
            f' {role.path_name} and {other.path_name} look swapped.'
        )
    raise checkpoints.CheckpointError(f'{role.path_name}: {message}') from error


def check_width(target: network.Network, draft: network.Network) -> None:
  """Checks that a draft decoder can read the output of a target's encoder.

  Raises:
    ValueError: if it reads another width.
  """
  if draft.width_of_inputs != target.emb_dim:
    raise ValueError(
        f'The draft decoder reads an encoder of width {draft.width_of_inputs},'
        f" and the target's encoder has width {target.emb_dim}. Pass a decoder"
        " that was trained on this target's encoder."
    )


def _fits(role: Role, config: network.Network | None) -> bool:
  if config is None or role.checkpoint is None:
    return False
  try:
    role.checkpoint.check_shapes(models.abstract_params(config))
  except checkpoints.CheckpointError:
    return False
  return True

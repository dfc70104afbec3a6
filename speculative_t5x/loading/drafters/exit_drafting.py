# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The first layers of the target as a drafter, with or without a new head."""

import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import early_exit
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import network
from speculative_t5x.speculation import ranges

KIND = 'early_exit'  # in a run record


@dataclasses.dataclass(frozen=True)
class EarlyExit:
  """The target's first layers as a drafter: a `drafting.Drafting`.

  Attributes:
    exit_layer: How many decoder layers of the target draft: with a head, those
      that it was trained for.
    head: A checkpoint of the head, under the network's names; None for the
      target's own.
  """

  exit_layer: int
  head: checkpoints.Path | None = None

  def find(self, target) -> drafting.Drafting:
    network.check_offers(target.config, 'Early exit', *network.LAYERS)
    first = target.config.first_layers(self.exit_layer)
    found = drafting.Drafting(
        self._make,
        descriptions.DrafterDescription(
            kind=KIND,
            name=f'early_exit_{self.exit_layer}',
            num_params=models.count_params(first.decoder_alone()),
            dtype=jnp.dtype(first.dtype).name,
        ),
    )
    return found if self.head is None else self._with_head(found, target, first)

  def _make(
      self, target: network.NetworkModel, gamma: int
  ) -> early_exit.ExitDrafter:
    target.network.first_layers(self.exit_layer)  # or it has no such layer
    return early_exit.ExitDrafter(target, self.exit_layer, gamma)

  def _with_head(
      self,
      found: drafting.Drafting,
      target: models.Found,
      first: network.Network,
  ) -> drafting.Drafting:
    """Return the drafting with the head of a checkpoint, still to be read."""
    checkpoint = pairing.open_checkpoint('draft', self.head)
    if checkpoint.exit_layer not in (None, self.exit_layer):
      raise ranges.ArgumentError(
          f'{checkpoint.source} is a head for the first'
          f' {checkpoint.exit_layer} layers of a target. Set exit_layer to'
          f' {checkpoint.exit_layer} instead of {self.exit_layer}, or give its'
          ' path alone as that of a draft model.',
          exit_layer=self.exit_layer,
      )
    network.check_offers(first, 'A head of its own', *network.HEADS)
    first = first.with_own_head()
    head = first.take_head(models.abstract_params(first))
    with pairing.naming('draft'):
      checkpoint.check_shapes(head)
    shardings = target.mesh and first.take_head(
        models.param_shardings(first, target.mesh, target.rules)
    )
    size = sum(x.size for x in jax.tree.leaves(head))
    found = dataclasses.replace(
        found,
        description=dataclasses.replace(
            found.description, checkpoint=checkpoint.source
        ),
        num_bytes=size * jnp.dtype(first.dtype).itemsize,
        axes=target.mesh and first.take_head(first.axes()),
        mesh=target.mesh,
    )

    def read() -> drafting.Drafting:
      params = checkpoint.restore_params(head, first.dtype, shardings)
      return dataclasses.replace(found, params=params)

    return dataclasses.replace(found, read=read)


def is_head(
    checkpoint: checkpoints.Checkpoint, target: network.Network
) -> bool:
  """Return whether a checkpoint is a head for the first layers of a target."""
  has_layers = any('/layers_' in name for name in checkpoint.specs)
  is_offered = network.offers(target, *network.HEADS)
  if has_layers or not is_offered:
    return False
  first = target.with_own_head()
  head = checkpoints.flatten(first.take_head(models.abstract_params(first)))
  return checkpoint.specs.keys() == head.keys()


def of_head(checkpoint: checkpoints.Checkpoint) -> EarlyExit:
  """Return the drafting by the layers that the head of a checkpoint is for."""
  if checkpoint.exit_layer is None:  # saved by another program
    raise checkpoints.CheckpointError(
        f'{checkpoint.source} is a head for the first layers of a target, and'
        ' does not say for how many. Draft by EarlyExit(<layers>,'
        ' <path>), in jobs by configs/drafters/exit_head.gin.'
    )
  return EarlyExit(checkpoint.exit_layer, checkpoint.source)

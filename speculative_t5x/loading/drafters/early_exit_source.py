# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The first layers of the target as a drafter, with or without a new head."""

from collections.abc import Callable
import dataclasses

import jax
import jax.numpy as jnp

from speculative_t5x.drafters import early_exit
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.loading.drafters import source
from speculative_t5x.networks import network

KIND = 'early_exit'  # in a run record


@dataclasses.dataclass(frozen=True)
class OfTarget:
  """The target's first layers as a drafter: see `source.Source`.

  Attributes:
    exit_layer: How many decoder layers of the target draft.
  """

  exit_layer: int

  def find(
      self,
      target: models.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> Callable[[], source.Drafting]:
    drafter = of_network(target.config, self.exit_layer)
    return lambda: drafter


@dataclasses.dataclass(frozen=True)
class FromCheckpoint(OfTarget):
  """The target's first layers with a head from a checkpoint.

  Attributes:
    exit_layer: How many decoder layers of the target draft: those that the head
      was trained for.
    checkpoint_path: A checkpoint of the head, under the network's names.
  """

  checkpoint_path: checkpoints.Path

  def find(
      self,
      target: models.ModelSource,
      vocabulary: vocabularies.Vocabulary | None,
  ) -> Callable[[], source.Drafting]:
    without_head = of_network(target.config, self.exit_layer)
    checkpoint = pairing.open_checkpoint(
        pairing.DRAFT_PATH, self.checkpoint_path
    )
    description = dataclasses.replace(
        without_head.description, checkpoint=str(checkpoint.folder)
    )
    first = target.config.first_layers(self.exit_layer).with_own_head()
    head = first.take_head(models.abstract_params(first))
    shardings = target.mesh and first.take_head(
        models.param_shardings(first, target.mesh, target.rules)
    )

    def read() -> source.Drafting:
      return dataclasses.replace(
          without_head,
          description=description,
          params=checkpoint.restore_params(head, first.dtype, shardings),
          axes=target.mesh and first.take_head(first.axes()),
          mesh=target.mesh,
      )

    size = sum(x.size for x in jax.tree.leaves(head))
    return source.Found(read, num_bytes=size * jnp.dtype(first.dtype).itemsize)


def of_network(target: network.Network, exit_layer: int) -> source.Drafting:
  """Return the drafter for targets of a network; there is nothing to read.

  Raises:
    ValueError: if the network has no such layer, or no `first_layers`.
  """
  network.check_offers(target, 'first_layers', 'Early exit')
  first = target.first_layers(exit_layer)

  def make(
      target: network.NetworkModel, max_draft_tokens: int
  ) -> early_exit.EarlyExit:
    target.network.first_layers(exit_layer)  # or the target has no such layer
    return early_exit.EarlyExit(target, exit_layer, max_draft_tokens)

  return source.Drafting(
      make,
      descriptions.DrafterDescription(
          kind=KIND,
          name=f'early_exit_{exit_layer}',
          num_params=models.count_params(first.without_encoder()),
          dtype=jnp.dtype(first.dtype).name,
      ),
  )

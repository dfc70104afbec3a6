# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kinds of drafts to distil: a network, or a head on the target."""

from collections.abc import Mapping
import dataclasses
from typing import Any

import jax

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import ranges

Params = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Draft:
  """A network of its own. Its parameters are kept apart, so it is hashable.

  Attributes:
    network: The network, with dropout rate and dtype of training. It may read
      the features of the target.
    exit_layer: Of a head on the target's first layers, how many; else None.
  """

  network: network_lib.Network
  exit_layer: int | None = None

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """Return the shardings of the trained parameters on a mesh."""
    return models.param_shardings(self.network, mesh)

  def joined(self, params: Params, target_params: Params) -> Params:
    """Return all parameters of the network, trained or the target's."""
    del target_params
    return params

  def with_dropout(self, rate: float) -> 'Draft':
    """Return the draft with a dropout rate for training."""
    if not hasattr(self.network, 'dropout_rate'):
      if not rate:
        return self
      raise ranges.ArgumentError(
          f'dropout_rate is {rate}, and {self.network.name} has no dropout. Set'
          ' it to 0.',
          dropout_rate=rate,
      )
    network = dataclasses.replace(self.network, dropout_rate=rate)
    return dataclasses.replace(self, network=network)


@dataclasses.dataclass(frozen=True)
class ExitHead(Draft):
  """A norm and a head on the output of a decoder layer of the target.

  The layers before it are the target's and are not trained. Its network is that
  of these layers and the head, whose head is its own.
  """

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    return self.network.take_head(super().shardings(mesh))

  def joined(self, params: Params, target_params: Params) -> Params:
    return self.network.put_head(target_params, params)


@dataclasses.dataclass(frozen=True)
class FeatureHead(Draft):
  """A head on the target's last features, a network of its own.

  Attributes:
    feature_weight: Weight of the loss of predicted features, see
      `feature_distillation`.
    num_passes: How often the head reads a text: at first with the target's
      features, then with those that it predicted before.
  """

  feature_weight: float = 1.0
  num_passes: int = 1

  def __post_init__(self):
    ranges.check_settings(
        ranges.COEFFICIENT, feature_weight=self.feature_weight
    )
    ranges.check_settings(ranges.COUNT, num_passes=self.num_passes)


def check_vocab_sizes(
    target: network_lib.Network, draft: network_lib.Network, setting: str
) -> None:
  """Check that both networks have logits of the same tokens."""
  one, other = target.vocab_size, draft.vocab_size
  if one != other:
    raise ValueError(
        f'The target has logits of {one} tokens and the draft model of {other}.'
        f" Set {setting} to the target's."
    )

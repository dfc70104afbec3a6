# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A draft model whose parameters T5X holds beside the target's."""

import dataclasses

from flax import core as flax_core
import flax.linen as nn
from flax.linen import partitioning
import jax
import seqio

from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.t5x_guest import network_config


@dataclasses.dataclass(frozen=True)
class DraftModule:
  """A draft model as a module of T5X.

  Attributes:
    module: a `t5x.examples.t5.network.Transformer`.
    vocabulary: that it was trained with, to be compared with the target's;
      None if they are known to be the same.
    is_model_parallel: whether its parameters are partitioned by the target's
      rules; if not, every device holds all of them.
  """

  module: nn.Module
  vocabulary: seqio.Vocabulary | None = None
  is_model_parallel: bool = False

  def make(
      self, target: network.NetworkModel, max_draft_tokens: int
  ) -> draft_model.DraftModel:
    """See `source.Drafting.make`."""
    config = t5_preparation.prepare_config(self._config, jax.default_backend())
    return draft_model.DraftModel(
        dataclasses.replace(target, network=config),
        max_draft_tokens,
        target.vocab_size,
        self.rules,
    )

  @property
  def rules(self) -> sharding.Rules:
    """Which of its axes are partitioned; to be read while T5X traces."""
    if self.is_model_parallel:
      return partitioning.get_axis_rules()  # T5X's, in force then
    return sharding.REPLICATED

  def prepare(self, params: contracts.Params) -> contracts.Params:
    """Returns the parameters in the dtype and layout that decoding needs."""
    return t5_preparation.prepare(self._config, params)[1]

  def place_axes(
      self, axes: flax_core.FrozenDict | dict
  ) -> flax_core.FrozenDict | dict:
    """Returns the logical axes of the parameters, empty if replicated."""
    if self.is_model_parallel:
      return axes
    return jax.tree.map(
        lambda leaf: partitioning.AxisMetadata((None,) * len(leaf.names)),
        axes,
        is_leaf=lambda x: isinstance(x, partitioning.AxisMetadata),
    )

  @property
  def _config(self):
    return network_config.read('draft', self.module)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A draft model whose sizes T5X's gin files set, and which T5X can train."""

import dataclasses

from flax import core as flax_core
import flax.linen as nn
from flax.linen import partitioning
import jax
import seqio

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts
from speculative_t5x.t5x_guest import module_sizes
from speculative_t5x.tasks import task_vocabulary


class Pair(nn.Module):
  """The module that T5X knows: its target, with the draft's parameters.

  Parameters and their axes nest as `target/...` and `draft/...`. Whatever T5X
  does with a module (loss, scoring, its own samplers) it does with the target.
  """

  target: nn.Module  # one that `module_sizes` reads
  # An encoder-decoder of the same vocabulary that T5X trains; None for none.
  # One without encoder layers reads the output of the target's encoder.
  draft: nn.Module | None = None

  def encode(self, *args, **kwargs) -> jax.Array:
    """Call the target's `encode`."""
    return self.target.encode(*args, **kwargs)

  def decode(self, *args, **kwargs) -> jax.Array:
    """Call the target's `decode`."""
    return self.target.decode(*args, **kwargs)

  def __call__(self, *args, **kwargs) -> jax.Array:
    """Return the target's logits; run the draft to make its parameters."""
    if self.draft is not None and self.is_initializing():
      inputs, *outputs = args
      # An encoder that is not called has no parameters.
      encoder = self.draft if has_encoder(self.draft) else self.target
      encoded = encoder.encode(inputs, enable_dropout=False)
      self.draft.decode(encoded, inputs, *outputs, enable_dropout=False)
    return self.target(*args, **kwargs)


@dataclasses.dataclass(frozen=True)
class DraftModule:
  """A draft model as a module of T5X: a `drafters.Drafting`.

  Attributes:
    module: One that `module_sizes` reads; an encoder-decoder without encoder
      layers drafts on the output of the target's encoder.
    vocabulary: Vocabulary that it was trained with, to be compared with the
      target's; None if they are known to be the same.
    is_model_parallel: Whether its parameters are partitioned by the target's
      rules; if not, every device holds all of them.
    checkpoint_path: A checkpoint of any layout, or a folder of several, of
      which the newest is used; None for one that T5X trains.
  """

  module: nn.Module
  vocabulary: seqio.Vocabulary | None = None
  is_model_parallel: bool = False
  checkpoint_path: checkpoints.Path | None = None

  def find(self, target: models.Found) -> drafters.Drafting:
    if target.vocabulary is not None and self.vocabulary is not None:
      own = task_vocabulary.of(self.vocabulary)
      vocabularies.check_same(target.vocabulary, own)
    config = self.config_for(target.config)
    draft = model_drafting.DraftModel(
        self.checkpoint_path, config, model_parallel=self.is_model_parallel
    )
    return draft.find(target)

  def config_for(self, target: network.Network) -> network.Network:
    """Return the network of the draft model for a target."""
    config = module_sizes.read('draft', self.module)
    if config.reads_features:
      return config.on_features(network.features_width(target))
    if isinstance(config, decoder_only.DecoderOnly):
      # T5X states it beside the module, once for a job.
      is_prefix = getattr(target, 'prefix_bidirectional', False)
      config = dataclasses.replace(config, prefix_bidirectional=is_prefix)
    return config

  def drafting(
      self, target: models.Found, params: contracts.Params
  ) -> drafters.Drafting:
    """Return the drafter of parameters that T5X holds, as it trains them."""
    config = self.config_for(target.config)
    count = models.count_params(config)
    config, params = t5_preparation.prepare(config, params)
    model = models.Model(
        config,
        params,
        num_params=count,
        rules=self.rules,
        special_ids=target.special_ids,
    )
    return model_drafting.of_model(model)

  def place_axes(
      self, axes: flax_core.FrozenDict | dict
  ) -> flax_core.FrozenDict | dict:
    """Return the logical axes of the parameters, empty if replicated."""
    if self.is_model_parallel:
      return axes
    return jax.tree.map(
        lambda leaf: partitioning.AxisMetadata((None,) * len(leaf.names)),
        axes,
        is_leaf=lambda x: isinstance(x, partitioning.AxisMetadata),
    )

  @property
  def rules(self) -> sharding.Rules:
    """Which of its axes are partitioned; to be read while T5X traces."""
    if self.is_model_parallel:
      return partitioning.get_axis_rules()  # T5X's, in force then
    return sharding.REPLICATED


def has_encoder(module: nn.Module) -> bool:
  """Return whether a module of T5X has encoder layers."""
  return module.config.num_encoder_layers > 0

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A draft model whose parameters T5X holds beside the target's."""

import dataclasses

from flax import core as flax_core
import flax.linen as nn
from flax.linen import partitioning
import jax
import jax.numpy as jnp
import seqio
from t5x.examples.t5 import network as t5x_network

from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_preparation
from speculative_t5x.speculation import contracts


class Pair(nn.Module):
  """The module that T5X knows: its target, with the draft's parameters.

  Parameters and their axes nest as `target/...` and `draft/...`. Whatever T5X
  does with a module (loss, scoring, its own samplers) it does with the target.

  Attributes:
    target: A `t5x.examples.t5.network.Transformer`.
    draft: Another, of the same vocabulary; None for a drafter without
      parameters.
  """

  target: nn.Module
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
      self.draft(*args, **kwargs)
    return self.target(*args, **kwargs)


@dataclasses.dataclass(frozen=True)
class DraftModule:
  """A draft model as a module of T5X.

  Attributes:
    module: A `t5x.examples.t5.network.Transformer`.
    vocabulary: Vocabulary that it was trained with, to be compared with the
      target's; None if they are known to be the same.
    is_model_parallel: Whether its parameters are partitioned by the target's
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
    """Return the parameters in the dtype and layout that decoding needs."""
    return t5_preparation.prepare(self._config, params)[1]

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
  def _config(self):
    return read_config('draft', self.module)


def read_config(role: str, module: nn.Module) -> t5.T5Config:
  """Return the sizes of a module of T5X, as this package's network takes them.

  Args:
    role: What the module is, for messages: 'target' or 'draft'.
    module: The module.
  Raises:
    ValueError: for a module of another class, or settings that are not
      supported.
  """
  # A subclass may compute anything else.
  if type(module) is not t5x_network.Transformer:
    raise ValueError(
        f'The {role} is a {type(module).__module__}.{type(module).__name__};'
        ' only t5x.examples.t5.network.Transformer itself can be decoded.'
        ' Scanned layers, decoder-only and other networks are not supported.'
    )
  config = module.config
  dtype = jnp.dtype(config.dtype)
  if config.float32_attention_logits and dtype != jnp.float32:
    raise ValueError(
        f"The {role}'s float32_attention_logits is not supported with dtype"
        f' {dtype.name}. Set it to False, or dtype to float32.'
    )
  names = {field.name for field in dataclasses.fields(t5.T5Config)}
  return t5.T5Config(
      **{
          field.name: getattr(config, field.name)
          for field in dataclasses.fields(config)
          if field.name in names
      }
  )

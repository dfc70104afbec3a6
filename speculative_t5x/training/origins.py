# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a draft comes from before it is trained."""

from collections.abc import Sequence
import dataclasses
from typing import Protocol

import jax
import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.networks import t5
from speculative_t5x.training import cutting
from speculative_t5x.training import draft_kinds
from speculative_t5x.training import steps

Made = tuple[draft_kinds.Network, draft_kinds.Params]


class Origin(Protocol):
  """Makes the draft that training begins with.

  Attributes:
    checkpoint_path: The checkpoint that it is read from; None without one.
  """

  checkpoint_path: checkpoints.Path | None

  def make(self, target: cutting.Network, seed: int) -> Made:
    """Return the draft and its first parameters, in float32.

    Args:
      target: The network that it is to draft for.
      seed: Seed of random parameters.
    Raises:
      ValueError: if there is no such draft.
    """


@dataclasses.dataclass(frozen=True)
class Scratch:
  """Random parameters.

  Attributes:
    config: The network's config. With num_encoder_layers = 0 it reads the
      output of the target's encoder.
  """

  config: t5.T5Config | None
  checkpoint_path = None

  def make(self, target: cutting.Network, seed: int) -> Made:
    """See `Origin.make`."""
    if self.config is None:
      raise ValueError(
          'A draft model from scratch needs its sizes. Set DRAFT_CONFIG, as a'
          ' file of configs/models does.'
      )
    config = _for_target(self.config, target.config)
    return draft_kinds.Network(config), steps.init_params(config, seed)


@dataclasses.dataclass(frozen=True)
class FromCheckpoint:
  """A draft model that was trained before.

  Attributes:
    checkpoint_path: A checkpoint of any layout that `checkpoints` reads.
    config: The network's config; None for the sizes that the checkpoint states.
  """

  checkpoint_path: checkpoints.Path
  config: t5.T5Config | None = None

  def make(self, target: cutting.Network, seed: int) -> Made:
    """See `Origin.make`."""
    del seed
    opened = pairing.open_checkpoint(pairing.DRAFT_PATH, self.checkpoint_path)
    config = self.config and _for_target(self.config, target.config)
    network = read(opened, config)
    return draft_kinds.Network(network.config), network.params


@dataclasses.dataclass(frozen=True)
class FromTarget:
  """Layers of the target, as they are or narrowed.

  Attributes:
    decoder_layers: Numbers of the decoder's layers, from 0 on: (0, 1) are the
      first two, (0, 2, 4) every second of six.
    encoder_layers: Numbers of the encoder's layers; None for all.
    num_heads: How many of the largest heads; None for all.
    mlp_dim: How many of the largest feed-forward columns; None for all.
    shares_encoder: Whether it reads the output of the target's encoder, and has
      none of its own.
  """

  decoder_layers: Sequence[int]
  encoder_layers: Sequence[int] | None = None
  num_heads: int | None = None
  mlp_dim: int | None = None
  shares_encoder: bool = False
  checkpoint_path = None

  def make(self, target: cutting.Network, seed: int) -> Made:
    """See `Origin.make`."""
    del seed
    network = cutting.take_layers(
        target, self.encoder_layers, self.decoder_layers
    )
    network = cutting.narrow(network, self.num_heads, self.mlp_dim)
    if self.shares_encoder:
      network = cutting.without_encoder(network)
    return draft_kinds.Network(network.config), network.params


@dataclasses.dataclass(frozen=True)
class ExitHead:
  """A copy of the target's final norm and head, behind an earlier layer.

  Attributes:
    exit_layer: How many of the target's decoder layers come before the head.
  """

  exit_layer: int
  checkpoint_path = None

  def make(self, target: cutting.Network, seed: int) -> Made:
    """See `Origin.make`."""
    del seed
    config = target.config.first_layers(self.exit_layer).with_own_head()
    params = target.params
    if target.config.logits_via_embedding:
      tied = {'kernel': params['token_embedder']['embedding'].T}
      decoder = {**params['decoder'], 'logits_dense': tied}
      params = {**params, 'decoder': decoder}
    return draft_kinds.ExitHead(config), config.take_head(params)


def _for_target(config: t5.T5Config, target: t5.T5Config) -> t5.T5Config:
  """Return a config whose decoder alone reads the target's encoder."""
  if config.num_encoder_layers:
    return config
  return dataclasses.replace(config, encoder_dim=target.emb_dim)


def read(
    checkpoint: checkpoints.Checkpoint,
    config: t5.T5Config | None,
    mesh: jax.sharding.Mesh | None = None,
) -> cutting.Network:
  """Read a checkpoint's network, with parameters in float32.

  Args:
    checkpoint: An opened checkpoint.
    config: The network's config; None for the sizes that the checkpoint states.
    mesh: The mesh over which the parameters are partitioned; None for one
      device.
  """
  config = config or checkpoint.network()
  params = checkpoint.restore_params(
      models.abstract_params(config),
      jnp.float32,
      mesh and models.param_shardings(config, mesh),
  )
  return cutting.Network(config, params)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a draft model comes from before it is trained."""

from collections.abc import Sequence
import dataclasses
from typing import Protocol

import jax.numpy as jnp

from speculative_t5x import checkpoints
from speculative_t5x import loading
from speculative_t5x.compatibility import pairing
from speculative_t5x.networks import t5
from speculative_t5x.training import cutting
from speculative_t5x.training import steps


class Origin(Protocol):
  """Makes the draft model that training begins with."""

  def make(self, target: cutting.Network, seed: int) -> cutting.Network:
    """Returns the network and its first parameters, in float32.

    Args:
      target: that it is to draft for.
      seed: of random parameters.
    Raises:
      ValueError: if there is no such network.
    """


@dataclasses.dataclass(frozen=True)
class Scratch:
  """Random parameters.

  Attributes:
    config: of the network. With num_encoder_layers = 0 it reads the output of
      the target's encoder.
  """

  config: t5.T5Config | None

  def make(self, target: cutting.Network, seed: int) -> cutting.Network:
    """See `Origin.make`."""
    config = self.config
    if config is None:
      raise ValueError(
          'A draft model from scratch needs its sizes. Set DRAFT_CONFIG, as a'
          ' file of configs/models does.'
      )
    if config.num_encoder_layers:
      return cutting.Network(config, steps.init_params(config, seed))
    config = dataclasses.replace(config, encoder_dim=target.config.emb_dim)
    return cutting.Network(config, steps.init_params(config, seed))


@dataclasses.dataclass(frozen=True)
class FromCheckpoint:
  """A draft model that was trained before.

  Attributes:
    checkpoint_path: of any layout that `checkpoints` reads.
    config: of its network; None for the sizes that the checkpoint states.
  """

  checkpoint_path: checkpoints.Path | None
  config: t5.T5Config | None = None

  def make(self, target: cutting.Network, seed: int) -> cutting.Network:
    """See `Origin.make`."""
    del target, seed
    if self.checkpoint_path is None:
      raise ValueError(
          'A draft model from a checkpoint needs its path. Set'
          ' DRAFT_CHECKPOINT_PATH.'
      )
    opened = pairing.open_checkpoint(pairing.DRAFT_PATH, self.checkpoint_path)
    return read(opened, self.config)


@dataclasses.dataclass(frozen=True)
class FromTarget:
  """Layers of the target, as they are or narrowed.

  Attributes:
    decoder_layers: numbers of the decoder's layers, from 0 on: (0, 1) are the
      first two, (0, 2, 4) every second of six.
    encoder_layers: likewise of the encoder's; None for all.
    num_heads: how many of the largest heads; None for all.
    mlp_dim: how many of the largest feed-forward columns; None for all.
    shares_encoder: whether it reads the output of the target's encoder, and has
      none of its own.
  """

  decoder_layers: Sequence[int]
  encoder_layers: Sequence[int] | None = None
  num_heads: int | None = None
  mlp_dim: int | None = None
  shares_encoder: bool = False

  def make(self, target: cutting.Network, seed: int) -> cutting.Network:
    """See `Origin.make`."""
    del seed
    config = target.config
    encoder_layers = self.encoder_layers
    if encoder_layers is None:
      encoder_layers = range(config.num_encoder_layers)
    network = cutting.take_layers(target, encoder_layers, self.decoder_layers)
    network = cutting.narrow(
        network,
        self.num_heads or config.num_heads,
        self.mlp_dim or config.mlp_dim,
    )
    return cutting.without_encoder(network) if self.shares_encoder else network


def read(
    checkpoint: checkpoints.Checkpoint, config: t5.T5Config | None
) -> cutting.Network:
  """Returns a checkpoint's network, whose parameters are float32.

  Args:
    checkpoint: opened.
    config: of the network; None for the sizes that the checkpoint states.
  """
  config = config or loading.read_config(checkpoint)
  params = checkpoint.restore_params(
      loading.abstract_params(config), jnp.float32, None
  )
  return cutting.Network(config, params)

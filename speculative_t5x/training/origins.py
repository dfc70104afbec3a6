# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Where a draft comes from before it is trained.

Each class that is an `Origin` has `make(target, seed)`, which returns the draft
with its first parameters: random ones are by the seed. What the target does not
offer is found before its parameters are read. `checkpoint_path` is that of the
draft; None without one.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import pairing
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.training import block_distillation
from speculative_t5x.training import distillation
from speculative_t5x.training import feature_distillation
from speculative_t5x.training import steps

_HEAD = "A head on the target's last features"


@dataclasses.dataclass(frozen=True)
class Stored:
  """A network whose parameters are in a checkpoint.

  They are partitioned over the mesh; None for one device.
  """

  checkpoint: checkpoints.Checkpoint
  network: network_lib.Network
  mesh: jax.sharding.Mesh | None = None

  @functools.cached_property
  def params(self) -> steps.Params:
    """The parameters in float32, read when they are first asked for."""
    return self.checkpoint.restore_params(
        models.abstract_params(self.network),
        jnp.float32,
        self.mesh and models.param_shardings(self.network, self.mesh),
    )


class Made(NamedTuple):
  """A draft before it is trained."""

  network: network_lib.Network
  params: steps.Params  # in float32
  objective: Callable[..., distillation.Distillation] = (
      distillation.Distillation
  )


@dataclasses.dataclass(frozen=True)
class Scratch:
  """Random parameters of a network. One that reads features reads the target's.
  """

  config: network_lib.Network | None
  checkpoint_path = None

  def make(self, target: Stored, seed: int) -> Made:
    _check_given(self.config)
    network = _for_target(self.config, target.network)
    _check_no_head(network, 'config')
    return Made(network, steps.init_params(network, seed))


@dataclasses.dataclass(frozen=True)
class FromCheckpoint:
  """A draft model that was trained before.

  Attributes:
    checkpoint_path: A checkpoint of any layout that `checkpoints` reads.
    config: The network; None for the one that the checkpoint states.
  """

  checkpoint_path: checkpoints.Path
  config: network_lib.Network | None = None

  def make(self, target: Stored, seed: int) -> Made:
    del seed
    opened = pairing.open_checkpoint('draft', self.checkpoint_path)
    if self.config is None:
      network = opened.network()
    else:
      config = pairing.with_masks(self.config, opened)
      network = _for_target(config, target.network)
    _check_no_head(network, str(opened.folder))
    return Made(network, Stored(opened, network).params)


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

  def make(self, target: Stored, seed: int) -> Made:
    del seed
    network_lib.check_offers(target.network, 'A draft of its layers', 'cut')
    network, params = target.network.cut(
        target.params,
        decoder_layers=self.decoder_layers,
        encoder_layers=self.encoder_layers,
        num_heads=self.num_heads,
        mlp_dim=self.mlp_dim,
    )
    if self.shares_encoder:
      network = _on_features(network, target.network)
      read = models.abstract_params(network)
      params = {name: params[name] for name in read}  # without its encoder
    return Made(network, params)


@dataclasses.dataclass(frozen=True)
class ExitHead:
  """A copy of the target's final norm and head, behind an earlier layer.

  Attributes:
    exit_layer: How many of the target's decoder layers come before the head.
  """

  exit_layer: int
  checkpoint_path = None

  def make(self, target: Stored, seed: int) -> Made:
    del seed
    network_lib.check_offers(
        target.network,
        'Early exit',
        *network_lib.LAYERS,
        *network_lib.HEADS,
    )
    network = target.network.first_layers(self.exit_layer).with_own_head()
    objective = functools.partial(
        distillation.Distillation, exit_layer=self.exit_layer
    )
    return Made(network, network.take_head(target.params), objective)


@dataclasses.dataclass(frozen=True)
class FeatureHead:
  """A head on the target's last features, random or begun as another draft.

  Attributes:
    config: A network of its sizes: for a T5 a decoder without an encoder. None
      for that of the checkpoint.
    checkpoint_path: A draft model of these sizes, such as a decoder on the
      target's encoder, of which the head has all parameters at first; only what
      reads and predicts features is random then. None without one.
    feature_weight, num_passes: See `FeatureDistillation`.
  """

  config: network_lib.Network | None
  checkpoint_path: checkpoints.Path | None = None
  feature_weight: float = 1.0
  num_passes: int = 1

  def __post_init__(self):
    ranges.check_settings(
        ranges.COEFFICIENT, feature_weight=self.feature_weight
    )
    ranges.check_settings(ranges.COUNT, num_passes=self.num_passes)

  def make(self, target: Stored, seed: int) -> Made:
    sizes, known = _begun(self.config, self.checkpoint_path, target.network)
    if network_lib.is_block_head(sizes):
      raise ValueError(
          f'{self.checkpoint_path or "config"} is a head that drafts a block'
          ' per call, and feature_head.gin trains one that drafts token by'
          ' token: choose configs/origins/block_head.gin.'
      )
    network = _on_last_features(sizes, target.network)
    objective = functools.partial(
        feature_distillation.FeatureDistillation,
        feature_weight=self.feature_weight,
        num_passes=self.num_passes,
    )
    return Made(network, _with_known(network, known, seed), objective)


@dataclasses.dataclass(frozen=True)
class BlockHead:
  """A head that drafts several tokens per call, random or begun as a draft.

  Attributes:
    config: A network of its sizes. None for that of the checkpoint.
    gamma: Draft tokens per call, at least 2.
    recurrence_dim: Width of its recurrence over draft tokens; None for a head
      whose draft tokens are independent of each other.
    reads_last_features: Whether it is fed the target's last features.
    anchor_period: See `BlockDistillation`.
    checkpoint_path: As of `FeatureHead`.
  """

  config: network_lib.Network | None
  gamma: int = 8
  recurrence_dim: int | None = 64
  reads_last_features: bool = False
  anchor_period: int = 8
  checkpoint_path: checkpoints.Path | None = None

  def __post_init__(self):
    ranges.check_settings(ranges.whole(2, 64), gamma=self.gamma)
    ranges.check_settings(ranges.COUNT, anchor_period=self.anchor_period)
    if self.recurrence_dim is not None:
      ranges.check_settings(ranges.COUNT, recurrence_dim=self.recurrence_dim)

  def make(self, target: Stored, seed: int) -> Made:
    sizes, known = _begun(self.config, self.checkpoint_path, target.network)
    if network_lib.is_feature_head(sizes):  # of another head, as it was trained
      sizes = dataclasses.replace(sizes, feature_dim=None)
    sizes = dataclasses.replace(
        sizes, num_masks=self.gamma - 1, recurrence_dim=self.recurrence_dim
    )
    if self.reads_last_features:
      network = _on_last_features(sizes, target.network)
    else:
      network = _for_target(sizes, target.network)
    objective = functools.partial(
        block_distillation.BlockDistillation, anchor_period=self.anchor_period
    )
    return Made(network, _with_known(network, known, seed), objective)


Origin = (
    Scratch | FromCheckpoint | FromTarget | ExitHead | FeatureHead | BlockHead
)


def _begun(
    config: network_lib.Network | None,
    path: checkpoints.Path | None,
    target: network_lib.Network,
) -> tuple[network_lib.Network, dict[str, jax.Array]]:
  """Return the sizes of a head, and parameters of a draft by their names."""
  known = {}
  if path is not None:
    opened = pairing.open_checkpoint('draft', path)
    config = pairing.with_masks(config, opened) or opened.network()
    config = _for_target(config, target)
    known = checkpoints.flatten(Stored(opened, config).params)
  _check_given(config)
  return config, known


def _on_last_features(
    sizes: network_lib.Network, target: network_lib.Network
) -> network_lib.Network:
  for network in (target, sizes):
    network_lib.check_offers(network, _HEAD, *network_lib.SHOWS_FEATURES)
  return sizes.on_last_features(target)


def _with_known(
    network: network_lib.Network, known: dict[str, jax.Array], seed: int
) -> steps.Params:
  """Return random parameters, and in their place those that are known.

  A head may have other masks and another recurrence than one before it.
  """
  params = checkpoints.flatten(steps.init_params(network, seed))
  for name, leaf in params.items():
    if name in known and known[name].shape == leaf.shape:
      params[name] = known[name]
  return checkpoints.nest(params)


def _check_no_head(network: network_lib.Network, name: str) -> None:
  """Check that the loss of a draft model trains a network."""
  for is_head, file in (
      (network_lib.is_block_head, 'block_head'),
      (network_lib.is_feature_head, 'feature_head'),
  ):
    if is_head(network):
      raise ValueError(
          f'{name} is a head, whose training has a loss of its own: choose'
          f' configs/origins/{file}.gin.'
      )


def _check_given(config: network_lib.Network | None) -> None:
  if config is None:
    raise ranges.ArgumentError(
        'A draft model from scratch needs its sizes. Set config, as a file of'
        ' configs/models does.',
        config=None,
    )


def _for_target(
    network: network_lib.Network, target: network_lib.Network
) -> network_lib.Network:
  network_lib.check_offers(network, 'Training', *network_lib.SCORES)
  return _on_features(network, target) if network.reads_features else network


def _on_features(
    network: network_lib.Network, target: network_lib.Network
) -> network_lib.Network:
  return network.on_features(network_lib.features_width(target))

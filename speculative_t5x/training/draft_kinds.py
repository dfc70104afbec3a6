# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kinds of drafts to distil: a network, or a head on a layer of the target.

Legend: batch, inputs_length, length (of the targets), embed, vocab.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, NamedTuple, Protocol, TypeVar

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.networks import network
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_modules
from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches
from speculative_t5x.training import steps

_DraftT = TypeVar('_DraftT', bound='Draft')
Params = Mapping[str, Any]


class TargetOutputs(NamedTuple):
  """What the target computes of a batch by teacher forcing.

  Attributes:
    encoded: [batch, inputs_length, embed] in the target's dtype, the encoder's
      output.
    layers: the output of each decoder layer, [batch, length, embed], likewise.
    logits: [batch, length, vocab] float32.
  """

  encoded: jax.Array
  layers: tuple[jax.Array, ...]
  logits: jax.Array


class Decoding(NamedTuple):
  """A draft as a model of the decoding loop.

  Attributes:
    model: see `contracts.Model`.
    params: of the model.
    inputs: that it reads, one row per example.
    features: of the target, for a decoder on its encoder; None without.
  """

  model: contracts.Model
  params: Params
  inputs: contracts.Inputs
  features: jax.Array | None = None


class Draft(Protocol):
  """What is trained; hashable. Its parameters are separate.

  Attributes:
    config: of the network, with the dropout rate and the dtype of training.
  """

  config: t5.T5Config

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """Returns the shardings of its parameters on a mesh."""

  def logits(
      self,
      params: Params,
      batch: batches.Examples,
      target: TargetOutputs,
      **kwargs,
  ) -> jax.Array:
    """Returns its logits of all target tokens, [batch, length, vocab] float32.

    Args:
      params: its own.
      batch: examples.
      target: what the target computed of them.
      **kwargs: `rngs` for dropout, or `enable_dropout=False`.
    """

  def decoding(
      self,
      params: Params,
      target_config: t5.T5Config,
      target_params: Params,
      inputs: jax.Array,
  ) -> Decoding:
    """Returns the draft as a model of the decoding loop.

    Args:
      params: its own.
      target_config: of the target.
      target_params: of the target.
      inputs: [batch, inputs_length] int32.
    """


@dataclasses.dataclass(frozen=True)
class Network:
  """A network of its own; see `Draft`.

  With num_encoder_layers = 0 it reads the output of the target's encoder.
  """

  config: t5.T5Config

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """See `Draft.shardings`."""
    return models.param_shardings(self.config, mesh)

  def logits(
      self,
      params: Params,
      batch: batches.Examples,
      target: TargetOutputs,
      **kwargs,
  ) -> jax.Array:
    """See `Draft.logits`."""
    encoded = None if self.config.num_encoder_layers else target.encoded
    return steps.teacher_forced(self.config, params, batch, encoded, **kwargs)

  def decoding(
      self,
      params: Params,
      target_config: t5.T5Config,
      target_params: Params,
      inputs: jax.Array,
  ) -> Decoding:
    """See `Draft.decoding`."""
    decoding = _decoding(self.config, params, inputs)
    if not self.config.reads_features:
      return decoding
    features = target_config.encode(target_params, decoding.inputs)
    return decoding._replace(features=features)


@dataclasses.dataclass(frozen=True)
class ExitHead:
  """A norm and a head on the output of a decoder layer; see `Draft`.

  The layers before it are the target's and are not trained.

  Attributes:
    config: of these layers and the head, whose head is its own.
  """

  config: t5.T5Config

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """See `Draft.shardings`."""
    return self.config.take_head(models.param_shardings(self.config, mesh))

  def logits(
      self,
      params: Params,
      batch: batches.Examples,
      target: TargetOutputs,
      **kwargs,
  ) -> jax.Array:
    """See `Draft.logits`."""
    del batch  # The target has read it.
    return t5_modules.Transformer(self.config).apply(
        {'params': params},
        target.layers[self.config.num_decoder_layers - 1],
        method='head',
        **kwargs,
    )

  def decoding(
      self,
      params: Params,
      target_config: t5.T5Config,
      target_params: Params,
      inputs: jax.Array,
  ) -> Decoding:
    """See `Draft.decoding`."""
    del target_config
    joined = self.config.put_head(target_params, params)
    return _decoding(self.config, joined, inputs)


def _decoding(
    config: t5.T5Config, params: Params, inputs: jax.Array
) -> Decoding:
  # Examples to train on have T5X's padding, id 0.
  tokens = jnp.where(inputs > 0, inputs, contracts.NO_TOKEN)
  return Decoding(
      network.NetworkModel(config, t5.SPECIAL_IDS), params, tokens
  )


def with_dropout(draft: _DraftT, rate: float) -> _DraftT:
  """Returns a draft with a dropout rate for training."""
  config = dataclasses.replace(draft.config, dropout_rate=rate)
  return dataclasses.replace(draft, config=config)


def check_vocab_sizes(
    target: t5.T5Config, draft: t5.T5Config, setting: str
) -> None:
  """Checks that both have logits of the same tokens.

  Args:
    target: its network.
    draft: its network.
    setting: that gives the draft's vocab_size, for the message.
  Raises:
    ValueError: naming both sizes.
  """
  one, other = target.vocab_size, draft.vocab_size
  if one != other:
    raise ValueError(
        f'The target has logits of {one} tokens and the draft model of {other}.'
        f" Set {setting} to the target's."
    )

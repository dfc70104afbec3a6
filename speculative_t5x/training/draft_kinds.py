# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The kinds of drafts to distil: a network, or a head on a layer of the target.

Legend: batch, inputs_length, length (of the targets), embed, vocab.
"""

from collections.abc import Mapping
import dataclasses
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.networks import network
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches
from speculative_t5x.training import teacher_forcing

Params = Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Network:
  """A network of its own. Its parameters are kept apart, so it is hashable.

  With num_encoder_layers = 0 it reads the output of the target's encoder.

  Attributes:
    config: The network's config, with dropout rate and dtype of training.
  """

  config: t5.T5Config

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """Return the shardings of the trained parameters on a mesh."""
    return models.param_shardings(self.config, mesh)

  def joined(self, params: Params, target_params: Params) -> Params:
    """Return all parameters of the network, trained or not.

    Args:
      params: The trained parameters.
      target_params: The target's parameters.
    """
    del target_params
    return params

  def logits(
      self,
      params: Params,
      batch: batches.Examples,
      target_params: Params,
      encoded: jax.Array,
      dropout_key: jax.Array | None = None,
  ) -> jax.Array:
    """Compute the logits of all target tokens, [batch, length, vocab] float32.

    Args:
      params: The trained parameters.
      batch: Examples.
      target_params: The target's parameters.
      encoded: [batch, inputs_length, embed]. The target's encoder output.
      dropout_key: Key of the dropout masks; None for no dropout.
    """
    return teacher_forcing.score(
        self.config,
        self.joined(params, target_params),
        batch,
        dropout_key,
        encoded if self.config.reads_features else None,
    )

  def decoding(
      self,
      params: Params,
      target_config: t5.T5Config,
      target_params: Params,
      inputs: jax.Array,
  ) -> tuple[contracts.Model, Params, contracts.Inputs, Any]:
    """Return the draft as a model of the decoding loop.

    Args:
      params: The trained parameters.
      target_config: The target's config.
      target_params: The target's parameters.
      inputs: [batch, inputs_length] int32.
    Returns:
      The model, its parameters, the inputs that it reads, and the features of
      the target that it reads; None without.
    """
    joined = self.joined(params, target_params)
    model = network.NetworkModel(self.config, self.config.special_ids)
    # Examples to train on have T5X's padding, id 0.
    tokens = jnp.where(inputs > 0, inputs, contracts.NO_TOKEN)
    features = None
    if self.config.reads_features:
      features = target_config.encode(target_params, tokens)
    return model, joined, tokens, features


@dataclasses.dataclass(frozen=True)
class ExitHead(Network):
  """A norm and a head on the output of a decoder layer of the target.

  The layers before it are the target's and are not trained. Its config is that
  of these layers and the head, whose head is its own.
  """

  def shardings(self, mesh: jax.sharding.Mesh) -> Any:
    """See `Network.shardings`."""
    return self.config.take_head(super().shardings(mesh))

  def joined(self, params: Params, target_params: Params) -> Params:
    """See `Network.joined`."""
    return self.config.put_head(target_params, params)


_DraftT = TypeVar('_DraftT', bound=Network)


def with_dropout(draft: _DraftT, rate: float) -> _DraftT:
  """Return a draft with a dropout rate for training."""
  config = dataclasses.replace(draft.config, dropout_rate=rate)
  return dataclasses.replace(draft, config=config)


def check_vocab_sizes(
    target: t5.T5Config, draft: t5.T5Config, setting: str
) -> None:
  """Check that both networks have logits of the same tokens.

  Args:
    target: The target's config.
    draft: The draft's config.
    setting: The name of what gives the draft's vocab_size, for the message.
  Raises:
    ValueError: naming both sizes.
  """
  one, other = target.vocab_size, draft.vocab_size
  if one != other:
    raise ValueError(
        f'The target has logits of {one} tokens and the draft model of {other}.'
        f" Set {setting} to the target's."
    )

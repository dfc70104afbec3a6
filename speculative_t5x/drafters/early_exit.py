# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The target's own first layers as a draft model: early exit.

The first k decoder layers, the final norm and the head make a network without
parameters of its own; a norm and a head that were trained for layer k may take
the place of the target's. It reads what the target has read, and its cache is
the first k layers of the target's: for the same tokens, both write the same
keys and values.

Legend: rows, k (the exit layer), gamma (draft tokens per block).
"""

import dataclasses

import jax.numpy as jnp

from speculative_t5x.drafters import autoregression
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_model
from speculative_t5x.speculation import contracts

_HEAD = ('decoder_norm', 'logits_dense')


@dataclasses.dataclass(frozen=True)
class EarlyExit:
  """Drafts up to gamma tokens, one at a time, with layers of the target.

  Its parameters are a head, see `take_head`, or None for the target's own.

  Attributes:
    target: the target.
    exit_layer: how many of its decoder layers draft.
    max_draft_tokens: gamma.
  """

  target: t5_model.T5Model
  exit_layer: int
  max_draft_tokens: int
  drafts_all_wanted = True

  @property
  def num_uniforms(self) -> int:
    """One for each draft token."""
    return self.max_draft_tokens

  @property
  def model(self) -> t5_model.T5Model:
    """The layers that draft. Parameters of further ones are not read."""
    config = truncate_config(self.target.config, self.exit_layer)
    return dataclasses.replace(self.target, config=config)

  def model_calls(self) -> tuple[contracts.ModelCall, ...]:
    """See `contracts.ModelCall`."""
    begin = lambda params, context, rows, slots: self._share(
        params, context.target
    )
    return (contracts.ModelCall(self.model, begin, 1, self.max_draft_tokens),)

  def _share(
      self, params: contracts.Params, target: contracts.TargetView
  ) -> contracts.TargetView:
    """Returns the part of the target's memory and cache that drafts."""
    memory = target.memory.replace(cross=target.memory.cross[: self.exit_layer])
    return contracts.TargetView(
        with_head(target.params, params),
        memory,
        target.cache[: self.exit_layer],
    )

  def init(self, params, context, rows, slots) -> tuple[None, None]:
    """See `contracts.Drafter.init`."""
    return None, None

  def propose(
      self, params, memory, state, view: contracts.View
  ) -> tuple[contracts.Draft, None, contracts.Cache]:
    """See `contracts.Drafter.propose`."""
    model, shared = self.model, self._share(params, view.target)

    def decode(cache, tokens, positions, at):
      return model.decode(
          shared.params, shared.memory, cache, tokens, positions, at
      )

    draft, cache, _ = autoregression.draft(
        decode,
        shared.cache,
        view.num_tokens - view.num_pending,  # the target was fed all others
        jnp.full_like(view.num_tokens, self.target.special_ids.start),
        view,
        self.max_draft_tokens,
        first_block=1,
    )
    return draft, state, (*cache, *view.target.cache[self.exit_layer :])


def truncate_config(config: t5.T5Config, exit_layer: int) -> t5.T5Config:
  """Returns the config of a network's first decoder layers and its head.

  Raises:
    ValueError: if there is no such layer.
  """
  num_layers = config.num_decoder_layers
  is_number = isinstance(exit_layer, int) and not isinstance(exit_layer, bool)
  if not is_number or not 1 <= exit_layer <= num_layers:
    raise ValueError(
        f'exit_layer must be a whole number from 1 to {num_layers}, the number'
        f' of decoder layers of the target. Got {exit_layer!r}.'
    )
  return dataclasses.replace(config, num_decoder_layers=exit_layer)


def network_config(target: t5.T5Config, exit_layer: int) -> t5.T5Config:
  """Returns the config of what drafts, without the target's encoder.

  Raises:
    ValueError: as `truncate_config`.
  """
  config = truncate_config(target, exit_layer)
  return dataclasses.replace(config, num_encoder_layers=0)


def head_config(target: t5.T5Config, exit_layer: int) -> t5.T5Config:
  """Returns the config of the layers that draft with a head of their own.

  Raises:
    ValueError: as `truncate_config`.
  """
  config = truncate_config(target, exit_layer)
  return dataclasses.replace(config, separate_head=True)


def take_head(params: contracts.Params) -> contracts.Params:
  """Returns the final norm and the head of a network, under T5X's names."""
  decoder = params['decoder']
  return {'decoder': {name: decoder[name] for name in _HEAD}}


def with_head(
    params: contracts.Params, head: contracts.Params | None
) -> contracts.Params:
  """Returns a network's parameters with another head; None for its own."""
  if head is None:
    return params
  return {**params, 'decoder': {**params['decoder'], **head['decoder']}}

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The target's own first layers as a draft model: early exit.

The first k layers and the head make a network without parameters of its own
(`first_layers`); a head that was trained for layer k may take the place of the
target's. It reads what the target has read, and its cache is the first k layers
of the target's: for the same tokens, both write the same keys and values.

Legend: rows, k (the exit layer), gamma (draft tokens per block).
"""

import dataclasses

from speculative_t5x.drafters import autoregression
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import views


@dataclasses.dataclass(frozen=True)
class ExitDrafter:
  """Drafts up to gamma tokens, one at a time, with layers of the target.

  Its parameters are a head of the network, or None for the target's own.

  Attributes:
    target: Target, whose network has `first_layers`.
    exit_layer: How many of its layers draft.
    gamma: Draft tokens per block.
  """

  target: network.NetworkModel
  exit_layer: int
  gamma: int

  @property
  def form(self) -> forms.Chain:
    return forms.Chain(
        self.gamma,
        num_uniforms=self.gamma,
        drafts_all_wanted=True,
    )

  @property
  def model(self) -> network.NetworkModel:
    """The layers that draft. Parameters of further ones are not read."""
    first = self.target.network.first_layers(self.exit_layer)
    return dataclasses.replace(self.target, network=first)

  def _share(
      self, params: contracts.Params, target: views.TargetView
  ) -> views.TargetView:
    """Return the part of the target's memory and cache that drafts."""
    first = self.model.network
    memory, cache = first.take_first_layers(target.memory, target.cache)
    own = target.params
    if params is not None:
      own = first.put_head(own, params)
    return target._replace(params=own, memory=memory, cache=cache)

  def init(self, params, context, rows, slots) -> tuple[None, None]:
    return None, None

  def propose(
      self, params, memory, state, view: views.View
  ) -> tuple[contracts.Draft, None]:
    model, shared = self.model, self._share(params, view.target)

    def decode(cache, tokens, positions, at):
      return model.decode(
          shared.params,
          shared.memory,
          cache,
          tokens,
          shared.offsets + positions,
          at,
      )

    draft, cache, _ = autoregression.draft(
        decode,
        shared.cache,
        view.num_tokens - view.num_pending,  # the target was fed all others
        shared.first_tokens,
        view,
        self.gamma,
        first_block=1,
    )
    # The target call feeds these positions again and writes the same there.
    cache = model.network.put_first_layers(cache, view.target.cache)
    return draft.replace(target_cache=cache), state

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A head on the target's last features as a drafter.

A small decoder is fed two things per position: the token there, as any decoder
is, and the target's last features of the position before. Where the target has
not been yet, it is fed its own prediction of them. After 3 committed tokens, of
which the last target call made 2, gamma 3:

  position      2      3      4      5
  token         b      c      x      y
  features     F1     F2     f3     f4    F of the target, f predicted
  draws                x      y      z

The first call of a draft feeds all positions of which the last target call has
shown the features, over what the draft before has predicted there.

Legend: rows, gamma (draft tokens per block), width (of the features).
Reference: Li et al. (2024), "EAGLE", arXiv:2401.15077.
"""

import dataclasses
from typing import NamedTuple

from flax.linen import partitioning
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.drafters import autoregression
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import views


class _HeadCache(NamedTuple):
  """The state of a head from call to call.

  Attributes:
    cache: Its keys and values.
    features: [rows, gamma + 1, width]. Those that its next call is fed, the
      first one at the first position.
  """

  cache: contracts.Cache
  features: jax.Array


@dataclasses.dataclass(frozen=True)
class _Feeding:
  """A head as a `contracts.Model` that is fed what its cache holds.

  Attributes:
    model: Its network.
    rules: See `draft_model.ModelDrafter`.
  """

  model: network.NetworkModel
  rules: sharding.Rules

  def decode(
      self, params, memory, cache: _HeadCache, tokens, positions, at
  ) -> tuple[jax.Array, _HeadCache]:
    """Decode a block; the next one is fed the features that this predicts."""
    with partitioning.axis_rules(self.rules):
      logits, own, predicted = self.model.decode_with_features(
          params,
          memory,
          cache.cache,
          tokens,
          positions,
          at,
          cache.features[:, : tokens.shape[1]],
      )
    features = lax.dynamic_update_slice_in_dim(
        cache.features, predicted, 0, axis=1
    )
    return logits, _HeadCache(own, features)


@dataclasses.dataclass(frozen=True)
class HeadDrafter(draft_model.ModelDrafter):
  """Drafts up to gamma tokens, one at a time, with a head on the target.

  Its state is its cache, in which the positions of all committed tokens but the
  last block's were fed the target's features.

  The attributes are those of a draft model, whose network is a
  `network.SHOWS_FEATURES`.
  """

  @property
  def form(self) -> forms.Chain:
    return dataclasses.replace(
        super().form,
        reads_last_features=True,
        grows_trees=False,  # it is fed features, which a tree has not
    )

  def init(
      self, params, context: views.Context, rows, slots
  ) -> tuple[draft_model.DraftModelMemory, contracts.Cache]:
    memory, state = super().init(params, context, rows, slots)
    return memory, state.cache

  def propose(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: contracts.Cache,
      view: views.View,
  ) -> tuple[contracts.Draft, contracts.Cache]:
    offsets, first_tokens = memory.of_rows(view.num_tokens.shape[0])
    feeding = _Feeding(self.model, self.rules)

    def decode(head, tokens, index, at):
      logits, head = feeding.decode(
          params, memory.memory, head, tokens, offsets + index, at
      )
      return self.fit_width(logits), head

    # Of n committed tokens, k by the last target call, it was fed the positions
    # n - k to n - 1, whose features the positions n - k + 1 to n are fed here.
    # Before any call there is one, of the position before the first.
    num_committed = view.num_tokens - view.num_pending
    num_shown = jnp.maximum(view.last_outcome.num_committed, 1)
    num_fed = num_committed + 1 - num_shown
    head = _HeadCache(state, view.target.last_features)
    block = self.gamma + 1
    if not view.wants_always:
      # A draft may be of no token, and these features are not shown again.
      inputs = lambda at, block: state_lib.decoder_inputs(
          view.sequences, first_tokens, at, block
      )
      _, after = decode(head, inputs(num_fed, block), num_fed, None)
      # Of k positions that were shown, the last one is at index k - 1; those
      # behind it are of rejected tokens.
      last = (num_shown - 1)[:, None, None]
      features = jnp.take_along_axis(head.features, last, axis=1)
      features = jnp.broadcast_to(features, head.features.shape)
      head = self._feed_pending(
          decode,
          inputs,
          _HeadCache(after.cache, features),
          num_committed,
          view.num_tokens,
      )
      num_fed, block = view.num_tokens, 1
    draft, head, _ = autoregression.draft(
        decode,
        head,
        num_fed,
        first_tokens,
        view,
        self.gamma,
        first_block=block,
    )
    return draft, head.cache

  def _feed_pending(self, decode, inputs, head, num_fed, num_tokens):
    """Feed the draft tokens of drafters before this one, one by one.

    Returns:
      The head, about to be fed the last of `num_tokens` tokens.
    """

    def is_behind(carry):
      return jnp.any(carry[1] < num_tokens)

    def feed(carry):
      head, num_fed = carry
      _, after = decode(head, inputs(num_fed, 1), num_fed, None)
      # A row that is not behind is fed its last token once more.
      is_fed = num_fed < num_tokens
      features = jnp.where(
          is_fed[:, None, None], after.features, head.features
      )
      return _HeadCache(after.cache, features), num_fed + is_fed

    return lax.while_loop(is_behind, feed, (head, num_fed))[0]

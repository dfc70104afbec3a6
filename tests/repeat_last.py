# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A drafter that is not in the package, as a user would write one."""

import dataclasses

import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms


@dataclasses.dataclass(frozen=True)
class RepeatLast:
  """Drafts the last token of each row again and again."""

  target: contracts.Model  # its start token is the last one of an empty row
  gamma: int
  num_uniforms: int = 0

  @property
  def form(self):
    return forms.Chain(self.gamma, self.num_uniforms)

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, view):
    at = jnp.maximum(view.num_tokens - 1, 0)[:, None]
    last = jnp.take_along_axis(view.sequences, at, axis=1)
    start = self.target.special_ids.start
    last = jnp.where(view.num_tokens[:, None] > 0, last, start)
    tokens = jnp.tile(last, (1, self.gamma))
    draft = contracts.Draft(tokens, view.num_wanted)
    return draft, state

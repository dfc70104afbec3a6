# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""No draft tokens: plain decoding, one token per target call."""

from typing import NamedTuple

import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import views


class NoDrafter(NamedTuple):
  """Drafts nothing."""

  gamma: int = 0

  @property
  def form(self) -> forms.Chain:
    return forms.Chain(self.gamma)

  def init(self, params, context, rows, slots) -> tuple[None, None]:
    return None, None

  def propose(
      self, params, memory, state, view: views.View
  ) -> tuple[contracts.Draft, None]:
    rows = view.num_tokens.shape[0]
    # Tokens fill the block, as others do behind a short draft.
    draft = contracts.Draft(
        tokens=jnp.zeros((rows, self.gamma), jnp.int32),
        lengths=jnp.zeros((rows,), jnp.int32),
    )
    return draft, state

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""No draft tokens: plain decoding, one token per target call."""

from typing import NamedTuple

import jax.numpy as jnp

from speculative_t5x.speculation import contracts


class Nothing(NamedTuple):
  """Drafts nothing."""

  max_draft_tokens: int = 0
  num_uniforms: int = 0

  def init(self, params, context, rows, slots) -> tuple[None, None]:
    return None, None

  def propose(
      self, params, memory, state, view: contracts.View
  ) -> tuple[contracts.Draft, None, contracts.Cache]:
    rows = view.num_tokens.shape[0]
    draft = contracts.Draft(
        tokens=jnp.zeros((rows, self.max_draft_tokens), jnp.int32),
        lengths=jnp.zeros((rows,), jnp.int32),
    )
    return draft, state, view.target.cache

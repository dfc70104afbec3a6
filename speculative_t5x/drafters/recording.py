# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A drafter that keeps every draft, to show what became of the guesses.

Legend: batch (rows), calls (most target calls of a row), gamma.
"""

import dataclasses
from typing import Any

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x import seam


@struct.dataclass
class RecordingState:
  """A drafter's state, and all that it has guessed.

  Attributes:
    inner: the recorded drafter's state.
    drafts: [batch, calls, gamma] int32, guesses by target call of the row.
    starts: [batch, calls] int32, committed tokens when they were made.
    num_calls: int32 scalar.
  """

  inner: Any
  drafts: jax.Array
  starts: jax.Array
  num_calls: jax.Array


@dataclasses.dataclass(frozen=True)
class Recording:
  """Guesses as another drafter does."""

  drafter: seam.Drafter

  @property
  def gamma(self) -> int:
    return self.drafter.gamma

  def init(self, params, encoder_input_tokens, target_encoded, batch, slots):
    """See `seam.Drafter.init`."""
    context, state = self.drafter.init(
        params, encoder_input_tokens, target_encoded, batch, slots
    )
    # A call commits at least one token, so there are fewer calls than slots.
    return context, RecordingState(
        inner=state,
        drafts=jnp.zeros((batch, slots, self.gamma), jnp.int32),
        starts=jnp.zeros((batch, slots), jnp.int32),
        num_calls=jnp.zeros((), jnp.int32),
    )

  def propose(
      self,
      params,
      context,
      state,
      target_cache,
      sequences,
      num_tokens,
      uniforms,
      sampling,
  ) -> tuple[seam.Draft, RecordingState, seam.Cache]:
    """See `seam.Drafter.propose`."""
    draft, inner, target_cache = self.drafter.propose(
        params,
        context,
        state.inner,
        target_cache,
        sequences,
        num_tokens,
        uniforms,
        sampling,
    )
    call = state.num_calls
    state = RecordingState(
        inner=inner,
        drafts=state.drafts.at[:, call].set(draft.tokens),
        starts=state.starts.at[:, call].set(num_tokens),
        num_calls=call + 1,
    )
    return draft, state, target_cache

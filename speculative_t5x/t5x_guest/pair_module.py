# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Flax module that T5X knows: a target, and a draft model beside it."""

import flax.linen as nn
import jax


class Pair(nn.Module):
  """Behaves as its target; holds the draft's parameters as well.

  Parameters and their axes nest as `target/...` and `draft/...`. Whatever T5X
  does with a module (loss, scoring, its own samplers) it does with the target.

  Attributes:
    target: a `t5x.examples.t5.network.Transformer`.
    draft: another, of the same vocabulary; None for a drafter without
      parameters.
  """

  target: nn.Module
  draft: nn.Module | None = None

  def encode(self, *args, **kwargs) -> jax.Array:
    """Calls the target's `encode`."""
    return self.target.encode(*args, **kwargs)

  def decode(self, *args, **kwargs) -> jax.Array:
    """Calls the target's `decode`."""
    return self.target.decode(*args, **kwargs)

  def __call__(self, *args, **kwargs) -> jax.Array:
    """Returns the target's logits; runs the draft to make its parameters."""
    if self.draft is not None and self.is_initializing():
      self.draft(*args, **kwargs)
    return self.target(*args, **kwargs)

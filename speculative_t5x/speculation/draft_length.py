# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""How many draft tokens are wanted of each row."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges


def check(policy: contracts.DraftLengthPolicy) -> None:
  """Check that something given as a policy is one.

  Raises:
    ValueError: for anything else, such as a class or a name.
  """
  needed = (
      'name', 'is_constant', 'init', 'num_wanted', 'begin', 'continues',
      'update',
  )  # fmt: skip
  missing = [each for each in needed if not hasattr(policy, each)]
  if isinstance(policy, type) or missing:
    lacks = f', which lacks {", ".join(missing)}' if missing else ''
    raise ranges.ArgumentError(
        f'policy must be an object with {", ".join(needed)}, got'
        f' {policy!r}{lacks}. Use one of speculative_t5x.policies, with'
        ' parentheses; gin files of policies are in configs/policies.',
        policy=policy,
    )


def check_gamma(policy: contracts.DraftLengthPolicy, gamma: int) -> None:
  """Check that a policy can decide for a gamma; compute nothing.

  Raises:
    ValueError: if it has no costs for this gamma.
  """
  rows = jnp.zeros((2,), jnp.int32)
  jax.eval_shape(lambda: policy.num_wanted(policy.init(2), rows, gamma))


class DraftsOn:
  """What policies have in common that stop no draft after a token."""

  def begin(self, state: Any, num_drafted: jax.Array, gamma: int) -> None:
    """See `contracts.DraftLengthPolicy.begin`."""

  def continues(
      self,
      state: Any,
      progress: None,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> tuple[jax.Array, None]:
    return contracts.drafts_on(progress, logits, tokens)


@dataclasses.dataclass(frozen=True)
class Fixed(DraftsOn):
  """Wants as many draft tokens as the drafter makes: the paper's gamma."""

  name = 'fixed'
  is_constant = True

  def init(self, rows: int) -> None:
    """See `contracts.DraftLengthPolicy.init`."""

  def num_wanted(
      self, state: None, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    return jnp.full_like(num_remaining, gamma)

  def update(self, state: None, outcome) -> None:
    """See `contracts.DraftLengthPolicy.update`."""

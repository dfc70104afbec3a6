# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Policies: the number of draft tokens that are wanted of each row."""

import dataclasses
from typing import Any, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import views


@runtime_checkable
class Policy(Protocol):
  """Decides how many draft tokens are wanted ("gamma policy").

  Its state has one entry per row, as `loop.admit` replaces rows. A number of
  draft tokens outside [0, gamma] is clipped.

  What it decides for a row depends on that row alone, so that a sample does
  not depend on the batch. It may stop a draft after a token for any reason.

  Attributes:
    name: Name for the record. Policies with other settings have other names, or
      a job that resumes takes the results of one for those of the other.
    is_constant: Whether it always wants gamma draft tokens and never stops
      before: then verification has one width.
  """

  name: str
  is_constant: bool

  def init(self, rows: int) -> Any:
    """Return the policy's state before the first step."""

  def num_wanted(
      self, state: Any, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    """Return how many draft tokens are wanted, [rows] int32 in [0, gamma].

    Args:
      state: State from `init` or `update`.
      num_remaining: [rows] int32, tokens up to each row's limit.
      gamma: The most that the drafter makes (static).
    """

  def begin(self, state: Any, num_drafted: jax.Array, gamma: int) -> Any:
    """Return what `continues` knows of a draft at first, a pytree.

    Args:
      state: State from `init` or `update`.
      num_drafted: [rows] int32, draft tokens that there are already, of a
        drafter that does not ask after each token.
      gamma: Draft tokens per block (static).
    """

  def continues(
      self,
      state: Any,
      progress: Any,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> tuple[jax.Array, Any]:
    """Return whether to draft on after a token, [rows] bool.

    Args:
      state: State from `init` or `update`.
      progress: Progress from `begin` or `continues` for the token before.
      logits: [rows, vocab], of the token's distribution before they were
        standardized, so that they tell a sure argmax from an unsure one.
      tokens: [rows] int32, the token.
      gamma: Draft tokens per block (static).
    Returns:
      Whether to draft on, and the next progress.
    """

  def update(self, state: Any, outcome: Any) -> Any:
    """Return the state after a step, from its `outcome.Outcome`."""


def check(policy: Policy) -> None:
  """Check that something given as a policy is one.

  Raises:
    ValueError: for anything else, such as a class or a name.
  """
  if isinstance(policy, type) or not isinstance(policy, Policy):
    raise ranges.ArgumentError(
        'policy must be an object with all that draft_length.Policy has, got'
        f' {policy!r}. Use one of speculative_t5x.policies, with parentheses;'
        ' gin files of policies are in configs/policies.',
        policy=policy,
    )


def check_gamma(policy: Policy, gamma: int) -> None:
  """Check that a policy can decide for a gamma; compute nothing.

  Raises:
    ValueError: if it has no costs for this gamma.
  """
  rows = jnp.zeros((2,), jnp.int32)
  jax.eval_shape(lambda: policy.num_wanted(policy.init(2), rows, gamma))


class DraftsOn:
  """The defaults of policies: no state, gamma tokens, no stop after a token."""

  def init(self, rows: int) -> Any:
    """See `Policy.init`."""

  def num_wanted(
      self, state: Any, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    return jnp.full_like(num_remaining, gamma)

  def update(self, state: Any, outcome: Any) -> Any:
    return state

  def begin(self, state: Any, num_drafted: jax.Array, gamma: int) -> None:
    """See `Policy.begin`."""

  def continues(
      self,
      state: Any,
      progress: None,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> tuple[jax.Array, None]:
    return views.drafts_on(progress, logits, tokens)


@dataclasses.dataclass(frozen=True)
class Fixed(DraftsOn):
  """Wants as many draft tokens as the drafter makes: the paper's gamma."""

  name = 'fixed'
  is_constant = True

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
  """Check that a policy can decide for a drafter; compute nothing.

  Args:
    policy: Checked by `check`.
    gamma: The most draft tokens of the drafter.
  Raises:
    ValueError: if it has no costs for this gamma, or wants anything but an
      integer per row.
  """
  rows = jnp.zeros((2,), jnp.int32)
  jax.eval_shape(lambda: num_wanted(policy, policy.init(2), rows, gamma))


def num_wanted(
    policy: contracts.DraftLengthPolicy,
    state: Any,
    num_remaining: jax.Array,
    gamma: int,
) -> jax.Array:
  """Ask a policy and check the answer's form, while it is traced.

  For the arguments and the result see `contracts.DraftLengthPolicy.num_wanted`.

  Raises:
    ValueError: for anything but an integer per row.
  """
  found = policy.num_wanted(state, num_remaining, gamma)
  shape, dtype = jnp.shape(found), jnp.result_type(found)
  if shape != num_remaining.shape or not jnp.issubdtype(dtype, jnp.integer):
    raise ValueError(
        f'The policy {policy.name} wants draft tokens of shape {shape} and type'
        f' {dtype} instead of {num_remaining.shape} and int32, one number per'
        ' row.'
    )
  return jnp.asarray(found, jnp.int32)


def continues(
    policy: contracts.DraftLengthPolicy,
    state: Any,
    progress: Any,
    logits: jax.Array,
    tokens: jax.Array,
    gamma: int,
) -> tuple[jax.Array, Any]:
  """Ask a policy and check the answer's form, while it is traced.

  For the arguments and the result see `contracts.DraftLengthPolicy.continues`.

  Raises:
    ValueError: for anything but a bool per row and the next progress.
  """
  found = policy.continues(state, progress, logits, tokens, gamma)
  if not isinstance(found, tuple) or len(found) != 2:
    raise ValueError(
        f'The policy {policy.name} must return two values from continues:'
        ' whether to draft on, and the next progress.'
    )
  wanted, progress = found
  shape, dtype = jnp.shape(wanted), jnp.result_type(wanted)
  if shape != tokens.shape or dtype != jnp.bool_:
    raise ValueError(
        f'The policy {policy.name} returned whether to draft on in shape'
        f' {shape} and type {dtype} instead of {tokens.shape} and bool, one'
        ' value per row.'
    )
  return wanted, progress


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
    """See `contracts.DraftLengthPolicy.continues`."""
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
    """See `contracts.DraftLengthPolicy.num_wanted`."""
    return jnp.full_like(num_remaining, gamma)

  def update(self, state: None, outcome) -> None:
    """See `contracts.DraftLengthPolicy.update`."""

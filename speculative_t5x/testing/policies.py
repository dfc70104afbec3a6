# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges a draft length policy, through the production step."""

from collections.abc import Sequence

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import lookup
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.testing import judgement
from speculative_t5x.testing import pairs
from speculative_t5x.testing import table_model


def check_policy(
    policy: contracts.DraftLengthPolicy,
    *,
    gamma: int = 2,
    vocab_size: int = 3,
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-4,
) -> None:
  """Checks that outputs follow the target's distribution under a policy.

  As in `check_drafter` all outputs are enumerated, with a draft model as the
  drafter, alone and after lookup.

  Args:
    policy: an object, not its class.
    gamma: draft tokens per block.
    vocab_size: of the target, at least 3.
    temperatures: of target and drafter.
    tolerance: the largest total variation distance that passes.
  Raises:
    AssertionError: for a distance above it; if a token is drawn and not tested
      for its value; if a row depends on other rows; if the state has not one
      entry per row; if `is_constant` is true and drafts have other lengths. The
      message says which.
    ValueError: if the policy does not return what `contracts.DraftLengthPolicy`
      says, or is not hashable.
  """
  draft_length.check(policy)
  draft_length.check_gamma(policy, gamma)
  _check_hashable(policy)
  for pair in _pairs(gamma, vocab_size):
    lengths = judgement.check(
        pair, policy, temperatures=temperatures, tolerance=tolerance
    )
    if policy.is_constant and lengths - {gamma}:
      raise AssertionError(
          f'The policy {policy.name} has is_constant = True, and there are'
          f' drafts of {sorted(lengths)} tokens where gamma is {gamma}. Set'
          ' is_constant = False.'
      )


def _check_hashable(policy: contracts.DraftLengthPolicy) -> None:
  try:
    hash(policy)
  except TypeError as error:
    raise ValueError(
        f'The policy {policy.name} is not hashable ({error}). Make it a frozen'
        ' dataclass.'
    ) from error


def _pairs(gamma: int, vocab_size: int) -> list[pairs.Pair]:
  target = table_model.TextModel(vocab_size)
  model = draft_model.DraftModel(target, gamma, vocab_size)
  copying = lookup.Lookup(gamma, 2, 1)
  logits = pairs.draft_logits(vocab_size)
  both = in_order.InOrder((copying, model), target)
  sizes = dict(vocab_size=vocab_size, tolerance=judgement.ROUNDING)
  return [
      pairs.of_tables(model, logits, **sizes),
      pairs.of_tables(both, (None, logits), **sizes),
  ]

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges a drafter, through the production step."""

from collections.abc import Callable, Sequence

from speculative_t5x.loading.drafters import source
from speculative_t5x.policies import confidence
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.testing import judgement
from speculative_t5x.testing import pairs
from speculative_t5x.testing import table_model

# Drafts as long as they get, and drafts that stop after some tokens.
_POLICIES = draft_length.Fixed(), confidence.Confidence(0.45)


def check_drafter(
    make: Callable[[contracts.Model, int], contracts.Drafter],
    params: contracts.Params = None,
    *,
    gamma: int = 2,
    vocab_size: int = 3,
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-4,
) -> None:
  """Checks that outputs follow the target's distribution with a drafter.

  Two examples are decoded by the production step: a random table is the target,
  and all outputs of up to 4 tokens are enumerated, over everything that is
  drafted. The drafter must draw its tokens in the order of its uniforms, as by
  `sampling.draw`, and work for any target: one that runs layers of the target
  cannot be judged. The number of paths grows as vocab_size^gamma.

  Args:
    make: the class of the drafter, or what makes it of a target and gamma, as
      `source.Drafting.make`.
    params: its parameters, for a vocabulary of `vocab_size`; None without.
    gamma: draft tokens per block.
    vocab_size: of the target, at least 3; 0 is padding and start, 1 the end.
    temperatures: of target and drafter.
    tolerance: the largest total variation distance that passes.
  Raises:
    AssertionError: for a distance above it; if tokens are not drawn from the
      distributions that the drafter states; if a token is drawn and not tested
      for its value; if a row depends on other rows; if the state has not one
      entry per row. The message says which.
    ValueError: if the drafter does not return what `contracts.Drafter` says.
  """
  target = table_model.TextModel(vocab_size)
  drafter = source.WithoutParameters(make, '').load().drafter(target, gamma)
  reads_hints = getattr(drafter, 'reads_hints', False)
  for hints in (None, pairs.HINTS) if reads_hints else (None,):
    pair = pairs.of_tables(
        drafter,
        params,
        vocab_size=vocab_size,
        tolerance=judgement.ROUNDING,
        hints=hints,
    )
    for policy in _POLICIES:
      judgement.check(
          pair, policy, temperatures=temperatures, tolerance=tolerance
      )

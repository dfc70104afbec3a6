# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Exact match: a draft token is accepted if the target draws the same one."""

from flax import struct

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification


@struct.dataclass
class ExactMatch:
  """The rule that compares draft tokens with tokens that the target draws.

  At each position the target draws its own token. If it is the draft token, the
  draft token is accepted; else the target's token is written. The drafter's
  probabilities do not matter, so that the outputs follow the target's
  distribution even if the drafter misstates them. A draft token is accepted
  with probability p, which is at most min(1, p / q).

  A draw of the target is a draft token with probability p(x), and another one
  with probabilities in proportion to p. These are the decisions of the paper's
  rule for a drafter that proposes the token with probability 1.
  """

  name = 'exact_match'
  is_lossless = True

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    # Without q: a drafter that states a wrong one changes nothing.
    as_point_masses = contracts.Draft(draft.tokens, draft.lengths)
    return verification.verify(scores.probs, as_point_masses, accept_uniforms)

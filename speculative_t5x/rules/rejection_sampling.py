# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rejection sampling: Appendix A.2 of Leviathan et al. (2023), as a control."""

from flax import struct
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification


@struct.dataclass
class RejectionSampling:
  """The non-iterative rejection sampling that the paper compares itself with.

  A draft token is accepted with probability p / (M q), where M is the largest
  p / q of the vocabulary; else the next token is drawn from p. The outputs
  follow the target's distribution: a token is written with probability
  p / M + (1 - 1 / M) p = p. The acceptance probability is 1 / M, which is at
  most that of the paper's rule, and 0 if the drafter rules out a token that the
  target may write, as a point mass does. The rule shows what the paper's
  gains.
  """

  name = 'rejection_sampling'
  is_lossless = True

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    p = scores.probs[:, :-1]
    q = verification.draft_probs(draft, p.shape[-1], p.dtype)
    # Tokens with p = 0 bound nothing: 0 / 0 would make every ratio NaN.
    ratios = q / jnp.where(p > 0, p, 1)
    smallest = jnp.min(jnp.where(p > 0, ratios, jnp.inf), axis=-1)  # 1 / M
    is_accepted = verification.acceptance(
        smallest * verification.target_token_probs(scores.probs, draft),
        verification.draft_token_probs(draft, p.dtype),
        accept_uniforms,
    )
    num_accepted = verification.count_prefix(draft, is_accepted)
    weights = verification.probs_after(scores.probs, num_accepted)
    return contracts.Verdict(num_accepted, weights)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A rule that accepts draft tokens at a given rate, to time any pair.

The outputs are meaningless and do not follow the target's distribution.

Legend: rows, gamma (draft tokens per block), vocab.
"""

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import verification


@struct.dataclass
class SimulatedAcceptance:
  """A rule that accepts each draft token with probability alpha.

  Attributes:
    alpha: float32 scalar in [0, 1]; no value causes recompilation.
  """

  alpha: jax.Array
  name = 'simulated_acceptance'
  is_lossless = False

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    is_accepted = accept_uniforms < self.alpha
    num_accepted = verification.count_prefix(draft, is_accepted)
    # A rejected token's own residual: any weights would do, if not all 0.
    weights = verification.next_weights(scores.probs, draft, num_accepted)
    return contracts.Verdict(num_accepted, weights)


def make_rule(alpha: float) -> SimulatedAcceptance:
  """Return the rule of simulated acceptance.

  Raises:
    ValueError: if alpha is outside [0, 1].
  """
  ranges.check_settings(ranges.RATE, alpha=alpha)
  return SimulatedAcceptance(jnp.float32(alpha))

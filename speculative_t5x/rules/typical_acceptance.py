# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Typical acceptance: Cai et al. (2024), Medusa, arXiv:2401.10774."""

from flax import struct
import jax
import jax.numpy as jnp
from jax.scipy import special

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import verification


@struct.dataclass
class TypicalAcceptance:
  """A rule that accepts a draft token if it is likely enough for the target.

  It is accepted if p > min(epsilon, delta exp(-H(p))), H being the entropy in
  nats. The next token is drawn from p, after a rejection too. The outputs do
  not follow the target's distribution, except at temperature 0.

  Attributes:
    epsilon: float32 scalar in (0, 1]; tokens likelier than this are accepted.
    delta: float32 scalar in (0, 1]; the smaller, the rarer the tokens that are
      accepted where p is flat. No value of either causes recompilation.
  """

  epsilon: jax.Array
  delta: jax.Array
  name = 'typical_acceptance'
  is_lossless = False

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    del accept_uniforms  # nothing is drawn to accept
    p = verification.target_token_probs(scores.probs, draft)
    # entr(0) is 0, where -p log p would be NaN.
    entropy = jnp.sum(special.entr(scores.probs[:, :-1]), axis=-1)
    threshold = jnp.minimum(self.epsilon, self.delta * jnp.exp(-entropy))
    num_accepted = verification.count_prefix(draft, p > threshold)
    weights = verification.probs_after(scores.probs, num_accepted)
    return contracts.Verdict(num_accepted, weights)


def make_rule(epsilon: float = 0.09, delta: float = 0.3) -> TypicalAcceptance:
  """Return the rule of typical acceptance, by default with Medusa's numbers.

  Raises:
    ValueError: if a number is outside (0, 1].
  """
  ranges.check_settings(ranges.POSITIVE_RATE, epsilon=epsilon, delta=delta)
  return TypicalAcceptance(jnp.float32(epsilon), jnp.float32(delta))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lenience: Appendix A.5 of Leviathan et al. (2023).

More draft tokens are accepted than the target's distribution allows. The
outputs do not keep it.
"""

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification


@struct.dataclass
class Lenience:
  """A rule that accepts a draft token with probability min(1, p / (l q)).

  Given the tokens before, no token has a probability above p / l. The paper
  does not say how a rejected token is resampled. Here it is resampled with
  max(0, p - q), as without lenience: of all residuals, this one leaves the
  distribution closest to p in total variation, because it adds nothing to
  tokens that acceptance alone makes likelier than p.

  At temperature 0, a draft token is accepted if its probability before
  standardization is at least l times the largest one. (The paper prints this
  inequality reversed.)

  A token that the target rules out is never accepted. With l = 0 all others
  are, and the bound is void. With l = 1 the rule is that of the paper, up to
  equal logits at temperature 0.

  Attributes:
    lenience: L, float32 scalar in [0, 1]; no value causes recompilation.
  """

  lenience: jax.Array
  name = 'lenience'
  is_lossless = False

  def __call__(self, scores, draft, accept_uniforms) -> contracts.Verdict:
    p = verification.target_token_probs(scores.probs, draft)
    q = verification.draft_token_probs(draft, p.dtype)
    lenience = self.lenience.astype(p.dtype)
    temperatures = jnp.reshape(scores.sampling.temperature, (-1, 1))
    is_near = jnp.take_along_axis(
        is_near_argmax(scores.logits[:, :-1], self.lenience),
        draft.tokens[..., None],
        axis=-1,
    )
    is_accepted = jnp.where(
        temperatures <= sampling.MIN_TEMPERATURE,
        is_near[..., 0],
        # u l q < p
        verification.acceptance(p, q, lenience * accept_uniforms),
    )
    num_accepted = verification.count_prefix(draft, is_accepted)
    weights = verification.next_weights(scores.probs, draft, num_accepted)
    return contracts.Verdict(num_accepted, weights)


def is_near_argmax(logits: jax.Array, lenience: jax.Array | float) -> jax.Array:
  """Return whether p >= l max(p) of each token, [..., vocab] bool."""
  logits = logits.astype(jnp.promote_types(logits.dtype, jnp.float32))
  largest = jnp.max(logits, axis=-1, keepdims=True)
  # As logarithms, with -inf for l = 0; probabilities would underflow.
  is_near = logits - largest >= jnp.log(jnp.asarray(lenience, logits.dtype))
  return is_near & (logits > -jnp.inf)


def make_rule(lenience: float) -> Lenience:
  """Return the rule of lenience.

  Raises:
    ValueError: if lenience is outside [0, 1].
  """
  ranges.check_settings(ranges.RATE, lenience=lenience)
  return Lenience(jnp.float32(lenience))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Divergences of a draft model's distributions from the target's.

These are the losses of distillation, one value per token. Each but the cross
entropy is 0 if both distributions are equal and positive otherwise. Gradients
flow to the logits of the draft model only.

Reference: Zhou et al. (2024), "DistillSpec", arXiv:2310.08461.

Legend: vocab, p (the target's distribution), q (the draft model's).
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int

Logits = Float[Array, '*shape vocab']
Tokens = Int[Array, '*shape']
Losses = Float[Array, '*shape']

# Takes logits of the target and of the draft model, and the tokens of the text
# that both have read.
Divergence = Callable[[Logits, Logits, Tokens], Losses]


def forward_kl(
    target_logits: Logits, draft_logits: Logits, tokens: Tokens | None = None
) -> Losses:
  """Compute KL(p || q), the sum of p log(p / q), in nats.

  Its gradient with respect to the draft model's logits is q - p. It is the
  cross entropy of samples of the target, without their noise.

  Args:
    target_logits: [..., vocab]. -inf for a token that cannot occur.
    draft_logits: [..., vocab]. If a token can occur in p only, the result is
      inf.
    tokens: Not used.
  Reference: Hinton et al. (2015), arXiv:1503.02531.
  """
  del tokens
  log_p, log_q = _log_probs(target_logits, draft_logits)
  return _kl(log_p, log_q)


def reverse_kl(
    target_logits: Logits, draft_logits: Logits, tokens: Tokens | None = None
) -> Losses:
  """Compute KL(q || p), the sum of q log(q / p), in nats.

  It leaves out what the draft model cannot cover, instead of spreading q over
  all of p.

  Args: See `forward_kl`. If a token can occur in q only, the result is inf.
  Reference: Gu et al. (2024), arXiv:2306.08543.
  """
  del tokens
  log_p, log_q = _log_probs(target_logits, draft_logits)
  return _kl(log_q, log_p)


def jensen_shannon(
    target_logits: Logits, draft_logits: Logits, tokens: Tokens | None = None
) -> Losses:
  """Compute (KL(p || m) + KL(q || m)) / 2 with m = (p + q) / 2, in nats.

  At most log 2.

  Args: See `forward_kl`.
  Reference: Lin (1991); Agarwal et al. (2024), arXiv:2306.13649.
  """
  del tokens
  log_p, log_q = _log_probs(target_logits, draft_logits)
  # Where neither can occur, the difference of infinities would be NaN, and so
  # would gradients through it.
  occurs = jnp.maximum(log_p, log_q) > -jnp.inf
  shown = lambda x: jnp.where(occurs, x, 0)
  log_m = jnp.logaddexp(shown(log_p), shown(log_q)) - jnp.log(2.0)
  return (_kl(log_p, log_m) + _kl(log_q, log_m)) / 2


def total_variation(
    target_logits: Logits, draft_logits: Logits, tokens: Tokens | None = None
) -> Losses:
  """Compute half the sum of |p - q|, in [0, 1].

  It is 1 minus the acceptance rate of a token: Leviathan et al. (2023),
  Corollary 3.6, arXiv:2211.17192v2.

  Args: See `forward_kl`.
  """
  del tokens
  log_p, log_q = _log_probs(target_logits, draft_logits)
  return jnp.abs(jnp.exp(log_p) - jnp.exp(log_q)).sum(axis=-1) / 2


def cross_entropy(
    target_logits: Logits, draft_logits: Logits, tokens: Tokens
) -> Losses:
  """Compute -log q of the tokens, in nats.

  For tokens that were sampled from the target, its mean is the forward KL
  divergence plus the entropy of p.

  Args:
    target_logits: Not used.
    draft_logits: [..., vocab]. -inf for a token that cannot occur.
    tokens: [...] int32 in [0, vocab), or NO_TOKEN, whose loss means nothing.
  Reference: Kim and Rush (2016), arXiv:1606.07947.
  """
  _, log_q = _log_probs(target_logits, draft_logits)
  return -jnp.take_along_axis(log_q, tokens[..., None], axis=-1)[..., 0]


def _log_probs(
    target_logits: jax.Array, draft_logits: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Return log p and log q in at least float32; p has no gradient."""
  log_probs = lambda x: jax.nn.log_softmax(
      x.astype(jnp.promote_types(x.dtype, jnp.float32))
  )
  log_p = log_probs(jax.lax.stop_gradient(target_logits))
  return log_p, log_probs(draft_logits)


def _kl(log_a: jax.Array, log_b: jax.Array) -> jax.Array:
  """Compute KL(a || b), where a token that cannot occur in a adds nothing."""
  occurs = log_a != -jnp.inf  # as NaN is, which must not be masked
  # Both are replaced before they are subtracted: a NaN that is masked later
  # would still be in the gradient.
  shown_a, shown_b = (jnp.where(occurs, x, 0) for x in (log_a, log_b))
  terms = jnp.exp(shown_a) * (shown_a - shown_b)
  return jnp.sum(jnp.where(occurs, terms, 0), axis=-1)

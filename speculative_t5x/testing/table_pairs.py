# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A target and a drafter as tables, for the exact judgement of a rule.

Legend: gamma (draft tokens per block), vocab.
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import sampling as sampling_lib

# Kinds of drafts, see `random_tables`.
KINDS = 'sampled', 'short', 'mixed', 'point_masses'


@dataclasses.dataclass(frozen=True)
class Tables:
  """A target and a drafter as tables: what both say after each prefix.

  The k-th array of each tuple is indexed by k draft tokens.

  Attributes:
    logits: gamma + 1 arrays [vocab] * k + [vocab], of the target.
    draft_probs: gamma arrays alike, the drafter's distributions.
    sampling: Sampling by which the logits are standardized.
    stops: gamma arrays [vocab] * k bool, whether the drafter stops there, so
      that its draft has k tokens; None if it never does.
    is_point_mass: gamma arrays alike: whether the next draft token is not
      sampled, but is the likeliest one. None if all are sampled, and True if
      none is.
  """

  logits: Sequence[np.ndarray]
  draft_probs: Sequence[np.ndarray]
  sampling: sampling_lib.Sampling = sampling_lib.Sampling()
  stops: Sequence[np.ndarray] | None = None
  is_point_mass: Sequence[np.ndarray] | bool | None = None

  @property
  def gamma(self) -> int:
    return len(self.draft_probs)

  @property
  def vocab_size(self) -> int:
    return self.logits[0].shape[-1]

  @functools.cached_property
  def target_probs(self) -> list[np.ndarray]:
    """The target's distributions, in the form of the logits, float64."""
    with jax.enable_x64(True):  # or they would be rounded to float32
      return [
          np.asarray(_standardize(jnp.asarray(x), self.sampling))
          for x in self.logits
      ]

  def has_point_mass(self, prefix: tuple[int, ...]) -> bool:
    """Return whether the draft token after a prefix is a point mass."""
    if self.is_point_mass is None or self.is_point_mass is True:
      return bool(self.is_point_mass)
    return bool(self.is_point_mass[len(prefix)][prefix])

  def drafts(
      self, weight: float = 1.0, prefix: tuple[int, ...] = ()
  ) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the probability and the tokens of every draft after a prefix."""
    at = len(prefix)
    if at == self.gamma or (self.stops is not None and self.stops[at][prefix]):
      yield weight, prefix
      return
    q = self.draft_probs[at][prefix]
    if self.has_point_mass(prefix):
      q = np.eye(self.vocab_size)[np.argmax(q)]
    for token in np.flatnonzero(q).tolist():
      yield from self.drafts(weight * q[token], (*prefix, token))

  def continued(
      self, emitted: Mapping[tuple[int, ...], float]
  ) -> dict[tuple[int, ...], float]:
    """Return the distribution of gamma + 1 tokens, the first ones given.

    The target continues each of some outputs, which have a probability each.
    """
    outputs = dict(emitted)
    for length in range(self.gamma + 1):
      longer = collections.defaultdict(float)
      for tokens, weight in outputs.items():
        if len(tokens) > length:
          longer[tokens] += weight
          continue
        p = self.target_probs[length][tokens]
        for token in np.flatnonzero(p).tolist():
          longer[*tokens, token] += weight * p[token]
      outputs = dict(longer)
    return outputs


def random_tables(
    seed: int,
    *,
    gamma: int,
    vocab_size: int,
    temperature: float = 1.0,
    top_k: int = 0,
    kind: str = 'sampled',
) -> Tables:
  """Return tables of a target and of a drafter that resembles it.

  About one token in ten is ruled out by the one, and one by the other.

  Args:
    seed: Seed of the tables.
    gamma: Draft tokens per block, at least 0.
    vocab_size: At least 2.
    temperature: Temperature of the target; 0 for argmax.
    top_k: How many of the target's tokens are kept; 0 for all.
    kind: 'sampled' for drafts of gamma tokens; 'short' for drafts that stop
      early at some prefixes; 'mixed' for such drafts with point masses among
      their tokens, and 'point_masses' if they have no others.
  """
  rng = np.random.default_rng(seed)
  normal = lambda k: rng.normal(size=(vocab_size,) * (k + 1)) * 1.5
  logits = [normal(k) for k in range(gamma + 1)]
  draft_logits = [x + 0.7 * normal(k) for k, x in enumerate(logits[:gamma])]
  booleans = lambda share: [
      rng.random((vocab_size,) * k) < share for k in range(gamma)
  ]
  return Tables(
      [_without_some(rng, x) for x in logits],
      [_softmax(_without_some(rng, x)) for x in draft_logits],
      sampling_lib.Sampling(temperature, top_k),
      stops=None if kind == 'sampled' else booleans(0.2),
      is_point_mass={
          'sampled': None,
          'short': None,
          'mixed': booleans(0.4),
          'point_masses': True,
      }[kind],
  )


def _without_some(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
  """Rules out some tokens of each distribution, and never its likeliest."""
  is_out = rng.random(logits.shape) < 0.1
  is_out &= logits < np.max(logits, axis=-1, keepdims=True)
  return np.where(is_out, -np.inf, logits)


def _softmax(logits: np.ndarray) -> np.ndarray:
  weights = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
  return weights / np.sum(weights, axis=-1, keepdims=True)


_standardize = jax.jit(sampling_lib.standardize)

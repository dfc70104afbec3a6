# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A target and a drafter as tables, for the exact judgement of a rule.

Legend: gamma (draft tokens per block), vocab.
"""

from collections.abc import Iterator, Sequence
import dataclasses
import functools

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
    temperature: Temperature by which the logits are standardized.
    stops: gamma arrays [vocab] * k bool, whether the drafter stops there, so
      that its draft has k tokens; None if it never does.
    is_point_mass: gamma arrays alike: whether the next draft token is not
      sampled, but is the likeliest one. None if all are sampled, and True if
      none is.
    top_k: How many tokens the target keeps, 0 for all.
  """

  logits: Sequence[np.ndarray]
  draft_probs: Sequence[np.ndarray]
  temperature: float = 1.0
  stops: Sequence[np.ndarray] | None = None
  is_point_mass: Sequence[np.ndarray] | bool | None = None
  top_k: int = 0

  @property
  def group(self) -> tuple[object, ...]:
    """The common part of tables whose drafts are judged together."""
    point_masses = self.is_point_mass
    if point_masses is not None and point_masses is not True:
      point_masses = 'some'
    own = self.gamma, self.vocab_size, self.temperature, self.top_k
    return *own, point_masses

  @property
  def gamma(self) -> int:
    return len(self.draft_probs)

  @property
  def vocab_size(self) -> int:
    return self.logits[0].shape[-1]

  @functools.cached_property
  def target_probs(self) -> list[np.ndarray]:
    """The target's distributions, in the form of the logits."""
    if self.temperature <= sampling_lib.MIN_TEMPERATURE:
      return [np.eye(self.vocab_size)[np.argmax(x, -1)] for x in self.logits]
    return [
        _softmax(_keep_likeliest(x, self.top_k) / self.temperature)
        for x in self.logits
    ]

  def has_point_mass(self, prefix: tuple[int, ...]) -> bool:
    """Return whether the draft token after a prefix is a point mass."""
    if self.is_point_mass is None or self.is_point_mass is True:
      return bool(self.is_point_mass)
    return bool(self.is_point_mass[len(prefix)][prefix])

  def drafts(self) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the probability and the tokens of every draft."""
    yield from self._extend(1.0, ())

  def _extend(self, weight, prefix):
    at = len(prefix)
    if at == self.gamma or (self.stops is not None and self.stops[at][prefix]):
      yield weight, prefix
      return
    q = self.draft_probs[at][prefix]
    if self.has_point_mass(prefix):
      q = np.eye(self.vocab_size)[np.argmax(q)]
    for token in np.flatnonzero(q).tolist():
      yield from self._extend(weight * q[token], (*prefix, token))


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
      temperature,
      stops=None if kind == 'sampled' else booleans(0.2),
      is_point_mass={
          'sampled': None,
          'short': None,
          'mixed': booleans(0.4),
          'point_masses': True,
      }[kind],
      top_k=top_k,
  )


def _without_some(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
  """Rules out some tokens of each distribution, and never its likeliest."""
  is_out = rng.random(logits.shape) < 0.1
  is_out &= logits < np.max(logits, axis=-1, keepdims=True)
  return np.where(is_out, -np.inf, logits)


def _keep_likeliest(logits: np.ndarray, count: int) -> np.ndarray:
  """Rules out all tokens but the likeliest, unless the count is 0."""
  if not count:
    return logits
  least = np.sort(logits, axis=-1)[..., -count, None]
  return np.where(logits < least, -np.inf, logits)


def _softmax(logits: np.ndarray) -> np.ndarray:
  weights = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
  return weights / np.sum(weights, axis=-1, keepdims=True)

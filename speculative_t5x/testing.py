# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges rules: the exact distribution of what a rule emits, by enumeration.

A rule is a deterministic function of the uniforms of its draft tokens, and
constant on boxes of them: each uniform is compared with numbers that depend on
the distributions and on the other comparisons only. The boxes are found by
evaluating the rule, whatever it computes. Their volumes are probabilities, and
the rule's weights are those of the next token: both are exact up to rounding in
float64.

  from speculative_t5x import testing
  from speculative_t5x.rules import block

  testing.check_rule(block.BlockVerification(), gamma=2, vocab_size=3)

Legend: gamma (draft tokens per block), vocab, problems (drafts to be judged,
each with the distributions that the target gives it), dimensions (uniforms).
"""

import collections
from collections.abc import Callable, Iterator, Sequence
import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib

# Kinds of drafts, see `random_tables`.
SHAPES = 'sampled', 'short', 'mixed', 'chosen'

_BATCH = 1024  # evaluations of a rule per call, which is compiled once
_MOST_BOXES = 2000  # per problem
_HALVINGS = 52
_THINNEST = 1e-13  # a box that is not divided any more
_ROUNDING = 1e-9  # of probabilities

# A rule, or any function with its arguments and result.
Rule = Callable[..., contracts.Verdict]
# From problems [n] and points [n, dimensions] to numbers [n, any].
_Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Tables:
  """A target and a drafter as tables: what both say after each prefix.

  The k-th array of each tuple is indexed by k draft tokens.

  Attributes:
    logits: gamma + 1 arrays [vocab] * k + [vocab], of the target.
    draft_probs: gamma arrays alike, the drafter's distributions.
    temperature: by which the logits are standardized.
    stops: gamma arrays [vocab] * k bool, whether the drafter stops there, so
      that its draft has k tokens; None if it never does.
    is_point_mass: gamma arrays alike: whether the next draft token is not
      sampled, but is the likeliest one. None if all are sampled, and True if
      none is.
  """

  logits: Sequence[np.ndarray]
  draft_probs: Sequence[np.ndarray]
  temperature: float = 1.0
  stops: Sequence[np.ndarray] | None = None
  is_point_mass: Sequence[np.ndarray] | bool | None = None

  @property
  def form(self) -> tuple[object, ...]:
    """What tables whose drafts are judged together have in common."""
    kind = self.is_point_mass
    kind = kind if kind is None or kind is True else 'mixed'
    return self.gamma, self.vocab_size, self.temperature, kind

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
    return [_softmax(x / self.temperature) for x in self.logits]

  def is_chosen(self, prefix: tuple[int, ...]) -> bool:
    """Returns whether the draft token after a prefix is a point mass."""
    if self.is_point_mass is None or self.is_point_mass is True:
      return bool(self.is_point_mass)
    return bool(self.is_point_mass[len(prefix)][prefix])

  def drafts(self) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yields the probability and the tokens of every draft."""
    yield from self._extend(1.0, ())

  def _extend(self, weight, prefix):
    at = len(prefix)
    if at == self.gamma or (self.stops is not None and self.stops[at][prefix]):
      yield weight, prefix
      return
    q = self.draft_probs[at][prefix]
    if self.is_chosen(prefix):
      q = np.eye(self.vocab_size)[np.argmax(q)]
    for token in np.flatnonzero(q).tolist():
      yield from self._extend(weight * q[token], (*prefix, token))


def random_tables(
    seed: int,
    *,
    gamma: int,
    vocab_size: int,
    temperature: float = 1.0,
    shape: str = 'sampled',
) -> Tables:
  """Returns tables of a target and of a drafter that resembles it.

  About one token in ten is ruled out by the one, and one by the other.

  Args:
    seed: of the tables.
    gamma: draft tokens per block, at least 0.
    vocab_size: at least 2.
    temperature: of the target; 0 for argmax.
    shape: 'sampled' for drafts of gamma tokens; 'short' for drafts that stop
      early at some prefixes; 'mixed' for such drafts with point masses among
      their tokens, and 'chosen' if they have no others.
  Raises:
    ValueError: for another shape.
  """
  if shape not in SHAPES:
    raise ValueError(f'shape must be one of {SHAPES}, got {shape!r}.')
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
      stops=None if shape == 'sampled' else booleans(0.2),
      is_point_mass={
          'sampled': None,
          'short': None,
          'mixed': booleans(0.4),
          'chosen': True,
      }[shape],
  )


def _without_some(rng: np.random.Generator, logits: np.ndarray) -> np.ndarray:
  """Rules out some tokens of each distribution, and never its likeliest."""
  is_out = rng.random(logits.shape) < 0.1
  is_out &= logits < np.max(logits, axis=-1, keepdims=True)
  return np.where(is_out, -np.inf, logits)


def _softmax(logits: np.ndarray) -> np.ndarray:
  weights = np.exp(logits - np.max(logits, axis=-1, keepdims=True))
  return weights / np.sum(weights, axis=-1, keepdims=True)


def check_rule(
    rule: Rule,
    *,
    gamma: int = 2,
    vocab_size: int = 3,
    num_tables: int = 10,
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-6,
) -> None:
  """Checks that a rule keeps the target's distribution.

  Random tables of every kind of draft are enumerated (see `random_tables`). The
  number of paths grows as vocab_size^gamma.

  Args:
    rule: a `contracts.Rule`, or a function with the same arguments and result.
    gamma: draft tokens per block.
    vocab_size: tokens.
    num_tables: how many, per kind of draft and temperature.
    temperatures: of the target.
    tolerance: the largest total variation distance that passes.
  Raises:
    AssertionError: for a distance above it; says where and how large.
    ValueError: for something that is no rule, or if the rule is not constant on
      boxes of its uniforms.
  """
  settings = [
      dict(seed=seed, temperature=temperature, shape=shape)
      for shape, temperature, seed in itertools.product(
          SHAPES, temperatures, range(num_tables)
      )
  ]
  make = functools.partial(random_tables, gamma=gamma, vocab_size=vocab_size)
  found = distances(rule, [make(**setting) for setting in settings])
  worst = int(np.argmax(found))
  if found[worst] > tolerance:
    arguments = dict(gamma=gamma, vocab_size=vocab_size) | settings[worst]
    shown = ', '.join(f'{name}={x!r}' for name, x in arguments.items())
    raise AssertionError(
        f'{getattr(rule, "name", rule)} does not keep the target distribution:'
        f' the total variation distance is {found[worst]:.2g}, and'
        f' {tolerance:g} is allowed. The tables are random_tables({shown}).'
    )


def distances(rule: Rule, tables: Sequence[Tables]) -> list[float]:
  """Returns the total variation distances of `outputs` from the target's.

  Args:
    rule: see `check_rule`.
    tables: any number.
  """
  found = []
  for each, joint in zip(tables, outputs(rule, tables), strict=True):
    exact = _continued(each, {(): 1.0})
    keys = joint.keys() | exact.keys()
    found.append(
        0.5 * sum(abs(joint.get(x, 0.0) - exact.get(x, 0.0)) for x in keys)
    )
  return found


def outputs(
    rule: Rule, tables: Sequence[Tables]
) -> list[dict[tuple[int, ...], float]]:
  """Returns the joint distributions of gamma + 1 tokens.

  The tokens are those that the rule emits in one block, continued by the target
  to gamma + 1. The rule keeps the target's distribution if theirs is the
  target's.

  Args:
    rule: see `check_rule`.
    tables: any number.
  Returns:
    For each of the tables: probability by tokens.
  """
  emitted = emissions(rule, tables)
  return [_continued(*each) for each in zip(tables, emitted, strict=True)]


def emissions(
    rule: Rule, tables: Sequence[Tables]
) -> list[dict[tuple[int, ...], float]]:
  """Returns the probability of everything that the rule emits in one block.

  Args:
    rule: see `check_rule`.
    tables: any number.
  Returns:
    For each of the tables: probability by the accepted tokens and the next one.
  """
  enumerator = Enumerator(rule)
  found = [collections.defaultdict(float) for _ in tables]
  for form in dict.fromkeys(each.form for each in tables):
    drafts = [
        (number, weight, tokens)
        for number, each in enumerate(tables)
        if each.form == form
        for weight, tokens in each.drafts()
    ]
    problems = join([_problem(tables[i], tokens) for i, _, tokens in drafts])
    for path in enumerator.paths(*problems):
      number, weight, tokens = drafts[path.problem]
      accepted = tokens[: path.num_accepted]
      for token in np.flatnonzero(path.next_probs).tolist():
        share = path.weight * path.next_probs[token]
        found[number][*accepted, token] += weight * share
  return [dict(each) for each in found]


def mean_accepted(emitted: dict[tuple[int, ...], float]) -> float:
  """Returns the expected number of accepted draft tokens, of `emissions`."""
  return sum(p * (len(tokens) - 1) for tokens, p in emitted.items())


def _continued(
    tables: Tables, emitted: dict[tuple[int, ...], float]
) -> dict[tuple[int, ...], float]:
  """Returns the distribution after the target continues what was emitted."""
  found = collections.defaultdict(float)

  def extend(tokens, weight):
    if len(tokens) == tables.gamma + 1:
      found[tokens] += weight
      return
    p = tables.target_probs[len(tokens)][tokens]
    for token in np.flatnonzero(p).tolist():
      extend((*tokens, token), weight * p[token])

  for tokens, weight in emitted.items():
    extend(tokens, weight)
  return dict(found)


def _problem(
    tables: Tables, tokens: tuple[int, ...]
) -> tuple[contracts.Scores, contracts.Draft]:
  """Returns what a rule gets for one draft, in arrays of one row."""
  gamma, count = tables.gamma, len(tokens)
  # A rule must not read what follows the draft.
  filled = (*tokens, *[tables.vocab_size - 1] * (gamma - count))
  prefixes = [filled[:k] for k in range(gamma + 1)]
  probs, is_point_mass = None, None
  if tables.is_point_mass is not True:
    probs = np.array(
        [
            x[prefix] if k < count else np.full(tables.vocab_size, np.nan)
            for k, (x, prefix) in enumerate(zip(tables.draft_probs, prefixes))
        ]
    ).reshape(1, gamma, tables.vocab_size)
    if tables.is_point_mass is not None:
      chosen = [tables.is_chosen(prefix) for prefix in prefixes[:gamma]]
      is_point_mass = np.array([chosen], bool).reshape(1, gamma)
  at_prefixes = lambda arrays: np.array(
      [[x[prefix] for x, prefix in zip(arrays, prefixes)]]
  )
  scores = contracts.Scores(
      at_prefixes(tables.logits),
      at_prefixes(tables.target_probs),
      sampling_lib.make_sampling(tables.temperature),
  )
  draft = contracts.Draft(
      np.array([filled], np.int32).reshape(1, gamma),
      np.array([count], np.int32),
      probs,
      is_point_mass,
  )
  return scores, draft


def join(
    problems: Sequence[tuple[contracts.Scores, contracts.Draft]],
) -> tuple[contracts.Scores, contracts.Draft]:
  """Stacks problems of one form and one sampling for `Enumerator.paths`.

  Args:
    problems: NumPy arrays of one row, at least one problem.
  """
  sampling = problems[0][0].sampling
  bare = [(scores._replace(sampling=None), draft) for scores, draft in problems]
  scores, draft = jax.tree.map(lambda *x: np.concatenate(x), *bare)
  return scores._replace(sampling=sampling), draft


class Path(NamedTuple):
  """A box of uniforms on which a rule decides the same.

  Attributes:
    problem: index of the draft.
    weight: volume of the box, its probability.
    accept_uniforms: [gamma], the middle of the box.
    num_accepted: draft tokens.
    next_probs: [vocab], the distribution of the token after them.
  """

  problem: int
  weight: float
  accept_uniforms: np.ndarray
  num_accepted: int
  next_probs: np.ndarray


class Enumerator:
  """Finds the paths of a rule; compiles it once per form of its arguments."""

  def __init__(self, rule: Rule):
    if isinstance(rule, type) or not callable(rule):
      raise ValueError(
          'rule must be a contracts.Rule or a function with the same arguments,'
          f' got {rule!r}. Give an object, as block.BlockVerification().'
      )
    # Not the rule itself, which JAX might take for another one.
    self._decide = jax.jit(lambda *args: rule(*args))

  def paths(
      self, scores: contracts.Scores, draft: contracts.Draft
  ) -> list[Path]:
    """Returns the paths of all problems; the weights of each add up to 1.

    Args:
      scores: one row per problem, NumPy arrays; one sampling for all.
      draft: likewise.
    Raises:
      ValueError: if the rule is not constant on boxes of its uniforms, or if
        what it returns is no verdict.
    """
    count, gamma = draft.tokens.shape
    vocab_size = scores.probs.shape[-1]

    def decide(problems, uniforms):
      rows = scores._replace(sampling=None), draft
      own_scores, own_draft = jax.tree.map(lambda x: x[problems], rows)
      verdict = self._decide(
          own_scores._replace(sampling=scores.sampling), own_draft, uniforms
      )
      return _numbers(verdict, own_draft.lengths, vocab_size)

    with jax.enable_x64(True):
      boxes = list(constant_boxes(_batched(decide), count, gamma))
    return [
        Path(problem, weight, middle, int(values[0]), values[1:])
        for problem, weight, middle, values in boxes
    ]


def _numbers(
    verdict: contracts.Verdict, lengths: np.ndarray, vocab_size: int
) -> np.ndarray:
  """Returns accepted tokens and next probabilities, [rows, 1 + vocab].

  Raises:
    ValueError: if a verdict is impossible.
  """
  num_accepted = np.asarray(verdict.num_accepted)
  weights = np.asarray(verdict.next_weights, np.float64)
  if num_accepted.shape != lengths.shape or weights.shape != (
      len(lengths), vocab_size
  ):  # fmt: skip
    raise ValueError(
        'The rule must return a Verdict with num_accepted [rows] and'
        f' next_weights [rows, vocab], got shapes {num_accepted.shape} and'
        f' {weights.shape} for {len(lengths)} rows and {vocab_size} tokens.'
    )
  if np.any((num_accepted < 0) | (num_accepted > lengths)):
    raise ValueError(
        'The rule accepted fewer than 0 or more draft tokens than there are.'
        ' num_accepted must lie in [0, draft.lengths].'
    )
  totals = np.sum(weights, axis=1)
  if not np.all((totals > 0) & np.isfinite(totals)) or np.any(weights < 0):
    raise ValueError(
        "The rule's next_weights must be finite and non-negative, and some"
        ' must be positive.'
    )
  return np.column_stack([num_accepted, weights / totals[:, None]])


def _batched(function: _Function) -> _Function:
  """Returns a function that is called with equally many points each time."""

  def call(problems, points):
    found = []
    for i in range(0, len(problems), _BATCH):
      part = problems[i : i + _BATCH], points[i : i + _BATCH]
      count = len(part[0])
      missing = _BATCH - count
      padded = (np.concatenate([x, np.repeat(x[:1], missing, 0)]) for x in part)
      found.append(function(*padded)[:count])
    return np.concatenate(found)

  return call


def constant_boxes(
    function: _Function, count: int, dimensions: int
) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
  """Divides unit cubes into boxes on each of which a function is constant.

  A box whose probes, in its corners, on its faces and inside, all agree with
  its middle is taken as constant. Otherwise it is cut where the function
  changes on the way from the middle to a probe, which is found by bisection.

  Args:
    function: takes indices of problems and points of their cubes.
    count: problems.
    dimensions: of a cube.
  Yields:
    Of each box the index of the problem, the volume, the middle, and the value.
  Raises:
    ValueError: if a problem needs too many boxes.
  """
  problems = np.arange(count)
  low, high = np.zeros((count, dimensions)), np.ones((count, dimensions))
  num_boxes = np.ones(count, int)
  probes = _probes(dimensions)
  while True:
    middle = (low + high) / 2
    values = function(problems, middle)
    points = low[:, None] + (high - low)[:, None] * probes
    count = len(problems) * len(probes)
    probed = function(
        np.repeat(problems, len(probes)), points.reshape(count, dimensions)
    ).reshape(*points.shape[:2], -1)
    differs = _differ(probed, values[:, None])
    is_thin = np.any(high - low < _THINNEST, axis=1)
    is_constant = is_thin | ~np.any(differs, axis=1)
    for i in np.flatnonzero(is_constant):
      volume = float(np.prod(high[i] - low[i]))
      yield int(problems[i]), volume, middle[i], values[i]
    rest = np.flatnonzero(~is_constant)
    if not len(rest):
      return
    target = points[rest, np.argmax(differs[rest], axis=1)]
    problems, low, high = problems[rest], low[rest], high[rest]
    axes, cuts = _change(function, problems, middle[rest], target, values[rest])
    np.add.at(num_boxes, problems, 1)
    if np.any(num_boxes > _MOST_BOXES):
      raise ValueError(
          f'The rule needs more than {_MOST_BOXES} boxes of uniforms for one'
          ' draft. A rule must compare each uniform with numbers that do not'
          ' depend on other uniforms.'
      )
    rows = np.arange(len(rest))
    low_end, high_end = low.copy(), high.copy()
    high_end[rows, axes] = low_end[rows, axes] = cuts
    problems = np.concatenate([problems, problems])
    low = np.concatenate([low, low_end])
    high = np.concatenate([high_end, high])


def _differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Returns whether values [..., any] differ by more than rounding."""
  return np.any(np.abs(one - other) > _ROUNDING, axis=-1)


def _probes(dimensions: int) -> np.ndarray:
  """Returns points of the unit cube, [points, dimensions]."""
  ends = 0.0, 1 - 2.0**-30
  faces = np.full((2 * dimensions, dimensions), 0.5)
  for axis, end in itertools.product(range(dimensions), (0, 1)):
    faces[2 * axis + end, axis] = ends[end]
  rng = np.random.default_rng(0)
  inside = rng.random((32, dimensions))
  kinds = rng.integers(0, 3, inside.shape)
  return np.concatenate([faces, np.choose(kinds, [*ends, inside])])


def _change(
    function: _Function,
    problems: np.ndarray,
    start: np.ndarray,
    target: np.ndarray,
    values: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
  """Returns where a function changes on the way from a point to another.

  The way changes one coordinate after another.

  Args:
    function: see `constant_boxes`.
    problems: [n].
    start: [n, dimensions].
    target: [n, dimensions], where the function has another value.
    values: [n, any], of the function at the start.
  Returns:
    The axis, [n], and the coordinate, [n].
  """
  rows = np.arange(len(problems))
  axes = np.zeros(len(problems), int)
  point, is_found = start.copy(), np.zeros(len(problems), bool)
  for axis in range(start.shape[1]):
    moved = point.copy()
    moved[:, axis] = np.where(is_found, moved[:, axis], target[:, axis])
    is_other = _differ(function(problems, moved), values) & ~is_found
    axes = np.where(is_other, axis, axes)
    is_found |= is_other
    point = np.where(is_found[:, None], point, moved)
  same, other = start[rows, axes], target[rows, axes]
  for _ in range(_HALVINGS):
    middle = (same + other) / 2
    point[rows, axes] = middle
    is_same = ~_differ(function(problems, point), values)
    same = np.where(is_same, middle, same)
    other = np.where(is_same, other, middle)
  # A uniform below a number and one equal to it may be told apart.
  return axes, np.maximum(same, other)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exact distribution of the production step, by enumerating its uniforms.

A step is a deterministic function of its uniforms, constant between decision
points. Each path is one choice of an interval per uniform. Its midpoint is fed
to the production step, its length is its weight, and the resulting state is
read. The joint distribution is the sum of the weights of paths. The intervals
of a rule's uniforms are those that `speculative_t5x.testing` finds.

Between steps, the caches are poisoned behind the committed tokens, because
their values there must not matter.
"""

import collections
from collections.abc import Iterator, Sequence
import dataclasses
import functools
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import testing
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import reachable
from speculative_t5x.testing import table_model
from speculative_t5x.testing import words

ROWS = 2048  # paths per call of the compiled step


@dataclasses.dataclass(frozen=True)
class Case:
  """Models and rules whose distribution is enumerated.

  Attributes:
    target_tables: [tables, ...] logits of the target, one table per example.
    draft_tables: logits of the draft model.
    limits: most tokens of each example.
    gamma: draft tokens per block.
    sampling: the target's sampling.
    draft_sampling: the draft model's sampling.
    language: module of both models, with a `Model` that has such tables as
      parameters, and a function `place` into them. A cache holds tokens fed.
  """

  target_tables: np.ndarray
  draft_tables: np.ndarray
  limits: tuple[int, ...]
  gamma: int
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling
  language: types.ModuleType = table_model

  @property
  def vocab_size(self) -> int:
    return self.target_tables.shape[-1]

  @functools.cached_property
  def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
    """Returns the tables of both models, standardized."""
    return tuple(
        standardized(tables, sampling, self.vocab_size)
        for tables, sampling in (
            (self.target_tables, self.sampling),
            (self.draft_tables, self.draft_sampling),
        )
    )

  def distributions(
      self, example: int, tokens: tuple[int, ...]
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns both models' distributions of the token after some tokens."""
    place = example, *self.language.place(tokens)
    target, draft = self.probabilities
    return target[place], draft[place]

  def logits(self, example: int, tokens: tuple[int, ...]) -> np.ndarray:
    """Returns the target's logits of the token after some tokens."""
    return self.target_tables[example, *self.language.place(tokens)]

  def drafts(
      self, example: int, prefix: tuple[int, ...]
  ) -> Iterator[tuple[float, list[float], list[int], list[np.ndarray]]]:
    """Yields every draft after a prefix.

    A draft is its probability, the uniforms that give it, its tokens, and the
    distributions that they are drawn from.
    """

    def extend(weight, uniforms, tokens, probs):
      if len(tokens) == self.gamma:
        yield weight, uniforms, tokens, probs
        return
      _, q = self.distributions(example, prefix + tuple(tokens))
      edges = np.concatenate([[0], np.cumsum(q) / q.sum()])
      for token in np.flatnonzero(q > 0):
        middle = (edges[token] + edges[token + 1]) / 2
        yield from extend(
            weight * q[token],
            uniforms + [middle],
            tokens + [int(token)],
            probs + [q],
        )

    yield from extend(1.0, [], [], [])

  def draft_state(self, num_tokens: np.ndarray, cache, rng):
    """Returns the drafter's state after a number of tokens.

    Args:
      num_tokens: [rows], committed tokens.
      cache: makes a cache from the numbers of tokens fed, [rows], stale behind.
      rng: generator of values that must not matter.
    """
    # After a block, a draft model was fed all but the last token, or, if its
    # whole draft was accepted, all but the last two.
    behind = rng.integers(0, 2, num_tokens.shape, np.int32)
    num_fed = np.maximum(num_tokens - behind, 0).astype(np.int32)
    return draft_model.DraftModelState(cache(num_fed), jnp.asarray(num_fed))

  def policy_state(self, paths, state):
    """Returns the policy's state at the prefixes of paths."""
    return state


def standardized(tables: np.ndarray, sampling, width: int) -> np.ndarray:
  """Returns tables of probabilities, [tables, any, any, width]."""
  tables = tables[..., :width]
  missing = width - tables.shape[-1]
  padding = [(0, 0)] * (tables.ndim - 1) + [(0, missing)]
  tables = np.pad(tables, padding, constant_values=-np.inf)
  return np.asarray(_standardize(jnp.asarray(tables), sampling))


_standardize = jax.jit(
    sampling_lib.standardize
)  # otherwise compiled at each call


class Production:
  """The production step over any number of paths, compiled once.

  Sizes are static, tables and sampling are not, so one serves many cases.
  """

  def __init__(
      self,
      gamma: int,
      vocab_size: int,
      draft_width: int,
      length: int,
      *,
      language: types.ModuleType = table_model,
      rescale_log_probs: bool = True,
      drafter: contracts.Drafter | None = None,
      policy: contracts.DraftLengthPolicy = draft_length.Fixed(),  # noqa: B008
      rule: contracts.Rule = verification.TOKENWISE,
  ):
    self.enumerator = testing.Enumerator(rule)
    self._rule = rule
    self._rescale_log_probs = rescale_log_probs
    self._policy = policy
    self._target = language.Model(vocab_size)
    self._drafter = drafter or draft_model.DraftModel(
        language.Model(draft_width), gamma, vocab_size
    )
    self._length = length
    self._step = jax.jit(self._run)

  def _begin(self, tables, draft_tables, samplings, context, limits):
    setup = state_lib.Setup(
        self._target,
        tables,
        samplings[0],
        self._drafter,
        draft_tables,
        samplings[1],
        self._rule,
        self._policy,
        rescale_log_probs=self._rescale_log_probs,
    )
    return setup, *state_lib.begin(
        setup, context, None, limits, length=self._length
    )

  def _run(self, tables, draft_tables, samplings, context, limits, state, u):
    setup, batch, _ = self._begin(
        tables, draft_tables, samplings, context, limits
    )
    return step_lib.step(setup, batch, state, u)[0]

  def empty_state(self, limits: np.ndarray) -> state_lib.State:
    """Returns a state with one row per limit."""
    context = jnp.zeros((len(limits),), jnp.int32)
    limits = jnp.asarray(limits)
    return self._begin(None, None, (None, None), context, limits)[2]

  def step(
      self, case: 'Case', examples, state: state_lib.State, uniforms
  ) -> state_lib.State:
    """Makes one step of every path and returns numpy arrays.

    Args:
      case: whose models.
      examples: [rows], which one each path is of.
      state: of the paths.
      uniforms: [rows, count] numbers in [0, 1).
    """
    return jax.device_get(
        self._step(
            jnp.asarray(case.target_tables),
            jax.tree.map(jnp.asarray, case.draft_tables),
            (case.sampling, case.draft_sampling),
            jnp.asarray(examples),
            jnp.asarray(np.array(case.limits, np.int32)[examples]),
            state,
            jnp.asarray(words.words(uniforms)),
        )
    )


class Outcome(NamedTuple):
  """The result of one path of a step.

  Attributes:
    example: which one.
    tokens: committed, those before the step included.
    weight: probability of the path, times that of the prefix.
    score: log-probability of the tokens, as the state has it.
    has_ended: whether the row has.
  """

  example: int
  tokens: tuple[int, ...]
  weight: float
  score: float
  has_ended: bool


Prefix = tuple[int, tuple[int, ...]]  # an example, and its tokens so far


def outcomes(
    case: Case,
    production: Production,
    frontier: dict[Prefix, tuple[float, float]],
    rng: np.random.Generator,
) -> Iterator[Outcome]:
  """Yields the outcome of every path of one step.

  Args:
    case: whose models.
    production: the step.
    frontier: probability and score of each prefix.
    rng: of what unwritten slots are poisoned with.
  """
  paths = [
      (*start, frontier[start][0] * length, frontier[start][1], uniforms)
      for start, length, uniforms in paths_of(
          case, production.enumerator, list(frontier)
      )
  ]
  for i in range(0, len(paths), ROWS):
    chunk = paths[i : i + ROWS]
    after = _step_chunk(case, production, chunk, rng)
    for j, (example, _, weight, _, _) in enumerate(chunk):
      tokens = tuple(after.sequences[j, : after.num_tokens[j]].tolist())
      score, has_ended = float(after.log_probs[j]), bool(after.has_ended[j])
      yield Outcome(example, tokens, weight, score, has_ended)


def joint_distributions(
    case: Case, production: Production
) -> tuple[list[dict], list[dict], int]:
  """Returns distributions, scores by output, and the number of paths."""
  rng = np.random.default_rng(0)
  num_examples = len(case.limits)
  distributions = [collections.defaultdict(float) for _ in range(num_examples)]
  scores = [{} for _ in range(num_examples)]
  frontier = {(e, ()): (1.0, 0.0) for e in range(num_examples)}
  num_paths = 0
  while frontier:
    found = list(outcomes(case, production, frontier, rng))
    num_paths += len(found)
    frontier = {}
    for example, tokens, weight, score, has_ended in found:
      if has_ended:
        distributions[example][tokens] += weight
        scores[example][tokens] = score
      else:
        before, _ = frontier.get((example, tokens), (0.0, None))
        frontier[example, tokens] = (before + weight, score)
  return distributions, scores, num_paths


def _step_chunk(case, production, chunk, rng) -> state_lib.State:
  """Steps at most ROWS paths, padded so that the step compiles once."""
  padded = chunk + [chunk[0]] * (ROWS - len(chunk))
  examples = np.array([path[0] for path in padded], np.int32)
  limits = np.array(case.limits, np.int32)[examples]
  state = at_prefixes(production.empty_state(limits), padded, case, rng)
  uniforms = np.array([path[-1] for path in padded])
  return production.step(case, examples, state, uniforms)


def at_prefixes(state, paths, case: Case, rng) -> state_lib.State:
  """Returns a state with committed prefixes and poisoned caches."""
  num_tokens = np.array([len(path[1]) for path in paths], np.int32)
  sequences = np.zeros(state.sequences.shape, np.int32)
  for i, path in enumerate(paths):
    sequences[i, : len(path[1])] = path[1]
  fed = np.pad(sequences, ((0, 0), (1, case.gamma)))
  fed[:, 0] = t5.SPECIAL_IDS.start

  def cache(num_fed):
    stale = rng.integers(0, case.vocab_size, fed.shape, np.int32)
    is_fed = np.arange(fed.shape[1]) < num_fed[:, None]
    return jnp.asarray(np.where(is_fed, fed, stale))

  return state.replace(
      sequences=jnp.asarray(sequences),
      num_tokens=jnp.asarray(num_tokens),
      log_probs=jnp.asarray([path[3] for path in paths], jnp.float32),
      target_cache=cache(num_tokens),
      draft_state=case.draft_state(num_tokens, cache, rng),
      policy_state=case.policy_state(paths, state.policy_state),
  )


def paths_of(
    case: Case, enumerator: testing.Enumerator, prefixes: Sequence[Prefix]
) -> Iterator[tuple[Prefix, float, list[float]]]:
  """Yields the prefix, weight and uniforms of every path of a step.

  Args:
    case: whose models.
    enumerator: of the rule.
    prefixes: where the step begins, at least one.
  """
  drafts = [
      (start, *draft) for start in prefixes for draft in case.drafts(*start)
  ]
  problems = [
      _problem(case, start, tokens, probs)
      for start, _, _, tokens, probs in drafts
  ]
  for box in enumerator.boxes(*testing.join(problems)):
    start, weight, uniforms, tokens, _ = drafts[box.problem]
    example, prefix = start
    after = prefix + tuple(tokens[: box.num_accepted])
    p, _ = case.distributions(example, after)
    # Boundaries of p are decision points too: a row that ends inside its draft
    # draws nothing, and a wrong step may draw from p.
    for length, middle in reachable.intervals(box.next_probs, p):
      used = [*uniforms, *box.accept_uniforms, middle]
      yield start, weight * box.weight * length, used


def _problem(
    case: Case, start: Prefix, tokens: list[int], probs: list[np.ndarray]
) -> tuple[contracts.Scores, contracts.Draft]:
  """Returns what the rule gets for a draft, in arrays of one row."""
  example, prefix = start
  places = [
      prefix + tuple(tokens[: min(i, len(tokens))])
      for i in range(case.gamma + 1)
  ]
  missing = case.gamma - len(tokens)
  uniform = np.full(case.vocab_size, 1 / case.vocab_size)
  end = t5.SPECIAL_IDS.end
  to_end = tokens.index(end) + 1 if end in tokens else len(tokens)
  return (
      contracts.Scores(
          np.array([[case.logits(example, place) for place in places]]),
          np.array([[case.distributions(example, x)[0] for x in places]]),
          case.sampling,
      ),
      contracts.Draft(
          np.array([[*tokens, *[0] * missing]], np.int32),
          np.array([min(to_end, case.limits[example] - len(prefix))], np.int32),
          np.array([[*probs, *[uniform] * missing]]),
      ),
  )

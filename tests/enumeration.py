# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exact law of the production step, by feeding it every kind of uniform.

A step is a deterministic function of its uniforms, constant between decision
points. Each path here is one choice of interval for each uniform: its midpoint
is fed to the production step, its length is its weight, and where the step
leads is taken from the state it returns. The joint law is the sum of weights
over paths.

Between steps the caches are poisoned past the committed tokens: whatever lies
there must not matter.
"""

import collections
from collections.abc import Iterator
import dataclasses
import functools
import types
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x.drafters import draft_model
from tests import tabular

ROWS = 2048  # paths a call of the compiled step


@dataclasses.dataclass(frozen=True)
class Case:
  """Models and rules whose law is enumerated.

  Attributes:
    target_tables: [tables, ...] logits of the target, one table an example.
    draft_tables: the draft's.
    limits: most tokens of each example.
    gamma: guesses a block.
    sampling: the target's law.
    draft_sampling: the draft's.
    language: what both models are: a module with a `decoder`, which takes such
      tables as parameters, and a `place` in them. A cache holds tokens fed.
  """

  target_tables: np.ndarray
  draft_tables: np.ndarray
  limits: tuple[int, ...]
  gamma: int
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling
  language: types.ModuleType = tabular

  @property
  def vocab_size(self) -> int:
    return self.target_tables.shape[-1]

  @functools.cached_property
  def probabilities(self) -> tuple[np.ndarray, np.ndarray]:
    """The tables of both models, standardized."""
    return tuple(
        standardized(tables, sampling, self.vocab_size)
        for tables, sampling in (
            (self.target_tables, self.sampling),
            (self.draft_tables, self.draft_sampling),
        )
    )

  def laws(
      self, example: int, tokens: tuple[int, ...]
  ) -> tuple[np.ndarray, np.ndarray]:
    """Returns what either model says of the token after some tokens."""
    place = example, *self.language.place(tokens)
    target, draft = self.probabilities
    return target[place], draft[place]


def standardized(tables: np.ndarray, sampling, width: int) -> np.ndarray:
  """Tables of probabilities over `width` tokens, [tables, any, any, width]."""
  tables = tables[..., :width]
  missing = width - tables.shape[-1]
  padding = [(0, 0)] * (tables.ndim - 1) + [(0, missing)]
  tables = np.pad(tables, padding, constant_values=-np.inf)
  return np.asarray(_standardize(jnp.asarray(tables), sampling))


_standardize = jax.jit(sampling_lib.standardize)  # else compiled at each call


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
      language: types.ModuleType = tabular,
      rescale_log_probs: bool = True,
  ):
    self._rescale_log_probs = rescale_log_probs
    self._target = language.decoder(vocab_size)
    self._drafter = draft_model.DraftModel(
        decoder=language.decoder(draft_width),
        encode=lambda params, tokens: tokens,
        gamma=gamma,
        vocab_size=vocab_size,
    )
    self._length = length
    self._step = jax.jit(self._run)

  def _run(self, tables, draft_tables, samplings, context, limits, state, u):
    setup = speculation.Speculation(
        self._target,
        tables,
        context,
        self._drafter,
        draft_tables,
        context,
        *samplings,
        self._rescale_log_probs,
    )
    rows = speculation.Rows(keys=None, limits=limits)
    return speculation.speculative_step(setup, rows, state, u)

  def empty_state(self, limits: np.ndarray) -> speculation.State:
    """A state of as many rows as there are limits."""
    batch, gamma = len(limits), self._drafter.gamma
    slots = speculation.cache_slots(self._length, gamma)
    context = jnp.zeros((batch,), jnp.int32)
    _, draft_state = self._drafter.init(None, context, None, batch, slots)
    return speculation.init_state(
        self._target,
        context,
        speculation.Rows(keys=None, limits=jnp.asarray(limits)),
        draft_state,
        length=self._length,
        gamma=gamma,
    )

  def step(
      self, case: 'Case', examples, state: speculation.State, uniforms
  ) -> speculation.State:
    """One step of every path, as numpy arrays."""
    return jax.device_get(
        self._step(
            jnp.asarray(case.target_tables),
            jnp.asarray(case.draft_tables),
            (case.sampling, case.draft_sampling),
            jnp.asarray(examples),
            jnp.asarray(np.array(case.limits, np.int32)[examples]),
            state,
            jnp.asarray(uniforms),
        )
    )


class Outcome(NamedTuple):
  """Where one path of a step leads.

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
  """Yields where every path of one step leads.

  Args:
    case: whose models.
    production: the step.
    frontier: probability and score of each prefix.
    rng: of what unwritten slots are poisoned with.
  """
  paths = [
      (example, prefix, weight * length, score, uniforms)
      for (example, prefix), (weight, score) in frontier.items()
      for length, uniforms in _paths(case, example, prefix)
  ]
  for i in range(0, len(paths), ROWS):
    chunk = paths[i : i + ROWS]
    after = _step_chunk(case, production, chunk, rng)
    for j, (example, _, weight, _, _) in enumerate(chunk):
      tokens = tuple(after.sequences[j, : after.num_tokens[j]].tolist())
      score, has_ended = float(after.log_probs[j]), bool(after.has_ended[j])
      yield Outcome(example, tokens, weight, score, has_ended)


def joint_laws(
    case: Case, production: Production
) -> tuple[list[dict], list[dict], int]:
  """Law of each example's output, scores by output, and the paths walked."""
  rng = np.random.default_rng(0)
  num_examples = len(case.limits)
  laws = [collections.defaultdict(float) for _ in range(num_examples)]
  scores = [{} for _ in range(num_examples)]
  frontier = {(e, ()): (1.0, 0.0) for e in range(num_examples)}
  num_paths = 0
  while frontier:
    found = list(outcomes(case, production, frontier, rng))
    num_paths += len(found)
    frontier = {}
    for example, tokens, weight, score, has_ended in found:
      if has_ended:
        laws[example][tokens] += weight
        scores[example][tokens] = score
      else:
        before, _ = frontier.get((example, tokens), (0.0, None))
        frontier[example, tokens] = (before + weight, score)
  return laws, scores, num_paths


def _step_chunk(case, production, chunk, rng) -> speculation.State:
  """Steps up to ROWS paths, padded so that the step compiles once."""
  padded = chunk + [chunk[0]] * (ROWS - len(chunk))
  examples = np.array([path[0] for path in padded], np.int32)
  limits = np.array(case.limits, np.int32)[examples]
  state = _at_prefixes(production.empty_state(limits), padded, case, rng)
  uniforms = np.array([path[-1] for path in padded])
  return production.step(case, examples, state, uniforms)


def _at_prefixes(state, paths, case: Case, rng) -> speculation.State:
  """A state as after committing the prefixes, poisoned where it is stale."""
  num_tokens = np.array([len(path[1]) for path in paths], np.int32)
  sequences = np.zeros(state.sequences.shape, np.int32)
  for i, path in enumerate(paths):
    sequences[i, : len(path[1])] = path[1]
  fed = np.pad(sequences, ((0, 0), (1, case.gamma)))
  fed[:, 0] = seam.BOS_ID

  def cache(num_fed):
    stale = rng.integers(0, case.vocab_size, fed.shape, np.int32)
    is_fed = np.arange(fed.shape[1]) < num_fed[:, None]
    return jnp.asarray(np.where(is_fed, fed, stale))

  # Both ways a draft model can come out of a block: it has been fed all but
  # the last token, or (its whole draft was kept) all but the last two.
  behind = rng.integers(0, 2, num_tokens.shape, np.int32)
  draft_fed = np.maximum(num_tokens - behind, 0).astype(np.int32)
  return state.replace(
      sequences=jnp.asarray(sequences),
      num_tokens=jnp.asarray(num_tokens),
      log_probs=jnp.asarray([path[3] for path in paths], jnp.float32),
      target_cache=cache(num_tokens),
      draft_state=draft_model.DraftModelState(
          cache(draft_fed), jnp.asarray(draft_fed)
      ),
  )


def _paths(case, example, prefix):
  """Yields (weight, uniforms) for every way a step can go."""
  gamma = case.gamma
  laws = functools.cache(
      lambda tokens: case.laws(example, prefix + tokens)
  )

  def accepts(tokens, accept_uniforms, weight, draft_uniforms):
    """Walks the coins, then the draw."""
    at = len(accept_uniforms)
    p, q = laws(tuple(tokens[:at]))
    if at == gamma:
      yield from draws(p, p, weight, draft_uniforms, accept_uniforms)
      return
    token = tokens[at]
    threshold = min(1.0, p[token] / q[token])
    if threshold > 0:
      yield from accepts(
          tokens,
          accept_uniforms + [threshold / 2],
          weight * threshold,
          draft_uniforms,
      )
    if threshold < 1:
      rest = [0.5] * (gamma - at - 1)
      yield from draws(
          p,
          np.maximum(p - q, 0),
          weight * (1 - threshold),
          draft_uniforms,
          accept_uniforms + [(1 + threshold) / 2] + rest,
      )

  def draws(p, law, weight, draft_uniforms, accept_uniforms):
    # Boundaries of p are decision points too: a row that ends inside its draft
    # draws nothing, and a wrong rule may draw from p.
    for length, middle in _intervals(law, p):
      yield weight * length, draft_uniforms + accept_uniforms + [middle]

  def guesses(tokens, uniforms, weight):
    if len(tokens) == gamma:
      yield from accepts(tokens, [], weight, uniforms)
      return
    _, q = laws(tuple(tokens))
    edges = np.concatenate([[0], np.cumsum(q) / q.sum()])
    for token in np.flatnonzero(q > 0):
      middle = (edges[token] + edges[token + 1]) / 2
      yield from guesses(
          tokens + [int(token)], uniforms + [middle], weight * q[token]
      )

  yield from guesses([], [], 1.0)


def _intervals(*laws):
  """Lengths and midpoints of [0, 1) cut at the boundaries of all laws."""
  cuts = [np.cumsum(law) / law.sum() for law in laws]
  edges = np.unique(np.concatenate([[0.0, 1.0], *cuts]).clip(0, 1))
  for low, high in zip(edges[:-1], edges[1:]):
    if high - low > 1e-12:
      yield high - low, (low + high) / 2

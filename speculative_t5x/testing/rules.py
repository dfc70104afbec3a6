# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges a rule: the exact distribution of what it emits, by enumeration.

A rule is a deterministic function of the uniforms of its draft tokens, and
constant on boxes of them: each uniform is compared with numbers that depend on
the distributions and on the other comparisons only. The boxes are found by
evaluating the rule, whatever it computes. Their volumes are probabilities, and
the rule's weights are those of the next token: both are exact up to rounding in
float64.

Legend: gamma (draft tokens per block), vocab, problems (drafts to be judged,
each with the distributions that the target gives it).
"""

import collections
from collections.abc import Callable, Sequence
import inspect
import itertools
from typing import Any, NamedTuple

import jax
import numpy as np

from speculative_t5x.rules import description
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.testing import boxes as boxes_lib
from speculative_t5x.testing import table_pairs as tables_lib

# A rule, or any function with its arguments and result.
Rule = Callable[..., contracts.Verdict]


def check_rule(
    rule: Rule,
    *,
    gamma: int = 2,
    vocab_size: int = 3,
    num_tables: int = 10,
    temperatures: Sequence[float] = (1.0, 0.0),
    tolerance: float = 1e-6,
) -> None:
  """Check that a rule keeps the target's distribution.

  Random tables of every kind of draft are enumerated (see `random_tables`), at
  each temperature and with top-k. The number of drafts grows as
  vocab_size^gamma.

  Args:
    rule: A `contracts.Rule`, or a function with the same arguments and result.
    gamma: Draft tokens per block. Blocks of fewer are enumerated too, because
      verification is as wide as the longest draft of a batch needs.
    vocab_size: Tokens, at least 2.
    num_tables: How many, per kind of draft, length of the block and sampling.
    temperatures: Temperatures of the target.
    tolerance: The largest total variation distance that passes.
  Raises:
    AssertionError: for a distance above it; says where and how large.
    ValueError: for something that is not a rule or not a pytree, if it is not
      constant on boxes of its uniforms, or for a coupled rule.
  """
  if not inspect.isfunction(rule):
    description.check(rule)
  if isinstance(rule, contracts.CoupledRule):
    raise ValueError(
        f'{rule.name} is a coupled rule, which accepts by equality with its own'
        ' draw and by nothing else. Check that draw follows its distribution.'
    )
  settings = [
      dict(gamma=width, vocab_size=vocab_size, seed=seed)
      | sampling
      | dict(kind=kind)
      for kind, width, sampling, seed in itertools.product(
          tables_lib.KINDS,
          range(gamma + 1),
          samplings(temperatures, vocab_size),
          range(num_tables),
      )
  ]
  found = distances(
      rule, [tables_lib.random_tables(**each) for each in settings]
  )
  worst = int(np.argmax(found))
  shown = ', '.join(f'{name}={x!r}' for name, x in settings[worst].items())
  check_distance(
      f'{getattr(rule, "name", rule)} with random_tables({shown})',
      found[worst],
      tolerance,
  )


def check_distance(name: str, distance: float, tolerance: float) -> None:
  """Raise AssertionError, with a name, for a distance above the tolerance."""
  if distance > tolerance:
    raise AssertionError(
        f'{name} does not keep the distribution of the target: the total'
        f' variation distance is {distance:.2g}, and {tolerance:g} is allowed.'
    )


def samplings(
    temperatures: Sequence[float], vocab_size: int
) -> list[dict[str, Any]]:
  """Return the arguments of `sampling.Sampling` to judge with.

  They are each temperature, and the first one above 0 again with a top-k that
  rules one token out, so that what is computed of logits must respect it.
  """
  found = [dict(temperature=each) for each in temperatures]
  sampled = [
      each for each in temperatures if each > sampling_lib.MIN_TEMPERATURE
  ]
  return found + [
      dict(temperature=each, top_k=vocab_size - 1) for each in sampled[:1]
  ]


def distances(rule: Rule, tables: Sequence[tables_lib.Tables]) -> list[float]:
  """Return how far the rule is from the target, for each of the tables.

  It is the total variation distance of the joint distribution of gamma + 1
  tokens: those that the rule emits in one block, continued by the target. For
  the arguments see `emissions`.
  """
  return [
      total_variation(each.continued({(): 1.0}), each.continued(emitted))
      for each, emitted in zip(tables, emissions(rule, tables), strict=True)
  ]


def total_variation(
    one: dict[tuple[int, ...], float], other: dict[tuple[int, ...], float]
) -> float:
  """Return the total variation distance of two distributions."""
  keys = one.keys() | other.keys()
  return 0.5 * sum(abs(one.get(x, 0.0) - other.get(x, 0.0)) for x in keys)


def emissions(
    rule: Rule, tables: Sequence[tables_lib.Tables]
) -> list[dict[tuple[int, ...], float]]:
  """Return the probability of everything that the rule emits in one block.

  The rule is as for `check_rule`; there may be any number of tables.

  Returns:
    For each of the tables: probability by the accepted tokens and the next one.
  """
  enumerator = Enumerator(rule)
  found = [collections.defaultdict(float) for _ in tables]
  # Problems of one form are judged together.
  groups = collections.defaultdict(list)
  for number, each in enumerate(tables):
    for weight, tokens in each.drafts():
      own = _problem(each, tokens)
      form = jax.tree.structure(own), own[0].logits.shape
      groups[form].append((own, number, weight, tokens))
  for group in groups.values():
    for box in enumerator.boxes(*join([own for own, *_ in group])):
      _, number, weight, tokens = group[box.problem]
      accepted = tokens[: box.num_accepted]
      for token in np.flatnonzero(box.next_probs).tolist():
        share = box.weight * box.next_probs[token]
        found[number][*accepted, token] += weight * share
  return [dict(each) for each in found]


def _problem(
    tables: tables_lib.Tables, tokens: tuple[int, ...]
) -> tuple[contracts.Scores, contracts.Draft]:
  """Return what a rule gets for one draft of the tables."""
  prefixes = [tokens[:k] for k in range(len(tokens) + 1)]
  at_prefixes = lambda arrays: [x[y] for x, y in zip(arrays, prefixes)]
  kinds = tables.is_point_mass
  return problem(
      at_prefixes(tables.logits),
      at_prefixes(tables.target_probs),
      tables.sampling,
      tables.gamma,
      tokens,
      None if kinds is True else at_prefixes(tables.draft_probs)[: len(tokens)],
      None
      if isinstance(kinds, bool | None)
      else at_prefixes(kinds)[: len(tokens)],
  )


def problem(
    logits: Sequence[np.ndarray],
    probs: Sequence[np.ndarray],
    sampling: sampling_lib.Sampling,
    gamma: int,
    tokens: tuple[int, ...],
    draft_probs: Sequence[np.ndarray] | None,
    is_point_mass: Sequence[bool] | None = None,
) -> tuple[contracts.Scores, contracts.Draft]:
  """Return what a rule gets for one draft, in NumPy arrays of one row.

  The logits and the distributions are the target's after each number of draft
  tokens. For `draft_probs` and `is_point_mass` see `contracts.Draft`.
  """
  # A rule must not read what follows the draft.
  fill = lambda values, value, size=gamma: np.array(
      [[*values, *[value] * (size - len(values))]]
  )
  vocab_size = len(probs[0])
  draft = contracts.Draft(
      fill(tokens, vocab_size - 1).astype(np.int32),
      np.array([len(tokens)], np.int32),
  )
  if draft_probs is not None:
    filled = fill(draft_probs, np.full(vocab_size, np.nan))
    draft = draft.replace(probs=filled.reshape(1, gamma, vocab_size))
  if is_point_mass is not None:
    draft = draft.replace(is_point_mass=fill(is_point_mass, False).astype(bool))
  return contracts.Scores(
      fill(logits, logits[-1], gamma + 1),
      fill(probs, probs[-1], gamma + 1),
      jax.tree.map(np.asarray, sampling.of_rows(1)),
  ), draft


def join(
    problems: Sequence[tuple[contracts.Scores, contracts.Draft]],
) -> tuple[contracts.Scores, contracts.Draft]:
  """Stack problems of one group for `Enumerator.boxes`.

  They are NumPy arrays of one row, at least one problem.
  """
  return jax.tree.map(lambda *x: np.concatenate(x), *problems)


class Box(NamedTuple):
  """Uniforms between bounds, on which a rule decides the same."""

  problem: int  # index of the draft
  weight: float  # volume of the box, its probability
  accept_uniforms: np.ndarray  # [gamma], the middle of the box
  num_accepted: int
  next_probs: np.ndarray  # [vocab], the distribution of the token after them


class Enumerator:
  """Finds the boxes of a rule; compiles it once per form of its arguments."""

  def __init__(self, rule: Rule):
    # Not the rule itself, which JAX might take for another one.
    self._decide = jax.jit(lambda *args: rule(*args))

  def boxes(
      self, scores: contracts.Scores, draft: contracts.Draft
  ) -> list[Box]:
    """Return the boxes of all problems; the weights of each add up to 1.

    Scores and drafts are NumPy arrays with one row per problem.

    Raises:
      ValueError: if the rule is not constant on boxes of its uniforms, or if
        what it returns is not a verdict.
    """
    count, gamma = draft.tokens.shape
    vocab_size = scores.probs.shape[-1]

    def decide(problems, uniforms):
      own = jax.tree.map(lambda x: x[problems], (scores, draft))
      verdict = self._decide(*own, uniforms)
      return _numbers(verdict, own[1].lengths, vocab_size)

    # In float32 the ends of boxes would be off by 1e-7 of each.
    with jax.enable_x64(True):
      found = list(
          boxes_lib.constant_boxes(boxes_lib.batched(decide), count, gamma)
      )
    return [
        Box(problem, weight, middle, int(values[0]), values[1:])
        for problem, weight, middle, values in found
    ]


def _numbers(
    verdict: contracts.Verdict, lengths: np.ndarray, vocab_size: int
) -> np.ndarray:
  """Return accepted tokens and next probabilities, [rows, 1 + vocab]."""
  num_accepted = np.asarray(verdict.num_accepted)
  weights = np.asarray(verdict.next_weights, np.float64)
  rows = len(lengths)
  if (
      (num_accepted.shape, weights.shape) != ((rows,), (rows, vocab_size))
      or np.any((num_accepted < 0) | (num_accepted > lengths))
      or np.any(weights < 0)
      or not np.all(np.isfinite(weights))
      or not np.all(np.any(weights > 0, axis=1))
  ):
    raise ValueError(
        'The rule must return a Verdict with num_accepted [rows] in [0,'
        ' draft.lengths], and next_weights [rows, vocab] that are finite and'
        f' not negative, some above 0. Got shapes {num_accepted.shape} and'
        f' {weights.shape} for {rows} rows and {vocab_size} tokens.'
    )
  return np.column_stack(
      [num_accepted, weights / np.sum(weights, axis=1, keepdims=True)]
  )

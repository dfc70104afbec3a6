# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exact distribution of outputs over all states that decoding reaches.

No drafter and no policy is described a second time. What is drafted is found by
evaluating the production code, and each step begins with the states of drafter
and policy, and with the caches, that the step before it left. Paths with the
same tokens and states are merged; caches are not compared, because what they
hold behind the tokens must not matter.
"""

from collections.abc import Callable, Iterator
import functools
from typing import NamedTuple

import jax
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import all_drafts as drafts_lib
from speculative_t5x.testing import rows as rows_lib
from speculative_t5x.testing import rules
from speculative_t5x.testing import step_programs


class Decisions:
  """The boxes of a rule, enumerated once per draft of an example.

  Attributes:
    enumerator: of the rule.
    known: weight and uniforms of each box, by example, tokens and draft.
  """

  def __init__(self, enumerator: rules.Enumerator):
    self.enumerator = enumerator
    self.known = {}


class Paths(NamedTuple):
  """Paths of a step from several states; leaves have one row per path.

  Attributes:
    rows: index of the state.
    weights: probabilities given the state.
    uniforms: [paths, any].
  """

  rows: np.ndarray
  weights: np.ndarray
  uniforms: np.ndarray


def paths(
    program: step_programs.Program, rule, examples, state, decisions: Decisions
) -> Paths:
  """Returns all paths of a step.

  Args:
    program: whose step.
    rule: of the step.
    examples: of the states.
    state: where the step begins.
    decisions: of the same rule.
  """
  num_tokens = state.num_tokens.tolist()
  prefixes = [
      tuple(row[:count].tolist())
      for row, count in zip(state.sequences, num_tokens)
  ]
  drafted = drafts_lib.drafts(program, rule, examples, state)
  known = decisions.known
  keys = [
      (
          int(examples[each.row]),
          prefixes[each.row],
          each.tokens,
          np.array(each.probs).tobytes(),
      )
      for each in drafted
  ]
  new = {key: each for key, each in zip(keys, drafted) if key not in known}
  if new:
    problems = [
        _problem(program, example, prefix, each)
        for (example, prefix, *_), each in new.items()
    ]
    for key in new:
      known[key] = []
    by_number = list(new)
    for box in decisions.enumerator.boxes(*rules.join(problems)):
      key = by_number[box.problem]
      p = program.probs(key[0], key[1] + key[2][: box.num_accepted])
      for length, middle in intervals(box.next_probs, p):
        uniforms = *box.accept_uniforms.tolist(), middle
        known[key].append((box.weight * length, uniforms))
  rows, weights, uniforms = [], [], []
  num_own = program.pair.drafter.num_uniforms
  for key, each in zip(keys, drafted):
    unused = (0.5,) * (num_own - len(each.uniforms))
    for weight, values in known[key]:
      rows.append(each.row)
      weights.append(each.weight * weight)
      uniforms.append((*each.uniforms, *unused, *values))
  return Paths(np.array(rows), np.array(weights), np.array(uniforms))


def _problem(program, example, prefix, draft: drafts_lib.Draft):
  """Returns what the rule gets for a draft, in arrays of one row."""
  gamma = program.pair.drafter.max_draft_tokens
  vocab_size = program.pair.target.vocab_size
  count = len(draft.tokens)
  missing = gamma - count
  places = [prefix + draft.tokens[: min(i, count)] for i in range(gamma + 1)]
  uniform = np.full(vocab_size, 1 / vocab_size)
  p = np.array([[program.probs(example, place) for place in places]])
  logits = [[program.pair.find_logits(example, place) for place in places]]
  return (
      contracts.Scores(np.array(logits), p, program.sampling),
      contracts.Draft(
          np.array([[*draft.tokens, *[0] * missing]], np.int32),
          np.array([count], np.int32),
          np.array([[*draft.probs, *[uniform] * missing]]),
      ),
  )


def intervals(*distributions) -> Iterator[tuple[float, float]]:
  """Yields lengths and midpoints of [0, 1), cut at all boundaries."""
  cuts = [np.cumsum(each) / np.sum(each) for each in distributions]
  edges = np.unique(np.concatenate([[0.0, 1.0], *cuts]).clip(0, 1))
  for low, high in zip(edges[:-1], edges[1:]):
    if high - low > 1e-12:
      yield high - low, (low + high) / 2


class Reached(NamedTuple):
  """What decoding reaches.

  Attributes:
    distributions: of each example, probability by output.
    num_paths: steps that were made.
    lengths: of drafts that no limit and no end of sequence cut.
  """

  distributions: list[dict[tuple[int, ...], float]]
  num_paths: int
  lengths: set[int]


def reach(
    program: step_programs.Program,
    rule: contracts.Rule,
    decisions: Decisions,
    state: state_lib.State | None = None,
) -> Reached:
  """Enumerates decoding from its first token to its last.

  Args:
    program: whose steps.
    rule: of the steps.
    decisions: of the same rule.
    state: of the examples, before any token; None for that of `program.begin`.
  Raises:
    AssertionError: see `drafts.drafts` and `rows.check`.
  """
  state = program.begin(rule) if state is None else state
  examples = np.arange(len(program.pair.limits))
  weights = np.ones(len(examples))
  found = [{} for _ in examples]
  num_paths, lengths = 0, set()
  while len(examples):
    rows_lib.check(program, rule, examples, state)
    made = paths(program, rule, examples, state, decisions)
    num_paths += len(made.rows)
    examples, weights = examples[made.rows], weights[made.rows] * made.weights
    before = step_programs.take(state, made.rows)
    state = program.step(rule, examples, before, made.uniforms)
    lengths |= _chosen_lengths(program, examples, state.outcome)
    merged = {}
    for row, key in enumerate(_keys(examples, state)):
      if state.has_ended[row]:
        output = tuple(state.sequences[row, : state.num_tokens[row]].tolist())
        own = found[examples[row]]
        own[output] = own.get(output, 0.0) + weights[row]
      else:
        merged.setdefault(key, []).append(row)
    rows = np.array([each[0] for each in merged.values()], int)
    weights = np.array([np.sum(weights[each]) for each in merged.values()])
    examples, state = examples[rows], step_programs.take(state, rows)
  return Reached(found, num_paths, lengths)


def _chosen_lengths(program, examples, outcome) -> set[int]:
  """See `Reached.lengths`."""
  drafter, target = program.pair.drafter, program.pair.target
  gamma = drafter.max_draft_tokens
  is_draft = np.arange(gamma) < outcome.num_drafted[:, None]
  is_end = target.special_ids.is_end(outcome.draft_tokens)
  num_remaining = np.array(program.pair.limits)[examples] - outcome.num_before
  is_chosen = (num_remaining >= gamma) & ~np.any(is_end & is_draft, axis=1)
  return set(outcome.num_drafted[is_chosen].tolist())


def _keys(examples, state) -> list[bytes]:
  """Returns what tells states apart: all of a row but caches and scores."""
  own = jax.tree.leaves((state.draft_state, state.policy_state))
  columns = [examples, state.sequences, state.num_tokens]
  columns += [x for x in own if x.ndim == 1]
  parts = [
      np.ascontiguousarray(x).view(np.uint8).reshape(len(examples), -1)
      for x in columns
  ]
  return [row.tobytes() for row in np.concatenate(parts, axis=1)]


def exact_distribution(
    probs: Callable[[tuple[int, ...]], np.ndarray], limit: int, end: int
) -> dict[tuple[int, ...], float]:
  """Returns the target's distribution over outputs, by the chain rule.

  Args:
    probs: returns the distribution of the token after some tokens.
    limit: most tokens.
    end: the token that ends an output, and is part of it.
  """
  found = {}

  def extend(tokens, weight):
    if (tokens and tokens[-1] == end) or len(tokens) == limit:
      found[tokens] = weight
      return
    p = probs(tokens)
    for token in np.flatnonzero(p).tolist():
      extend((*tokens, token), weight * p[token])

  extend((), 1.0)
  return found


def exact_distributions(
    program: step_programs.Program,
) -> list[dict[tuple[int, ...], float]]:
  """Returns the target's distribution over the outputs of each example."""
  end = program.pair.target.special_ids.end
  return [
      exact_distribution(functools.partial(program.probs, example), limit, end)
      for example, limit in enumerate(program.pair.limits)
  ]

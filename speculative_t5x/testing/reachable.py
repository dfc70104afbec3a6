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
from speculative_t5x.testing import rules
from speculative_t5x.testing import step_programs

_ENDED = 0.25  # share of the rows of a batch that have ended before
_ROUNDING = 1e-5  # of a policy's numbers


def _paths(
    program: step_programs.Program,
    rule: contracts.Rule,
    examples: np.ndarray,
    state: state_lib.State,
    enumerator: rules.Enumerator,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
  """Return all paths of a step from some states.

  Of each path they are the index of its state, its probability given the state,
  and its uniforms [paths, any].
  """
  prefixes = [
      tuple(row[:count].tolist())
      for row, count in zip(state.sequences, state.num_tokens.tolist())
  ]
  drafted = drafts_lib.drafts(program, rule, examples, state)
  # Weight and uniforms of each box, by what the rule decides about.
  known = program.known.setdefault(enumerator, {})
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
        rules.problem(
            _after(program.pair.find_logits, at, before, each.tokens),
            _after(program.probs, at, before, each.tokens),
            program.samplings[0],
            program.pair.drafter.form.gamma,
            each.tokens,
            each.probs,
        )
        for (at, before, *_), each in new.items()
    ]
    known.update({key: [] for key in new})
    by_number = list(new)
    for box in enumerator.boxes(*rules.join(problems)):
      key = by_number[box.problem]
      p = program.probs(key[0], key[1] + key[2][: box.num_accepted])
      # Boundaries of p are decision points too: a row that ends inside its
      # draft draws nothing, and a wrong step may draw from p.
      for length, middle in _intervals(box.next_probs, p):
        uniforms = *box.accept_uniforms.tolist(), middle
        known[key].append((box.weight * length, uniforms))
  num_own = program.pair.drafter.form.num_uniforms
  rows, weights, uniforms = [], [], []
  for key, each in zip(keys, drafted):
    unused = (0.5,) * (num_own - len(each.uniforms))
    for weight, values in known[key]:
      rows.append(each.row)
      weights.append(each.weight * weight)
      uniforms.append((*each.uniforms, *unused, *values))
  return np.array(rows), np.array(weights), np.array(uniforms)


def _after(find, example: int, before: tuple, draft: tuple) -> list[np.ndarray]:
  """Return what is found after each number of draft tokens."""
  return [find(example, before + draft[:k]) for k in range(len(draft) + 1)]


def _intervals(*distributions) -> Iterator[tuple[float, float]]:
  """Yield lengths and midpoints of [0, 1), cut at all boundaries."""
  cuts = [np.cumsum(each) / np.sum(each) for each in distributions]
  edges = np.unique(np.concatenate([[0.0, 1.0], *cuts]).clip(0, 1))
  for low, high in zip(edges[:-1], edges[1:]):
    # Narrower ones are rounding of the sums, not probabilities.
    if high - low > 1e-12:
      yield high - low, (low + high) / 2


class Reached(NamedTuple):
  """All that decoding reaches."""

  # Probability by output, for each example.
  distributions: list[dict[tuple[int, ...], float]]
  num_paths: int  # steps that were made
  lengths: set[int]  # of the drafts that no limit and no end of sequence cut


def reach(
    program: step_programs.Program,
    rule: contracts.Rule,
    enumerator: rules.Enumerator,
    state: state_lib.State | None = None,
) -> Reached:
  """Enumerate decoding from its first token to its last.

  The enumerator finds the boxes of the same rule. `state` has the examples
  before any token; None for that of `program.begin`.

  Raises:
    AssertionError: if drafts are misstated, or a row depends on others.
  """
  state = program.begin(rule) if state is None else state
  examples = np.arange(len(program.pair.limits))
  weights = np.ones(len(examples))
  found = [{} for _ in examples]
  num_paths, lengths = 0, set()
  while len(examples):
    check_rows(program, rule, examples, state)
    rows, own, uniforms = _paths(program, rule, examples, state, enumerator)
    num_paths += len(rows)
    examples, weights = examples[rows], weights[rows] * own
    before = step_programs.take(state, rows)
    state = program.step(rule, examples, before, uniforms)
    lengths |= chosen_lengths(program, examples, state.outcome)
    examples, weights, state = settle(found, examples, weights, state)
  return Reached(found, num_paths, lengths)


def settle(
    found: list[dict[tuple[int, ...], float]],
    examples: np.ndarray,
    weights: np.ndarray,
    state: state_lib.State,
) -> tuple[np.ndarray, np.ndarray, state_lib.State]:
  """Add rows that have ended to the outputs, and merge those that go on alike.

  Args:
    found: Probability by output of each example, which is added to.
    examples: [rows] int, the example of each row.
    weights: [rows], their probabilities.
    state: Their states.
  Returns:
    Examples, weights and states of the rows that go on.
  """
  merged = {}
  for row, key in enumerate(keys(examples, state)):
    if state.has_ended[row]:
      output = tuple(state.sequences[row, : state.num_tokens[row]].tolist())
      own = found[examples[row]]
      own[output] = own.get(output, 0.0) + weights[row]
    else:
      merged.setdefault(key, []).append(row)
  rows = np.array([each[0] for each in merged.values()], int)
  weights = np.array([np.sum(weights[each]) for each in merged.values()])
  return examples[rows], weights, step_programs.take(state, rows)


def chosen_lengths(program, examples, outcome) -> set[int]:
  """See `Reached.lengths`."""
  drafter, target = program.pair.drafter, program.pair.target
  gamma = drafter.form.gamma
  is_draft = np.arange(gamma) < outcome.num_drafted[:, None]
  is_end = target.special_ids.is_end(outcome.draft_tokens)
  num_remaining = np.array(program.pair.limits)[examples] - outcome.num_before
  is_chosen = (num_remaining >= gamma) & ~np.any(is_end & is_draft, axis=1)
  return set(outcome.num_drafted[is_chosen].tolist())


def keys(examples, state) -> list[bytes]:
  """Return what tells states apart: all of a row but caches and score."""
  own = jax.tree.leaves((state.draft_state, state.policy_state))
  columns = [examples, state.sequences, state.num_tokens]
  columns += [x for x in own if x.ndim == 1]
  # By bytes: 0.0 and -0.0 differ, and are then not merged, which costs time.
  parts = [
      np.ascontiguousarray(x).view(np.uint8).reshape(len(examples), -1)
      for x in columns
  ]
  return [row.tobytes() for row in np.concatenate(parts, axis=1)]


def exact_distribution(
    probs: Callable[[tuple[int, ...]], np.ndarray],
    limit: int,
    ends: tuple[int, ...],
) -> dict[tuple[int, ...], float]:
  """Return the target's distribution over outputs, by the chain rule.

  `probs` returns the distribution of the token after some tokens. An output has
  at most `limit` tokens, and its end is one of them.
  """
  found = {}

  def extend(tokens, weight):
    if (tokens and tokens[-1] in ends) or len(tokens) == limit:
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
  """Return the target's distribution over the outputs of each example."""
  ends = program.pair.target.special_ids.ends
  return [
      exact_distribution(functools.partial(program.probs, example), limit, ends)
      for example, limit in enumerate(program.pair.limits)
  ]


def check_rows(program, rule, examples, state) -> None:
  """Step rows in one batch, some of which have ended, and each by itself.

  Raises:
    AssertionError: if a row has another result in the batch.
  """
  rng = np.random.default_rng(0)
  rows = rng.integers(0, len(examples), step_programs.ROWS)
  has_ended = rng.random(len(rows)) < _ENDED
  uniforms = rng.random((len(rows), program.num_uniforms(rule)))
  batch = step_programs.take(state, rows).replace(has_ended=has_ended)
  alone, beside = (
      step_programs.take(
          _decided(step(rule, examples[rows], batch, uniforms)),
          np.flatnonzero(~has_ended),
      )
      for step in (program.step_alone, program.step)
  )
  differ = lambda one, other: not np.allclose(one, other, _ROUNDING, _ROUNDING)
  if any(jax.tree.leaves(jax.tree.map(differ, alone, beside))):
    raise AssertionError(
        f'{program.name}: the draft tokens, the outputs or the state of the'
        ' policy of a row depend on the other rows of its batch. What is'
        ' decided for a row must depend on that row alone.'
    )


def _decided(after: state_lib.State) -> tuple:
  """Return what a row must have decided by itself."""
  outcome = after.outcome
  # What fills a block has no meaning.
  is_draft = (
      np.arange(outcome.draft_tokens.shape[1]) < outcome.num_drafted[:, None]
  )
  draft_tokens = np.where(is_draft, outcome.draft_tokens, -1)
  return (
      outcome.num_drafted, draft_tokens, after.sequences, after.policy_state
  )

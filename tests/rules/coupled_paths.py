# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""All outputs of coupled decoding, over the uniforms of all positions.

Under a coupled rule a position has one uniform, in every step that reaches it:
also in those after a rejection, whose draft was drawn from it already. An
output is therefore a function of one uniform per position. Their cube is cut
into boxes, on each of which every step of the production code decides the same:
where the distributions that draw at a position have their sums, the target's p
and the drafter's q.
"""

from collections.abc import Iterator

import jax
import numpy as np

from speculative_t5x.rules import coupled
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import reachable
from speculative_t5x.testing import step_programs

_THINNEST = 1e-12  # a cut that is nearer to another one is none


class _Paths:
  """Ways of decoding, one row each.

  Attributes:
    examples: [paths] int, the example of each.
    weights: [paths], probability of what is committed.
    low, high: [paths, positions], bounds of the uniforms.
    state: State of each.
  """

  def __init__(self, examples, weights, low, high, state: state_lib.State):
    self.examples, self.weights = examples, weights
    self.low, self.high, self.state = low, high, state

  def take(self, rows) -> '_Paths':
    rows = np.asarray(rows, int)
    return _Paths(
        self.examples[rows],
        self.weights[rows],
        self.low[rows],
        self.high[rows],
        step_programs.take(self.state, rows),
    )

  def uniforms(self, count: int) -> np.ndarray:
    """Return the middle of each box at the next positions, [paths, count]."""
    at = self.state.num_tokens[:, None] + np.arange(count)
    return np.take_along_axis((self.low + self.high) / 2, at, axis=1)

  def forget(self) -> None:
    """Put what is committed into the weights."""
    is_past = np.arange(self.low.shape[1]) < self.state.num_tokens[:, None]
    sizes = np.where(is_past, self.high - self.low, 1.0)
    self.weights = self.weights * np.prod(sizes, axis=1)
    self.low = np.where(is_past, 0.0, self.low)
    self.high = np.where(is_past, 1.0, self.high)

  def merged(self) -> '_Paths':
    """Return one path of those that go on alike."""
    if not len(self.examples):
      return self
    own = zip(
        reachable.keys(self.examples, self.state),
        map(np.ndarray.tobytes, self.low),
        map(np.ndarray.tobytes, self.high),
    )
    groups = {}
    for row, key in enumerate(own):
      groups.setdefault(key, []).append(row)
    found = self.take([rows[0] for rows in groups.values()])
    found.weights = np.array(
        [np.sum(self.weights[rows]) for rows in groups.values()]
    )
    return found


def reach(program: step_programs.Program) -> reachable.Reached:
  """Enumerate decoding by `coupled.Coupled`, as `reachable.reach` does."""
  rule = coupled.Coupled()
  count = program.num_uniforms(rule)
  examples = np.arange(len(program.pair.limits))
  shape = len(examples), max(program.pair.limits) + count
  paths = _Paths(
      examples,
      np.ones(len(examples)),
      np.zeros(shape),
      np.ones(shape),
      program.begin(rule),
  )
  found, lengths, num_paths = [{} for _ in examples], set(), 0
  while len(paths.examples):
    reachable.check_rows(program, rule, paths.examples, paths.state)
    paths = _cut(program, rule, paths, count)
    num_paths += len(paths.examples)
    paths.state = program.step(
        rule, paths.examples, paths.state, paths.uniforms(count)
    )
    lengths |= reachable.chosen_lengths(
        program, paths.examples, paths.state.outcome
    )
    paths.forget()
    state, rest = paths.state, np.prod(paths.high - paths.low, axis=1)
    for row in np.flatnonzero(state.has_ended):
      output = tuple(state.sequences[row, : state.num_tokens[row]].tolist())
      own = found[paths.examples[row]]
      own[output] = own.get(output, 0.0) + paths.weights[row] * rest[row]
    paths = paths.take(np.flatnonzero(~state.has_ended)).merged()
  return reachable.Reached(found, num_paths, lengths)


def _cut(program, rule, paths: _Paths, count: int) -> _Paths:
  """Cut boxes until the next step decides the same on each."""
  whole = []
  while len(paths.examples):
    draft = program.draft(
        rule, paths.examples, paths.state, paths.uniforms(count)
    )
    rows, bounds = [], []
    for row in range(len(paths.examples)):
      position, cuts = _first_cuts(program, paths, draft, row)
      if not len(cuts):
        whole.append(paths.take([row]))
        continue
      edges = [paths.low[row, position], *cuts, paths.high[row, position]]
      for own in zip(edges[:-1], edges[1:]):
        rows.append(row)
        bounds.append((position, *own))
    paths = paths.take(rows)
    for row, (position, low, high) in enumerate(bounds):
      paths.low[row, position], paths.high[row, position] = low, high
  return _joined(whole)


def _joined(parts: list[_Paths]) -> _Paths:
  arrays = [(x.examples, x.weights, x.low, x.high, x.state) for x in parts]
  return _Paths(*jax.tree.map(lambda *x: np.concatenate(x), *arrays))


def _first_cuts(
    program, paths: _Paths, draft: contracts.Draft, row: int
) -> tuple[int, np.ndarray]:
  """Return where a box must be cut: a position, and places within its bounds.

  Cuts of later positions depend on the tokens of this one.
  """
  start = int(paths.state.num_tokens[row])
  for position, distributions in _distributions(
      program, paths, draft, row, start
  ):
    low, high = paths.low[row, position], paths.high[row, position]
    sums = [np.cumsum(each)[:-1] / np.sum(each) for each in distributions]
    cuts = np.unique(np.concatenate([*sums, []]))
    cuts = cuts[(cuts > low + _THINNEST) & (cuts < high - _THINNEST)]
    if len(cuts):
      return position, cuts[np.diff(cuts, prepend=0) > _THINNEST]
  return start, np.array([])


def _distributions(
    program, paths: _Paths, draft, row: int, start: int
) -> Iterator[tuple[int, list[np.ndarray]]]:
  """Yield the positions of a step, and the distributions that draw there."""
  example = int(paths.examples[row])
  limit, gamma = program.pair.limits[example], draft.tokens.shape[1]
  length, tokens = int(draft.lengths[row]), draft.tokens[row].tolist()
  prefix = tuple(paths.state.sequences[row, :start].tolist())
  is_accepted = True
  for i in range(min(length + 1, limit - start)):
    found, position = [], start + i
    if is_accepted:
      p = program.probs(example, prefix + tuple(tokens[:i]))
      found.append(p)
      middle = (paths.low[row, position] + paths.high[row, position]) / 2
      drawn = np.searchsorted(np.cumsum(p) / np.sum(p), middle, side='right')
      is_accepted = i < length and drawn == tokens[i]
    if i < gamma and draft.probs is not None:
      q = draft.probs[row, i].astype(np.float64)
      if np.all(np.isfinite(q)) and np.sum(q) > 0:  # else nothing was drawn
        found.append(q)
    yield position, found

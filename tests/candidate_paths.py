# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""All paths of the production step over trees of candidates.

What a draft model draws at a node is enumerated by a description of its own;
the likeliest nodes, which nothing draws, are found by one. How a rule tests
siblings is not described: boxes of uniforms on which it decides alike are found
by evaluating it. Draws at nodes that a walk does not reach are random.
"""

from collections.abc import Callable, Iterator
import functools
import itertools
from typing import NamedTuple

import jax
import numpy as np

from speculative_t5x.rules import k_sequential
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import verification
from speculative_t5x.testing import boxes
from speculative_t5x.testing import reachable
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model

END = table_model.SPECIAL_IDS.end


class Drawn(NamedTuple):
  """Siblings, their probability, and uniforms that draw them."""

  weight: float
  tokens: tuple[int, ...]
  uniforms: tuple[float, ...]


# Takes logits [vocab], a temperature and how many siblings there are.
Draws = Callable[[np.ndarray, float, int], list[Drawn]]


def _distribution(logits: np.ndarray, temperature: float) -> np.ndarray:
  if np.all(logits == -np.inf):
    return np.zeros_like(logits)
  if temperature == 0:
    return np.eye(len(logits))[np.argmax(logits)]
  weights = np.exp((logits - np.max(logits)) / temperature)
  return weights / np.sum(weights)


def without_replacement(logits, temperature, count) -> list[Drawn]:
  """Return all ordered draws of unequal tokens."""
  found = [Drawn(1.0, (), ())]
  for _ in range(count):
    longer = []
    for weight, tokens, uniforms in found:
      rest = logits.copy()
      rest[[*tokens]] = -np.inf
      longer += [
          Drawn(weight * length, (*tokens, token), (*uniforms, middle))
          for length, token, middle in _intervals(
              _distribution(rest, temperature)
          )
      ]
    found = longer
  return found


def independent(logits, temperature, count) -> list[Drawn]:
  """Return all draws of tokens that do not depend on each other."""
  each = list(_intervals(_distribution(logits, temperature)))
  return [
      Drawn(float(np.prod(lengths)), tokens, middles)
      for choice in itertools.product(each, repeat=count)
      for lengths, tokens, middles in [zip(*choice, strict=True)]
  ]


def _intervals(probs: np.ndarray) -> Iterator[tuple[float, int, float]]:
  """Yield length, token and middle of the uniforms that draw each token."""
  high = 0.0
  for token in np.flatnonzero(probs).tolist():
    low, high = high, high + probs[token]
    yield probs[token], token, (low + high) / 2


RULES = {
    'tokenwise': (verification.TOKENWISE, without_replacement),
    'k_sequential': (k_sequential.KSequential(), independent),
    # Of the likeliest nodes; there none is drawn.
    'likeliest': (verification.TOKENWISE, None),
}


class _Box(NamedTuple):
  """Uniforms of siblings on which a rule decides alike."""

  weight: float
  uniforms: tuple[float, ...]
  index: int
  next_probs: np.ndarray


class Paths:
  """The steps of a program with trees of a fixed shape, under a rule.

  A drafter whose distributions know more of a node than the tokens before it
  has `find_logits`, which returns those of the token after a path, given an
  example, the tokens before the root and those of the path.
  """

  _root = 0

  def __init__(
      self, program: step_programs.Program, rule, draws: Draws, find_logits=None
  ):
    self._find_logits = find_logits
    self._program = program
    self._rule = rule
    self._draws = draws
    self._drafter = program.pair.drafter
    self._width = self._drafter.form.width
    self._random = np.random.default_rng(0)
    self._boxes = self._find_boxes()

  def distributions(self) -> list[dict[tuple[int, ...], float]]:
    """Return the probability of each output, per example."""
    program, rule = self._program, self._rule
    state = program.begin(rule)
    examples = np.arange(len(program.pair.limits))
    weights = np.ones(len(examples))
    found = [{} for _ in examples]
    while len(examples):
      paths = [
          (row, *path)
          for row, example in enumerate(examples.tolist())
          for path in self._of_state(
              example, tuple(state.sequences[row, : state.num_tokens[row]])
          )
      ]
      rows, own, uniforms = map(np.array, zip(*paths, strict=True))
      examples, weights = examples[rows], weights[rows] * own
      before = step_programs.take(state, rows)
      state = program.step(rule, examples, before, uniforms)
      examples, weights, state = reachable.settle(
          found, examples, weights, state
      )
    return found

  def _of_state(
      self, example: int, prefix: tuple[int, ...]
  ) -> Iterator[tuple[float, np.ndarray]]:
    """Yield probability and uniforms of all paths of a step."""
    pair = self._program.pair
    num_wanted = min(
        pair.drafter.form.gamma, pair.limits[example] - len(prefix)
    )
    for weight, drawn, tests, last in self._walk(
        example, prefix, self._start(prefix), self._root, num_wanted
    ):
      uniforms = self._random.random(self._program.num_uniforms(self._rule))
      for node, uniform in drawn.items():
        uniforms[node - 1] = uniform
      first = pair.drafter.form.num_uniforms
      for depth, own in enumerate(tests):
        at = first + depth * self._width
        uniforms[at : at + len(own)] = own
      uniforms[-1] = last
      yield weight, uniforms

  def _start(self, prefix) -> int:
    """Return what of the place of a root its drafts depend on."""
    return len(prefix) if self._find_logits else 0

  def _walk(self, example, prefix, start, node, num_left):
    """Yield probability, draws by node, tests by depth and the last uniform."""
    probs = self._program.probs(example, prefix)
    if prefix and prefix[-1] == END and node:  # nothing is drawn after it
      yield 1.0, {}, (), 0.5
      return
    families = []
    if num_left:
      families = self._families(example, prefix, start, node)
    if not families:
      for length, _, middle in _intervals(probs):
        yield length, {}, (), middle
      return
    for children, siblings in families:
      drawn = dict(zip(children, siblings.uniforms))
      for box in self._boxes[example, prefix, start, siblings.tokens]:
        weight = siblings.weight * box.weight
        if box.index == self._width:
          for length, _, middle in _intervals(box.next_probs):
            yield weight * length, drawn, (box.uniforms,), middle
          continue
        for own, more, tests, last in self._walk(
            example,
            (*prefix, siblings.tokens[box.index]),
            start,
            children[box.index],
            num_left - 1,
        ):
          yield weight * own, drawn | more, (box.uniforms, *tests), last

  def _families(self, example, prefix, start, node) -> list[tuple[list, Drawn]]:
    """Return all that the children of a node may be; none without children."""
    parents = self._drafter.shape.parents
    children = [x for x in range(1, len(parents)) if parents[x] == node]
    if not children:
      return []
    draws = self._draw(example, prefix, start, len(children))
    return [(children, drawn) for drawn in draws]

  def _find_boxes(self) -> dict[tuple, list[_Box]]:
    """Return the boxes of the rule's decisions, by all that it may meet."""
    problems = list(self._problems())
    width, counts = self._width, [len(tokens) for *_, tokens in problems]
    find = lambda function: np.array([function(*x) for x in problems])
    siblings = candidates.Siblings(
        find(lambda *x: np.resize(x[-1], width)).astype(np.int32),
        np.arange(width) < np.array(counts)[:, None],
        self._draft_logits(problems),
        self._program.samplings[1].of_rows(len(problems)),
    )
    p = find(lambda example, prefix, *_: self._program.probs(example, prefix))
    choose = jax.jit(lambda *args: self._rule.choose(*args))

    def decide(rows, uniforms):
      choice = choose(p[rows], step_programs.take(siblings, rows), uniforms)
      # Where a candidate is accepted, the weights do not matter.
      is_none = np.array(choice.index)[:, None] == width
      # In float64: the intervals of a sum in float32 would end behind 1.
      weights = np.where(is_none, np.float64(choice.next_weights), 1)
      total = np.sum(weights, axis=1, keepdims=True)
      # Nothing is left of p where float32 rounds the rest of a test to 0.
      total = np.where(total > 0, total, 1)
      return np.column_stack([choice.index, weights / total])

    found = {problem: [] for problem in problems}
    for number, weight, middle, values in boxes.constant_boxes(
        boxes.batched(decide), len(problems), width
    ):
      box = _Box(weight, tuple(middle), int(values[0]), values[1:])
      found[problems[number]].append(box)
    return found

  def _draft_logits(self, problems) -> np.ndarray | None:
    return np.array([self._logits(*problem[:3]) for problem in problems])

  def _problems(self) -> Iterator[tuple]:
    """Yield example, prefix, start and siblings of all decisions."""
    counts = {*self._drafter.shape.branching}
    for example, prefix in self._prefixes():
      nearest = max(0, len(prefix) - self._drafter.form.gamma + 1)
      starts = range(nearest, len(prefix) + 1) if self._find_logits else [0]
      for start, count in itertools.product(starts, counts):
        for drawn in self._draw(example, prefix, start, count):
          yield example, prefix, start, drawn.tokens

  def _prefixes(self) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield all that may stand before a token of each example."""
    target = self._program.pair.target
    size = getattr(target, 'num_valid_tokens', None) or target.vocab_size
    others = [token for token in range(size) if token != END]
    for example, limit in enumerate(self._program.pair.limits):
      for length in range(limit):
        for prefix in itertools.product(others, repeat=length):
          yield example, prefix

  def _draw(self, example, prefix, start, count) -> list[Drawn]:
    temperature = float(self._program.samplings[1].temperature)
    return self._draws(self._logits(example, prefix, start), temperature, count)

  def _logits(self, example, prefix, start) -> np.ndarray:
    if self._find_logits is not None:
      return self._find_logits(example, prefix[:start], prefix[start:])
    tables = self._program.pair.draft_params
    return tables[example, *table_model.place(prefix)]


class LikeliestPaths(Paths):
  """The steps of a program with trees of the likeliest nodes, under a rule.

  A node is the tokens of its path.
  """

  _root = ()

  def __init__(self, program: step_programs.Program, rule, find_logits=None):
    self._tree = functools.cache(self._make_tree)
    super().__init__(program, rule, None, find_logits)

  def _make_tree(self, example, root) -> dict[tuple, tuple[int, ...]]:
    """Return the tokens of the children of each node."""
    level = nodes = [(0.0, ())]
    for _ in range(self._drafter.form.gamma):
      longer = [
          (score + np.log(prob), (*path, token))
          for score, path in level
          if path[-1:] != (END,)
          for token, prob in enumerate(
              _distribution(
                  self._logits(example, (*root, *path), self._start(root)), 1
              )
          )
          if prob
      ]
      level = sorted(longer, reverse=True)[: self._drafter.form.width]
      nodes = nodes + level
    found = {}
    for _, path in sorted(nodes, reverse=True)[: self._drafter.form.num_nodes]:
      found[path] = ()
      if path:
        found[path[:-1]] += path[-1:]
    return found

  def _families(self, example, prefix, start, node):
    root = prefix[: len(prefix) - len(node)]
    tokens = self._tree(example, root)[node]
    children = [(*node, token) for token in tokens]
    return [(children, Drawn(1.0, tokens, ()))] if tokens else []

  def _draft_logits(self, problems) -> None:
    return None

  def _problems(self):
    prefixes = {*self._prefixes()}
    found = {
        (example, (*root, *node), self._start(root), tokens)
        for example, root in prefixes
        for node, tokens in self._tree(example, root).items()
        if tokens and (example, (*root, *node)) in prefixes
    }
    return iter(found)

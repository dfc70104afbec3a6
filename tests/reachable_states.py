# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The exact distribution of outputs over all states that decoding reaches.

Other than in `enumeration`, no drafter and no policy is described a second
time. What is drafted is found by evaluating the production code, and each step
begins with the states of drafter and policy, and with the caches, that the step
before it left. Paths with the same tokens and states are merged; caches are not
compared, because what they hold behind the tokens must not matter.
"""

from collections.abc import Iterator
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import testing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from tests import combinations
from tests import tiny_drafters
from tests import words

ROWS = 512  # paths per call of a compiled function


class Draft(NamedTuple):
  """What is drafted for some of the drafter's uniforms.

  Attributes:
    row: index of the state.
    weight: the probability of these uniforms.
    uniforms: some of them.
    tokens: of the draft.
    probs: the distribution of each token.
  """

  row: int
  weight: float
  uniforms: tuple[float, ...]
  tokens: tuple[int, ...]
  probs: tuple[np.ndarray, ...]


class Program:
  """A pair's production step, compiled for `ROWS` rows.

  Attributes:
    pair: what is decoded.
  """

  def __init__(
      self,
      pair: tiny_drafters.Pair,
      sampling: sampling_lib.Sampling,
      rule: contracts.Rule | None = None,
      policy: contracts.DraftLengthPolicy | None = None,
  ):
    """Compiles nothing yet.

    Args:
      pair: what is decoded.
      sampling: of target and drafter.
      rule: the only one; None to choose one per row.
      policy: likewise.
    """
    self.pair = pair
    self.sampling = sampling
    self.probs = tiny_drafters.probs(pair, sampling)
    self._rule = rule
    self._policy = policy or combinations.PolicyOfRow()
    self._begin = jax.jit(lambda *args: self._start(*args)[2])
    self._step = jax.jit(self._run_step)
    self._propose = jax.jit(self._run_propose)
    self._loop = jax.jit(self._run_loop)

  def _start(self, examples, rule_index):
    """Begins with examples [examples], each of as many rows as the next."""
    pair = self.pair
    per_example = len(rule_index) // len(examples)
    limits = jnp.asarray(pair.limits, jnp.int32)[examples]
    rule = self._rule or combinations.RuleOfRow(rule_index)
    setup = state_lib.Setup(
        pair.target,
        jax.tree.map(jnp.asarray, pair.target_params),
        self.sampling,
        pair.drafter,
        jax.tree.map(jnp.asarray, pair.draft_params),
        self.sampling,
        rule,
        self._policy,
    )
    return setup, *state_lib.begin(
        setup,
        jnp.asarray(pair.inputs)[examples],
        None,
        jnp.repeat(limits, per_example),
        length=max(pair.limits),
    )

  def _run_step(self, examples, rule_index, state, uniforms):
    setup, batch, _ = self._start(examples, rule_index)
    return step_lib.step(setup, batch, state, uniforms)[0]

  def _run_propose(self, examples, rule_index, state, uniforms):
    """Returns drafts, cut as the step cuts them."""
    setup, batch, _ = self._start(examples, rule_index)
    own, *_ = step_lib._divide(setup, uniforms)
    draft, *_ = step_lib._draft(setup, batch, state, own)
    vocab_size = setup.target.vocab_size
    lengths = step_lib._count_draft_tokens(
        draft, setup.target.special_ids.end, vocab_size
    )
    return draft.replace(lengths=lengths)

  def decode(
      self, rules: jax.Array, policies: jax.Array, seed: int
  ) -> state_lib.State:
    """Returns the states after the jitted loop, of the first example.

    Args:
      rules: [rows] int32, indices of the rules.
      policies: [rows] int32, likewise.
      seed: of the samples.
    """
    return self._loop(rules, policies, jnp.int32(seed))

  def _run_loop(self, rules, policies, seed):
    setup, batch, state = self._start(np.array([0]), rules)
    keys = state_lib.row_keys(seed, jnp.arange(len(rules), dtype=jnp.int32))
    policy_state = state.policy_state._replace(index=policies)
    run = loop.Run(
        batch.replace(keys=keys), state.replace(policy_state=policy_state), None
    )
    return loop.advance(setup, run, max(self.pair.limits))[0].state

  @property
  def num_draft_uniforms(self) -> int:
    return self.pair.drafter.num_uniforms

  def begin(self, rule: str, policy: str) -> state_lib.State:
    """Returns the states of all examples before any token."""
    examples = np.resize(np.arange(len(self.pair.limits)), ROWS)
    state = self._begin(examples, self._index(rule))
    if isinstance(self._policy, combinations.PolicyOfRow):
      number = list(combinations.POLICIES).index(policy)
      index = jnp.full((ROWS,), number, jnp.int32)
      own = state.policy_state._replace(index=index)
      state = state.replace(policy_state=own)
    state = jax.device_get(state)
    return take(state, np.arange(len(self.pair.limits)))

  def propose(self, rule, examples, state, uniforms) -> contracts.Draft:
    """Returns the drafts of any number of rows."""
    return self._in_parts(self._propose, rule, examples, state, uniforms)

  def step(self, rule, examples, state, uniforms) -> state_lib.State:
    """Makes one step of any number of rows."""
    return self._in_parts(self._step, rule, examples, state, uniforms)

  def _index(self, rule: str) -> np.ndarray:
    return np.full((ROWS,), list(combinations.RULES).index(rule), np.int32)

  def _in_parts(self, function, rule, examples, state, uniforms):
    found = []
    for i in range(0, len(examples), ROWS):
      count = min(ROWS, len(examples) - i)
      rows = i + np.arange(ROWS) % count
      after = function(
          examples[rows],
          self._index(rule),
          take(state, rows),
          words.words(uniforms[rows]),
      )
      found.append(take(jax.device_get(after), np.arange(count)))
    return jax.tree.map(lambda *x: np.concatenate(x), *found)


def take(tree: Any, rows: np.ndarray) -> Any:
  """Returns some rows of all arrays."""
  return jax.tree.map(lambda x: np.asarray(x)[rows], tree)


def drafts(program: Program, rule, examples, state) -> list[Draft]:
  """Returns every draft of each state; those of a state add up to 1.

  The first uniform that a drafter has not used yet draws the next token that is
  sampled. The drafts must not change between two neighbouring sums of the
  probabilities that the drafter states.

  Raises:
    AssertionError: if tokens are not drawn from the stated distributions.
  """
  open_drafts = [Draft(i, 1.0, (), (), ()) for i in range(len(examples))]
  found, edges = {}, []
  depth = 0
  while open_drafts:
    proposed = _proposed(program, rule, examples, state, open_drafts)
    later = []
    for at, each in enumerate(open_drafts):
      tokens = _check_drawn(proposed, at, each)
      length = int(proposed.lengths[at])
      q = _next_probs(proposed, at, depth) if length >= depth else None
      if q is None:
        _add(found, each, length)
      elif q is True:
        mass = np.eye(program.pair.target.vocab_size)[tokens[depth]]
        child = each._replace(
            tokens=tokens[: depth + 1], probs=(*each.probs, mass)
        )
        later.append(child)
        edges += _with_other_uniforms(child, program.num_draft_uniforms)
      else:
        for child, ends in _children(each, q, program.pair.tolerance):
          later.append(child)
          edges += ends
    open_drafts, depth = later, depth + 1
  _check_edges(program, rule, examples, state, edges)
  return list(found.values())


def _proposed(program, rule, examples, state, asked) -> contracts.Draft:
  rows = np.array([each.row for each in asked])
  count = step_uniforms(program)
  uniforms = np.full((len(asked), count), 0.5)
  for row, each in zip(uniforms, asked):
    row[: len(each.uniforms)] = each.uniforms
  return program.propose(rule, examples[rows], take(state, rows), uniforms)


def step_uniforms(program: Program) -> int:
  drafter = program.pair.drafter
  return drafter.num_uniforms + drafter.max_draft_tokens + 1


def _next_probs(proposed, row, depth):
  """Returns q of the token at a depth, True for a point mass, None for none."""
  gamma = proposed.tokens.shape[1]
  if (
      depth == gamma
      or proposed.probs is None
      and (depth >= proposed.lengths[row])
  ):
    return None
  if proposed.probs is None:
    return True
  if proposed.is_point_mass is not None and proposed.is_point_mass[row, depth]:
    return True
  q = proposed.probs[row, depth].astype(np.float64)
  # A token may be drawn that is not drafted, because of its own value or not.
  return q if np.sum(q) > 0 else None


def _children(each: Draft, q, tolerance):
  """Yields a draft for each next token, and some with uniforms at its ends."""
  cuts = np.concatenate([[0], np.cumsum(q) / np.sum(q)])
  # Uniforms have 32 bits here.
  margin = max(tolerance, 1e-9)
  for token in np.flatnonzero(q).tolist():
    low, high = cuts[token], cuts[token + 1]
    if high - low < 4 * margin:
      continue
    at = lambda u, token=token: Draft(
        each.row,
        each.weight * q[token] / np.sum(q),
        (*each.uniforms, float(u)),
        (*each.tokens, token),
        (*each.probs, q),
    )
    yield at((low + high) / 2), [at(low + margin), at(high - margin)]


def _with_other_uniforms(each: Draft, count: int) -> list[Draft]:
  """Returns a draft whose last token must not depend on unused uniforms."""
  unused = count - len(each.uniforms)
  return [
      each._replace(uniforms=(*each.uniforms, *[value] * unused))
      for value in (0.01, 0.99)
      if unused
  ]


def _add(found, each: Draft, length: int):
  """Adds a draft that is cut to a length; equal ones are merged."""
  key = each.row, each.tokens[:length]
  before = found.get(key)
  weight = each.weight + (before.weight if before else 0.0)
  chosen = before or each._replace(
      tokens=each.tokens[:length], probs=each.probs[:length]
  )
  found[key] = chosen._replace(weight=weight)


def _check_edges(program, rule, examples, state, edges):
  if not edges:
    return
  proposed = _proposed(program, rule, examples, state, edges)
  for row, each in enumerate(edges):
    _check_drawn(proposed, row, each)


def _check_drawn(proposed, row, each: Draft) -> tuple[int, ...]:
  """Returns the proposed tokens, which begin with those of a draft."""
  tokens = tuple(proposed.tokens[row].tolist())
  count = min(len(each.tokens), int(proposed.lengths[row]))
  if tokens[:count] != each.tokens[:count]:
    raise AssertionError(
        f'The drafter drew {tokens[:count]} where the distributions that it'
        f' states give {each.tokens[:count]}.'
    )
  return tokens


@functools.cache
def enumerator(rule: str) -> testing.Enumerator:
  return testing.Enumerator(combinations.RULES[rule])


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


def paths(program: Program, rule, examples, state, known) -> Paths:
  """Returns all paths of a step.

  Args:
    program: whose step.
    rule: its name.
    examples: of the states.
    state: where the step begins.
    known: decisions of the rule so far, by what they depend on.
  """
  num_tokens = state.num_tokens.tolist()
  prefixes = [
      tuple(row[:count].tolist())
      for row, count in zip(state.sequences, num_tokens)
  ]
  drafted = drafts(program, rule, examples, state)
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
    for path in enumerator(rule).paths(*testing.join(problems)):
      key = by_number[path.problem]
      p = program.probs(key[0], key[1] + key[2][: path.num_accepted])
      for length, middle in _intervals(path.next_probs, p):
        uniforms = *path.accept_uniforms.tolist(), middle
        known[key].append((path.weight * length, uniforms))
  rows, weights, uniforms = [], [], []
  num_own = program.num_draft_uniforms
  for key, each in zip(keys, drafted):
    unused = (0.5,) * (num_own - len(each.uniforms))
    for weight, values in known[key]:
      rows.append(each.row)
      weights.append(each.weight * weight)
      uniforms.append((*each.uniforms, *unused, *values))
  return Paths(np.array(rows), np.array(weights), np.array(uniforms))


def _problem(program, example, prefix, draft: Draft):
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


def _intervals(*distributions) -> Iterator[tuple[float, float]]:
  """Yields lengths and midpoints of [0, 1), cut at all boundaries."""
  cuts = [np.cumsum(each) / np.sum(each) for each in distributions]
  edges = np.unique(np.concatenate([[0.0, 1.0], *cuts]).clip(0, 1))
  for low, high in zip(edges[:-1], edges[1:]):
    if high - low > 1e-12:
      yield high - low, (low + high) / 2


def joint_distributions(
    program: Program, rule: str, policy: str, known: dict
) -> tuple[list[dict], int, set[int]]:
  """Returns distributions, the number of paths, and `_chosen_lengths`."""
  state = program.begin(rule, policy)
  examples = np.arange(len(program.pair.limits))
  weights = np.ones(len(examples))
  found = [{} for _ in examples]
  num_paths, lengths = 0, set()
  while len(examples):
    made = paths(program, rule, examples, state, known)
    num_paths += len(made.rows)
    examples, weights = examples[made.rows], weights[made.rows] * made.weights
    state = program.step(rule, examples, take(state, made.rows), made.uniforms)
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
    examples, state = examples[rows], take(state, rows)
  return found, num_paths, lengths


def _chosen_lengths(program, examples, outcome) -> set[int]:
  """Returns lengths of drafts that no limit and no end of sequence cut."""
  drafter, target = program.pair.drafter, program.pair.target
  gamma = drafter.max_draft_tokens
  is_draft = np.arange(gamma) < outcome.num_drafted[:, None]
  is_end = outcome.draft_tokens == target.special_ids.end
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


def exact_distribution(program: Program, example: int) -> dict:
  """Returns the target's distribution over outputs, by the chain rule."""
  limit, found = program.pair.limits[example], {}
  end = program.pair.target.special_ids.end

  def extend(tokens, weight):
    if (tokens and tokens[-1] == end) or len(tokens) == limit:
      found[tokens] = weight
      return
    p = program.probs(example, tokens)
    for token in np.flatnonzero(p).tolist():
      extend((*tokens, token), weight * p[token])

  extend((), 1.0)
  return found


def error(
    program: Program, rule: str, policy: str, known: dict
) -> tuple[float, set[int]]:
  """Returns the largest error of an output's probability, and draft lengths."""
  distributions, num_paths, lengths = joint_distributions(
      program, rule, policy, known
  )
  largest = 0.0
  for example, found in enumerate(distributions):
    exact = exact_distribution(program, example)
    for output in exact.keys() | found.keys():
      difference = exact.get(output, 0.0) - found.get(output, 0.0)
      largest = max(largest, abs(difference))
  print(f'{num_paths} paths, error {largest:.1e}')
  return largest, lengths

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Everything that a drafter drafts, by evaluating it on all of its uniforms."""

from typing import NamedTuple

import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.testing import step_programs

# Of uniforms that draw no token.
_OTHERS = 0.01, 0.25, 0.75, 0.99


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


def drafts(
    program: step_programs.Program, rule, examples, state
) -> list[Draft]:
  """Returns every draft of each state; those of a state add up to 1.

  The first uniform that a drafter has not used yet draws the next token that is
  sampled. The drafts must not change between two neighbouring sums of the
  probabilities that the drafter states. Uniforms that draw no token are 1/2 in
  what is returned, and the same is checked with other values of them.

  Raises:
    AssertionError: if tokens are not drawn from the stated distributions, or if
      some that are drawn are left out of the draft for the values of tokens.
  """
  found = _drafts(program, rule, examples, state, 0.5)
  most = max(len(each.uniforms) for each in found)
  if most < program.pair.drafter.num_uniforms:
    for rest in _OTHERS:
      _drafts(program, rule, examples, state, rest)
  return found


def _drafts(program, rule, examples, state, rest: float) -> list[Draft]:
  """See `drafts`.

  Args:
    program: likewise.
    rule: likewise.
    examples: likewise.
    state: likewise.
    rest: the uniforms that draw no token.
  """
  open_drafts = [Draft(i, 1.0, (), (), ()) for i in range(len(examples))]
  found, ends, others, drawn = {}, [], [], []
  depth = 0
  while open_drafts:
    proposed = _proposed(program, rule, examples, state, open_drafts, rest)
    later = []
    for at, each in enumerate(open_drafts):
      tokens = _check_drawn(program, proposed, at, each)
      length = int(proposed.lengths[at])
      q = _next_probs(proposed, at, depth) if length >= depth else None
      if q is None:
        _add(found, each, length)
        drawn.append((each.row, each.tokens, length))
      elif q is True:
        mass = np.eye(program.pair.target.vocab_size)[tokens[depth]]
        child = each._replace(
            tokens=tokens[: depth + 1], probs=(*each.probs, mass)
        )
        later.append(child)
        others += _with_other_uniforms(child, program.pair.drafter.num_uniforms)
      else:
        for child, own_ends in _children(each, q, program.pair.tolerance):
          later.append(child)
          ends += own_ends
    open_drafts, depth = later, depth + 1
  _lengths(program, rule, examples, state, others, rest)
  lengths = _lengths(program, rule, examples, state, ends, rest)
  drawn += [(x.row, x.tokens, n) for x, n in zip(ends, lengths)]
  _check_none_dropped(program, drawn)
  return list(found.values())


def _proposed(
    program, rule, examples, state, asked, rest: float
) -> contracts.Draft:
  rows = np.array([each.row for each in asked])
  uniforms = np.full((len(asked), program.num_uniforms), rest)
  for row, each in zip(uniforms, asked):
    row[: len(each.uniforms)] = each.uniforms
  return program.draft(
      rule, examples[rows], step_programs.take(state, rows), uniforms
  )


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


def _lengths(program, rule, examples, state, asked, rest: float) -> list[int]:
  """Checks the tokens of some drafts, and returns the lengths."""
  if not asked:
    return []
  proposed = _proposed(program, rule, examples, state, asked, rest)
  for row, each in enumerate(asked):
    _check_drawn(program, proposed, row, each)
  return proposed.lengths.tolist()


def _check_drawn(program, proposed, row, each: Draft) -> tuple[int, ...]:
  """Returns the proposed tokens, which begin with those of a draft."""
  tokens = tuple(proposed.tokens[row].tolist())
  count = min(len(each.tokens), int(proposed.lengths[row]))
  if tokens[:count] != each.tokens[:count]:
    raise AssertionError(
        f'{program.name} drew {tokens[:count]} where the distributions that it'
        f' states give {each.tokens[:count]}. `probs` must be what each token'
        ' was drawn from, by `sampling.draw` and the uniforms in their order;'
        ' only a token that no uniform decides is a point mass.'
    )
  return tokens


def _check_none_dropped(
    program: step_programs.Program,
    drawn: list[tuple[int, tuple[int, ...], int]],
) -> None:
  """Checks that tokens decide only about the drafting of tokens after them.

  Args:
    program: whose drafter it is.
    drawn: state, all tokens drawn, and how many of them are draft tokens.
  """
  first = {}
  for row, tokens, length in drawn:
    for at in range(len(tokens)):
      is_drafted = at < length
      own = is_drafted, tokens, length
      other = first.setdefault((row, tokens[:at]), own)
      if other[0] == is_drafted:
        continue
      ways = sorted([(tokens, length), other[1:]], key=lambda x: -x[1])
      (long, more), (short, fewer) = ways
      raise AssertionError(
          f'{program.name} drew {long} and drafted the first {more} of them,'
          f' but drew {short} and drafted the first {fewer}. A token was drawn'
          ' and left untested for its own value or a later one. That biases the'
          ' outputs. Stop a draft after a token, not before it.'
      )

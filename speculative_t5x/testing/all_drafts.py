# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Everything that a drafter drafts, by evaluating it on all of its uniforms."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.testing import step_programs

# Values of uniforms that draw no token.
_OTHERS = 0.01, 0.25, 0.75, 0.99


class Drawn(NamedTuple):
  """A draft for some of the drafter's uniforms."""

  row: int  # index of the state
  weight: float  # the probability of these uniforms
  uniforms: tuple[float, ...]  # some of them
  tokens: tuple[int, ...]
  probs: tuple[np.ndarray, ...]  # the distribution of each token


def drafts(
    program: step_programs.Program, rule, examples, state
) -> list[Drawn]:
  """Return every draft of each state; those of a state add up to 1.

  The first uniform that a drafter has not used yet draws the next token that is
  sampled. The drafts must not change between two neighbouring sums of the
  probabilities that the drafter states. Uniforms that draw no token are 1/2 in
  what is returned; with other values of them, tokens must be the same, and must
  not be left out for their values either.

  Raises:
    AssertionError: if tokens are not drawn from the stated distributions, or if
      tokens that were drawn are left out for the values of tokens.
  """
  num_own = program.pair.drafter.form.num_uniforms

  def propose(asked: Sequence[Drawn], rest: float = 0.5) -> contracts.Draft:
    rows = np.array([each.row for each in asked])
    uniforms = np.full((len(asked), program.num_uniforms(rule)), rest)
    for row, each in zip(uniforms, asked):
      row[: len(each.uniforms)] = each.uniforms
    proposed = program.draft(
        rule, examples[rows], step_programs.take(state, rows), uniforms
    )
    for at, each in enumerate(asked):
      _check_drawn(program, proposed, at, each)
    return proposed

  open_drafts = [Drawn(i, 1.0, (), (), ()) for i in range(len(examples))]
  # Of a whole draft also how many of its tokens are draft tokens.
  whole, ends, depth = [], [], 0
  while open_drafts:
    proposed = propose(open_drafts)
    later = []
    for at, each in enumerate(open_drafts):
      length = int(proposed.lengths[at])
      q = _next_probs(proposed, at, depth) if length >= depth else None
      if q is None:
        whole.append((each, length))
      elif q is True:
        token = int(proposed.tokens[at, depth])
        mass = np.eye(program.pair.target.vocab_size)[token]
        tokens, probs = (*each.tokens, token), (*each.probs, mass)
        later.append(each._replace(tokens=tokens, probs=probs))
      else:
        for child, own_ends in _children(each, q, program.pair.tolerance):
          later.append(child)
          ends += own_ends
    open_drafts, depth = later, depth + 1
  lengths = propose(ends).lengths.tolist() if ends else []
  _check_none_dropped(program, [*whole, *zip(ends, lengths)])
  unsure = [each for each, _ in whole if len(each.uniforms) < num_own]
  for rest in _OTHERS if unsure else ():
    lengths = propose(unsure, rest).lengths.tolist()
    _check_none_dropped(program, list(zip(unsure, lengths)))
  return _cut(whole)


def _next_probs(proposed, row, depth) -> np.ndarray | bool | None:
  """Return q of the token at a depth, True for a point mass, None for none."""
  if depth == proposed.tokens.shape[1]:
    return None
  if proposed.probs is None:
    return True if depth < proposed.lengths[row] else None
  if proposed.is_point_mass is not None and proposed.is_point_mass[row, depth]:
    return True if depth < proposed.lengths[row] else None
  q = proposed.probs[row, depth].astype(np.float64)
  # A token may be drawn that is not drafted, because of its own value or not.
  return q if np.sum(q) > 0 else None


def _children(
    each: Drawn, q: np.ndarray, tolerance: float
) -> Iterator[tuple[Drawn, list[Drawn]]]:
  """Yield a draft for each next token, and some with uniforms at its ends."""
  # By the computed sum, as `sampling.draw` divides: it is 1 up to rounding.
  cuts = np.concatenate([[0], np.cumsum(q) / np.sum(q)])
  # Uniforms have 32 bits here.
  margin = max(tolerance, 1e-9)
  for token in np.flatnonzero(q).tolist():
    low, high = cuts[token], cuts[token + 1]
    if high - low < 4 * margin:
      continue
    at = lambda u, token=token: Drawn(
        each.row,
        each.weight * q[token] / np.sum(q),
        (*each.uniforms, float(u)),
        (*each.tokens, token),
        (*each.probs, q),
    )
    yield at((low + high) / 2), [at(low + margin), at(high - margin)]


def _cut(whole: list[tuple[Drawn, int]]) -> list[Drawn]:
  """Return drafts cut to their lengths; equal ones are merged."""
  found = {}
  for each, length in whole:
    own = each._replace(
        tokens=each.tokens[:length], probs=each.probs[:length]
    )
    first = found.setdefault((own.row, own.tokens), own._replace(weight=0.0))
    found[own.row, own.tokens] = first._replace(
        weight=first.weight + own.weight
    )
  return list(found.values())


def _check_drawn(program, proposed, row, each: Drawn) -> None:
  """Check that the proposed tokens begin with those of a draft."""
  tokens = tuple(proposed.tokens[row].tolist())
  count = min(len(each.tokens), int(proposed.lengths[row]))
  if tokens[:count] != each.tokens[:count]:
    raise AssertionError(
        f'{program.name} drew {tokens[:count]} where the distributions that it'
        f' states give {each.tokens[:count]}. `probs` must be what each token'
        ' was drawn from, by `sampling.draw` and the uniforms in their order;'
        ' only a token that no uniform decides is a point mass.'
    )


def _check_none_dropped(
    program: step_programs.Program, drawn: list[tuple[Drawn, int]]
) -> None:
  """Check that tokens decide only about the drafting of tokens after them.

  `drawn` has all tokens drawn, and how many of them are draft tokens.
  """
  first = {}
  for (row, _, _, tokens, _), length in drawn:
    for at in range(len(tokens)):
      own = at < length, tokens, length
      other = first.setdefault((row, tokens[:at]), own)
      if other[0] != own[0]:
        raise AssertionError(
            f'{program.name} drew {tokens} and drafted the first {length} of'
            f' them, but drew {other[1]} and drafted the first {other[2]}. A'
            ' token was drawn and left untested for its own value or a later'
            ' one. That biases the outputs. Stop a draft after a token, not'
            ' before it.'
        )

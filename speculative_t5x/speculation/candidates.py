# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates: several draft tokens per position.

A tree may have the same shape in all rows and calls, as this one:

  (2, (2, 1)), gamma 3                 nodes, depth by depth
                                                   0
  depth 1: two children of the root         1             2
  depth 2: two of the first, one else     3   4           5
  depth 3: one of each                    6   7           8

Legend: rows, nodes (of a tree, its root included), gamma (depth of a tree),
width (most children of a node), vocab.
"""

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import token_trees

# Per depth, how many children each node of the depth before has: one number for
# all, or several, of which the last one is that of all further nodes.
Branching = tuple[int | tuple[int, ...], ...]

# On TPUs of today some two hundred positions per call cost as much as one.
MAX_NODES = 256


@dataclasses.dataclass(frozen=True)
class TreeShape:
  """The shape of a tree, whose nodes are numbered depth by depth from the root.

  Attributes:
    parents: The parent of each node; the root is its own.
  """

  parents: tuple[int, ...]

  @property
  def num_nodes(self) -> int:
    """Number of nodes, the root included."""
    return len(self.parents)

  @functools.cached_property
  def levels(self) -> tuple[range, ...]:
    """The nodes of each depth from 0 to gamma."""
    depths = [0]
    for parent in self.parents[1:]:
      depths.append(depths[parent] + 1)
    ends = np.cumsum(np.bincount(depths)).tolist()
    return tuple(map(range, (0, *ends), ends))

  @functools.cached_property
  def ranks(self) -> np.ndarray:
    """[nodes] int32, which child of its parent each node is; 0 of the root."""
    earlier = (self.parents[1:node] for node in range(self.num_nodes))
    found = [x.count(y) for x, y in zip(earlier, self.parents, strict=True)]
    return np.array(found, np.int32)

  @functools.cached_property
  def children(self) -> np.ndarray:
    """[nodes, width] int32, the child of each rank; 0 for none."""
    found = np.zeros((self.num_nodes, np.max(self.ranks) + 1), np.int32)
    for node in range(1, self.num_nodes):
      found[self.parents[node], self.ranks[node]] = node
    return found

  def tree(self, tokens: jax.Array) -> token_trees.Candidates:
    """Return a tree of this shape per row.

    Args:
      tokens: [rows, any] int32, of the first nodes; those of nodes past them do
        not matter.
    """
    rows, count = tokens.shape
    shape = rows, self.num_nodes
    return token_trees.Candidates(
        jnp.pad(tokens, ((0, 0), (0, self.num_nodes - count))),
        jnp.broadcast_to(jnp.array(self.parents, jnp.int32), shape),
        jnp.ones(shape, bool),
    )


def check(candidates: Any) -> Branching:
  """Return what is given as a branching, in tuples.

  Raises:
    ranges.ArgumentError: for anything but natural numbers, one or more per
      depth, and for a tree that is too large or ends before its last depth.
  """
  is_some = lambda x: isinstance(x, tuple | list) and len(x) > 0
  branching = candidates
  if is_some(candidates):
    branching = tuple(tuple(x) if is_some(x) else x for x in candidates)
  numbers = [
      number
      for each in (branching if is_some(branching) else [None])
      for number in (each if is_some(each) else [each])
  ]
  if not all(map(ranges.NATURAL.includes, numbers)):
    raise _error(candidates, 'must be natural numbers, one or more per depth')
  as_shape(branching, len(branching))
  return branching


def as_shape(branching: Branching, gamma: int) -> TreeShape:
  """Return the shape of a tree of gamma depths.

  Depths past the branching have one child per node, and what it says of depths
  past gamma has no meaning.

  Raises:
    ranges.ArgumentError: for a depth without children, or more than `MAX_NODES`
      nodes.
  """
  parents, level = [0], [0]
  for depth in range(gamma):
    counts = branching[depth] if depth < len(branching) else 1
    counts = [*counts] if isinstance(counts, tuple) else [counts]
    counts += counts[-1:] * (len(level) - len(counts))
    num_children = sum(counts[: len(level)])
    if not num_children:
      raise _error(branching, f'leaves depth {depth + 1} without a candidate')
    if len(parents) + num_children > MAX_NODES:
      raise _error(
          branching, f'makes a tree of more than {MAX_NODES} nodes; give fewer'
      )
    above = [x for x, count in zip(level, counts) for _ in range(count)]
    level = list(range(len(parents), len(parents) + num_children))
    parents += above
  return TreeShape(tuple(parents))


def _error(branching: Any, problem: str) -> ranges.ArgumentError:
  return ranges.ArgumentError(
      f'candidates {problem}, got {branching!r}. (3, 2) has three candidates'
      ' for the first position, two after each of these, and one after each of'
      ' those.',
      candidates=branching,
  )


def memory_of_rows(memory: contracts.Memory, rows: int) -> contracts.Memory:
  """Return a memory with a row per sequence, for models that decode trees.

  The rows of an example have unequal lengths, so that each has a tree of its
  own, as if it were an example.
  """
  repeat = lambda x: jnp.repeat(x, rows // x.shape[0], axis=0)
  return jax.tree.map(repeat, memory)


class Siblings(NamedTuple):
  """Candidates for one position of each row, in the order of their tests.

  Attributes:
    tokens: [rows, width] int32, drawn by the rule that tests them.
    is_there: [rows, width] bool, False where a row has fewer.
    logits: [rows, vocab], of the draft model at the position. None if they were
      not drawn: they follow from the tokens before them, and no two are equal.
    sampling: Sampling that they were drawn by; arrays [rows].
  """

  tokens: jax.Array
  is_there: jax.Array
  logits: jax.Array | None
  sampling: sampling_lib.Sampling


class Selection(NamedTuple):
  """The candidate that a rule chose of several.

  Attributes:
    index: [rows] int32, which one; their number where none was accepted.
    next_weights: [rows, vocab], from which the position's token is drawn where
      none was accepted, see `contracts.Verdict`. Without candidates, the
      target's own.
  """

  index: jax.Array
  next_weights: jax.Array


class CandidateRule:
  """A rule that also tests several candidates per position.

  How candidates are drawn comes with the rule, because its test is exact for
  that draw alone. What is drawn at a position depends on the tokens before it,
  and not on what becomes of its siblings.

  Attributes:
    name: Name for the record.
    is_lossless: Whether the outputs keep the target's distribution.
    tests_undrawn: Whether it also tests candidates that were not drawn.
  """

  name: str
  is_lossless: bool
  tests_undrawn: bool

  def draw_candidates(
      self,
      logits: jax.Array,
      sampling: sampling_lib.Sampling,
      uniforms: jax.Array,
  ) -> jax.Array:
    """Draw the candidates of positions.

    Args:
      logits: [rows, positions, vocab], of the draft model.
      sampling: Turns them into distributions; arrays [rows].
      uniforms: [rows, positions, width, 2] random bits, see `uniforms`.
    Returns:
      Tokens [rows, positions, width] int32.
    """

  def choose(
      self, target_probs: jax.Array, siblings: Siblings, uniforms: jax.Array
  ) -> Selection:
    """Accept one candidate of each row, or none.

    Args:
      target_probs: [rows, vocab], standardized.
      siblings: The candidates.
      uniforms: [rows, width] floats in [0, 1), one per candidate.
    """

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates: several draft tokens per position.

A tree may have the same shape in all rows and calls, as this one:

  (2, 2), gamma 3                      nodes, depth by depth
                                                     0
  depth 1: two children of the root          1               2
  depth 2: two of each                    3     4         5     6
  depth 3: one of each                    7     8         9    10

Legend: rows, nodes (of a tree, its root included), gamma (depth of a tree),
width (most children of a node), vocab.
"""

import dataclasses
import functools
import itertools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import token_trees

# How many children the nodes of each depth have, from the root on.
Branching = tuple[int, ...]

# On TPUs of today some two hundred positions per call cost as much as one.
MAX_NODES = 256


@dataclasses.dataclass(frozen=True)
class TreeShape:
  """The shape of a tree, whose nodes are numbered depth by depth from the root.

  Attributes:
    branching: Children of each node, for every depth but the last one.
  """

  branching: Branching

  @functools.cached_property
  def levels(self) -> tuple[range, ...]:
    """The nodes of each depth from 0 to gamma."""
    # In Python's integers: a shape that is refused may have any size.
    sizes = itertools.accumulate(self.branching, operator.mul, initial=1)
    ends = [*itertools.accumulate(sizes)]
    return tuple(map(range, (0, *ends), ends))

  @property
  def num_nodes(self) -> int:
    """Number of nodes, the root included."""
    return self.levels[-1].stop

  @property
  def parents(self) -> tuple[int, ...]:
    """The parent of each node; the root is its own."""
    levels = zip(self.levels, self.branching)  # the last one has no children
    return 0, *(
        node for level, count in levels for node in level for _ in range(count)
    )

  def tree(self, tokens: jax.Array) -> token_trees.Candidates:
    """Return a tree of this shape per row.

    Args:
      tokens: [rows, any] int32, of the first nodes; those of nodes past them do
        not matter.
    """
    rows, count = tokens.shape
    # Padding stands for nodes that are not drawn yet, and nobody reads it.
    shape = rows, self.num_nodes
    return token_trees.Candidates(
        jnp.pad(tokens, ((0, 0), (0, self.num_nodes - count))),
        jnp.broadcast_to(jnp.array(self.parents, jnp.int32), shape),
        jnp.ones(shape, bool),
    )


def check(candidates: Any) -> Branching:
  """Return what is given as a branching, as a tuple.

  Raises:
    ranges.ArgumentError: for anything but numbers of at least 1, and for a tree
      that is too large.
  """
  branching = candidates
  if isinstance(candidates, tuple | list):
    branching = tuple(candidates)
  if not (
      branching
      and isinstance(branching, tuple)
      and all(map(ranges.COUNT.includes, branching))
  ):
    raise _error(candidates, 'must be numbers of at least 1, one per depth')
  as_shape(branching, len(branching))
  return branching


def as_shape(branching: Branching, gamma: int) -> TreeShape:
  """Return the shape of a tree of gamma depths.

  Depths past the branching have one child per node, and what it says of depths
  past gamma has no meaning.

  Raises:
    ranges.ArgumentError: for more than `MAX_NODES` nodes.
  """
  shape = TreeShape((*branching, *[1] * gamma)[:gamma])
  if shape.num_nodes > MAX_NODES:
    raise _error(
        branching, f'makes a tree of more than {MAX_NODES} nodes; give fewer'
    )
  return shape


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

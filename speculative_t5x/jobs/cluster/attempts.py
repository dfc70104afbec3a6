# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What worker processes began and did not end, counted outside of them."""

import collections
from collections.abc import Callable, Collection, Hashable

MOST = 2  # workers that one thing may end
_MOST_WITH_NODES = 5  # and with those that ended with their nodes


class Attempts:
  """Counts per thing, as a chunk, the workers that ended while they did it.

  Ray repeats what ended its worker, by default for ever. A worker therefore
  asks before it begins, and says when it is done.
  """

  def __init__(self, living_nodes: Callable[[], Collection[str]]):
    """Count nothing yet; take what returns the ids of nodes that are alive."""
    self._living_nodes = living_nodes
    self._begun: dict[Hashable, list[str]] = collections.defaultdict(list)
    self._reasons: dict[Hashable, str] = {}
    self._bad_nodes: dict[str, str] = {}

  def begin(self, thing: Hashable, node: str) -> str | None:
    """Note that a worker on a node begins; return why it must not.

    A worker whose node is gone was hardly ended by what it did.
    """
    nodes, living = self._begun[thing], self._living_nodes()
    num_on_living = sum(each in living for each in nodes)
    if num_on_living >= MOST or len(nodes) >= _MOST_WITH_NODES:
      reason = self._reasons.get(thing)
      return f'It ended {len(nodes)} workers{f": {reason}" if reason else ""}'
    nodes.append(node)
    return None

  def end(self, thing: Hashable) -> None:
    """Note that a worker is done, and goes on."""
    self._begun.pop(thing, None)

  def explain(self, thing: Hashable, reason: str) -> None:
    """Note why a worker will end."""
    self._reasons[thing] = reason

  def leave_out(self, node: str, reason: str) -> None:
    """Note that no further worker should begin on a node."""
    self._bad_nodes.setdefault(node, reason)

  def bad_nodes(self) -> dict[str, str]:
    """Return the nodes that were left out, and why."""
    return dict(self._bad_nodes)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A Ray cluster on this machine: a head for the driver, and nodes that decode.

Each node is a raylet with workers of its own, which share nothing but the
machine.
"""

from collections.abc import Iterator
import contextlib
import os
import pathlib
import shutil
import tempfile
import threading

from tests.cluster import stub_job

_STORE = 80 * 2**20  # bytes; Ray refuses less than 75 MiB
_START_S = 120  # until a node has joined on a busy machine


class Nodes:
  """The nodes of a cluster.

  Attributes:
    address: Where a driver finds the cluster.
    by_id: Nodes that decode.
  """

  def __init__(self, count: int):
    from ray import cluster_utils

    self._options = {
        'object_store_memory': _STORE, 'include_dashboard': False
    }
    self._cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={'num_cpus': 0, **self._options}
    )
    self.address = self._cluster.address
    self.by_id = {}
    for _ in range(count):
      self.add()

  def add(self) -> str:
    """Add a node, and return its id."""
    node = self._cluster.add_node(num_cpus=1, wait=False, **self._options)
    self._cluster.wait_for_nodes(_START_S)
    self.by_id[node.node_id] = node
    return node.node_id

  def raylets(self) -> list[int]:
    """Return the numbers of the processes from which all workers descend."""
    nodes = self.by_id.values()
    return [each.all_processes['raylet'][0].process.pid for each in nodes]

  def kill(self, node: str) -> None:
    """Kill all processes of a node at once."""
    self._cluster.remove_node(self.by_id.pop(node), allow_graceful=False)

  @contextlib.contextmanager
  def killed_while_it_waits(self, folder: pathlib.Path) -> Iterator[None]:
    """Kill the node that first calls `stub_job.wait`."""

    def kill() -> None:
      self.kill(stub_job.await_file(folder / 'waiting'))
      (folder / 'killed').touch()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
      yield
    finally:
      thread.join()

  def shut_down(self) -> None:
    """End all processes; fails if one is left."""
    self._cluster.shutdown()


@contextlib.contextmanager
def started(count: int = 3) -> Iterator[Nodes]:
  """Start a cluster, and end it."""
  # Every raylet watches the memory of the whole machine, and would end workers
  # when something else fills it.
  os.environ['RAY_memory_monitor_refresh_ms'] = '0'
  # A node that was killed is missed after ten seconds, and not a busy one.
  os.environ['RAY_health_check_period_ms'] = '1000'
  os.environ['RAY_health_check_failure_threshold'] = '10'
  # The path of a socket has at most 107 bytes.
  folder = os.environ['RAY_TMPDIR'] = tempfile.mkdtemp(prefix='ray')
  nodes = None
  try:
    nodes = Nodes(count)
    yield nodes
  finally:
    if nodes is not None:
      nodes.shut_down()
    shutil.rmtree(folder, ignore_errors=True)

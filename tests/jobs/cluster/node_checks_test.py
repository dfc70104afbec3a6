# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Nodes that decode alike are told from others."""

from speculative_t5x.jobs.cluster import node_checks
from speculative_t5x.jobs.cluster import ray_worker


def _nodes(count):
  return [
      {'NodeID': f'{i}' * 56, 'NodeManagerHostname': f'host-{i}'}
      for i in range(count)
  ]


def _said(dtype, for_driver):
  return ray_worker.Description(7, {}, {'dtype': dtype}, for_driver)


def test_what_most_nodes_say_counts():
  answers = [
      _said('float32', 'a'), _said('bfloat16', 'b'), 'there is no checkpoint',
      _said('bfloat16', 'c'),
  ]  # fmt: skip
  nodes = _nodes(4)
  found = node_checks.agreed(nodes, answers)
  assert found.good == [nodes[1], nodes[3]]
  assert found.description == 'b'
  assert found.problems == {
      'host-0 (00000000)': 'it has another dtype than the other nodes',
      'host-2 (22222222)': 'there is no checkpoint',
  }


def test_no_node_can_do_it():
  found = node_checks.agreed(_nodes(1), ['there is no checkpoint'])
  assert not found.good and found.description is None

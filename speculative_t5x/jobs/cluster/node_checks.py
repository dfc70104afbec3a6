# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether the nodes of a Ray cluster can do a job, and all alike."""

import collections
from collections.abc import Mapping, Sequence
import json
from typing import Any, NamedTuple

from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.loading import errors

_CHECK_S = 300  # a node that does not answer is left out
_RELEASE_S = 60  # until the process of a check has given up its devices

Node = Mapping[str, Any]  # as `ray.nodes` returns it


class Checked(NamedTuple):
  """What the nodes said.

  Attributes:
    good: Nodes that can do the job.
    problems: Why others cannot, by their names.
    description: What the driver needs to know; None without good nodes.
  """

  good: list[Node]
  problems: dict[str, str]
  description: Any


def check(
    nodes: Sequence[Node],
    shipment: ray_worker.Shipment,
    options: Mapping[str, Any],
) -> Checked:
  """Describe a job on each node by a task with the options of a worker."""
  return agreed(nodes, _describe(nodes, shipment, options))


def agreed(
    nodes: Sequence[Node], answers: Sequence[ray_worker.Description | str]
) -> Checked:
  """Return which nodes can do a job, and alike.

  Nodes whose description differs from that of the most nodes are left out: they
  would decode by other settings, as by another dtype.

  Args:
    nodes: The nodes.
    answers: What each says of the job; a string says why it cannot do it.
  """
  problems = {i: x for i, x in enumerate(answers) if isinstance(x, str)}
  able = {i: x for i, x in enumerate(answers) if i not in problems}
  of_most = _of_most([each.values for each in able.values()])
  for i, each in able.items():
    if names := _differing(each.values, of_most):
      problems[i] = f'it has another {", ".join(names)} than the other nodes'
  good = [i for i in able if i not in problems]
  return Checked(
      [nodes[i] for i in good],
      {_name(nodes[i]): problems[i] for i in sorted(problems)},
      able[good[0]].for_driver if good else None,
  )


def reason(error: BaseException) -> str:
  """Return the first line of an error of Ray, or of what raised in a worker."""
  return errors.first_line(getattr(error, 'cause', None) or error)


def _describe(
    nodes: Sequence[Node],
    shipment: ray_worker.Shipment,
    options: Mapping[str, Any],
) -> list[ray_worker.Description | str]:
  """Return what each node says, or why it cannot do the job."""
  import ray

  # A process of its own, which gives up its devices when it ends.
  remote = ray.remote(max_calls=1, max_retries=0, **options)(
      ray_worker.describe
  )
  refs = [remote.options(**_pinned(each)).remote(shipment) for each in nodes]
  ray.wait(refs, num_returns=len(refs), timeout=_CHECK_S)
  return [
      _answer(node, ref) for node, ref in zip(nodes, refs, strict=True)
  ]


def _answer(node: Node, ref: Any) -> ray_worker.Description | str:
  import ray

  try:
    found = ray.get(ref, timeout=0)
    if names := _differing(found.versions, ray_worker.versions()):
      return ', '.join(
          f'it has {name} {found.versions.get(name)} and the driver'
          f' {ray_worker.versions().get(name)}'
          for name in names
      )
    if found.problem:
      return found.problem
    wait = ray.remote(num_cpus=0, max_retries=0)(ray_worker.wait_for_end)
    wait = wait.options(**_pinned(node)).remote(found.process, _RELEASE_S)
    if not ray.get(wait):
      return f'process {found.process} there does not end'
    return found
  except ray.exceptions.GetTimeoutError:
    ray.cancel(ref, force=True)
    return f'it did not answer within {_CHECK_S} s'
  except ray.exceptions.RayError as error:
    return reason(error)


def _pinned(node: Node) -> dict[str, Any]:
  from ray.util import scheduling_strategies

  strategy = scheduling_strategies.NodeAffinitySchedulingStrategy(
      node['NodeID'], soft=False
  )
  return {'scheduling_strategy': strategy}


def _name(node: Node) -> str:
  return f'{node["NodeManagerHostname"]} ({node["NodeID"][:8]})'


def _of_most(values: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
  """Return the values that occur most often, the first ones of several."""
  counts = collections.Counter(json.dumps(x, sort_keys=True) for x in values)
  return json.loads(counts.most_common(1)[0][0]) if counts else {}


def _differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> list[str]:
  return [
      name
      for name in sorted({*one, *other})
      if one.get(name) != other.get(name)
  ]

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes the chunks of a job on the nodes of a Ray cluster.

Each worker holds a model of its own: on all TPU chips of a host, on a GPU, or
on a node without either. Ray Data hands out the chunks; the defaults that would
lose rows or never end are set otherwise here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
import logging
import signal
import sys
import time
from typing import Any

from speculative_t5x.jobs.cluster import attempts as attempts_lib
from speculative_t5x.jobs.cluster import node_checks
from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.research import interruption

# By what a worker holds, in Ray's names: JAX's platforms to open, and the one
# that must be found.
_PLATFORMS = {
    'TPU': ('tpu,cpu', 'tpu'),
    'GPU': ('cuda,cpu', 'gpu'),
    'CPU': ('cpu', 'cpu'),
}
# All chips of a host as a complete TPU. Ray sets bounds for a part of a host
# only, and without them libtpu waits for the other hosts of a slice.
_HOST_BOUNDS = {4: '2,2,1', 8: '2,4,1'}
_JOIN_S, _POLL_S = 600, 1  # until all nodes have joined the cluster
_NODE_LABEL = 'ray.io/node-id'  # that Ray gives to each node


@dataclasses.dataclass(frozen=True)
class RayCluster:
  """A Ray cluster that decodes.

  Attributes:
    address: 'auto' for the running cluster that this machine belongs to, also
      HOST:PORT; 'local' starts one of this machine alone.
    worker: What each model gets, by Ray's names, as {'GPU': 1}; None for all
      TPU chips of a host, else one GPU, else the cores of the smallest node.
    min_nodes: Nodes for workers to wait for, ten minutes at most.
    prepare: Is called first in each other process; see `ray_worker.Shipment`.
  """

  address: str = 'auto'
  worker: Mapping[str, float] | None = None
  min_nodes: int = 1
  prepare: Callable[[], None] | None = None

  @contextlib.contextmanager
  def connect(self, job: ray_worker.Job) -> Iterator['Workers']:
    """Connect to the cluster, and check which of its nodes can do a job.

    A node that cannot is named in a line on stderr and left out.

    Raises:
      ValueError: if there is no cluster, or none of its nodes can.
    """
    import ray

    is_own = not ray.is_initialized()
    before = signal.getsignal(signal.SIGTERM)
    try:
      if is_own:
        self._start()
      yield self._workers(job)
    finally:
      if is_own:
        ray.shutdown()
        with contextlib.suppress(ValueError):  # not in the main thread
          signal.signal(signal.SIGTERM, before)

  def _start(self) -> None:
    import ray

    is_local = self.address == 'local'
    try:
      ray.init(
          self.address,
          logging_level=logging.ERROR,
          log_to_driver=False,
          include_dashboard=False if is_local else None,
      )
    except ConnectionError as error:
      raise ValueError(
          f'There is no Ray cluster at {self.address!r}. Start one by ray start'
          ' --head, and ray start --address=... on the other machines, or set'
          " the address to 'local'."
      ) from error

  def _workers(self, job: ray_worker.Job) -> 'Workers':
    import ray

    resources, able = self._wait_for_nodes()
    kind = next((x for x in _PLATFORMS if resources.get(x)), 'CPU')
    platforms, platform = _PLATFORMS[kind]
    shipment = ray_worker.Shipment(
        self.prepare, ray.cloudpickle.dumps(job), platform
    )
    options = {
        **_options(resources),
        'runtime_env': {'env_vars': _variables(platforms, resources)},
    }
    checked = node_checks.check(able, shipment, options)
    for node, problem in checked.problems.items():
      print(f'Node {node} is left out: {problem}.', file=sys.stderr)
    if not checked.good:
      raise ValueError('No node of the Ray cluster can do this job.')
    rooms = {each['NodeID']: _room(each, resources) for each in checked.good}
    print(
        f'Ray: {len(rooms)} of {len(able)} nodes decode,'
        f' {sum(rooms.values())} workers with {_in_words(resources)} each',
        file=sys.stderr,
    )
    bad = [each['NodeID'] for each in able if each['NodeID'] not in rooms]
    return Workers(shipment, options, rooms, bad, checked.description)

  def _wait_for_nodes(self) -> tuple[Mapping[str, float], list[Any]]:
    """Return what a worker gets, and the nodes that have room for one."""
    import ray

    limit = time.monotonic() + _JOIN_S
    while True:
      nodes = [each for each in ray.nodes() if each['Alive']]
      resources = self.worker or _suited([each['Resources'] for each in nodes])
      able = [each for each in nodes if _room(each, resources)]
      if len(able) >= max(self.min_nodes, 1):
        return resources, able
      if self.min_nodes <= 1 or time.monotonic() > limit:
        raise ValueError(
            f'{len(able)} nodes of the Ray cluster have {_in_words(resources)},'
            f' and not {max(self.min_nodes, 1)}.'
        )
      interruption.check()
      time.sleep(_POLL_S)


def _in_words(resources: Mapping[str, float]) -> str:
  return ' and '.join(f'{count:g} {name}' for name, count in resources.items())


def _suited(nodes: Sequence[Mapping[str, float]]) -> dict[str, float]:
  """Return what a worker gets, from the resources of each node."""
  for name in _PLATFORMS:
    if counts := [each[name] for each in nodes if each.get(name)]:
      return {name: 1 if name == 'GPU' else min(counts)}
  return {'CPU': 1}


def _room(node: Mapping[str, Any], resources: Mapping[str, float]) -> int:
  """Return how many workers fit a node."""
  own = node['Resources']
  return int(min(own.get(name, 0) // x for name, x in resources.items() if x))


def _options(resources: Mapping[str, float]) -> dict[str, Any]:
  """Return Ray's options that ask for resources."""
  others = {k: x for k, x in resources.items() if k not in ('CPU', 'GPU')}
  return {
      'num_cpus': resources.get('CPU', 1),  # an accelerator needs a core beside
      **({'num_gpus': resources['GPU']} if resources.get('GPU') else {}),
      **({'resources': others} if others else {}),
  }


def _variables(
    platforms: str, resources: Mapping[str, float]
) -> dict[str, str]:
  """Return the variables of a worker process, which JAX reads at its start."""
  variables = {
      'JAX_PLATFORMS': platforms,
      'TOKENIZERS_PARALLELISM': 'false',  # its threads do not survive a fork
  }
  count = int(resources.get('TPU', 0))
  if count in _HOST_BOUNDS:
    variables |= {
        'TPU_PROCESS_BOUNDS': '1,1,1',
        'TPU_CHIPS_PER_PROCESS_BOUNDS': _HOST_BOUNDS[count],
        'TPU_VISIBLE_CHIPS': ','.join(map(str, range(count))),
    }
  return variables


class Workers:
  """The workers of a cluster that can do a job.

  Attributes:
    description: What the driver needs to know; see `ray_worker.Job.describe`.
  """

  def __init__(
      self,
      shipment: ray_worker.Shipment,
      options: Mapping[str, Any],
      rooms: Mapping[str, int],
      bad_nodes: Sequence[str],
      description: Any,
  ):
    """Start no worker yet.

    Args:
      shipment: The job.
      options: Ray's options of a worker.
      rooms: How many workers each good node has room for.
      bad_nodes: Nodes that have room and cannot do the job.
      description: See `description`.
    """
    self._shipment = shipment
    self._options = options
    self._rooms = dict(rooms)
    self._bad_nodes = list(bad_nodes)
    self.description = description

  def decode(
      self, chunks: Sequence[ray_worker.Chunk]
  ) -> Iterator[ray_worker.Decoded]:
    """Yield what became of each chunk, as soon as it is there.

    A node on which a worker cannot begin is named in a line on stderr and left
    out.

    Raises:
      RuntimeError: if Ray gives up. What was yielded before is whole.
    """
    import ray

    left = {each.number: each for each in chunks}
    while left:
      attempts = _attempts()
      try:
        for decoded in self._decode([*left.values()], attempts):
          # Ray may decode a chunk again whose result was lost with a node.
          if left.pop(decoded.number, None):
            yield decoded
      except ray.exceptions.RayError as error:
        bad = ray.get(attempts.bad_nodes.remote())
        for node, reason in bad.items():
          print(f'Node {node[:8]} is left out: {reason}.', file=sys.stderr)
          self._rooms.pop(node, None)
        self._bad_nodes += bad
        if not bad or not self._rooms:
          raise RuntimeError(
              f'Ray gives up: {node_checks.reason(error)}. Finished chunks are'
              ' kept; the same command resumes.'
          ) from error

  def _decode(
      self, chunks: Sequence[ray_worker.Chunk], attempts: Any
  ) -> Iterator[ray_worker.Decoded]:
    """Yield what became of each chunk, until a worker cannot begin."""
    import ray

    _configure()
    # One block, and so one task, per chunk: what is done is done when a node
    # ends. These items lie on this node, where none of them can be lost.
    numbers = ray.data.from_items(
        [each._asdict() for each in chunks], override_num_blocks=len(chunks)
    )
    size = min(sum(self._rooms.values()), len(chunks))
    bad = ','.join(self._bad_nodes)
    # Ray Data starts workers anew, and repeats their chunks, without a limit: a
    # node may be preempted any number of times, and each try to reach it counts
    # as one. `attempts` gives up what ends its workers.
    decoded = numbers.map_batches(
        ray_worker.Worker,
        batch_size=1,
        # A worker on a node that ended waits for room, and its chunks with it:
        # it should have no more than one. There is room at the latest when the
        # others have nothing left to do.
        compute=ray.data.ActorPoolStrategy(
            size=size, max_tasks_in_flight_per_actor=1
        ),
        fn_constructor_kwargs={
            'shipment': self._shipment, 'attempts': attempts
        },
        label_selector={_NODE_LABEL: f'!in({bad})'} if bad else None,
        **self._options,
    )  # fmt: skip
    for row in decoded.iter_rows():
      rows, values = json.loads(row['content'])
      yield ray_worker.Decoded(
          int(row['number']), rows, values, row['error'] or None
      )


def _attempts() -> Any:
  """Return the actor that counts what workers begin."""
  import ray
  from ray.util import scheduling_strategies

  # On this node: when it ends, the job ends too.
  here = scheduling_strategies.NodeAffinitySchedulingStrategy(
      ray.get_runtime_context().get_node_id(), soft=False
  )
  actor = ray.remote(num_cpus=0, scheduling_strategy=here)
  return actor(attempts_lib.Attempts).remote(_living_nodes)


def _living_nodes() -> list[str]:
  import ray

  return [each['NodeID'] for each in ray.nodes() if each['Alive']]


def _configure() -> None:
  """Set what Ray Data would do otherwise."""
  import ray

  context = ray.data.DataContext.get_current()
  context.enable_progress_bars = False
  # These are defaults, and chunks would be lost, or tried for ever, otherwise.
  context.max_errored_blocks = 0
  context.max_consecutive_actor_init_deaths = 0
  logging.getLogger('ray.data').setLevel(logging.CRITICAL)  # it is raised too

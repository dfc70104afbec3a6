# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes the chunks of a job on the nodes of a Ray cluster.

Each worker holds a model of its own: on all TPU chips of a host, on a GPU, or
on a node without either. Ray Data hands out the chunks, starts workers anew and
repeats their chunks.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import dataclasses
import json
import logging
import sys
import time
from typing import Any

from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.jobs.outputs import chunks as chunks_lib

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
# Times that Ray repeats a chunk whose worker ended, as with its node.
_RETRIES = 3


@dataclasses.dataclass(frozen=True)
class RayCluster:
  """A Ray cluster that decodes."""

  # 'auto' for the running cluster that this machine belongs to, also HOST:PORT;
  # 'local' starts one of this machine alone.
  address: str = 'auto'
  # What each model gets, by Ray's names, as {'GPU': 1}; None for all TPU chips
  # of a host, else one GPU, else the cores of the smallest node.
  worker: Mapping[str, float] | None = None
  min_nodes: int = 1  # nodes for workers to wait for, ten minutes at most
  # Is called first in each other process; see `ray_worker.Shipment`.
  prepare: Callable[[], None] | None = None

  @contextlib.contextmanager
  def connect(self, job: Callable[[], Any]) -> Iterator['Workers']:
    """Connect to the cluster, and ask one of its nodes what a job is there.

    Raises:
      ValueError: if there is no cluster, or the node cannot do the job.
    """
    import ray

    is_own = not ray.is_initialized()
    try:
      if is_own:
        self._start()
      yield self._workers(job)
    finally:
      if is_own:
        ray.shutdown()

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

  def _workers(self, job: Callable[[], Any]) -> 'Workers':
    import ray

    resources, nodes = self._wait_for_nodes()
    kind = next((x for x in _PLATFORMS if resources.get(x)), 'CPU')
    platforms, platform = _PLATFORMS[kind]
    shipment = ray_worker.Shipment(
        self.prepare, ray.cloudpickle.dumps(job), platform
    )
    options = {
        **_options(resources),
        'runtime_env': {'env_vars': _variables(platforms, resources)},
    }
    count = sum(_room(each, resources) for each in nodes)
    print(
        f'Ray: {count} workers on {len(nodes)} nodes, with'
        f' {_in_words(resources)} each',
        file=sys.stderr,
    )
    # A process of its own, which gives up its devices when it ends.
    ask = ray.remote(max_calls=1, max_retries=0, **options)(ray_worker.describe)
    answer = ask.remote(shipment)
    try:
      asked = ray.get(answer)
    except ray.exceptions.RayError as error:
      raise ValueError(_reason(error)) from error
    return Workers(shipment, options, count, asked)

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


@dataclasses.dataclass(frozen=True)
class Workers:
  """The workers of a cluster for a job, of which none is started yet."""

  shipment: ray_worker.Shipment
  options: Mapping[str, Any]  # Ray's options of a worker
  count: int  # the most workers that the nodes have room for
  # The job, as the node describes it that was asked.
  asked: ray_worker.Description

  def decode(
      self, chunks: Sequence[ray_worker.Chunk]
  ) -> Iterator[ray_worker.Decoded]:
    """Yield each chunk once, as soon as it is decoded or given up.

    Raises:
      RuntimeError: if a node cannot do the job, or Ray gives up. What was
        yielded before is whole.
    """
    import ray

    if not chunks:
      return
    _configure()
    # One block, and so one task, per chunk: what is done is done when a node
    # ends. These items lie on this node, where none of them can be lost.
    numbers = ray.data.from_items(
        [each._asdict() for each in chunks], override_num_blocks=len(chunks)
    )
    decoded = numbers.map_batches(
        ray_worker.Worker,
        batch_size=1,
        # A worker on a node that ended waits for room, and its chunks with it:
        # it should have no more than one. There is room at the latest when the
        # others have nothing left to do.
        compute=ray.data.ActorPoolStrategy(
            size=min(self.count, len(chunks)), max_tasks_in_flight_per_actor=1
        ),
        fn_constructor_kwargs={'shipment': self.shipment, 'asked': self.asked},
        max_restarts=-1,  # a node may be preempted any number of times
        max_task_retries=_RETRIES,
        **self.options,
    )
    left = {each.number for each in chunks}
    try:
      for row in decoded.iter_rows():
        number = int(row['number'])
        # Ray decodes a chunk again whose result was lost with a node.
        if number in left:
          left.remove(number)
          found = json.loads(row['content'])
          content = found and chunks_lib.Content(*found)
          yield ray_worker.Decoded(number, content, row['error'] or None)
    except ray.exceptions.RayError as error:
      raise RuntimeError(
          f'{_reason(error)} Finished chunks are kept; the same command'
          ' resumes.'
      ) from error
    for number in sorted(left):
      error = f'It ended {1 + _RETRIES} workers. Their logs say more'
      yield ray_worker.Decoded(number, None, error)


def _reason(error: Exception) -> str:
  """Return the line of an error of Ray that says what a worker raised."""
  return str(error).strip().splitlines()[-1].removeprefix('RuntimeError: ')


def _configure() -> None:
  import ray

  context = ray.data.DataContext.get_current()
  context.enable_progress_bars = False
  context.max_errored_blocks = -1  # chunks that end their workers again
  logging.getLogger('ray.data').setLevel(logging.CRITICAL)  # it is raised too

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs jobs on a Ray cluster, in a process of its own, for ray_cluster_test.

  python -m tests.cluster.ray_jobs {command,killed,ended} <folder>

Starting Ray changes the process: its handlers of signals, and its threads.
"""

from collections.abc import Sequence
import contextlib
import dataclasses
import functools
import io
import json
import os
import pathlib
import sys

from tests import cheap_compilation

cheap_compilation.set_up()  # before JAX is imported, and for the workers

from speculative_t5x.jobs.cluster import ray_cluster  # noqa: E402
from speculative_t5x.jobs.cluster import ray_worker  # noqa: E402
from tests.cluster import stub_job  # noqa: E402
from tests.cluster import three_nodes  # noqa: E402


def command(folder: pathlib.Path) -> None:
  """Run a command alone and on two nodes; `flags` are those of the command."""
  with three_nodes.started(2) as nodes:
    _run_command(nodes, folder)


def killed(folder: pathlib.Path) -> None:
  """Decode by `stub_job` on two nodes, of which one is killed meanwhile."""
  with three_nodes.started(2) as nodes:
    numbers = [i for i in range(12) if i != stub_job.KILL]
    with nodes.killed_while_it_waits(folder):
      _decode(nodes, folder, numbers)


def ended(folder: pathlib.Path) -> None:
  """Decode by `stub_job` a chunk that ends its worker, and on a bad node."""
  (folder / 'killed').touch()  # none waits to be killed
  with three_nodes.started(1) as nodes:
    _decode(nodes, folder, range(12))
    bad = nodes.add()
    try:
      _decode(nodes, folder, range(12), no_checkpoint=bad)
    except (ValueError, RuntimeError) as error:  # if it is asked, or later
      (folder / 'refused').write_text(str(error))


def _decode(
    nodes: three_nodes.Nodes,
    folder: pathlib.Path,
    numbers: Sequence[int],
    **options: str,
) -> None:
  """Keep what became of chunks, and what was said."""
  job = functools.partial(stub_job.Decoding, str(folder), **options)
  chunks = [ray_worker.Chunk(i, 0, i % 3, '') for i in numbers]
  cluster = ray_cluster.RayCluster(nodes.address)
  said = io.StringIO()
  with contextlib.redirect_stderr(said), cluster.connect(job) as workers:
    assert workers.asked.for_driver == 'for the driver'
    found = [
        (x.number, x.content and dataclasses.astuple(x.content), x.error)
        for x in workers.decode(chunks)
    ]
  (folder / 'said').write_text(said.getvalue())
  (folder / 'found').write_text(json.dumps(found))


def _run_command(nodes: three_nodes.Nodes, folder: pathlib.Path) -> None:
  from speculative_t5x.jobs.command_line import main
  from speculative_t5x.jobs.command_line import process

  flags = (folder / 'flags').read_text().splitlines()
  # Where its own module is, which no node finds by itself.
  os.chdir(folder)
  process.find_own_modules()
  assert main.main([*flags, f'--output_dir={folder}/alone']) == 0
  on_ray = [
      '--gin_file=configs/engines/ray.gin',
      f'--gin.RAY_ADDRESS={nodes.address}',
      '--gin.RAY_NODES=2',
  ]
  assert main.main([*flags, *on_ray, f'--output_dir={folder}/out']) == 0


if __name__ == '__main__':
  jobs = {'command': command, 'killed': killed, 'ended': ended}
  jobs[sys.argv[1]](pathlib.Path(sys.argv[2]))

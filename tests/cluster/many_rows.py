# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Repeats many rows on three nodes, and watches their memory.

  python -m tests.cluster.many_rows <folder> <rows>

`memory.jsonl` in the folder gets one object per sample: seconds since the
beginning, and MiB of the driver and of each node (its raylet and all workers,
the object store included).
"""

from collections.abc import Iterator
import contextlib
import json
import os
import pathlib
import sys
import threading
import time

from tests import cheap_compilation

cheap_compilation.set_up()  # before JAX is imported, and for the workers

from speculative_t5x.jobs import infer  # noqa: E402
from speculative_t5x.jobs.cluster import ray_cluster  # noqa: E402
from speculative_t5x.tasks import bulletins  # noqa: E402
from tests import repeating_decoder  # noqa: E402
from tests import workloads  # noqa: E402
from tests.cluster import three_nodes  # noqa: E402

_SAMPLE_S = 2.0
_MIB = 2**20


def main(folder: pathlib.Path, num_rows: int) -> None:
  """Write the rows, decode them, and check the predictions."""
  path = folder / 'in.txt'
  with open(path, 'w') as file:
    file.writelines(f'the train {i}\n' for i in range(num_rows))
  target = workloads.save_pair(folder).target
  with three_nodes.started(3) as nodes:
    with _sampled(nodes, folder / 'memory.jsonl'):
      infer.infer(
          workloads.infer_setup(
              mixture_or_task_name=None,
              checkpoint_path=target,
              vocabulary_file=bulletins.VOCABULARY_FILE,
              inputs=str(path),
              output_dir=str(folder / 'out'),
              batch_size=1000,
              chunk_batches=10,
              cluster=ray_cluster.RayCluster(
                  nodes.address, prepare=repeating_decoder.install
              ),
          )
      )
  with open(folder / 'out/predictions.jsonl') as file:
    for number, line in enumerate(file):
      row = json.loads(line)
      assert row['example_id'] == number
      assert row['prediction'] == f'the train {number}'
  assert number == num_rows - 1


@contextlib.contextmanager
def _sampled(
    nodes: three_nodes.Nodes, path: pathlib.Path
) -> Iterator[None]:
  """Write the memory of all nodes until the context ends."""
  has_ended, start = threading.Event(), time.monotonic()

  def sample() -> None:
    with open(path, 'w') as file:
      while not has_ended.wait(_SAMPLE_S):
        by_parent = _processes()
        found = {'seconds': round(time.monotonic() - start, 1)}
        found['driver'] = _rss(os.getpid())
        for number, pid in enumerate(nodes.raylets()):
          found[f'node_{number}'] = _tree_rss(pid, by_parent)
        file.write(f'{json.dumps(found)}\n')
        file.flush()

  thread = threading.Thread(target=sample)
  thread.start()
  try:
    yield
  finally:
    has_ended.set()
    thread.join()


def _processes() -> dict[int, list[int]]:
  """Return the children of each process."""
  found = {}
  for folder in pathlib.Path('/proc').glob('[0-9]*'):
    with contextlib.suppress(OSError):  # it has ended
      parent = (folder / 'stat').read_text().rpartition(')')[2].split()[1]
      found.setdefault(int(parent), []).append(int(folder.name))
  return found


def _tree_rss(pid: int, by_parent: dict[int, list[int]]) -> int:
  children = by_parent.get(pid, [])
  return _rss(pid) + sum(_tree_rss(x, by_parent) for x in children)


def _rss(pid: int) -> int:
  """Return the MiB of a process; 0 if it has ended."""
  with contextlib.suppress(OSError):
    pages = int(pathlib.Path(f'/proc/{pid}/statm').read_text().split()[1])
    return pages * os.sysconf('SC_PAGE_SIZE') // _MIB
  return 0


if __name__ == '__main__':
  main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))

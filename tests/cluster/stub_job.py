# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A job for workers whose chunks are numbers, some of which end a worker."""

from collections.abc import Iterator, Mapping
import contextlib
import dataclasses
import functools
import os
import pathlib
import signal
import time
from typing import Any, NamedTuple

from speculative_t5x.jobs.cluster import ray_worker

# Decoding one of these chunks raises ValueError, raises another error, ends the
# process, or waits until the node was killed.
WRONG, BROKEN, KILL, WAIT = 1, 3, 8, 5
_WAIT_S = 120


class _Content(NamedTuple):
  rows: list[str]
  values: Mapping[str, Any]


@dataclasses.dataclass(frozen=True)
class Job:
  """Decodes a chunk to its number, and to the node.

  Attributes:
    folder: Of the signals between `wait` and who kills the node.
    no_checkpoint: Node that cannot do the job.
    no_memory: Node that finds out when it loads the model.
  """

  folder: str
  no_checkpoint: str = ''
  no_memory: str = ''

  def describe(self) -> tuple[Mapping[str, Any], Any]:
    if _node() == self.no_checkpoint:
      raise FileNotFoundError('There is no checkpoint here.')
    return {'shape': (1, 2)}, 'for the driver'

  @contextlib.contextmanager
  def open(self) -> Iterator[ray_worker.Decode]:
    if _node() == self.no_memory:
      raise RuntimeError('Out of memory.')
    yield functools.partial(_decode, pathlib.Path(self.folder))


def _decode(folder: pathlib.Path, chunk: ray_worker.Chunk) -> _Content:
  if chunk.number == WRONG:
    raise ValueError('The inputs are others.')
  if chunk.number == BROKEN:
    raise RuntimeError('The device is lost.')
  if chunk.number == KILL:
    os.kill(os.getpid(), signal.SIGKILL)
  if chunk.number == WAIT:
    _wait(folder)
  rows = [f'{chunk.number} {i}' for i in range(chunk.count)]
  return _Content(rows, {'node': _node()})


def _node() -> str:
  import ray

  return ray.get_runtime_context().get_node_id()


def _wait(folder: pathlib.Path) -> None:
  """Say on which node this process runs, and wait until that was killed."""
  if (folder / 'killed').exists():  # another node decodes it again
    return
  (folder / 'waiting.tmp').write_text(_node())
  (folder / 'waiting.tmp').rename(folder / 'waiting')
  await_file(folder / 'killed')


def await_file(path: pathlib.Path) -> str:
  """Return the text of a file as soon as it is there."""
  limit = time.monotonic() + _WAIT_S
  while not path.exists():
    assert time.monotonic() < limit, path
    time.sleep(0.05)
  return path.read_text()

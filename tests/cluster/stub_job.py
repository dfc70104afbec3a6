# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A job for workers whose chunks are numbers, some of which end a worker."""

import os
import pathlib
import signal
import time

from speculative_t5x.jobs.cluster import ray_worker
from speculative_t5x.jobs.outputs import chunks

# Decoding one of these chunks raises ValueError, raises another error, ends the
# process, or waits until the node was killed.
WRONG, BROKEN, KILL, WAIT = 1, 3, 8, 5
_WAIT_S = 120


class Decoding:
  """Decodes a chunk to its number, and to the node."""

  values, for_driver = {'shape': (1, 2)}, 'for the driver'

  def __init__(self, folder: str, no_checkpoint: str = ''):
    """Fail on a node without a checkpoint.

    The folder is of the signals between `wait` and who kills the node.
    """
    if _node() == no_checkpoint:
      raise FileNotFoundError('There is no checkpoint.')
    self._folder = pathlib.Path(folder)

  def decode(self, chunk: ray_worker.Chunk) -> chunks.Content:
    return _decode(self._folder, chunk)


def _decode(folder: pathlib.Path, chunk: ray_worker.Chunk) -> chunks.Content:
  if chunk.number == WRONG:
    raise ValueError('The inputs are others.')
  if chunk.number == BROKEN:
    raise RuntimeError('The device is lost.')
  if chunk.number == KILL:
    os.kill(os.getpid(), signal.SIGKILL)
  if chunk.number == WAIT:
    _wait(folder)
  rows = [f'{chunk.number} {i}' for i in range(chunk.count)]
  return chunks.Content(rows, {'node': _node()})


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

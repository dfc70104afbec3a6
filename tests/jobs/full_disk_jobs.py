# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs a job once, and again on a disk that is full until room is made.

  python -m tests.jobs.full_disk_jobs JOB FOLDER NUM_EXAMPLES

FOLDER holds `target`, `draft`, `input.txt` and `disk`, a small file system. The
outputs are in its folders `whole` and `disk/out`; the latter is copied to
`resumed`.
"""

import os
import pathlib
import shutil
import sys

from tests.jobs import resumed_jobs

_ROOM = 5 * 4096  # for some chunks: a file takes whole pages


def main(name: str, folder: str, num_examples: str) -> None:
  """See the head of this file."""
  run = resumed_jobs.job_of(name, folder, num_examples)
  run('whole')
  disk = pathlib.Path(folder, 'disk')
  found = os.statvfs(disk)
  ballast = disk / 'ballast'
  ballast.write_bytes(bytes(found.f_bavail * found.f_frsize - _ROOM))
  try:
    run('disk/out')
  except OSError as error:
    expected = f'{disk}/out cannot be written to (No space left on device).'
    assert expected in str(error), error
  else:
    raise AssertionError('The disk was not full.')
  written = list(disk.glob('out/chunks/*/*'))
  assert written and not list(disk.glob('out/*.jsonl'))
  ballast.unlink()
  run('disk/out')
  shutil.copytree(disk / 'out', pathlib.Path(folder, 'resumed'))


if __name__ == '__main__':
  main(*sys.argv[1:])

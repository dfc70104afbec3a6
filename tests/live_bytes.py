# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Follows the bytes of arrays that live on each device."""

import collections
from collections.abc import Iterator
import contextlib
import re
import sys

import jax

# Where arrays are made and given up.
_FILES = re.compile(
    r'.*/(speculative_t5x/(loading(/checkpoints)?|networks)'
    r'|jax/_src/numpy)/\w+\.py'
)


@contextlib.contextmanager
def follow() -> Iterator[dict[jax.Device, int]]:
  """Yield the peak per device, without arrays that live at the start.

  The bytes are counted whenever a function that makes arrays returns.
  """
  earlier, peak = jax.live_arrays(), collections.Counter()
  ids = {id(array) for array in earlier}

  def sample(frame, event, _):
    if event == 'return' and _FILES.fullmatch(frame.f_code.co_filename):
      for device, count in _count(ids).items():
        peak[device] = max(peak[device], count)

  before = sys.getprofile()
  sys.setprofile(sample)
  try:
    yield peak
  finally:
    sys.setprofile(before)


def _count(ids: set[int]) -> collections.Counter[jax.Device]:
  # An array on a mesh and the parts that it was made of share their buffers.
  buffers = {
      (shard.device, shard.data.unsafe_buffer_pointer()): shard.data.nbytes
      for array in jax.live_arrays()
      if id(array) not in ids
      for shard in array.addressable_shards
  }
  count = collections.Counter()
  for (device, _), num_bytes in buffers.items():
    count[device] += num_bytes
  return count

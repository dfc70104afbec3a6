# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Follows the bytes of arrays that live on each device."""

import collections
from collections.abc import Iterator
import contextlib
import re
import sys

import jax

# The functions whose calls are watched.
_FILES = re.compile(r'.*/(speculative_t5x|jax/_src/numpy)/.*')


@contextlib.contextmanager
def follow() -> Iterator[dict[jax.Device, int]]:
  """Yields the peak per device, above what lives at the start.

  The bytes are counted whenever a function of the package or of jax.numpy
  returns.
  """
  start, peak = _count(), collections.Counter()

  def sample(frame, event, _):
    if event == 'return' and _FILES.fullmatch(frame.f_code.co_filename):
      for device, count in _count().items():
        peak[device] = max(peak[device], count - start[device])

  before = sys.getprofile()
  sys.setprofile(sample)
  try:
    yield peak
  finally:
    sys.setprofile(before)


def _count() -> collections.Counter[jax.Device]:
  # An array on a mesh and the parts that it was made of share their buffers.
  buffers = {
      (shard.device, shard.data.unsafe_buffer_pointer()): shard.data.nbytes
      for array in jax.live_arrays()
      if array.is_fully_addressable
      for shard in array.addressable_shards
  }
  count = collections.Counter()
  for (device, _), num_bytes in buffers.items():
    count[device] += num_bytes
  return count

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Simulates a full disk for this process."""

from collections.abc import Iterator
import contextlib
import resource


@contextlib.contextmanager
def full_disk(num_bytes: int) -> Iterator[str]:
  """Let no file grow beyond a number of bytes; yield what is said then.

  Python ignores the signal for it, so that writing fails as on a full disk, in
  every library.
  """
  soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
  resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))
  try:
    yield 'File too large'
  finally:
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

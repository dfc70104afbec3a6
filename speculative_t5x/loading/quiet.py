# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps other libraries from printing log lines for a while."""

from collections.abc import Iterator
import contextlib
import os
import sys


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
  """Discard output to the process's stderr; exceptions still propagate."""
  sys.stderr.flush()
  kept = os.dup(2)
  with open(os.devnull, 'wb') as nowhere:
    os.dup2(nowhere.fileno(), 2)
  try:
    yield
  finally:
    sys.stderr.flush()
    os.dup2(kept, 2)
    os.close(kept)

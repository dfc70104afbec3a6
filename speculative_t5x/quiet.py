# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What other libraries are kept from: log lines, and accelerators."""

from collections.abc import Iterator
import contextlib
import os
import sys


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
  """Drops what is written to the process's stderr; exceptions still pass."""
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


def keep_tensorflow_off_accelerators() -> None:
  """It would take the memory of a GPU, and only reads and tokenizes here.

  Does nothing where it is not imported, or in use already: its devices are the
  caller's choice then.
  """
  if tensorflow := sys.modules.get('tensorflow'):
    with contextlib.suppress(RuntimeError):
      tensorflow.config.set_visible_devices([], 'GPU')

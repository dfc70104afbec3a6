# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Makes sure that no interrupt (Ctrl-C) is lost.

Python drops an exception that is raised in a callback of the garbage collector,
and JAX runs many of these while it traces. Therefore an interrupt is also
remembered, and raised again when a job calls `check`.
"""

from collections.abc import Iterator
import contextlib
import signal
import threading

_was_interrupted = False


@contextlib.contextmanager
def remembered() -> Iterator[None]:
  """Remember interrupts for `check`; effective only in the main thread."""
  global _was_interrupted
  is_main = threading.current_thread() is threading.main_thread()
  # A process started in the background ignores interrupts and must keep doing
  # so.
  if not is_main or signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    yield
    return
  before = signal.signal(signal.SIGINT, _remember)
  try:
    yield
  finally:
    _was_interrupted = False
    signal.signal(signal.SIGINT, before)


def check() -> None:
  """Raise KeyboardInterrupt if there was an interrupt."""
  if _was_interrupted:
    raise KeyboardInterrupt


def _remember(*_) -> None:
  global _was_interrupted
  _was_interrupted = True
  check()

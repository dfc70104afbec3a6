# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""An interrupt (Ctrl-C) that cannot be lost.

Python drops an exception that rises in a callback of the garbage collection,
and JAX has many of these while it traces. So an interrupt is also remembered,
and raised again where a job looks for it.
"""

from collections.abc import Iterator
import contextlib
import signal
import threading

_was_interrupted = False


@contextlib.contextmanager
def remembered() -> Iterator[None]:
  """Remembers an interrupt for `check`; in the main thread alone."""
  global _was_interrupted
  is_main = threading.current_thread() is threading.main_thread()
  # A process started in the background ignores interrupts, and goes on to.
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
  """Raises KeyboardInterrupt if there was an interrupt."""
  if _was_interrupted:
    raise KeyboardInterrupt


def _remember(*_) -> None:
  global _was_interrupted
  _was_interrupted = True
  raise KeyboardInterrupt

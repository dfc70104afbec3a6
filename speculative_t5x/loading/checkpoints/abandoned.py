# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Silences what Orbax and TensorStore give up when one read or write fails.

They read and write side by side. Where one fails they raise its error, and each
of the others would be reported on stderr as something that nobody waited for.
"""

from collections.abc import Callable, Iterator
import contextlib
import logging
import sys
import types
from typing import Any


@contextlib.contextmanager
def silenced() -> Iterator[None]:
  """Drop these reports; after an error, also those that come later.

  TensorStore ends what it has begun in threads of its own.
  """
  logging.getLogger('asyncio').addFilter(_is_not_abandoned)
  absl = logging.getLogger('absl')
  absl.addFilter(_has_no_traceback)
  earlier = sys.unraisablehook
  if not isinstance(earlier, _Hook):
    sys.unraisablehook = _Hook(earlier)
  try:
    yield
    sys.unraisablehook = earlier
  finally:
    absl.removeFilter(_has_no_traceback)


def _is_not_abandoned(record: logging.LogRecord) -> bool:
  """Return whether a message of asyncio is shown."""
  message = record.getMessage()
  is_read = 'TensorStore' in message or 'OCDBT' in message
  return not (is_read and 'exception was never retrieved' in message)


def _has_no_traceback(record: logging.LogRecord) -> bool:
  """Return whether a message of Orbax is not of an error, which is raised."""
  return not record.exc_info


class _Hook:
  """Reports exceptions that nobody can catch, except those of such reads."""

  def __init__(self, report: Callable[[Any], object]):
    self._report = report

  def __call__(self, unraisable: Any) -> None:
    is_abandoned = isinstance(unraisable.object, types.CoroutineType)
    if not is_abandoned and str(unraisable.exc_value) != 'Event loop is closed':
      self._report(unraisable)

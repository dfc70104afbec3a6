# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says what a job does, and how much of it is done."""

import sys
import time

from rich import console
from rich import progress

from speculative_t5x.runtime import interruption

_SECONDS_BETWEEN_LINES = 10


def say(text: str) -> None:
  """Says on stderr what begins and may take long.

  Raises:
    KeyboardInterrupt: if there was an interrupt; see `interruption`.
  """
  interruption.check()
  print(f'{text} ...', file=sys.stderr, flush=True)


class Progress:
  """Shows how many batches are done: as a bar on a terminal, else in lines.

  It writes to stderr, and only within `show`: a thread that redraws the bar
  would disturb the timing in between.
  """

  def __init__(self, name: str, total: int | None, unit: str = 'batches'):
    """Shows nothing yet.

    Args:
      name: what the bar or each line begins with.
      total: number of batches; None if it is not known.
      unit: what is counted, if not batches.
    """
    self._unit = unit
    terminal = console.Console(stderr=True)
    self._bar = progress.Progress(
        progress.TextColumn('{task.description}', markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeRemainingColumn(),
        console=terminal,
        auto_refresh=False,
        disable=not terminal.is_terminal,
    )
    self._task = self._bar.add_task(name, total=total)
    self._last_line = time.monotonic()

  def __enter__(self) -> 'Progress':
    self._bar.start()
    return self

  def __exit__(self, *error: object) -> None:
    self._bar.stop()

  def show(self, num_done: int) -> None:
    """Shows that so many batches are done.

    Raises:
      KeyboardInterrupt: if there was an interrupt; see `interruption`.
    """
    interruption.check()
    task, now = self._bar.tasks[self._task], time.monotonic()
    if num_done == task.completed:
      return
    self._bar.update(self._task, completed=num_done, refresh=True)
    is_due = task.finished or now - self._last_line >= _SECONDS_BETWEEN_LINES
    if self._bar.disable and is_due:
      self._last_line = now
      print(_line(task, self._unit), file=sys.stderr)


def _line(task: progress.Task, unit: str) -> str:
  if task.total is None:
    return f'{task.description}: {unit} done: {task.completed:.0f}'
  line = f'{task.description}: {task.completed:.0f} of {task.total:.0f} {unit}'
  if task.time_remaining is not None:  # known after two batches
    line += f', {task.time_remaining:.0f} s left'
  return line

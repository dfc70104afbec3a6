# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Says what a job does, and how much of it is done."""

import sys
import time
from typing import TextIO

from rich import console
from rich import progress

_SECONDS_BETWEEN_LINES = 10


def say(text: str) -> None:
  """Say what begins and may take long: on stderr, but not in a notebook."""
  print(f'{text} ...', file=_stream(), flush=True)


def _stream() -> TextIO:
  """Return stderr, but in a notebook, which shows it in red, stdout."""
  return sys.stdout if console.Console().is_jupyter else sys.stderr


def duration(seconds: float) -> str:
  """Return a number of seconds for a line of progress."""
  minutes, rest = divmod(round(seconds), 60)
  return f'{minutes} min {rest:02} s' if minutes else f'{rest} s'


class Progress:
  """Shows how many batches are done: as a bar where one can be drawn.

  On a terminal it is a bar, elsewhere lines. It is written only within `show`,
  as a thread that redraws the bar would disturb the timing in between.
  """

  def __init__(self, name: str, total: int | None, unit: str = 'batches'):
    """Show nothing yet; the total is None if it is not known."""
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
    self._num_printed: int | None = None

  def __enter__(self) -> 'Progress':
    self._bar.start()
    return self

  def __exit__(self, *error: object) -> None:
    self.end()

  def end(self) -> None:
    """Show the last line, unless it was shown, before other lines."""
    self._bar.stop()
    task = self._bar.tasks[self._task]
    # Where the total is not known, no other line is known to be the last.
    if self._num_printed not in (None, task.completed):
      self._num_printed = task.completed
      print(_line(task, self._unit), file=_stream())

  def show(self, num_done: int) -> None:
    """Show how many batches are done."""
    task, now = self._bar.tasks[self._task], time.monotonic()
    if num_done == task.completed:
      return
    self._bar.update(self._task, completed=num_done, refresh=True)
    is_due = task.finished or now - self._last_line >= _SECONDS_BETWEEN_LINES
    if self._bar.disable and is_due:
      self._last_line, self._num_printed = now, num_done
      print(_line(task, self._unit), file=_stream())


def _line(task: progress.Task, unit: str) -> str:
  if task.total is None:
    return f'{task.description}: {unit} done: {task.completed:.0f}'
  line = f'{task.description}: {task.completed:.0f} of {task.total:.0f} {unit}'
  if task.time_remaining is not None:  # known after two batches
    line += f', {duration(task.time_remaining)} left'
  return line

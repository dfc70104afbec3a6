# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Modules that answer requests in processes of their own.

In one process the thread pools of several systems hinder each other, so a
benchmark times each system in its own. Requests and answers are lines of JSON.
"""

from collections.abc import Callable
import contextlib
import json
import os
import subprocess
import sys
from typing import Any


class Process:
  """A module in a process of its own, which ends with the context."""

  def __init__(self, name: str, module: str, *arguments: str):
    """Starts the process.

    Args:
      name: what it runs, for messages.
      module: whose main function calls `answer`.
      *arguments: of its command line.
    """
    self._name = name
    self._process = subprocess.Popen(
        [sys.executable, '-m', module, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

  def __enter__(self) -> 'Process':
    return self

  def __exit__(self, *_) -> None:
    with contextlib.suppress(BrokenPipeError):  # it has ended before
      self._process.stdin.close()
    self._process.wait()
    self._process.stdout.close()

  def ask(self, *request: Any) -> Any:
    """Returns the answer to a request of JSON values.

    Raises:
      RuntimeError: if the process has ended; names it.
    """
    try:
      print(json.dumps(request), file=self._process.stdin, flush=True)
      line = self._process.stdout.readline()
    except BrokenPipeError:
      line = ''
    if not line:
      raise RuntimeError(
          f'The process of {self._name} has ended; its error is above.'
      )
    return json.loads(line)


def answer(respond: Callable[..., Any]) -> None:
  """Answers requests until there are no more; for the main function.

  Args:
    respond: takes the values of a request, and returns a JSON value.
  """
  # What a system prints must not be taken for an answer.
  with os.fdopen(os.dup(sys.stdout.fileno()), 'w') as answers:
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    for line in sys.stdin:
      print(json.dumps(respond(*json.loads(line))), file=answers, flush=True)

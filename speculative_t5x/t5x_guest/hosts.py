# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Which of T5X's programs is running, as the callers tell."""

import pathlib
import sys


def is_running(file: str) -> bool:
  """Whether code of a file of T5X, as `eval.py`, is among the callers."""
  frame = sys._getframe()
  while frame is not None:
    if pathlib.PurePath(frame.f_code.co_filename).parts[-2:] == ('t5x', file):
      return True
    frame = frame.f_back
  return False

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Detects from the call stack which of T5X's programs is running."""

import pathlib
import sys


def is_running(file: str) -> bool:
  """Returns whether a file of T5X, such as `eval.py`, is on the call stack."""
  frame = sys._getframe()
  while frame is not None:
    if pathlib.PurePath(frame.f_code.co_filename).parts[-2:] == ('t5x', file):
      return True
    frame = frame.f_back
  return False

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one error of checkpoints, and how its messages are worded."""

_MAX_LISTED = 6  # a message names so many parameters and counts the rest


class CheckpointError(ValueError):
  """A checkpoint that is missing, unfinished, damaged or of another kind."""


def listing(items: list[str]) -> str:
  """The first of them, and how many more there are."""
  shown = ', '.join(items[:_MAX_LISTED])
  rest = len(items) - _MAX_LISTED
  return f'{shown} and {rest} more' if rest > 0 else shown


def first_line(error: Exception) -> str:
  """What another library's error says, cut to a line."""
  lines = str(error).strip().splitlines()
  if not lines:
    return type(error).__name__
  # TensorStore appends its whole configuration to a message.
  text = lines[0].partition(' [tensorstore_spec')[0]
  return text.partition(' [source locations')[0][:300].rstrip('.')

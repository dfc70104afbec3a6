# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The one error of checkpoints, and how its messages are worded."""

from collections.abc import Iterator
import contextlib
from typing import Any

from speculative_t5x.speculation import ranges

_MAX_LISTED = 6  # a message names so many parameters and counts the rest
_MAX_SHOWN = 60  # characters of a value that a file holds
_MAX_REASON = 500  # characters of what another library says


class CheckpointError(ranges.ArgumentError):
  """A checkpoint that is missing, unfinished, damaged or of another kind.

  Its message is one line, whatever names and values a damaged file holds.
  """

  def __init__(self, message: str):
    super().__init__(
        ''.join(c if c.isprintable() else ascii(c)[1:-1] for c in message)
    )


@contextlib.contextmanager
def reading(
    what: Any, kind: type[ValueError] = CheckpointError
) -> Iterator[None]:
  """Turn what a damaged file makes other libraries raise into one error.

  `what` is the file, or what is read of it, for the message.
  """
  try:
    yield
  except kind:
    raise
  except Exception as error:  # of many kinds, wrapped in others
    while error.__cause__ is not None:
      error = error.__cause__
    raise kind(
        f'{what} cannot be read: {first_line(error)}. It is damaged or'
        ' incomplete; copy or download it again.'
    ) from error


@contextlib.contextmanager
def prefixed(
    prefix: str, kind: type[ValueError] = ValueError
) -> Iterator[None]:
  """Put a prefix and a colon before the messages of errors of a kind."""
  try:
    yield
  except kind as error:
    arguments = getattr(error, 'arguments', {})
    kind = ranges.ArgumentError if kind is ValueError else kind
    raise kind(f'{prefix}: {error}', **arguments) from error


def listing(items: list[str]) -> str:
  """Return the first items, and how many more there are."""
  shown = ', '.join(items[:_MAX_LISTED])
  rest = len(items) - _MAX_LISTED
  return f'{shown} and {rest} more' if rest > 0 else shown


def shown(value: Any) -> str:
  """Return a value as Python writes it, cut where it is long."""
  text = repr(value)
  return text if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'


def first_line(error: BaseException) -> str:
  """Return the first line of another library's error."""
  lines = str(error).strip().splitlines()
  if not lines:
    return type(error).__name__
  # TensorStore appends its whole configuration to a message.
  text = lines[0].partition(' [tensorstore_spec')[0]
  return text.partition(' [source locations')[0][:_MAX_REASON].rstrip('. ')

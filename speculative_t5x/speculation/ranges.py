# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Range checks of the settings of rules, policies, drafters and jobs."""

from collections.abc import Callable
import dataclasses
import numbers
from typing import Any

import numpy as np


class ArgumentError(ValueError):
  """The value of an argument is refused.

  Attributes:
    arguments: Values by the names of the arguments, which are words of the
      message. A caller whose user knows them by other names, as the command
      line, puts these in their place.
  """

  def __init__(self, message: str, **arguments: object):
    super().__init__(message)
    self.arguments = arguments


@dataclasses.dataclass(frozen=True)
class Kind:
  """The values that a setting may have.

  Attributes:
    allowed: Completes the sentence that begins with the name and 'must'.
    types: Types of the values. True and False are not numbers.
    is_allowed: Takes a value of these types; returns whether it is in range.
  """

  allowed: str
  types: type | tuple[type, ...] = numbers.Real
  is_allowed: Callable[[Any], bool] = lambda value: True

  def includes(self, value: object) -> bool:
    """Return whether a value is of this kind."""
    if isinstance(value, bool):
      return False
    return isinstance(value, self.types) and bool(self.is_allowed(value))


RATE = Kind('lie in [0, 1]', is_allowed=lambda x: 0 <= x <= 1)
RATE_BELOW_1 = Kind('lie in [0, 1)', is_allowed=lambda x: 0 <= x < 1)
POSITIVE_RATE = Kind('lie in (0, 1]', is_allowed=lambda x: 0 < x <= 1)
COEFFICIENT = Kind(
    'be finite and at least 0', is_allowed=lambda x: 0 <= x < np.inf
)
POSITIVE = Kind('be finite and above 0', is_allowed=lambda x: 0 < x < np.inf)
COUNT = Kind(
    'be a whole number and at least 1', numbers.Integral, lambda x: x >= 1
)
NATURAL = Kind(
    'be a whole number and at least 0', numbers.Integral, lambda x: x >= 0
)


def whole(least: int, most: int) -> Kind:
  return Kind(
      f'be a whole number from {least} to {most}',
      numbers.Integral,
      lambda x: least <= x <= most,
  )


def check_settings(kind: Kind, **values: object) -> None:
  """Check settings of one kind, given by their names.

  Raises:
    ArgumentError: naming the first that is of another kind, and its value.
  """
  for name, value in values.items():
    if not kind.includes(value):
      message = f'{name} must {kind.allowed}, got {value!r}.'
      raise ArgumentError(message, **{name: value})

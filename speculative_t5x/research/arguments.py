# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arguments of jobs that are one value or several."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from speculative_t5x.speculation import ranges


def check_counts(**values: int | None) -> None:
  """Check counts, given by their names; None is left to be chosen."""
  known = {name: x for name, x in values.items() if x is not None}
  ranges.check_settings(ranges.COUNT, **known)


def check_some(name: str, values: Sequence[Any]) -> None:
  """Check that there is at least one value."""
  if not values:
    raise ranges.ArgumentError(
        f'{name} must be one or several, got none.', **{name: values}
    )


def several(name: str, values: Any) -> list[float]:
  """Return one number or several as a list without duplicates.

  Raises:
    ValueError: if there is none, or one is NaN; names the argument.
  """
  found = np.atleast_1d(np.asarray(values, float))
  if not found.size or np.isnan(found).any():
    raise ranges.ArgumentError(
        f'{name} must be a number or several in parentheses, got {values!r}.',
        **{name: values},
    )
  return list(dict.fromkeys(found.tolist()))


def several_counts(name: str, values: Any) -> list[int]:
  """Return one count or several as a list without duplicates.

  Raises:
    ValueError: if a count is not a whole number of at least 1; names it.
  """
  found = several(name, values)
  for value in found:
    count = int(value) if value.is_integer() else value
    ranges.check_settings(ranges.COUNT, **{name: count})
  return [int(value) for value in found]


def check_gammas(gammas: Sequence[int], length: int) -> None:
  """Check that no block is longer than an output.

  Raises:
    ValueError: if one is; names both lengths.
  """
  if max(gammas) > length:
    raise ranges.ArgumentError(
        f'gamma {max(gammas)} is longer than the outputs of {length} tokens.'
        ' Give a smaller gamma, or allow longer outputs.',
        gamma=gammas,
    )

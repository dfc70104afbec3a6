# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks arguments of jobs: counts, and arguments of one or several values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from speculative_t5x.speculation import ranges


def check(**values: Any) -> None:
  """Checks counts.

  Raises:
    ValueError: if a count is not a whole number of at least 1; names it.
  """
  ranges.check_settings(ranges.COUNT, **values)


def several(name: str, values: Any) -> list[float]:
  """Returns one number or several as a list without duplicates.

  Raises:
    ValueError: if a value is not a number; names the argument.
  """
  try:
    is_truth = np.asarray(values).dtype == bool
    found = np.atleast_1d(np.asarray(values, float))
  except (TypeError, ValueError):
    is_truth, found = False, np.empty(0)
  # NaN is None, or no number either.
  if is_truth or not found.size or found.ndim > 1 or np.isnan(found).any():
    raise ValueError(
        f'{name} must be a number or several in parentheses, got {values!r}.'
    )
  return list(dict.fromkeys(found.tolist()))


def one(name: str, value: Any) -> float:
  """Returns one number.

  Raises:
    ValueError: if it is not a number, or several; names the argument.
  """
  found = several(name, value)
  if len(found) > 1:
    raise ValueError(f'{name} must be one number, got {value!r}.')
  return found[0]


def several_counts(name: str, values: Any) -> list[int]:
  """Returns one count or several as a list without duplicates.

  Raises:
    ValueError: if a count is not a whole number of at least 1; names it.
  """
  found = several(name, values)
  for value in found:
    check(**{name: int(value) if value.is_integer() else value})
  return [int(value) for value in found]


def check_gammas(gammas: Sequence[int], length: int) -> None:
  """Checks that no block is longer than an output.

  Raises:
    ValueError: if one is; names both lengths.
  """
  if max(gammas) > length:
    raise ValueError(
        f'gamma {max(gammas)} is longer than the outputs of {length} tokens.'
        ' Give a smaller gamma, or allow longer outputs.'
    )

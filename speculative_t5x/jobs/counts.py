# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arguments of jobs: counts, and what may be one value or several."""

from collections.abc import Sequence
from typing import Any

import numpy as np


def check(**values: Any) -> None:
  """Checks counts.

  Raises:
    ValueError: naming one that is not whole or below 1.
  """
  for name, value in values.items():
    if not isinstance(value, int) or value < 1:
      raise ValueError(
          f'{name} must be a whole number and at least 1, got {value!r}.'
      )


def several(name: str, values: Any) -> list[float]:
  """One number or several as a list, each once.

  Raises:
    ValueError: naming what is no number.
  """
  try:
    found = np.atleast_1d(np.asarray(values, float))
  except (TypeError, ValueError):
    found = np.empty(0)
  if not found.size or found.ndim > 1:
    raise ValueError(
        f'{name} must be a number or several in parentheses, got {values!r}.'
    )
  return list(dict.fromkeys(found.tolist()))


def several_counts(name: str, values: Any) -> list[int]:
  """One count or several as a list, each once.

  Raises:
    ValueError: naming what is not whole or below 1.
  """
  found = several(name, values)
  for value in found:
    check(**{name: int(value) if value.is_integer() else value})
  return [int(value) for value in found]


def check_gammas(gammas: Sequence[int], length: int) -> None:
  """Checks that no block is longer than an output.

  Raises:
    ValueError: naming both.
  """
  if max(gammas) > length:
    raise ValueError(
        f'gamma {max(gammas)} is longer than the outputs of {length} tokens.'
        ' Give a smaller gamma, or allow longer outputs.'
    )

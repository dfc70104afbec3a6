# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Keeps what cannot be decoded from what can."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

_T = TypeVar('_T')


def isolated(
    decode: Callable[[Sequence[Any]], _T],
    inputs: Sequence[Any],
    failed: Callable[[Any, ValueError], _T],
) -> list[_T]:
  """Decode inputs, in halves where that fails, and so on.

  Args:
    decode: Decodes any number of inputs; raises ValueError if one cannot be.
    inputs: One or more.
    failed: Returns what stands for an input that cannot be decoded.
  Returns:
    What `decode` and `failed` returned, in the order of the inputs.
  """
  try:
    return [decode(inputs)]
  except ValueError as error:
    if len(inputs) == 1:
      return [failed(inputs[0], error)]
  half = len(inputs) // 2
  return [
      *isolated(decode, inputs[:half], failed),
      *isolated(decode, inputs[half:], failed),
  ]

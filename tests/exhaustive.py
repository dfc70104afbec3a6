# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Parameters of tests of which most run in `make test-all` only."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def all_but(kept: Collection[Any], values: Iterable[Any]) -> list[Any]:
  """Return values of parameters, marked unless they are in `kept`."""
  values = list(values)
  assert all(value in values for value in kept), kept
  return [
      value
      if value in kept
      else pytest.param(
          *(value if isinstance(value, tuple) else [value]),
          marks=pytest.mark.exhaustive,
      )
      for value in values
  ]

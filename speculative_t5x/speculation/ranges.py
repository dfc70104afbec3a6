# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Range checks of numeric arguments, with errors of one form.

Each check returns the values as float64. It raises ValueError with the first
value that is out of range.
"""

import numpy as np
from numpy import typing as npt


def check_alpha(alpha: npt.ArrayLike) -> np.ndarray:
  return check_rates('alpha', np.asarray(alpha, np.float64))


def check_rates(name: str, rates: np.ndarray) -> np.ndarray:
  return check(name, rates, (rates >= 0) & (rates <= 1), 'lie in [0, 1]')


def check_gamma(gamma: npt.ArrayLike) -> np.ndarray:
  gamma = np.asarray(gamma, np.float64)
  is_allowed = (gamma >= 1) & (gamma == np.floor(gamma))
  return check('gamma', gamma, is_allowed, 'be whole and at least 1')


def check_finite_gamma(gamma: npt.ArrayLike) -> np.ndarray:
  gamma = check_gamma(gamma)
  return check('gamma', gamma, np.isfinite(gamma), 'be finite')


def check_coefficient(name: str, value: npt.ArrayLike) -> np.ndarray:
  value = np.asarray(value, np.float64)
  is_allowed = (value >= 0) & np.isfinite(value)
  return check(name, value, is_allowed, 'be finite and at least 0')


def check(
    name: str, values: np.ndarray, is_allowed: npt.ArrayLike, allowed: str
) -> np.ndarray:
  """Returns the values; raises ValueError naming the first not allowed."""
  if not np.all(is_allowed):
    values, is_allowed = np.broadcast_arrays(values, is_allowed)
    raise ValueError(f'{name} must {allowed}, got {values[~is_allowed][0]}.')
  return values

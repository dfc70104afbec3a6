# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Expected gains of speculative decoding: Section 3 of Leviathan et al. (2023).

They take scalars or arrays, which broadcast, and compute in float64. All raise
ValueError for a value out of range and name the argument and the value.

Legend: alpha in [0, 1] (mean acceptance probability of a draft token, see
Definition 3.1); gamma, a whole number >= 1 (draft tokens per target call);
cost_coefficient, c >= 0 (time of a draft step over the time of a target step,
Definition 3.7); ops_coefficient, c-hat >= 0 (operations per token of the draft
over those of the target, Definition 3.10).

References are to arXiv:2211.17192v2.
"""

import numpy as np
from numpy import typing as npt

from speculative_t5x.speculation import ranges

Values = np.ndarray | np.generic  # arrays, or numpy's scalars

# Of gamma, which is infinite in limits; floor(inf) is inf, and of NaN nothing.
_WHOLE = ranges.Kind(
    'be whole and at least 1', is_allowed=lambda x: x >= 1 and x == np.floor(x)
)


def _checked(kind: ranges.Kind, **values: npt.ArrayLike) -> np.ndarray:
  """Return the one array of values by name, float64, all of a kind."""
  ((name, value),) = values.items()
  array = np.asarray(value, np.float64)
  for each in array.flat:
    ranges.check_settings(kind, **{name: float(each)})
  return array


def _alpha(alpha: npt.ArrayLike) -> np.ndarray:
  return _checked(ranges.RATE, alpha=alpha)


def _finite_gamma(gamma: npt.ArrayLike) -> np.ndarray:
  return _checked(ranges.POSITIVE, gamma=_checked(_WHOLE, gamma=gamma))


def expected_tokens(alpha: npt.ArrayLike, gamma: npt.ArrayLike) -> Values:
  """Return the expected tokens per target call: Equation (1).

  Assumes that draft tokens are accepted independently. Gamma may be infinite.

  >>> print(f'{expected_tokens(0.8, 5):.2f}')
  3.69
  """
  return _mean_tokens(_alpha(alpha), _checked(_WHOLE, gamma=gamma))


def _mean_tokens(alpha: np.ndarray, gamma: np.ndarray) -> Values:
  miss = 1 - alpha
  with np.errstate(divide='ignore', invalid='ignore'):
    # (1 - alpha^(gamma + 1)) / (1 - alpha), accurate up to alpha 1.
    tokens = -np.expm1((gamma + 1) * np.log(alpha)) / miss
  return np.where(miss > 0, tokens, gamma + 1)[()]


def walltime_factor(
    alpha: npt.ArrayLike, gamma: npt.ArrayLike, cost_coefficient: npt.ArrayLike
) -> Values:
  """Return plain over speculative walltime: Theorem 3.8.

  Assumes long outputs, no encoders, and that the target scores gamma + 1 tokens
  in the time of one.

  >>> print(f'{walltime_factor(0.75, 7, 0.02):.3f}')
  3.157
  """
  gamma = _finite_gamma(gamma)
  cost = _checked(ranges.COEFFICIENT, cost_coefficient=cost_coefficient)
  return _mean_tokens(_alpha(alpha), gamma) / (gamma * cost + 1)


def operations_factor(
    alpha: npt.ArrayLike, gamma: npt.ArrayLike, ops_coefficient: npt.ArrayLike
) -> Values:
  """Return speculative over plain arithmetic operations: Theorem 3.11.

  >>> print(f'{operations_factor(0.8, 5, 0):.2f}')
  1.63
  """
  gamma = _finite_gamma(gamma)
  ops = _checked(ranges.COEFFICIENT, ops_coefficient=ops_coefficient)
  return (gamma * ops + gamma + 1) / _mean_tokens(
      _alpha(alpha), gamma
  )


def optimal_gamma(
    alpha: npt.ArrayLike, cost_coefficient: npt.ArrayLike, max_gamma: int = 64
) -> Values:
  """Return the gamma, up to max_gamma, of the largest walltime factor.

  See Section 3.5. It is 0 if no gamma improves. As gamma grows, the factor
  first rises and then falls, so the function counts the rising steps. With cost
  0, or with alpha 1 and a cost below 1, the factor always rises and the result
  is max_gamma.

  >>> int(optimal_gamma(0.75, 0.02))
  9
  """
  alpha = _alpha(alpha)[..., None]
  cost = _checked(ranges.COEFFICIENT, cost_coefficient=cost_coefficient)[
      ..., None
  ]
  gammas = np.arange(int(_finite_gamma(max_gamma)))
  # Draft token gamma + 1 adds alpha^(gamma + 1) tokens and the time c.
  tokens = np.cumsum(alpha**gammas, axis=-1)
  added = alpha ** (gammas + 1)
  return np.sum(added * (gammas * cost + 1) > cost * tokens, axis=-1)

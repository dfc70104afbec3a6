# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Boxes of the unit cube on each of which a function is constant.

Legend: problems (functions of one cube each), dimensions, points, n (pairs of a
problem and a point).
"""

from collections.abc import Callable, Iterator
import itertools

import numpy as np

_BATCH = 1024  # evaluations of a function per call, which is compiled once
_MOST_BOXES = 2000  # per problem
_HALVINGS = 52
_THINNEST = 1e-13  # a box that is not divided any more
_ROUNDING = 1e-9  # of probabilities

# From problems [n] and points [n, dimensions] to numbers [n, any].
Function = Callable[[np.ndarray, np.ndarray], np.ndarray]


def batched(function: Function) -> Function:
  """Return a function that is called with equally many points each time."""

  def call(problems, points):
    found = []
    for i in range(0, len(problems), _BATCH):
      part = problems[i : i + _BATCH], points[i : i + _BATCH]
      count = len(part[0])
      missing = _BATCH - count
      padded = (np.concatenate([x, np.repeat(x[:1], missing, 0)]) for x in part)
      found.append(function(*padded)[:count])
    return np.concatenate(found)

  return call


def constant_boxes(
    function: Function, count: int, dimensions: int
) -> Iterator[tuple[int, float, np.ndarray, np.ndarray]]:
  """Divide unit cubes into boxes on each of which a function is constant.

  A box whose probes, in its corners, on its faces and inside, all agree with
  its middle is taken as constant. Otherwise it is cut where the function
  changes on the way from the middle to a probe, which is found by bisection.

  Yields:
    Of each box the index of the problem, the volume, the middle, and the value.
  Raises:
    ValueError: if a problem needs too many boxes.
  """
  problems = np.arange(count)
  low, high = np.zeros((count, dimensions)), np.ones((count, dimensions))
  num_boxes = np.ones(count, int)
  probes = _probes(dimensions)
  while True:
    middle = (low + high) / 2
    values = function(problems, middle)
    points = low[:, None] + (high - low)[:, None] * probes
    count = len(problems) * len(probes)
    probed = function(
        np.repeat(problems, len(probes)), points.reshape(count, dimensions)
    ).reshape(*points.shape[:2], -1)
    differs = _differ(probed, values[:, None])
    is_thin = np.any(high - low < _THINNEST, axis=1)
    is_constant = is_thin | ~np.any(differs, axis=1)
    for i in np.flatnonzero(is_constant):
      volume = float(np.prod(high[i] - low[i]))
      yield int(problems[i]), volume, middle[i], values[i]
    rest = np.flatnonzero(~is_constant)
    if not len(rest):
      return
    target = points[rest, np.argmax(differs[rest], axis=1)]
    problems, low, high = problems[rest], low[rest], high[rest]
    axes, cuts = _change(function, problems, middle[rest], target, values[rest])
    np.add.at(num_boxes, problems, 1)
    if np.any(num_boxes > _MOST_BOXES):
      raise ValueError(
          f'The rule needs more than {_MOST_BOXES} boxes of uniforms for one'
          ' draft. A rule must compare each uniform with numbers that do not'
          ' depend on other uniforms.'
      )
    rows = np.arange(len(rest))
    low_end, high_end = low.copy(), high.copy()
    high_end[rows, axes] = low_end[rows, axes] = cuts
    problems = np.concatenate([problems, problems])
    low = np.concatenate([low, low_end])
    high = np.concatenate([high_end, high])


def _differ(one: np.ndarray, other: np.ndarray) -> np.ndarray:
  """Return whether values [..., any] differ by more than rounding."""
  return np.any(np.abs(one - other) > _ROUNDING, axis=-1)


def _probes(dimensions: int) -> np.ndarray:
  """Return points of the unit cube, [points, dimensions]."""
  ends = 0.0, 1 - 2.0**-30
  faces = np.full((2 * dimensions, dimensions), 0.5)
  for axis, end in itertools.product(range(dimensions), (0, 1)):
    faces[2 * axis + end, axis] = ends[end]
  rng = np.random.default_rng(0)
  inside = rng.random((32, dimensions))
  kinds = rng.integers(0, 3, inside.shape)
  return np.concatenate([faces, np.choose(kinds, [*ends, inside])])


def _change(
    function: Function,
    problems: np.ndarray,
    start: np.ndarray,
    target: np.ndarray,
    values: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
  """Return where a function changes on the way from a point to another.

  The way changes one coordinate after another. Start and target are [n,
  dimensions], and the values [n, any] are those at the start; the target has
  others. Returns the axis, [n], and the coordinate, [n].
  """
  rows = np.arange(len(problems))
  axes = np.zeros(len(problems), int)
  point, is_found = start.copy(), np.zeros(len(problems), bool)
  for axis in range(start.shape[1]):
    moved = point.copy()
    moved[:, axis] = np.where(is_found, moved[:, axis], target[:, axis])
    is_other = _differ(function(problems, moved), values) & ~is_found
    axes = np.where(is_other, axis, axes)
    is_found |= is_other
    point = np.where(is_found[:, None], point, moved)
  same, other = start[rows, axes], target[rows, axes]
  for _ in range(_HALVINGS):
    middle = (same + other) / 2
    point[rows, axes] = middle
    is_same = ~_differ(function(problems, point), values)
    same = np.where(is_same, middle, same)
    other = np.where(is_same, other, middle)
  # A uniform below a number and one equal to it may be told apart.
  return axes, np.maximum(same, other)

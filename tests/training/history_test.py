# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the points of a training that resumes."""

from etils import epath

from speculative_t5x.training import history


def _point(step, score):
  return history.Measures(step, {'loss': 1.0}, {'accuracy': score}, score)


def test_points_after_the_resumed_step_are_made_again(tmp_path):
  """A job that was killed after its last point resumes before it."""
  folder = epath.Path(tmp_path)
  first = history.History(folder, 0)
  for step, score in ((3, 0.2), (6, 0.4), (9, 0.9)):
    first.add(_point(step, score))
  resumed = history.History(folder, 6)
  assert [point.step for point in resumed.points] == [3, 6]
  assert (resumed.best.step, resumed.num_since_best) == (6, 0)
  resumed.add(_point(9, 0.3))
  for step, steps in ((9, [3, 6, 9]), (8, [3, 6]), (0, [])):
    found = history.History(folder, step)
    assert [point.step for point in found.points] == steps
  assert history.History(folder, 9).points == resumed.points

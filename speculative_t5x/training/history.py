# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures of each checkpoint of a training run, as JSON."""

from collections.abc import Mapping
import dataclasses
import json

from etils import epath

from speculative_t5x.loading import errors
from speculative_t5x.loading.files import whole_files
from speculative_t5x.speculation import ranges

FILE_NAME = 'history.json'


@dataclasses.dataclass(frozen=True)
class Measures:
  """The measures at a checkpoint."""

  step: int  # training steps made
  # Means over the steps since the point before: loss per target token,
  # accuracy, target tokens per second.
  training: Mapping[str, float]
  validation: Mapping[str, float]  # what was measured of the parameters
  score: float  # chooses the best checkpoint; higher is better
  time: float = 0.0  # of measurement, seconds since 1970; 0 if unknown


class History:
  """The points of a training run, kept in its folder."""

  def __init__(self, model_dir: epath.Path, step: int):
    """Read the points up to a step; those of later steps are made again."""
    self._model_dir = model_dir
    path = model_dir / FILE_NAME
    with errors.reading(path, ranges.ArgumentError):
      text = path.read_text(encoding='utf-8') if path.exists() else '[]'
      points = [Measures(**row) for row in json.loads(text)]
    self.points = [point for point in points if point.step <= step]

  def add(self, point: Measures) -> None:
    """Add a point after the last one, and write the file."""
    self.points.append(point)
    rows = [dataclasses.asdict(each) for each in self.points]
    text = json.dumps(rows, indent=1, allow_nan=False) + '\n'
    whole_files.replace(self._model_dir, FILE_NAME, text.encode())

  @property
  def best(self) -> Measures | None:
    """The first point of the highest score; None without points."""
    return max(self.points, key=lambda point: point.score, default=None)

  @property
  def num_since_best(self) -> int:
    """The number of points after the best one; 0 without points."""
    best = self.best
    return len(self.points) - 1 - self.points.index(best) if best else 0

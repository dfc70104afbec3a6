# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures at the checkpoints of a training, as JSON and for TensorBoard."""

from collections.abc import Mapping
import dataclasses
import functools
import json
import os

from etils import epath
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto import summary_pb2
from tensorboard.summary.writer import event_file_writer

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
    """Add a point after the last one, and write both files."""
    self.points.append(point)
    rows = [dataclasses.asdict(each) for each in self.points]
    text = json.dumps(rows, indent=1, allow_nan=False) + '\n'
    whole_files.replace(self._model_dir, FILE_NAME, text.encode())
    self._events.add_event(_event(point))
    self._events.flush()  # a killed job has lost nothing then

  @functools.cached_property
  def _events(self) -> event_file_writer.EventFileWriter:
    folder = os.fspath(self._model_dir / 'tensorboard')
    return event_file_writer.EventFileWriter(folder)

  @property
  def best(self) -> Measures | None:
    """The first point of the highest score; None without points."""
    return max(self.points, key=lambda point: point.score, default=None)

  @property
  def num_since_best(self) -> int:
    """The number of points after the best one; 0 without points."""
    best = self.best
    return len(self.points) - 1 - self.points.index(best) if best else 0


def _event(point: Measures) -> event_pb2.Event:
  """Return the numbers at a checkpoint under the names that are shown."""
  groups = {
      'training': point.training,
      'validation': {**point.validation, 'score': point.score},
  }
  values = [
      summary_pb2.Summary.Value(tag=f'{group}/{name}', simple_value=value)
      for group, numbers in groups.items()
      for name, value in numbers.items()
  ]
  return event_pb2.Event(
      wall_time=point.time,
      step=point.step,
      summary=summary_pb2.Summary(value=values),
  )

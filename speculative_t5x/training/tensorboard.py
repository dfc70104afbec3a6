# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The history of a training run, as TensorBoard reads it.

The file is written whole from the history, so that no step is in it twice after
a resumption. Within a run its earlier bytes stay the same, because TensorBoard
goes on reading where it was.
"""

from collections.abc import Iterable, Iterator
import io

from etils import epath
from tensorboard.compat.proto import event_pb2
from tensorboard.compat.proto import summary_pb2
from tensorboard.summary.writer import record_writer

from speculative_t5x.loading.files import whole_files
from speculative_t5x.training import history

FOLDER = 'tensorboard'
_PREFIX = 'events.out.tfevents.'  # TensorBoard looks for it
_SUFFIX = '.history'
_VERSION = 'brain.Event:2'  # of the format, in each file's first event


def write(
    model_dir: epath.Path, points: Iterable[history.Point], started: float
) -> epath.Path:
  """Writes the points of a run, and removes the file of the run before it.

  Args:
    model_dir: whose folder `tensorboard` gets the file.
    points: all of the training run, in their order.
    started: when this run began or was resumed, in seconds since 1970. It names
      the file: TensorBoard looks for newer files alone.
  Returns:
    The path of the file.
  Raises:
    OSError: if the folder cannot be written to.
  """
  name = f'{_PREFIX}{int(started)}{_SUFFIX}'
  path = whole_files.write_bytes(
      model_dir, f'{FOLDER}/{name}', [_records(points)]
  )
  for other in whole_files.listed(path.parent, _PREFIX):
    if other.name.endswith(_SUFFIX) and other.name != name:
      other.unlink()
  return path


def _records(points: Iterable[history.Point]) -> bytes:
  file = io.BytesIO()
  writer = record_writer.RecordWriter(file)
  writer.write(event_pb2.Event(file_version=_VERSION).SerializeToString())
  for point in points:
    event = event_pb2.Event(
        wall_time=point.time,
        step=point.step,
        summary=summary_pb2.Summary(
            value=[
                summary_pb2.Summary.Value(tag=tag, simple_value=value)
                for tag, value in _scalars(point)
            ]
        ),
    )
    writer.write(event.SerializeToString())
  return file.getvalue()


def _scalars(point: history.Point) -> Iterator[tuple[str, float]]:
  """Yields the name and the value of each number at a checkpoint."""
  for name, value in point.training.items():
    yield f'training/{name}', value
  for name, value in point.validation.items():
    yield f'validation/{name}', value
  yield 'validation/score', point.score

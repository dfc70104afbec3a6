# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The history of a training run, as TensorBoard reads it.

The file is written whole from the history, so that no step is in it twice after
a resumption, and a bucket can hold it. Writers that append, such as clu's, do
neither, nor can they state when a point was measured. Within a run the earlier
bytes stay the same, because TensorBoard goes on reading where it was.
"""

from collections.abc import Iterable
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
    model_dir: epath.Path, points: Iterable[history.Measures], started: float
) -> epath.Path:
  """Write the points of a run, and remove the file of the run before it.

  The path of the file is returned. When this run began or was resumed, in
  seconds since 1970, names it: TensorBoard looks for newer files alone.
  """
  file = io.BytesIO()
  writer = record_writer.RecordWriter(file)
  writer.write(event_pb2.Event(file_version=_VERSION).SerializeToString())
  for point in points:
    writer.write(_event(point).SerializeToString())
  name = f'{_PREFIX}{int(started)}{_SUFFIX}'
  path = whole_files.write_bytes(
      model_dir, f'{FOLDER}/{name}', [file.getvalue()]
  )
  for other in whole_files.listed(path.parent, _PREFIX):
    if other.name.endswith(_SUFFIX) and other.name != name:
      other.unlink()
  return path


def _event(point: history.Measures) -> event_pb2.Event:
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

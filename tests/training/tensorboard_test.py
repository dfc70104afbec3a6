# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""TensorBoard's files show the history of a training."""

from etils import epath
import pytest
from tensorboard.backend.event_processing import event_accumulator

from speculative_t5x.training import history
from speculative_t5x.training import tensorboard

_STARTED = 1_700_000_000.7


def _point(step, loss):
  return history.Measures(
      step,
      {'loss': loss, 'accuracy': 0.25},
      {'acceptance_t0': 0.5, 'tokens_per_call_3_t1': 2.75},
      0.625,
      1_700_000_000.5 + step,
  )


def _read(model_dir):
  """Return (time, step, value) of each event by its tag, repeated ones too."""
  found = event_accumulator.EventAccumulator(
      str(model_dir / 'tensorboard'), purge_orphaned_data=False
  ).Reload()
  return {
      tag: [(x.wall_time, x.step, x.value) for x in found.Scalars(tag)]
      for tag in found.Tags()['scalars']
  }


@pytest.fixture
def model_dir(tmp_path):
  return epath.Path(tmp_path)


def test_all_numbers_of_the_history(model_dir):
  points = [_point(3, 4.5), _point(6, 1.25)]
  tensorboard.write(model_dir, points, _STARTED)
  assert _read(model_dir) == {
      'training/loss': [
          (1_700_000_003.5, 3, 4.5),
          (1_700_000_006.5, 6, 1.25),
      ],
      'training/accuracy': [(p.time, p.step, 0.25) for p in points],
      'validation/acceptance_t0': [(p.time, p.step, 0.5) for p in points],
      'validation/tokens_per_call_3_t1': [
          (p.time, p.step, 2.75) for p in points
      ],
      'validation/score': [(p.time, p.step, 0.625) for p in points],
  }


def test_steps_of_a_resumed_training_are_there_once(model_dir):
  """The resumed run makes step 6 again, with another loss."""
  tensorboard.write(model_dir, [_point(3, 4.5), _point(6, 1.25)], _STARTED)
  other = model_dir / 'tensorboard' / 'events.out.tfevents.1600000000.other'
  other.write_text('')
  tensorboard.write(model_dir, [_point(3, 4.5)], _STARTED + 60)
  tensorboard.write(model_dir, [_point(3, 4.5), _point(6, 1.5)], _STARTED + 60)
  losses = [x[1:] for x in _read(model_dir)['training/loss']]
  assert losses == [(3, 4.5), (6, 1.5)]
  assert other.exists()


def test_a_run_only_adds_bytes(model_dir):
  """TensorBoard keeps the file open, and reads on where it ended."""
  path = tensorboard.write(model_dir, [_point(3, 4.5)], _STARTED)
  with open(path, 'rb') as opened:
    before = opened.read()
    tensorboard.write(model_dir, [_point(3, 4.5), _point(6, 1.25)], _STARTED)
    added = opened.read()
  assert before and added and path.read_bytes() == before + added

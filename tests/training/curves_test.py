# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Curves and TensorBoard's files show the history of a training."""

from etils import epath
import pytest
from tensorboard.backend.event_processing import event_accumulator

from speculative_t5x.research import figure_style
from speculative_t5x.training import curves
from speculative_t5x.training import history
from speculative_t5x.training import tensorboard
from tests import full_disk


def _distilled(step, x):
  validation = {
      'acceptance_t0': x,
      'divergence_t0': 1 - x,
      'tokens_per_call_3_t0': 1 + x,
      'tokens_per_call_5_t0': 1 + 2 * x,
      'acceptance_t1': x / 2,
      'divergence_t1': 2 - x,
      'tokens_per_call_3_t1': 1 + x / 2,
  }
  return history.Point(step, {'loss': 3 - x, 'accuracy': 0.9}, validation, x)


def _trained(step, x):
  return history.Point(
      step, {'loss': x, 'accuracy': 1 - x}, {'loss': 2 * x, 'accuracy': x}, -x
  )


_DISTILLED = [_distilled(10, 0.25), _distilled(20, 0.75), _distilled(30, 0.5)]


def _shown(points, best_step):
  """Return the curves of all axes by their labels: {axes: {curve: data}}."""
  figure = curves.draw(points, best_step)
  return {
      axes.get_ylabel(): {
          text.get_text(): _data(axes, handle)
          for text, handle in zip(
              axes.get_legend().get_texts(),
              axes.get_legend().legend_handles,
              strict=True,
          )
      }
      for axes in figure.axes
  }


def _data(axes, handle):
  """Return the points of the curve that looks as its handle in the legend."""
  look = lambda line: (line.get_color(), line.get_linestyle())
  (found,) = (
      line
      for line in axes.lines
      if look(line) == look(handle) and not line.get_label().startswith('_')
  )
  return list(map(tuple, found.get_xydata().tolist()))


def test_distilled():
  """No two curves of the same axes look alike."""
  at = lambda *values: list(zip((10, 20, 30), values, strict=True))
  shown = _shown(_DISTILLED, 20)
  assert next(iter(shown)) == 'loss per target token'  # at the top
  assert shown == {
      'loss per target token': {
          'validation, T = 0': at(0.75, 0.25, 0.5),
          'validation, T = 1': at(1.75, 1.25, 1.5),
          'training': at(2.75, 2.25, 2.5),
      },
      'acceptance rate': {
          'T = 0': at(0.25, 0.75, 0.5),
          'T = 1': at(0.125, 0.375, 0.25),
      },
      'tokens per target call': {
          'γ = 3, T = 0': at(1.25, 1.75, 1.5),
          'γ = 5, T = 0': at(1.5, 2.5, 2),
          'γ = 3, T = 1': at(1.125, 1.375, 1.25),
      },
  }


def test_trained():
  assert _shown([_trained(5, 0.5), _trained(10, 0.25)], 10) == {
      'loss per target token': {
          'validation': [(5, 1), (10, 0.5)],
          'training': [(5, 0.5), (10, 0.25)],
      },
      'accuracy': {
          'validation': [(5, 0.5), (10, 0.25)],
          'training': [(5, 0.5), (10, 0.75)],
      },
  }


def test_best_checkpoint_is_marked_on_all_curves():
  figure = curves.draw(_DISTILLED, 20)
  assert figure.axes[0].get_title() == 'best checkpoint: step 20'
  for axes in figure.axes:
    marks = [
        tuple(line.get_xydata()[0])
        for line in axes.lines
        if line.get_markerfacecolor() == figure_style.POINT_COLOR
    ]
    named = [x for x in axes.lines if not x.get_label().startswith('_')]
    assert marks == [(20, line.get_ydata()[1]) for line in named]
  # A target call makes one token without a draft.
  assert [axes.get_ylim()[0] for axes in figure.axes] == [0, 0, 1]


def test_points_and_measures_that_not_all_have():
  """A job that was killed has the validation of its checkpoint alone."""
  first = history.Point(10, {}, _DISTILLED[0].validation, 0.25)
  shown = _shown([first, *_DISTILLED[1:]], 10)
  assert shown['loss per target token']['training'] == [(20, 2.25), (30, 2.5)]
  assert len(shown['acceptance rate']['T = 0']) == 3
  assert 'training' not in _shown([first], 10)['loss per target token']
  lacking = history.Point(10, {}, {'divergence_t0': 1.0}, 0.0)
  shown = _shown([lacking, *_DISTILLED[1:]], 20)
  assert shown['acceptance rate']['T = 0'] == [(20, 0.75), (30, 0.5)]
  other = history.Point(10, {'loss': 1.0}, {'bleu': 30.5}, 30.5)
  assert _shown([other], 10) == {'bleu': {'validation': [(10, 30.5)]}}


_STARTED = 1_700_000_000.7


def _point(step, loss):
  return history.Point(
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


def test_full_disk(model_dir):
  """The file of the run before stays."""
  tensorboard.write(model_dir, [_point(3, 4.5)], _STARTED)
  points = [_point(3, 4.5), _point(6, 1.5)]
  with full_disk.full_disk(100), pytest.raises(OSError, match='be written'):
    tensorboard.write(model_dir, points, _STARTED + 60)
  assert [x[1:] for x in _read(model_dir)['training/loss']] == [(3, 4.5)]


def test_a_run_only_adds_bytes(model_dir):
  """TensorBoard keeps the file open, and reads on where it ended."""
  path = tensorboard.write(model_dir, [_point(3, 4.5)], _STARTED)
  with open(path, 'rb') as opened:
    before = opened.read()
    tensorboard.write(model_dir, [_point(3, 4.5), _point(6, 1.25)], _STARTED)
    added = opened.read()
  assert before and added and path.read_bytes() == before + added

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the train job."""

import contextlib
import dataclasses
import io
import json
import re
import shutil

import jax
import numpy as np
import pytest
import seqio
from tensorboard.backend.event_processing import event_accumulator
import tensorflow as tf

from speculative_t5x.jobs import train
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.speculation import contracts
from speculative_t5x.training import batches
from speculative_t5x.training import cross_entropy
from speculative_t5x.training import feed
from speculative_t5x.training import schedules
from speculative_t5x.training import steps
from speculative_t5x.training import trainer
from tests import tiny

_TASK = 'train_test_copies'
_CONFIG = tiny.config(
    vocab_size=16, num_encoder_layers=1, num_decoder_layers=1, dropout_rate=0.2
)


def _dataset(split, shuffle_files, seed=None):
  del shuffle_files, seed
  rng = np.random.default_rng(1)
  rows = {'train': 40, 'validation': 7, 'empty': 0}[split]
  tokens = [list(rng.integers(3, 12, rng.integers(1, 14))) for _ in range(rows)]
  ragged = tf.ragged.constant(tokens, tf.int32, ragged_rank=1)
  dataset = tf.data.Dataset.from_tensor_slices(ragged)
  return dataset.map(lambda x: {'inputs': x, 'targets': x})


@pytest.fixture(scope='module', autouse=True)
def _task():
  vocabulary = seqio.PassThroughVocabulary(size=16, eos_id=1)
  feature = seqio.Feature(vocabulary, add_eos=True)
  seqio.TaskRegistry.add(
      _TASK,
      source=seqio.FunctionDataSource(
          _dataset, splits=('train', 'validation', 'empty')
      ),
      preprocessors=[seqio.preprocessors.append_eos_after_trim],
      output_features={'inputs': feature, 'targets': feature},
  )
  yield
  seqio.TaskRegistry.remove(_TASK)


def _train(model_dir, **changes):
  settings = {
      'train_steps': 6,
      'batch_size': 8,
      'checkpoint_period': 3,
      'seed': 3,
  }
  arguments = {
      'mixture_or_task_name': _TASK,
      'network_config': _CONFIG,
      'model_dir': model_dir,
      'learning_rate_fn': schedules.linear_decay(
          train_steps=99, learning_rate=0.05, warmup_steps=2, decay_steps=0
      ),
      'task_feature_lengths': {'inputs': 10, 'targets': 12},
  }
  names = {field.name for field in dataclasses.fields(trainer.Settings)}
  for name, value in changes.items():
    (settings if name in names else arguments)[name] = value
  return train.train(**arguments, settings=trainer.Settings(**settings))


def _params(folder):
  return checkpoints.open(folder).restore_params(
      models.abstract_params(_CONFIG)
  )


def _tensorboard(folder):
  """Return the step and the loss of each event, those repeated too."""
  found = event_accumulator.EventAccumulator(
      str(folder / 'tensorboard'), purge_orphaned_data=False
  ).Reload()
  return [(x.step, x.value) for x in found.Scalars('validation/loss')]


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
  """Return a folder with steps 3 and 6, the result, and the printed lines."""
  folder = tmp_path_factory.mktemp('uninterrupted')
  with contextlib.redirect_stderr(io.StringIO()) as stream:
    result = _train(folder)
  return folder, result, stream.getvalue().splitlines()


class TestTrain:

  def test_result(self, trained):
    folder, result, printed = trained
    assert (result.last.step, result.last_checkpoint) == (
        6, str(folder / 'checkpoint_6')
    )  # fmt: skip
    assert 0 < result.last.validation['loss'] < 4
    assert 0 <= result.last.validation['accuracy'] <= 1
    assert sorted(checkpoints.step_folders(folder)) == [3, 6]
    first, *lines = printed
    assert 'from step 0 to 6: 40 examples of up to 10 and 12 tokens' in first
    shown = [re.findall(r': step (\d of \d),.* s left$', x) for x in lines]
    assert sum(shown, [])[-1] == '6 of 6'

  def test_resumed_equals_uninterrupted(self, trained, tmp_path):
    """From a linked checkpoint, and beside a save that was cut off."""
    folder, result, _ = trained
    model, linked = tmp_path / 'model', tmp_path / 'linked'
    shutil.copytree(folder / 'checkpoint_3', linked)
    model.mkdir()
    (model / 'checkpoint_3').symlink_to(linked)
    # In a bucket a killed job leaves such a folder.
    (model / 'checkpoint_6' / 'state').mkdir(parents=True)
    # What was measured after the checkpoint is measured again.
    points = json.loads((folder / 'history.json').read_text())
    later = [{**point, 'score': 1e9} for point in points[1:]]
    (model / 'history.json').write_text(json.dumps(points[:1] + later))
    resumed = _train(model, keep=1)
    again = json.loads((model / 'history.json').read_text())
    scores = [[point['score'] for point in x] for x in (points, again)]
    assert scores[0] == scores[1]
    # The link is removed, and the folder that it points to remains.
    assert sorted(checkpoints.step_folders(model)) == [6]
    assert (linked / 'state').exists()
    assert resumed.last.validation == result.last.validation
    assert _tensorboard(model) == _tensorboard(folder)[1:]
    jax.tree.map(
        np.testing.assert_array_equal, _params(model), _params(folder)
    )

  def test_folder_of_another_training(self, trained, tmp_path):
    other = dataclasses.replace(_CONFIG, mlp_dim=32)
    with pytest.raises(ValueError, match='beyond train_steps 5'):
      _train(trained[0], train_steps=5)
    with pytest.raises(ValueError, match='another network .*mlp'):
      _train(trained[0], network_config=other)
    assert sorted(checkpoints.step_folders(trained[0])) == [3, 6]
    checkpoints.save(tmp_path, 4, tiny.params(_CONFIG))
    with pytest.raises(ValueError, match='folder of its own'):
      _train(tmp_path)


class _Falling:
  """A validation whose scores are given."""

  def __init__(self, scores):
    self._scores = iter(scores)

  def __call__(self, params):
    return {'score': next(self._scores)}

  def score(self, measured):
    return measured['score']


class TestBest:

  @pytest.fixture
  def scores(self, monkeypatch):
    """Return a function that gives the validation its scores.

    Steps then change nothing but their number, so that none is compiled.
    """

    def give(*values):
      falling = _Falling(values)
      monkeypatch.setattr(cross_entropy, 'validation', lambda *_: falling)

    def count(objective, state, examples, indices):
      values = np.ones(len(indices))
      state = state.replace(step=state.step + len(indices))
      return state, steps.Sums(values, values, values)

    monkeypatch.setattr(steps, 'make_train_steps', lambda *_: count)
    return give

  def test_best_is_kept_beside_the_newest(self, scores, tmp_path):
    scores(1.0, 3.0, 3.0, 1.0, 0.0)  # the first of equal ones
    result = _train(tmp_path, train_steps=5, checkpoint_period=1, keep=1)
    assert (result.best.step, result.last.step) == (2, 5)
    assert result.best_checkpoint == str(tmp_path / 'checkpoint_2')
    assert sorted(checkpoints.step_folders(tmp_path)) == [2, 5]

  def test_patience(self, scores, tmp_path):
    scores(1.0, 3.0, 2.0, 1.0)
    options = {'train_steps': 9, 'checkpoint_period': 1, 'patience': 2}
    result = _train(tmp_path, **options)
    assert (result.best.step, result.last.step) == (2, 4)
    scores()  # resumed, it measures nothing more
    assert _train(tmp_path, **options) == result

  def test_history_that_lacks_a_point_or_is_damaged(self, trained, tmp_path):
    """A job may be killed before it kept the measures of its checkpoint."""
    folder, result, _ = trained
    shutil.copytree(folder, tmp_path / 'copy')
    path = tmp_path / 'copy' / 'history.json'
    path.write_text(json.dumps(json.loads(path.read_text())[:1]))
    resumed = _train(tmp_path / 'copy')
    assert resumed.last.step == 6
    assert resumed.last.validation == result.last.validation
    path.write_text('[{')
    with pytest.raises(ValueError, match='history.json cannot be read'):
      _train(tmp_path / 'copy')


@pytest.mark.exhaustive
def test_accumulated_gradients_are_those_of_the_batch(tmp_path):
  config = dataclasses.replace(_CONFIG, dropout_rate=0.0)
  one, other = (
      _train(
          tmp_path / str(parts), num_parts=parts, train_steps=1,
          network_config=config,
      ).last_checkpoint
      for parts in (1, 4)
  )  # fmt: skip
  jax.tree.map(
      lambda x, y: np.testing.assert_allclose(x, y, atol=1e-5),
      *map(_params, (one, other)),
  )


class TestBadInput:

  @pytest.mark.parametrize(
      ('changes', 'named'),
      [
          ({'batch_size': 41}, 'batch_size 41'),
          ({'num_parts': 3}, 'num_parts'),
          ({'mesh_shape': 2}, 'mesh_shape'),
          ({'seed': -1}, 'seed'),
          ({'mixture_or_task_name': 'nothing'}, 'nothing'),
          ({'train_split': 'dev'}, 'dev'),
          ({'validation_split': 'empty'}, 'Split empty'),
          ({'task_feature_lengths': {'inputs': 8}}, 'task_feature_lengths'),
          (
              {'network_config': dataclasses.replace(_CONFIG, vocab_size=11)},
              'vocab_size',
          ),
      ],
  )
  def test_error_names_the_setting(self, tmp_path, changes, named):
    with pytest.raises(ValueError, match=named):
      _train(tmp_path, **changes)

  @pytest.mark.parametrize(
      ('first_loss', 'broken'),
      [(np.inf, None), (1.0, 'params'), (1.0, 'opt_state')],
  )
  def test_what_is_not_finite(self, tmp_path, monkeypatch, first_loss, broken):
    # Where the losses still are numbers, the check before saving finds the
    # parameters or the moments that are not.
    def diverge(objective, state, examples, indices):
      values = np.array([first_loss, 1.0])
      state = state.replace(step=state.step + 2)
      if broken is not None:
        nan = jax.tree.map(lambda x: np.nan * x, getattr(state, broken))
        state = state.replace(**{broken: nan})
      return state, steps.Sums(values, values, values)

    monkeypatch.setattr(steps, 'make_train_steps', lambda *_: diverge)
    told = r'finite at step 1, whose batch has the examples \d+, \d+'
    told = 'after step 2 is not fin' if broken else told
    with pytest.raises(ValueError, match=told):
      _train(tmp_path, train_steps=2)
    assert not checkpoints.step_folders(tmp_path)


class TestFeed:

  LENGTHS = np.arange(1, 41)  # each example differs

  def _feed(self, seed=0):
    is_token = np.arange(48) < self.LENGTHS[:, None]
    tokens = np.where(is_token, 1, contracts.NO_TOKEN).astype(np.int32)
    return feed.Feed(
        batches.TokenPairs(tokens, tokens),
        train_steps=9,
        batch_size=8,
        steps_per_call=2,
        seed=seed,
    )

  def test_batches_are_as_long_as_their_longest_example(self):
    one = self._feed()
    seen = set()
    for step in range(0, 8, 2):
      examples, indices = one.batches(step, step + 2, params=None)
      longest = self.LENGTHS[indices].max()
      seen.add(examples.targets.shape[1])
      assert longest <= examples.targets.shape[1] < longest + 16
      assert examples.inputs.shape == examples.targets.shape
    assert len(seen) > 1

  def test_length_does_not_depend_on_where_calls_end(self):
    """Dropout masks depend on it, and a resumed job may have other periods."""
    length = lambda *call: self._feed().batches(*call, None)[0].inputs.shape
    for step in range(0, 8, 2):
      whole = length(step, step + 2)
      assert whole == length(step, step + 1) == length(step + 1, step + 2)
    longest = [
        self.LENGTHS[self._feed().batches(i, i + 1, None)[1]].max()
        for i in range(8)
    ]
    assert longest[::2] != longest[1::2]



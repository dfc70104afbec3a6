# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the distill job with a random target and given decodes."""

import dataclasses
import json
import pathlib
import shutil
import types
from unittest import mock

import jax
import numpy as np
import pytest

from speculative_t5x.jobs import distill
from speculative_t5x.jobs import infer as infer_lib
from speculative_t5x.jobs.outputs import chunks
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.tasks import ende
from speculative_t5x.training import divergences
from speculative_t5x.training import on_policy
from speculative_t5x.training import origins
from speculative_t5x.training import schedules
from speculative_t5x.training import task_examples
from speculative_t5x.training import trainer
from tests import checkpoints_by_hand
from tests import tiny

pytestmark = pytest.mark.long

_TARGET = tiny.config(vocab_size=12, num_encoder_layers=1)
_DRAFT = dataclasses.replace(
    _TARGET, emb_dim=8, num_decoder_layers=1, head_dim=4, dropout_rate=0.1
)


_MISSING = task_examples.References(
    ende.BULLETINS, 'dev', {'inputs': 8, 'targets': 8}
)


@dataclasses.dataclass(frozen=True)
class _Infer:
  """Stands for the setup of an infer job; writes given decodes as it does.

  Attributes:
    runs: Gets an item per run.
  """

  target: str
  num_examples: int = 64
  tokens: bool = True
  largest: int = 11
  output_dir: str = ''
  runs: list[str] = dataclasses.field(default_factory=list)

  def run(self):
    self.runs.append(self.output_dir)
    rng = np.random.default_rng(0)
    folder = pathlib.Path(self.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    draw = lambda: rng.integers(2, self.largest + 1, rng.integers(2, 6))
    size = self.num_examples
    with open(folder / 'predictions.jsonl', 'w') as file:
      for _ in range(size):
        row = {'input_tokens': [*draw().tolist(), 1]}
        if self.tokens:
          row['tokens'] = [*draw().tolist(), 1]
        file.write(json.dumps(row) + '\n')
    model = types.SimpleNamespace(checkpoint=str(self.target))
    return types.SimpleNamespace(target=model, num_examples=size)


class _WithOtherSettings(_Infer):
  """Finds a folder with the decodes of another temperature."""

  def run(self):
    raise chunks.OtherSettingsError('It holds another temperature.')


@pytest.fixture(scope='module', autouse=True)
def stands_for_the_infer_job():
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(infer_lib, 'infer', lambda setup: setup.run())
    yield


@pytest.fixture(scope='module')
def target(tmp_path_factory):
  """Return the folder of a random target's checkpoint."""
  folder = tmp_path_factory.mktemp('target')
  return checkpoints.save(folder, 7, tiny.params(_TARGET))


def _distill(target, folder, infer=None, **changes):
  made = lambda name: distill.Decodes(
      infer or _Infer(target), folder / 'decodes', name
  )
  settings = {
      'train_steps': 6,
      'batch_size': 16,
      'checkpoint_period': 3,
  }
  arguments = {
      'checkpoint_path': target,
      'draft': origins.Scratch(_DRAFT),
      'decodes': [made('train')],
      'validation': {0: made('t0'), 1: made('t1')},
      'model_dir': folder / 'model',
      'learning_rate_fn': schedules.linear_decay(
          train_steps=99, learning_rate=0.03, warmup_steps=2, decay_steps=0
      ),
  }
  for name, value in changes.items():
    (settings if name in settings else arguments)[name] = value
  settings = trainer.Settings(**settings)
  return distill.distill(distill.DistillSetup(**arguments, settings=settings))


def _from_scratch(**changes):
  return {'draft': origins.Scratch(dataclasses.replace(_DRAFT, **changes))}


def _feature_head(num_masks=0, **settings):
  config = dataclasses.replace(
      _DRAFT, num_encoder_layers=0, num_masks=num_masks
  )
  return origins.FeatureHead(config, feature_weight=0.0, **settings)


def _samples(share, period):
  return {'on_policy': on_policy.Settings(share=share, period=period)}


@pytest.fixture(scope='module')
def distilled(target, tmp_path_factory):
  folder = tmp_path_factory.mktemp('distilled')
  return folder, _distill(target, folder)


class TestDistill:

  def test_result(self, distilled):
    folder, result = distilled
    measured = result.last.validation
    assert {'acceptance_t0', 'tokens_per_call_7_t1'} < set(measured)
    assert 0 < measured['acceptance_t1'] < 1
    assert 1 <= measured['tokens_per_call_3_t1'] <= 4
    history = json.loads((folder / 'model/history.json').read_text())
    assert [point['step'] for point in history] == [3, 6]

  @pytest.mark.parametrize(
      'draft',
      [
          origins.FromTarget([1], num_heads=1, mlp_dim=9, shares_encoder=True),
          *(
              pytest.param(draft, marks=pytest.mark.exhaustive)
              for draft in (
                  origins.ExitHead(1),
                  _feature_head(num_passes=2),
                  _from_scratch(num_encoder_layers=0)['draft'],
                  _from_scratch(dtype='bfloat16')['draft'],
              )
          ),
      ],
      ids=['cut', 'head', 'feature head', 'shared encoder', 'bfloat16'],
  )
  def test_origins(self, target, tmp_path, draft):
    result = _distill(
        target,
        tmp_path,
        draft=draft,
        divergence=divergences.total_variation,
        train_steps=3,
        # A head on last features writes no texts.
        **_samples(0.0 if isinstance(draft, origins.FeatureHead) else 0.5, 3),
    )
    loss = result.last.training['loss']
    assert 0 < loss < 1  # a total variation distance
    found = models.find_model(checkpoints.open(target))
    drafting = drafters.find(result.last_checkpoint, found)
    is_head = isinstance(draft, origins.ExitHead)
    assert (drafting.description.kind == 'early_exit') == is_head

  def test_parameters_in_training_are_float32(self, tmp_path):
    """Whatever the checkpoints of target and draft hold."""
    halved = jax.tree.map(
        lambda x: x.astype('bfloat16'), tiny.params(_TARGET)
    )
    path = checkpoints.save(tmp_path, 1, halved)
    target = origins.Stored(checkpoints.open(path), _TARGET)
    for origin in (
        origins.FromCheckpoint(path),
        origins.FromTarget([0]),
        origins.ExitHead(1),
        origins.Scratch(dataclasses.replace(_DRAFT, dtype='bfloat16')),
    ):
      params = origin.make(target, 0).params
      assert {str(x.dtype) for x in jax.tree.leaves(params)} == {'float32'}

  def test_a_block_head_begun_from_a_head_with_features(self, target):
    """It is fed none unless that is asked for."""
    config = dataclasses.replace(_DRAFT, num_encoder_layers=0, feature_dim=32)
    stored = origins.Stored(checkpoints.open(target), _TARGET)
    for reads in (False, True):
      origin = origins.BlockHead(config, gamma=3, reads_last_features=reads)
      network, params, _ = origin.make(stored, 0)
      assert (network.feature_dim is not None) == reads
      assert ('features' in params['decoder']) == reads

  def test_resumed_equals_uninterrupted_on_policy(self, target, tmp_path):
    run = lambda name: _distill(target, tmp_path / name, **_samples(0.25, 3))
    whole = run('whole')
    (tmp_path / 'resumed' / 'model').mkdir(parents=True)
    saved = 'model/checkpoint_3'
    shutil.copytree(tmp_path / 'whole' / saved, tmp_path / 'resumed' / saved)
    resumed = run('resumed')
    assert resumed.last.validation == whole.last.validation
    assert resumed.last.training['loss'] == whole.last.training['loss']

  def test_samples_end_at_the_end_of_the_vocabulary(
      self, target, tmp_path, monkeypatch
  ):
    """T5X's layout does not state the id, which is 1 by default."""
    samples = mock.create_autospec(on_policy.Samples, side_effect=ValueError)
    monkeypatch.setattr(on_policy, 'Samples', samples)
    for options, end in (({}, 1), ({'end_of_sequence': 3}, 3)):
      with pytest.raises(ValueError):
        _distill(target, tmp_path, **_samples(0.5, 3), **options)
      assert samples.call_args.args[2].end == end

  def test_goes_on_from_a_checkpoint(self, target, distilled, tmp_path):
    """At a learning rate of 0, the measures stay those of the checkpoint."""
    _, result = distilled
    again = _distill(
        target,
        tmp_path,
        draft=origins.FromCheckpoint(result.last_checkpoint),
        train_steps=1,
        learning_rate_fn=lambda step: 0.0 * step,
    )
    assert again.last.validation == pytest.approx(result.last.validation)

  def test_dropout_is_that_of_the_job(self, target, tmp_path, monkeypatch):
    """The target as its own draft model only errs with dropout."""
    train = mock.create_autospec(trainer.train, side_effect=ValueError)
    monkeypatch.setattr(trainer, 'train', train)
    with pytest.raises(ValueError):
      _distill(
          target,
          tmp_path,
          draft=origins.FromCheckpoint(target),
          dropout_rate=0.9,
      )
    objective, _, examples, *_ = train.call_args.args
    loss, metrics = jax.jit(type(objective).loss)(
        objective, train.call_args.kwargs['init'](), examples, jax.random.key(0)
    )
    assert loss > 1e-4 * metrics.num_tokens


class TestBadInput:

  def test_another_target_at_the_same_path(self, target, distilled, tmp_path):
    """Its decodes differ, on which the training must not go on."""
    shutil.copytree(distilled[0] / 'model', tmp_path / 'model')
    with pytest.raises(ValueError, match='other data: training examples; v'):
      _distill(target, tmp_path, _Infer(target, largest=10))
    # A copy is the same target, and one of the same decodes is not.
    copy = shutil.copytree(target, tmp_path / 'copy' / 'checkpoint_7')
    _distill(copy, tmp_path)
    other = checkpoints.save(tmp_path, 7, tiny.params(_TARGET, noise=0.1))
    with pytest.raises(ValueError, match='other data: target. Give'):
      _distill(other, tmp_path)
    kept = tmp_path / 'model/data.json'
    digests = json.loads(kept.read_text())
    del digests['target']  # an older version kept none
    kept.write_text(json.dumps(digests))
    _distill(other, tmp_path)
    kept.unlink()
    _distill(target, tmp_path, _Infer(target, largest=10))

  def test_decoder_that_reads_another_width(self, target, tmp_path):
    config = dataclasses.replace(
        _DRAFT, num_encoder_layers=0, encoder_dim=16
    )
    path = checkpoints.save(tmp_path, 1, tiny.params(config))
    infer = _Infer(target)
    with pytest.raises(ValueError, match='width 16, and .* has width 32'):
      _distill(target, tmp_path, infer, draft=origins.FromCheckpoint(path))
    assert not infer.runs  # decoding would take long

  def test_target_with_other_padding(self, tmp_path):
    by_hand = checkpoints_by_hand
    folder = by_hand.write_hugging_face(
        tmp_path / 'target',
        by_hand.hugging_face_config(_TARGET, pad_token_id=1, eos_token_id=2),
        by_hand.hugging_face_tensors(_TARGET, tiny.params(_TARGET)),
    )
    with pytest.raises(ValueError, match='padding 1 and begins .* token 1'):
      _distill(folder, tmp_path)

  @pytest.mark.parametrize(
      ('changes', 'named'),
      [
          ({'decodes': []}, 'decodes must be one or several'),
          (_from_scratch(vocab_size=13), '12 tokens .* 13'),
          ({'draft': origins.Scratch(None)}, 'config'),
          (
              _from_scratch(num_encoder_layers=0, num_masks=2),
              'config is a head.*block_head.gin',
          ),
          ({'draft': origins.FromTarget([2])}, 'decoder_layers'),
          ({'dropout_rate': 1.0}, 'dropout_rate'),
          (_samples(0.5, 2), 'every 2 steps.* checkpoint_period of 3'),
          (
              _samples(0.5, 3) | {'divergence': divergences.cross_entropy},
              'ON_POLICY_SHARE',
          ),
          (
              _samples(0.5, 3) | {'draft': _feature_head()},
              'write texts by itself.* ON_POLICY_SHARE',
          ),
          (
              {'draft': _feature_head(num_masks=2)},
              'token by token.*block_head.gin',
          ),
          ({'checkpoint_path': 'nowhere'}, 'nowhere'),
          ({'references': [_MISSING]}, 'bulletins_ende.*no split dev'),
      ],
  )
  def test_error_names_the_setting(self, target, tmp_path, changes, named):
    infer = _Infer(target)
    with pytest.raises(ValueError, match=named):
      _distill(target, tmp_path, infer, **changes)
    assert not infer.runs  # decoding takes long


class TestDecodes:

  @pytest.mark.parametrize(
      ('infer', 'named'),
      [
          (_Infer('elsewhere'), 'decodes elsewhere'),
          (_WithOtherSettings('x'), 'DECODES_DIR: .* another temperature'),
          ({'tokens': False}, 'have no tokens'),
          ({'num_examples': 0}, 'have no tokens'),
          ({'largest': 40}, 'has only 12'),
      ],
      ids=[
          'another target', 'other settings', 'no tokens', 'none',
          'another vocabulary',
      ],
  )
  def test_that_do_not_fit(self, target, tmp_path, infer, named):
    if isinstance(infer, dict):
      infer = _Infer(target, **infer)
    with pytest.raises(ValueError, match=named):
      distill.Decodes(infer, tmp_path, 'train').read(target, _TARGET)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distillation by T5X's train script, and of what it leaves."""


import numpy as np
import pytest
import tensorflow as tf

from speculative_t5x.loading import checkpoints
from speculative_t5x.tasks import bulletins
from tests import tiny
from tests.t5x_guest import jobs

RATE = 'acceptance_rate/temperature_'
STEPS, SAVED = 6, 2  # of a training; between two checkpoints
TARGET = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
DRAFT = {'emb_dim': 16, 'num_heads': 1, 'mlp_dim': 32}

_JOB = """
from __gin__ import dynamic_registration

import __main__ as script
import seqio
from speculative_t5x.tasks import ende
from t5x import utils
from t5x.examples.t5 import network

include 't5x/examples/t5/t5_1_1/base.gin'
include 't5x/configs/runs/pretrain.gin'
include 'configs/t5x/draft_model.gin'
include 'configs/t5x/distill.gin'

MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TASK_FEATURE_LENGTHS = {{'inputs': 64, 'targets': 64}}
DROPOUT_RATE = 0.1
BATCH_SIZE = 8
VOCABULARY = @seqio.SentencePieceVocabulary()
seqio.SentencePieceVocabulary.sentencepiece_model_file = '{vocabulary}'

network.T5Config:
  vocab_size = {target.vocab_size}
  dtype = 'float32'
  emb_dim = {target.emb_dim}
  num_heads = {target.num_heads}
  num_encoder_layers = {target.num_encoder_layers}
  num_decoder_layers = {target.num_decoder_layers}
  head_dim = {target.head_dim}
  mlp_dim = {target.mlp_dim}
draft/network.T5Config:
  emb_dim = {draft[emb_dim]}
  num_heads = {draft[num_heads]}
  mlp_dim = {draft[mlp_dim]}

USE_CACHED_TASKS = False
RANDOM_SEED = 0
TRAIN_STEPS = {steps}
script.train:
  eval_period = {saved}
  eval_steps = 2
  stats_period = 1
utils.SaveCheckpointConfig:
  period = {saved}
  save_dataset = True
train/utils.DatasetConfig.seed = 0
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return a folder with the target and the gin file of the job."""
  folder = tmp_path_factory.mktemp('distillation')
  checkpoints.save(folder / 'target', 40, tiny.params(TARGET))
  job = _JOB.format(
      vocabulary=bulletins.VOCABULARY_FILE,
      target=TARGET,
      draft=DRAFT,
      steps=STEPS,
      saved=SAVED,
  )
  (folder / 'train.gin').write_text(job)
  return folder


def flags(folder, output, *bindings):
  """Return the flags of a training."""
  settings = [
      f'MODEL_DIR={jobs.quoted(output)}',
      f'CHECKPOINT_PATH={jobs.quoted(folder / "target")}',
      *bindings,
  ]
  return [
      f'--gin_file={folder / "train.gin"}',
      *(f'--gin.{setting}' for setting in settings),
  ]


def train(folder, output, *bindings, devices=1, gin_file=None):
  files = [f'--gin_file={gin_file}'] if gin_file else []
  jobs.run('train', *flags(folder, output, *bindings), *files, devices=devices)
  return output


@pytest.fixture(scope='module')
def trained(folder):
  """Return the folder of a training that nothing interrupted."""
  return train(folder, folder / 'trained')


def logged(folder, name):
  """Return the values of a metric in TensorBoard's files, by step."""
  found = jobs.logged(folder)[name]
  return {step: float(tf.make_ndarray(x)) for step, x in found.items()}


def losses(folder):
  return logged(folder / 'train', 'loss_per_nonpadding_target_token')


def params_of(path, role):
  return dict(checkpoints.open(path).of(role).read_params())


def assert_equal(one, other, **tolerances):
  assert one.keys() == other.keys()
  for name in one:
    np.testing.assert_allclose(one[name], other[name], **tolerances)


class TestTraining:

  def test_draft_model_learns_and_the_target_stays(self, folder, trained):
    expected = dict(checkpoints.open(folder / 'target').read_params())
    for step in range(0, STEPS + 1, SAVED):
      found = params_of(trained / f'checkpoint_{step}', 'target')
      assert_equal(found, expected, rtol=0, atol=0)
    first, last = (
        params_of(trained / f'checkpoint_{step}', 'draft')
        for step in (0, STEPS)
    )
    assert all((first[name] != last[name]).any() for name in first)
    shown = losses(trained)
    assert list(shown) == list(range(1, STEPS + 1))
    assert shown[STEPS] < shown[1]

  def test_evaluation_logs_acceptance_rates(self, trained):
    folder = trained / 'training_eval/bulletins_ende'
    for temperature in (0, 1):
      rates = logged(folder, f'{RATE}{temperature}')
      assert list(rates) == list(range(SAVED, STEPS + 1, SAVED))
      assert all(0 <= rate < 1 for rate in rates.values())
    assert rates[STEPS] > rates[SAVED]

  def test_two_hosts_have_the_losses_of_one(self, folder, trained, tmp_path):
    """The target is split over two processes on this machine."""
    jobs.run_on_hosts('train', *flags(folder, tmp_path, *jobs.TWO_HOSTS))
    one, other = map(losses, (trained, tmp_path))
    assert other == pytest.approx(one, rel=1e-4)
    assert_equal(
        params_of(tmp_path, 'target'), params_of(trained, 'target'),
        rtol=0, atol=0,
    )  # fmt: skip

  def test_killed_training_goes_on_as_if_it_had_not_been(
      self, folder, trained, tmp_path
  ):
    saved = tmp_path / f'checkpoint_{SAVED}/commit_success.txt'
    assert jobs.run_until(
        'train', *flags(folder, tmp_path), is_time=saved.exists
    )
    assert not (tmp_path / f'checkpoint_{STEPS}').exists()
    train(folder, tmp_path)
    one, other = map(losses, (trained, tmp_path))
    assert other[STEPS] == pytest.approx(one[STEPS], rel=1e-6)
    for role in ('target', 'draft'):
      assert_equal(
          params_of(tmp_path, role), params_of(trained, role), rtol=1e-6
      )


def test_multi30k_job_up_to_its_first_evaluation(shared, tmp_path):
  """The complete job trains, saves, evaluates and decodes.

  Its draft is a decoder that reads the output of the target's encoder.
  """
  target = shared / 't5x_oracle/target/t5x_orbax/checkpoint_2500'
  data = jobs.first_examples(shared, tmp_path / 'data')
  settings = {
      'MULTI30K_DIR': jobs.quoted(data),
      'CHECKPOINT_PATH': jobs.quoted(target),
      'MODEL_DIR': jobs.quoted(tmp_path / 'out'),
      'TRAIN_STEPS': 2,
      'WARMUP_STEPS': 0,
      'EVAL_PERIOD': 2,
      'SAVE_PERIOD': 2,
      'EVAL_STEPS': 1,
      'BATCH_SIZE': 4,
      'EVALUATOR_NUM_EXAMPLES': 4,
  }
  jobs.run(
      'train',
      '--gin_file=configs/t5x/distill_multi30k.gin',
      '--gin_file=configs/t5x/draft_multi30k_decoder.gin',
      *(f'--gin.{name}={value}' for name, value in settings.items()),
  )
  output = tmp_path / 'out'
  assert_equal(
      params_of(output, 'target'),
      dict(checkpoints.open(target).read_params()),
      rtol=0, atol=0,
  )  # fmt: skip
  draft = params_of(output, 'draft')
  assert not any(name.startswith('encoder/') for name in draft)
  (values,) = jobs.read_jsonl(
      output / 'inference_eval/multi30k_ende-metrics.jsonl'
  )
  assert values['step'] == 2
  assert 0 <= values['acceptance_rate'] < 1
  assert values['tokens_per_target_call'] >= 1

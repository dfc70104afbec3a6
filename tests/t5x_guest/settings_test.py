# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of what the gin files of configs/t5x set up, in any order of theirs.

The files are parsed by the script of T5X that they are for, without running it.
"""

import dataclasses
import importlib
import sys

import gin
import pytest
from t5x import models
from t5x.examples.t5 import network

from speculative_t5x import t5x_guest
from speculative_t5x.loading.files import public_t5
from speculative_t5x.t5x_guest import public_checkpoints
from speculative_t5x.tasks import bulletins
from tests.t5x_guest import jobs
from tests.t5x_guest import tiny_decoder_pair

FUNCTIONS = {'eval': 'evaluate', 'infer': 'infer', 'train': 'train'}
T5X_XL = 't5x/examples/t5/t5_1_1/xl.gin'
# T5X's model files require it anew.
DROPOUT = 'DROPOUT_RATE = 0.0'
TASKS = pytest.mark.parametrize('task', ['wmt_ende', 'cnn_dailymail', 'xsum'])


@pytest.fixture
def settings(monkeypatch):
  """Return a function that parses files as a script of T5X does.

  It returns the arguments of the script's function.
  """
  monkeypatch.chdir(jobs.CHECKOUT)

  def parse(script, *files, bindings=()):
    # T5X's gin files import the script as `__main__`.
    module = importlib.import_module(f't5x.{script}')
    monkeypatch.setitem(sys.modules, '__main__', module)
    folder = {'eval': 'EVAL_OUTPUT_DIR', 'infer': 'INFER_OUTPUT_DIR'}
    given = [
        f'{folder.get(script, "MODEL_DIR")} = "output"',
        f'VOCABULARY_FILE = "{bulletins.VOCABULARY_FILE}"',
        *bindings,
    ]
    if script != 'train':
      given.append('CHECKPOINT_PATH = "target"')
    gin.parse_config_files_and_bindings(files, given)
    return gin.get_bindings(getattr(module, FUNCTIONS[script]))

  return parse


def job(script, task='wmt_ende'):
  return f'configs/t5x/{script}_{task}.gin'


def target(model):
  return model.module.target.config


def draft(model):
  # A pair in training; in decoding, the choice of a drafter.
  return (model.module.draft or model._drafter.module).config


def assert_sizes(config, name):
  """Check that sizes are those of T5X's own file."""
  family, _, size = name.rpartition('_')
  folder = 't5_1_0' if family == 't5' else 't5_1_1'
  with gin.unlock_config():
    gin.clear_config()
    gin.parse_config_files_and_bindings(
        [f't5x/examples/t5/{folder}/{size}.gin'], [DROPOUT]
    )
    expected = gin.get_configurable(network.T5Config)()
  assert config.replace(dropout_rate=0.0) == expected


@pytest.mark.parametrize('name', public_t5.STEPS)
def test_public_sizes_are_those_of_t5xs_files(name):
  sizes = {
      field.name: None
      for field in dataclasses.fields(network.T5Config)
      if field.name not in ('vocab_size', 'dtype')
  }
  kept = {'dropout_rate': 0.0, 'float32_attention_logits': False}
  config = network.T5Config(32128, 'bfloat16', **(sizes | kept))
  assert_sizes(public_checkpoints.fill_in(config, name), name)


@pytest.mark.parametrize('script', ['eval', 'infer'])
class TestDecoding:

  @TASKS
  def test_default_is_xxl_with_small(self, settings, script, task):
    found = settings(script, job(script, task))
    assert isinstance(found['model'], t5x_guest.SpeculativeModel)
    assert_sizes(target(found['model']), 't5_1_1_xxl')
    assert_sizes(draft(found['model']), 't5_1_1_small')

  def test_job_of_t5xs_files_with_one_more(self, settings, script):
    """As README has it."""
    files = [
        't5x/examples/t5/t5_1_1/base.gin',
        f't5x/configs/runs/{script}.gin',
        'configs/t5x/task_wmt_ende.gin',
        'configs/t5x/t5_1_1_small_drafts.gin',
    ]
    given = [DROPOUT, 'DRAFT_CHECKPOINT_PATH = "draft"']
    model = settings(script, *files, bindings=given)['model']
    assert isinstance(model, t5x_guest.SpeculativeModel)
    assert_sizes(target(model), 't5_1_1_base')
    assert_sizes(draft(model), 't5_1_1_small')

  @pytest.mark.parametrize('is_prefix', [False, True])
  def test_job_of_a_decoder_alone(
      self, settings, tmp_path, script, is_prefix
  ):
    """What it binds to T5X's model holds, and T5X's sampling is the default."""
    own = tmp_path / 'own.gin'
    bound = 'models.DecoderOnlyModel'
    # As t5x/examples/decoder_only/examples/base_wmt_from_scratch.gin.
    own.write_text(
        'from __gin__ import dynamic_registration\n'
        'from t5x import models\n'
        f'{bound}.predict_batch_with_aux.num_decodes = 8\n'
        f'{bound}.inputs_bidirectional_attention = {is_prefix}\n'
    )
    files = [
        tiny_decoder_pair.BASE_GIN,
        f't5x/configs/runs/{script}.gin',
        str(own),
        'configs/t5x/speculative_decoder_only.gin',
        'configs/t5x/draft_decoder_only.gin',
    ]
    given = [
        DROPOUT,
        'DRAFT_CHECKPOINT_PATH = "draft"',
        'MIXTURE_OR_TASK_NAME = "task"',
        'TASK_FEATURE_LENGTHS = {"inputs": 8, "targets": 8}',
        'NUM_DECODES = 3',
        'draft/network.TransformerConfig.num_layers = 2',
    ]
    model = settings(script, *files, bindings=given)['model']
    assert isinstance(model, t5x_guest.SpeculativeDecoderOnlyModel)
    assert model._target_config.prefix_bidirectional == is_prefix
    assert model._default_decoder_params.num_decodes == 3
    assert target(model).num_layers == 12
    own = model._drafter.config_for(model._target_config)
    assert (own.num_layers, own.emb_dim) == (2, 768)
    assert own.prefix_bidirectional == is_prefix
    sampling = gin.get_bindings(t5x_guest.speculative_sample)
    assert (sampling['temperature'], sampling['topk']) == (1.0, 40)


def test_distilling_on_the_task_of_a_fine_tuning(settings):
  files = 'draft_t5', 'distill'
  found = settings(
      'train',
      job('finetune'),
      *(f'configs/t5x/{name}.gin' for name in files),
      T5X_XL,
      bindings=[
          'PRETRAINED = "flan_t5_xl"',
          'DRAFT = "flan_t5_small"',
          'DROPOUT_RATE = 0.1',
          'TRAIN_STEPS = 500',
          'CHECKPOINT_PATH = "target"',
      ],
  )
  assert isinstance(found['model'], t5x_guest.DistillationModel)
  assert found['checkpoint_cfg'].restore.path in (None, [])
  assert found['total_steps'] == 500
  assert draft(found['model']).dropout_rate == 0.1
  assert_sizes(target(found['model']), 'flan_t5_xl')
  assert_sizes(draft(found['model']), 'flan_t5_small')


class TestFineTuning:

  @TASKS
  def test_recipe(self, settings, task):
    found = settings(
        'train', job('finetune', task), bindings=['PRETRAINED = "t5_base"']
    )
    model = found['model']
    assert type(model) is models.EncoderDecoderModel
    assert model._loss_normalizing_factor == 233472
    assert found['total_steps'] == 999_900 + 20_000
    assert found['relative_steps'] is None
    start = found['checkpoint_cfg'].restore
    assert start.path.endswith('/t5x/t5_base/checkpoint_999900')
    assert found['checkpoint_cfg'].save.keep == 4
    data = found['train_dataset_cfg']
    assert data.mixture_or_task_name == task
    assert data.task_feature_lengths == {'inputs': 512, 'targets': 512}
    assert not data.use_cached and data.pack and data.batch_size == 128
    config = model.module.config
    assert config.dropout_rate == 0.1
    assert_sizes(config, 't5_base')

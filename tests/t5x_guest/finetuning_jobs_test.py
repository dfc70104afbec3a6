# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of fine-tuning by T5X's train script, and of what it leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from t5x import checkpoints as t5x_checkpoints
from t5x import models

from speculative_t5x.loading import checkpoints
from speculative_t5x.tasks import bulletins
from tests import prepared_data
from tests import tiny
from tests.t5x_guest import jobs
from tests.t5x_guest import tiny_pair

START, STEPS = 1_000_000, 10
SIZES = tiny.config(vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1)
NAMES = (
    'vocab_size', 'emb_dim', 'num_heads', 'num_encoder_layers',
    'num_decoder_layers', 'head_dim', 'mlp_dim',
)  # fmt: skip


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return a folder with data and a checkpoint as the public ones are."""
  folder = tmp_path_factory.mktemp('finetuning')
  model = models.EncoderDecoderModel(
      tiny_pair.transformer(SIZES),
      tiny_pair.VOCABULARY,
      tiny_pair.VOCABULARY,
      tiny_pair.factored_adafactor(),
  )
  initializer = tiny_pair.initializer(model, optimizer_def=model.optimizer_def)
  state = initializer.from_scratch(jax.random.PRNGKey(0))
  state = state.replace_step(jnp.asarray(START))
  # T5X's older layout, with the state of the optimizer.
  t5x_checkpoints.Checkpointer(
      train_state=state,
      partitioner=tiny_pair.partitioner(),
      checkpoints_dir=str(folder / 'start'),
  ).save(state)
  examples = [
      {'en': f'Train {i} leaves.', 'de': f'Der Zug {i} fährt ab.'}
      for i in range(60)
  ]
  splits = {'train': examples, 'validation': examples[:4], 'test': examples[:5]}
  data_set = 'wmt_t2t_translate/de-en:1.0.0'
  prepared_data.write(data_set, splits, folder / 'data', is_ordered=False)
  return folder


@pytest.fixture(scope='module')
def tuned(folder):
  """Return the folder of a fine-tuning."""
  paths = {
      'INITIAL_CHECKPOINT_PATH': folder / f'start/checkpoint_{START}',
      'MODEL_DIR': folder / 'tuned',
      'VOCABULARY_FILE': bulletins.VOCABULARY_FILE,
  }
  settings = [
      *(f'{name}={jobs.quoted(path)}' for name, path in paths.items()),
      *(f'network.T5Config.{x}={getattr(SIZES, x)}' for x in NAMES),
      'network.T5Config.dtype="float32"',
      "TASK_FEATURE_LENGTHS={'inputs': 64, 'targets': 24}",
      'PRETRAINED="t5_1_1_small"',
      f'FINETUNING_STEPS={STEPS}',
      'EVAL_PERIOD=5',
      'SAVE_PERIOD=5',
      'KEEP=2',
      'EVAL_STEPS=1',
      'BATCH_SIZE=4',
      # As in `factored_adafactor`: the start's state is factored.
      'adafactor.Adafactor.min_dim_size_to_factor=8',
  ]
  jobs.run(
      'train',
      f'--tfds_data_dir={folder / "data"}',
      '--gin_file=configs/t5x/finetune_wmt_ende.gin',
      *(f'--gin.{setting}' for setting in settings),
  )
  return folder / 'tuned'


def params(path):
  return dict(checkpoints.open(path).read_params())


def test_goes_on_from_an_older_layout(folder, tuned):
  """Each parameter has moved a little, by T5's small learning rate."""
  first = params(folder / f'start/checkpoint_{START}')
  last = params(tuned / f'checkpoint_{START + STEPS}')
  assert first.keys() == last.keys()
  for name, start in first.items():
    change = np.linalg.norm(last[name] - start) / np.linalg.norm(start)
    assert 0 < change < 0.1, name

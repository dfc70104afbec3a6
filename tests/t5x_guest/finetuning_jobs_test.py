# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of fine-tuning by T5X's train script, and of what it leaves."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from t5x import checkpoints as t5x_checkpoints
from t5x import models

from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import metrics
from tests import prepared_data
from tests import tiny
from tests.t5x_guest import jobs
from tests.t5x_guest import tiny_pair

TASK = 'wmt_ende'
START, STEPS = 1_000_000, 10
SIZES = tiny.config(vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1)
NAMES = (
    'emb_dim', 'num_heads', 'num_encoder_layers', 'num_decoder_layers',
    'head_dim', 'mlp_dim',
)  # fmt: skip
LENGTHS = "TASK_FEATURE_LENGTHS={'inputs': 64, 'targets': 24}"


def sizes(scope=''):
  return [
      f'{scope}network.T5Config.{name}={getattr(SIZES, name)}'
      for name in NAMES
  ]


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


def run(script, folder, file, *bindings, **paths):
  settings = [
      *(f'{name}={jobs.quoted(path)}' for name, path in paths.items()),
      f'VOCABULARY_FILE={jobs.quoted(bulletins.VOCABULARY_FILE)}',
      f'network.T5Config.vocab_size={SIZES.vocab_size}',
      'network.T5Config.dtype="float32"',
      *sizes(),
      LENGTHS,
      *bindings,
  ]
  return jobs.run(
      script,
      f'--tfds_data_dir={folder / "data"}',
      f'--gin_file=configs/t5x/{file}_{TASK}.gin',
      *(f'--gin.{setting}' for setting in settings),
  )


@pytest.fixture(scope='module')
def tuned(folder):
  """Return the folder of a fine-tuning."""
  run(
      'train', folder, 'finetune',
      'PRETRAINED="t5_1_1_small"',
      f'FINETUNING_STEPS={STEPS}',
      'EVAL_PERIOD=5',
      'SAVE_PERIOD=5',
      'KEEP=2',
      'EVAL_STEPS=1',
      'BATCH_SIZE=4',
      # As in `factored_adafactor`: the start's state is factored.
      'adafactor.Adafactor.min_dim_size_to_factor=8',
      INITIAL_CHECKPOINT_PATH=folder / f'start/checkpoint_{START}',
      MODEL_DIR=folder / 'tuned',
  )  # fmt: skip
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


def test_decodes_in_t5x_and_in_this_packages_jobs(folder, tuned, tmp_path):
  last, earlier = (
      tuned / f'checkpoint_{START + step}' for step in (STEPS, STEPS // 2)
  )
  log = run(
      'eval', folder, 'eval', *sizes('draft/'),
      'utils.RestoreCheckpointConfig.dtype="float32"',
      'BATCH_SIZE=3',
      CHECKPOINT_PATH=last,
      DRAFT_CHECKPOINT_PATH=earlier,
      EVAL_OUTPUT_DIR=tmp_path / 't5x',
  )  # fmt: skip
  arguments = [
      'infer',
      '--gin_file=configs/runs/infer.gin',
      '--gin_file=configs/drafters/draft_model.gin',
      f'--gin_file=configs/tasks/{TASK}.gin',
      '--gin.SPLIT=test',
      f'--gin.TFDS_DATA_DIR={folder / "data"}',
      f'--gin.VOCABULARY_FILE={bulletins.VOCABULARY_FILE}',
      f'--gin.CHECKPOINT_PATH={last}',
      f'--gin.DRAFT_CHECKPOINT_PATH={earlier}',
      f'--gin.{LENGTHS}',
      f'--output_dir={tmp_path / "own"}',
  ]
  assert not main.main(arguments)
  evaluated = tmp_path / 't5x/inference_eval'
  rows = jobs.read_jsonl(evaluated / f'{TASK}-{START + STEPS}.jsonl')
  found = [row['prediction'] for row in rows]
  own = jobs.read_jsonl(tmp_path / 'own/predictions.jsonl')
  assert len(found) == 5
  assert found == [row['prediction'] for row in own]
  # The metrics follow from the texts, and from the counts in the same rows.
  references = [row['target'] for row in rows]
  expected = metrics.bleu(references, found, tokenize='intl')
  expected |= metrics.speculation(
      {
          key.removeprefix('aux_'): [row[key] for row in rows]
          for key in rows[0]
          if key.startswith('aux_')
      }
  )
  assert 'acceptance_rate/position_1' in expected
  (values,) = jobs.read_jsonl(evaluated / f'{TASK}-metrics.jsonl')
  assert values == pytest.approx({'step': START + STEPS, **expected})
  tags = jobs.logged(evaluated / TASK).keys()
  assert tags >= {f'eval/{name}' for name in expected}
  # All metrics and loggers get the outputs of two batches.
  assert log.count('Inference of batch') == 2

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of T5X's eval and infer scripts with a decoder alone, end to end.

The job's own files are T5X's, with the embedded translation task; the weights
are random, and prompts attend in both directions.
"""

import dataclasses
import json

import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.tasks import bulletins
from tests import tiny_decoders
from tests.t5x_guest import jobs
from tests.t5x_guest import tiny_decoder_pair

CONFIG = dataclasses.replace(tiny_decoder_pair.PREFIX, vocab_size=2048)
DRAFT = dataclasses.replace(CONFIG, num_layers=1)
NUM_EXAMPLES = 24
_JOB = """
from __gin__ import dynamic_registration
import __main__ as {script}_script
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import seqio_tasks
import seqio
from t5x import decoding
from t5x import models
from t5x import utils
from t5x.examples.decoder_only import network

include '{base}'
include 't5x/configs/runs/{script}.gin'

VOCABULARY = @seqio_tasks.load_vocabulary()
seqio_tasks.load_vocabulary.path = '{vocabulary}'
MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TASK_FEATURE_LENGTHS = {{'inputs': 64, 'targets': 32}}
DROPOUT_RATE = 0.0
models.DecoderOnlyModel.inputs_bidirectional_attention = True
decoding.temperature_sample.temperature = 0.0
utils.DatasetConfig.batch_size = 8
utils.RestoreCheckpointConfig.dtype = 'float32'
{own}
{sizes}
"""


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """Return the checkpoints of a pair, and the job's own gin files."""
  folder = tmp_path_factory.mktemp('decoders')
  for name, config in ('target', CONFIG), ('draft', DRAFT):
    checkpoints.save(folder / name, 7, tiny_decoders.params(config))
  sizes = vars(tiny_decoder_pair.module(CONFIG).config) | {'dtype': 'float32'}
  lines = [
      f'network.TransformerConfig.{name} = {value!r}'
      for name, value in sizes.items()
  ]
  for script, own in (
      ('eval', f'seqio.Evaluator.num_examples = {NUM_EXAMPLES}'),
      # Every 20th example.
      ('infer', 'infer_script.infer.num_shards = 20'),
  ):
    text = _JOB.format(
        script=script,
        own=own,
        base=tiny_decoder_pair.BASE_GIN,
        vocabulary=bulletins.VOCABULARY_FILE,
        sizes='\n'.join(lines),
    )
    (folder / f'{script}.gin').write_text(text)
  return folder


def run(script, folder, output, *bindings, files=()):
  """Run a script; return its log."""
  settings = [
      f'CHECKPOINT_PATH={jobs.quoted(folder / "target/checkpoint_7")}',
      f'{script.upper()}_OUTPUT_DIR={jobs.quoted(output)}',
      *bindings,
  ]
  return jobs.run(
      script,
      f'--gin_file={folder}/{script}.gin',
      *(f'--gin_file=configs/t5x/{name}.gin' for name in files),
      *(f'--gin.{setting}' for setting in settings),
  )


def speculative(folder):
  return [
      'TEMPERATURE=0.0',
      'TOPK=0',
      'GAMMA=3',
      f'DRAFT_CHECKPOINT_PATH={jobs.quoted(folder / "draft")}',
      'draft/network.TransformerConfig.num_layers=1',
  ]


FILES = 'speculative_decoder_only', 'draft_decoder_only'


@pytest.fixture(scope='module')
def expected(folder, tmp_path_factory):
  """Return the predictions of T5X's own infer job, by input."""
  output = tmp_path_factory.mktemp('t5x')
  run('infer', folder, output)
  return predictions(output)


def predictions(output):
  (path,) = output.glob('bulletins_ende-predict*-of-00020')
  return jobs.read_jsonl(path)


def test_infer(folder, expected, tmp_path):
  settings = [*speculative(folder), "infer.mode='predict_with_aux'"]
  run('infer', folder, tmp_path, *settings, files=FILES)
  found = predictions(tmp_path)
  assert len(found) == len(expected) > 10
  for line, right in zip(found, expected):
    assert line['prediction'] == right['prediction']
    assert line['aux']['target_calls'] <= line['aux']['tokens']
  assert len({json.dumps(line['prediction']) for line in found}) > 10

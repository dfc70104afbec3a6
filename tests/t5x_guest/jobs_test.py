# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of speculative decoding in T5X's eval and infer scripts."""

import json

import numpy as np
import pytest

from speculative_t5x.tasks import metrics
from tests import prepared_data
from tests.t5x_guest import jobs

# For two devices, of which the draft model takes both as well.
MODEL_2 = (*jobs.MESH_4X2, 'DRAFT_IS_MODEL_PARALLEL=True')
SAMPLED = ('TEMPERATURE=1.0', 'SEED=3')
MESHES = pytest.mark.parametrize(
    'devices, mesh',
    [(1, ()), (8, jobs.MESH_4X2), (2, MODEL_2)],
    ids=['1 device', '4x2', '1x2'],
)


@pytest.fixture(scope='module')
def oracle(shared):
  folder = shared / 't5x_oracle/target'
  values = json.loads((folder / 'oracle.json').read_text())
  with np.load(folder / 'oracle.npz') as arrays:
    return values | dict(arrays)


@pytest.fixture(scope='module')
def data(shared, tmp_path_factory):
  return jobs.first_examples(shared, tmp_path_factory.mktemp('data') / 'first')


@pytest.fixture(scope='module')
def sampled(shared, data, tmp_path_factory):
  """Return the sampled tokens of each example, of one job on one device."""
  output = tmp_path_factory.mktemp('sampled')
  succeeded(jobs.run_multi30k('infer', shared, output, *SAMPLED, data=data))
  return [line['prediction_tokens'] for line in jobs.predictions(output)]


def succeeded(done):
  assert done.returncode == 0, done.stderr[-4000:]


class TestEval:

  @MESHES
  def test_speculative_greedy_is_the_oracle(
      self, shared, oracle, data, tmp_path, devices, mesh
  ):
    done = jobs.run_multi30k(
        'eval', shared, tmp_path, *mesh, devices=devices, data=data
    )
    succeeded(done)
    assert abs(jobs.bleu(tmp_path) - oracle['greedy_bleu']) < 0.01
    assert jobs.translations(tmp_path) == texts(data, oracle['greedy_tokens'])
    cut = partitioned(tmp_path)
    # T5X's mesh has a model axis of the size 1 on one device, too.
    assert cut['target'] and bool(cut['draft']) == (mesh == MODEL_2)

  @pytest.mark.parametrize(
      ('decoder', 'name', 'tokens'),
      [
          ('plainly', 'greedy', 'greedy_tokens'),
          ('temperature_sample', 'greedy', 'greedy_tokens'),
          ('beam_search', 'beam4_alpha0.6', 'beam4_tokens'),
      ],
  )
  def test_other_decode_functions_of_the_same_model(
      self, shared, oracle, data, tmp_path, decoder, name, tokens
  ):
    done = jobs.run_multi30k(
        'eval', shared, tmp_path, data=data,
        gin_file=f'configs/t5x/decode_{decoder}.gin',
    )  # fmt: skip
    succeeded(done)
    assert abs(jobs.bleu(tmp_path) - oracle[f'{name}_bleu']) < 0.01
    best = oracle[tokens].reshape(len(oracle[tokens]), -1, 64)[:, -1]
    assert jobs.translations(tmp_path) == texts(data, best)


_SMALL_MODELS = """
from __gin__ import dynamic_registration

from t5x.examples.t5 import network

include 'configs/t5x/draft_multi30k.gin'

TASK_FEATURE_LENGTHS = {'inputs': 24, 'targets': 16}
BATCH_SIZE = 2

network.T5Config:
  vocab_size = 4096
  emb_dim = 256
  num_heads = 4
  num_encoder_layers = 4
  num_decoder_layers = 4
  head_dim = 64
  mlp_dim = 640
"""


def test_prepared_data_set_to_its_metrics(shared, tmp_path):
  """The gin files of WMT14, with the oracle's pair."""
  task, name = 'wmt_ende', 'wmt_t2t_translate/de-en:1.0.0'
  example = {'en': 'A man walks.', 'de': 'Ein Mann geht.'}
  prepared = prepared_data.write(name, {'test': [example] * 3}, tmp_path)
  (tmp_path / 'models.gin').write_text(_SMALL_MODELS)
  oracle = shared / 't5x_oracle'
  settings = {
      'VOCABULARY_FILE': shared / 'data/multi30k/ende4k.model',
      'EVAL_OUTPUT_DIR': tmp_path / 'output',
      'CHECKPOINT_PATH': oracle / 'target/t5x_orbax/checkpoint_2500',
      'DRAFT_CHECKPOINT_PATH': oracle / 'draft/t5x_orbax/checkpoint_1500',
  }
  done = jobs.run(
      'eval',
      f'--tfds_data_dir={prepared}',
      f'--gin_file=configs/t5x/eval_{task}.gin',
      f'--gin_file={tmp_path / "models.gin"}',
      *(f'--gin.{key}={jobs.quoted(v)}' for key, v in settings.items()),
  )
  succeeded(done)
  folder = tmp_path / 'output/inference_eval'
  (values,) = jobs.read_jsonl(folder / f'{task}-metrics.jsonl')
  rows = jobs.read_jsonl(folder / f'{task}-002500.jsonl')
  predictions = [row['prediction'] for row in rows]
  assert len(predictions) == 3
  assert all(predictions)
  expected = metrics.bleu([example['de']] * 3, predictions, tokenize='intl')
  # The rates follow from the counts of each example, in the same rows.
  expected |= metrics.speculation(
      {
          key.removeprefix('aux_'): [row[key] for row in rows]
          for key in rows[0]
          if key.startswith('aux_')
      }
  )
  assert 'acceptance_rate/position_1' in expected
  assert values == pytest.approx({'step': 2500, **expected})
  assert events(folder / task) >= {f'eval/{name}' for name in expected}
  # All metrics and loggers get the outputs of two batches.
  assert done.stderr.count('Inference of batch') == 2

class TestInfer:

  def test_speculative_greedy_is_the_oracle(
      self, shared, oracle, data, tmp_path
  ):
    done = jobs.run_multi30k('infer', shared, tmp_path, data=data)
    succeeded(done)
    lines = jobs.predictions(tmp_path)
    tokens = [line['prediction_tokens'] for line in lines]
    assert tokens == jobs.unpadded(oracle['greedy_tokens'])
    counts = {
        name: [line['aux'][name] for line in lines] for name in lines[0]['aux']
    }
    assert counts['tokens'] == [len(row) for row in tokens]
    assert 'Speculation in 64 examples: tokens_per_target_call' in done.stderr
    # There are fewer target calls than tokens.
    assert sum(counts['target_calls']) < 0.6 * sum(counts['tokens'])
    assert 0 < sum(counts['accepted']) < sum(counts['tested'])


class TestSeveralHosts:
  """Two processes on this machine, with one device each."""

  def run(self, script, *arguments, **paths):
    flags = jobs.multi30k_flags(script, *arguments, **paths)
    ended = jobs.run_on_hosts(script, *flags)
    for done in ended:
      succeeded(done)
    return ended

  def test_eval_with_the_target_split_over_both(
      self, shared, oracle, data, tmp_path
  ):
    self.run('eval', shared, tmp_path, *jobs.TWO_HOSTS, data=data)
    assert jobs.bleu(tmp_path) == pytest.approx(oracle['greedy_bleu'])
    assert jobs.translations(tmp_path) == texts(data, oracle['greedy_tokens'])
    cut = partitioned(tmp_path)
    assert cut['target'] and not cut['draft']

  def test_infer_with_the_examples_split_over_both(
      self, shared, data, sampled, tmp_path
  ):
    ended = self.run('infer', shared, tmp_path, *SAMPLED, data=data)
    # Processes that are not connected would each decode all examples.
    assert all('sharded into 2 shards' in done.stderr for done in ended)
    lines = jobs.predictions(tmp_path)
    assert [line['prediction_tokens'] for line in lines] == sampled


def texts(data, tokens):
  """Return the texts of token ids, by the task's vocabulary."""
  import sentencepiece

  vocabulary = sentencepiece.SentencePieceProcessor(
      model_file=str(data / 'ende4k.model')
  )
  return [
      vocabulary.decode([i for i in row if i != 1])
      for row in jobs.unpadded(tokens)
  ]


def events(folder):
  """Return the tags in TensorBoard's files."""
  import tensorflow as tf

  found = set()
  for path in folder.iterdir():
    for event in tf.compat.v1.train.summary_iterator(str(path)):
      found |= {value.tag for value in event.summary.value}
  return found


def partitioned(output):
  """Return each role's parameters that T5X partitions."""
  cut = {'target': [], 'draft': []}
  for line in (output / 'model-info.txt').read_text().splitlines():
    if line.startswith('Variable'):
      _, name, *rest = line.split()
      role = next((r for r in cut if f'{r}/' in name), None)
      if role and "'model'" in ' '.join(rest):
        cut[role].append(name)
  return cut

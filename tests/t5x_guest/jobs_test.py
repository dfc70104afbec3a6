# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of speculative decoding in T5X's eval and infer scripts."""

import json

import numpy as np
import pytest

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
  jobs.run_multi30k('infer', shared, output, *SAMPLED, data=data)
  return [line['prediction_tokens'] for line in jobs.predictions(output)]


class TestEval:

  @MESHES
  def test_speculative_greedy_is_the_oracle(
      self, shared, oracle, data, tmp_path, devices, mesh
  ):
    jobs.run_multi30k(
        'eval', shared, tmp_path, *mesh, devices=devices, data=data
    )
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
          ('speculative_beams', 'beam4_alpha0.6', 'beam4_tokens'),
      ],
  )
  def test_other_decode_functions_of_the_same_model(
      self, shared, oracle, data, tmp_path, decoder, name, tokens
  ):
    jobs.run_multi30k(
        'eval', shared, tmp_path, data=data,
        gin_file=f'configs/t5x/decode_{decoder}.gin',
    )  # fmt: skip
    assert abs(jobs.bleu(tmp_path) - oracle[f'{name}_bleu']) < 0.01
    best = oracle[tokens].reshape(len(oracle[tokens]), -1, 64)[:, -1]
    assert jobs.translations(tmp_path) == texts(data, best)


def test_speculative_infer_is_the_oracle(shared, oracle, data, tmp_path):
  jobs.run_multi30k('infer', shared, tmp_path, data=data)
  lines = jobs.predictions(tmp_path)
  tokens = [line['prediction_tokens'] for line in lines]
  assert tokens == jobs.unpadded(oracle['greedy_tokens'])
  counts = {
      name: [line['aux'][name] for line in lines] for name in lines[0]['aux']
  }
  assert counts['tokens'] == [len(row) for row in tokens]
  # There are fewer target calls than tokens.
  assert sum(counts['target_calls']) < 0.6 * sum(counts['tokens'])
  assert 0 < sum(counts['accepted']) < sum(counts['tested'])


class TestSeveralHosts:
  """Two processes on this machine, with one device each."""

  def run(self, script, *arguments, **paths):
    flags = jobs.multi30k_flags(script, *arguments, **paths)
    return jobs.run_on_hosts(script, *flags)

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
    logs = self.run('infer', shared, tmp_path, *SAMPLED, data=data)
    # Processes that are not connected would each decode all examples.
    assert all('sharded into 2 shards' in log for log in logs)
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

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of newstest2014, on stand-in sentences in SacreBLEU's layout."""

import pathlib

import gin
import pytest
import sacrebleu
from sacrebleu.dataset import base
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import newstest2014
from speculative_t5x.tasks import tfds_tasks
from tests import prepared_data

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def sacrebleu_dir(tmp_path, monkeypatch):
  """Returns the folder that SACREBLEU would name, without a network."""

  def refuse(*_, **unused):
    raise OSError('no network')

  data_set = sacrebleu.DATASETS['wmt14/full']
  monkeypatch.setattr(sacrebleu, 'SACREBLEU_DIR', str(tmp_path))
  monkeypatch.setattr(data_set, '_outdir', str(tmp_path / 'wmt14/full'))
  monkeypatch.setattr(data_set, '_rawdir', str(tmp_path / 'wmt14/full/raw'))
  monkeypatch.setattr(base, 'download_file', refuse)
  yield tmp_path
  if 'wmt_ende' in seqio.TaskRegistry.names():
    seqio.TaskRegistry.remove('wmt_ende')


def test_gin_file(sacrebleu_dir, monkeypatch):
  """It is the task of wmt_ende.gin, of the test split alone."""
  prepared_data.write_newstest2014(sacrebleu_dir)
  monkeypatch.chdir(_ROOT)
  gin.parse_config_files_and_bindings(
      ['configs/runs/eval.gin', 'configs/tasks/newstest2014.gin'],
      [f'VOCABULARY_FILE = "{bulletins.VOCABULARY_FILE}"'],
      finalize_config=False,
  )
  name = gin.get_configurable(newstest2014.register)()
  assert name == 'wmt_ende'
  lengths = gin.query_parameter('%TASK_FEATURE_LENGTHS')
  loaded = examples.load(name, gin.query_parameter('%SPLIT'), lengths, 9)
  assert loaded.inputs[7] == 'translate English to German: src\u20287'
  assert loaded.targets[7] == 'ref\u20287'
  assert loaded.example_ids.tolist() == list(range(9))
  assert len(newstest2014.read('test')['en']) == 3003
  task = seqio.TaskRegistry.get(name)
  assert list(task.splits) == ['test']
  tfds_tasks.register(name, None, bulletins.VOCABULARY_FILE)
  whole = seqio.TaskRegistry.get(name)
  assert task.metric_fns == whole.metric_fns
  assert task.output_features == whole.output_features


@pytest.mark.parametrize('counts', [(3002, None), (3003, 3002)])
def test_files_that_are_not_whole(sacrebleu_dir, counts):
  prepared_data.write_newstest2014(sacrebleu_dir, *counts)
  with pytest.raises(ValueError, match='3002 sentences.*Remove .*wmt14/full'):
    newstest2014.read('test')


@pytest.mark.parametrize('error', [OSError('no network'), SystemExit(1)])
def test_download_that_fails(sacrebleu_dir, monkeypatch, error):
  """SacreBLEU ends the process if a checksum is wrong."""

  def fail(*_, **unused):
    raise error

  monkeypatch.setattr(base, 'download_file', fail)
  with pytest.raises(OSError, match='sacrebleu -t wmt14/full -l en-de') as e:
    newstest2014.read('test')
  assert str(sacrebleu_dir / 'wmt14/full') in str(e.value)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of WMT14, CNN/DailyMail and XSum, on small stand-ins for their data."""

import json

import gin
import numpy as np
import pytest
import sacrebleu
from sacrebleu.dataset import base
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import newstest2014
from speculative_t5x.tasks import tfds_tasks
from tests import prepared_data

_LENGTHS = {'inputs': 64, 'targets': 64}
_WMT = 'wmt_t2t_translate/de-en:1.0.0'
_CNN = 'cnn_dailymail:3.4.0'
_XSUM = 'xsum:1.1.0'
_NEWS = {
    'article': 'The train to Cologne was late. It rained.',
    'highlights': 'Train was late .\nIt rained .',
    'publisher': 'cnn',
    'id': '42',
}
# Name of a task: data set, example, and the texts that a model gets.
_TEXTS = {
    'wmt_ende': (
        _WMT,
        {'en': 'It rains.', 'de': 'Es regnet.'},
        'translate English to German: It rains.',
        'Es regnet.',
    ),
    'cnn_dailymail': (
        _CNN,
        _NEWS,
        'summarize: The train to Cologne was late. It rained.',
        'Train was late .\nIt rained .',
    ),
    'xsum': (
        _XSUM,
        {'document': 'It rained in\nCologne.', 'summary': 'Rain.'},
        'summarize: It rained in\nCologne.',
        'Rain.',
    ),
}


def _translations(count):
  return [{'en': f'train {n}', 'de': f'Zug {n}'} for n in range(count)]


def register(name, data_dir=None, files=None):
  """Register a task with the embedded vocabulary."""
  vocabulary = bulletins.VOCABULARY_FILE
  return tfds_tasks.register(name, data_dir, vocabulary, files)


def _read(source, split='test', **kwargs):
  dataset = source.get_dataset(split, shuffle=False, **kwargs)
  return list(dataset.as_numpy_iterator())


class TestRegister:

  @pytest.mark.parametrize('name', tfds_tasks.NAMES)
  def test_gin_file(self, tmp_path, name, monkeypatch):
    data_set, example, inputs, targets = _TEXTS[name]
    prepared_data.write(data_set, {'test': [example]}, tmp_path)
    prepared_data.parse(monkeypatch, name, f'TFDS_DATA_DIR = "{tmp_path}"')
    assert gin.get_configurable(tfds_tasks.register)() == name
    lengths = gin.query_parameter('%TASK_FEATURE_LENGTHS')
    loaded = examples.load(name, 'test', lengths)
    assert (loaded.inputs, loaded.targets) == ([inputs], [targets])
    assert loaded.example_ids.tolist() == [0]
    assert loaded.rows[0].tokens == [*loaded.vocabulary.encode(inputs), 1]

  def test_bleu_is_that_of_t5(self):
    """T5 splits German quotation marks off words; the default does not."""
    register('wmt_ende')
    task = seqio.TaskRegistry.get('wmt_ende')
    metric, _ = task.predict_with_aux_metric_fns
    targets, predictions = ['„Zug“ nach Köln heute'], ['Zug nach Köln heute']
    # Tokens match 4 of 4, pairs 2 of 3, threes 1 of 2, fours none of 1, and the
    # reference has 6 tokens: „ Zug “ nach Köln heute.
    expected = 100 * np.exp(1 - 6 / 4) * (1 * 2 / 3 * 1 / 2 * 1 / 2) ** 0.25
    assert metric(targets, predictions, {})['bleu'] == pytest.approx(expected)


class TestFiles:
  """Data sets that are files of JSON lines."""

  def write(self, path, *rows):
    path.write_text('\n'.join(map(json.dumps, rows)) + '\n\n')
    return path

  @pytest.mark.parametrize('name', tfds_tasks.NAMES)
  def test_as_the_prepared_data_set(self, tmp_path, name, monkeypatch):
    _, example, inputs, targets = _TEXTS[name]
    file = self.write(tmp_path / 'a.jsonl', example, example | {'id': 7})
    binding = f'JSONL_FILES = {{"test": "{file}"}}'
    prepared_data.parse(monkeypatch, name, binding)
    assert gin.get_configurable(tfds_tasks.register)() == name
    loaded = examples.load(name, 'test', _LENGTHS)
    assert (loaded.inputs, loaded.targets) == ([inputs] * 2, [targets] * 2)
    assert loaded.example_ids.tolist() == [0, 1]
    assert list(loaded.task.splits) == ['test']

  @pytest.mark.parametrize(
      ('row', 'error'),
      [
          ({'article': 'a'}, "a.jsonl, line 2 .*'highlights'"),
          (_NEWS | {'highlights': ['a', 'b']}, 'a.jsonl, line 2 '),
          (_NEWS | {'article': None}, 'a.jsonl, line 2 '),
      ],
  )
  def test_line_that_is_not_a_row(self, tmp_path, row, error):
    file = self.write(tmp_path / 'a.jsonl', _NEWS, row)
    register('cnn_dailymail', files={'test': file})
    with pytest.raises(ValueError, match=error):
      examples.load('cnn_dailymail', 'test', _LENGTHS)


class TestSource:

  @pytest.fixture
  def folder(self, tmp_path):
    """Return the folder of a data set with five examples in a split."""
    splits = {'test': _translations(5), 'validation': _translations(2)}
    return prepared_data.write(_WMT, splits, tmp_path)

  def test_ids_are_indices(self, folder):
    source = tfds_tasks.PreparedDataSource(_WMT, folder)
    for split in ('test', 'validation'):
      for example in _read(source, split):
        assert example['en'] == f'train {example["example_id"]}'.encode()

  def test_ids_count_over_files(self):
    example = {'tfds_id': b'xsum-test.tfrecord-00001-of-00003__4', 'other': 1}
    found = tfds_tasks._replace_id(example, [10, 20, 30])
    assert found == {'other': 1, 'example_id': 14}

  @pytest.mark.parametrize(
      ('name', 'tfds_name', 'remedy'),
      [
          ('wmt_ende', _WMT, 'configs/tasks/newstest2014.gin'),
          ('cnn_dailymail', _CNN, 'Google Drive.*manual.*files='),
          ('xsum', _XSUM, 'files='),
      ],
  )
  def test_missing_data_set(self, tmp_path, name, tfds_name, remedy):
    register(name, tmp_path)
    command = f'tfds build {tfds_name} --data_dir={tmp_path}'
    with pytest.raises(FileNotFoundError, match=f'{command}.*{remedy}'):
      examples.load(name, 'test', _LENGTHS)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def sacrebleu_dir(tmp_path, monkeypatch):
  """Return the folder that SACREBLEU would name, without a network."""

  def refuse(*_, **unused):
    raise OSError('no network')

  data_set = sacrebleu.DATASETS['wmt14/full']
  monkeypatch.setattr(sacrebleu, 'SACREBLEU_DIR', str(tmp_path))
  monkeypatch.setattr(data_set, '_outdir', str(tmp_path / 'wmt14/full'))
  monkeypatch.setattr(data_set, '_rawdir', str(tmp_path / 'wmt14/full/raw'))
  monkeypatch.setattr(base, 'download_file', refuse)
  return tmp_path


def test_gin_file(sacrebleu_dir, monkeypatch):
  """It is the task of wmt_ende.gin, of the test split alone."""
  prepared_data.write_newstest2014(sacrebleu_dir)
  prepared_data.parse(monkeypatch, 'newstest2014')
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
  with pytest.raises(ValueError, match='wmt14/full.*3002 sentences.*Remove'):
    newstest2014.read('test')

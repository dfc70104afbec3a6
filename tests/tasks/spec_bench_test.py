# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of Spec-Bench's tasks."""

import json

import gin
import pytest
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import spec_bench
from tests import prepared_data

_ROWS = [
    {'question_id': 81, 'category': 'writing', 'turns': ['Write.', 'Again.']},
    {
        'question_id': 161,
        'category': 'translation',
        'turns': ['Translate German to English: Es regnet.'],
        'reference': ['It rains.'],
    },
    {
        'question_id': 241,
        'category': 'summarization',
        'turns': ['Summarize: It rained\u2028in Cologne.'],
        'reference': ['Rain.'],
    },
    {
        'question_id': 242,
        'category': 'summarization',
        'turns': ['Sum up: Summarize: it snowed.'],
        'reference': ['Snow.'],
    },
]


@pytest.fixture
def write(tmp_path):
  """Return a function that writes rows, or lines, to a file."""

  def call(*rows):
    path = tmp_path / 'question.jsonl'
    lines = [
        row if isinstance(row, str) else json.dumps(row, ensure_ascii=False)
        for row in rows
    ]
    path.write_text('\n'.join(lines) + '\n')
    return path

  return call


class TestReadPairs:

  def test_instructions_become_prefixes(self, write):
    path = write('', *_ROWS, ' ')
    assert spec_bench.read_pairs(path, 'translation') == [
        ('translate German to English: Es regnet.', 'It rains.')
    ]
    assert spec_bench.read_pairs(path, 'summarization') == [
        ('summarize: It rained\u2028in Cologne.', 'Rain.'),
        ('Sum up: Summarize: it snowed.', 'Snow.'),
    ]

  @pytest.mark.parametrize(
      'bad',
      [
          '{"turns": ["a"]}',
          {**_ROWS[1], 'reference': []},
          {**_ROWS[1], 'turns': ['a', 'b']},
      ],
  )
  def test_line_that_is_not_a_row(self, write, bad):
    path = write(_ROWS[0], bad)
    with pytest.raises(ValueError, match='question.jsonl, line 2 is not a row'):
      spec_bench.read_pairs(path, 'translation')


class TestRegister:

  def test_gin_file(self, write, monkeypatch):
    path = write(*_ROWS)
    prepared_data.parse(
        monkeypatch,
        'spec_bench',
        f'SPEC_BENCH_FILE = "{path}"',
        'SPEC_BENCH_CATEGORY = "translation"',
    )
    name = gin.get_configurable(spec_bench.register)()
    assert name == 'spec_bench_translation'
    (pair,) = spec_bench.read_pairs(path, 'translation')
    task = seqio.TaskRegistry.get(name)
    (example,) = task.get_dataset(
        gin.query_parameter('%TASK_FEATURE_LENGTHS'),
        gin.query_parameter('%SPLIT'),
        shuffle=False,
    ).as_numpy_iterator()
    assert example['inputs_pretokenized'].decode() == pair[0]
    assert example['targets_pretokenized'].decode() == pair[1]
    assert list(task.splits) == ['test']

  @pytest.mark.parametrize(
      ('category', 'metric'),
      [('translation', 'bleu'), ('summarization', 'rouge1')],
  )
  def test_metrics(self, write, category, metric):
    path, vocabulary = write(*_ROWS), bulletins.VOCABULARY_FILE
    name = spec_bench.register(path, category, vocabulary)
    task = seqio.TaskRegistry.get(name)
    assert not task.predict_metric_fns
    counts = {'tokens': [6], 'target_calls': [2]}
    values = {}
    for metric_fn in task.predict_with_aux_metric_fns:
      values |= metric_fn(['a b c d'], ['a b c d'], counts)
    assert values[metric] == pytest.approx(100)
    assert values['tokens_per_target_call'] == 3

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decodes of a target as a seqio task."""

import json

import pytest
import seqio

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import decoded_task

_ROWS = [
    # What Unicode counts as an end of line is none in a file.
    {'input': 'a\u2028b\x85c', 'input_tokens': [5, 6, 1], 'tokens': [7, 1]},
    {'input_tokens': [8, 1], 'tokens': [9, 10, 11, 12]},  # at its limit: no end
    # Of two decodes, each is an example.
    {'input_tokens': [13, 1], 'tokens': [[14, 1], [15, 16, 1]]},
]


def write(path, rows):
  lines = [f'{json.dumps(row, ensure_ascii=False)}\n' for row in rows]
  path.write_text(''.join(lines))
  return path


@pytest.fixture
def files(tmp_path):
  return {
      'train_file': write(tmp_path / 'train.jsonl', _ROWS),
      'validation_file': write(tmp_path / 'validation.jsonl', _ROWS[:1]),
      'vocabulary_file': bulletins.VOCABULARY_FILE,
  }


def read(split, lengths):
  task = seqio.get_mixture_or_task('decodes')
  dataset = task.get_dataset(lengths, split, shuffle=False, num_epochs=1)
  return [
      (x['inputs'].tolist(), x['targets'].tolist(), int(x['example_id']))
      for x in dataset.as_numpy_iterator()
  ]


def test_examples_are_the_tokens(files):
  assert decoded_task.register(**files) == 'decodes'
  lengths = {'inputs': 8, 'targets': 8}
  assert read('train', lengths) == [
      ([5, 6, 1], [7, 1], 0),
      ([8, 1], [9, 10, 11, 12], 1),
      ([13, 1], [14, 1], 2),
      ([13, 1], [15, 16, 1], 3),
  ]
  assert read('validation', lengths) == [([5, 6, 1], [7, 1], 0)]


def test_another_vocabulary(files, tmp_path):
  """The ids would be others' words, of which nothing else tells."""
  row = {'input_tokens': [5, 1], 'tokens': [7, 1], 'prediction': 'no such text'}
  files['train_file'] = write(tmp_path / 'other.jsonl', [row])
  decoded_task.register(**files)
  with pytest.raises(ValueError, match='vocabulary_file'):
    read('train', {'inputs': 8, 'targets': 8})

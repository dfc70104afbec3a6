# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the make-table job: what it counts, and its errors."""

import json

import numpy as np
import pytest

from speculative_t5x.jobs import make_table
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende  # registers the task

TASK = 'bulletins_ende'
LENGTHS = {'inputs': 96, 'targets': 96}

assert ende


def run(folder, **settings):
  return make_table.make_table(
      **{
          'output_dir': folder,
          'mixture_or_task_name': TASK,
          'task_feature_lengths': LENGTHS,
          **settings,
      }
  )


def _text(ids):
  return vocabularies.load(bulletins.VOCABULARY_FILE).decode(ids)


def write_rows(path, *rows):
  path.write_text(''.join(json.dumps(row) + '\n' for row in rows))
  return str(path)


def test_counts_the_references(tmp_path):
  cut = run(
      tmp_path / 'cut',
      num_examples=20,
      task_feature_lengths={'inputs': 96, 'targets': 4},
  )
  assert cut.counts.sum() == 80
  counts = run(tmp_path / 'new', num_examples=50)
  vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
  expected = np.zeros(2048, int)
  for _, text in bulletins.read_pairs('train')[:50]:
    np.add.at(expected, [*vocabulary.encode(text), 1], 1)
  np.testing.assert_array_equal(counts.counts, expected)
  assert counts.counts[1] == counts.totals[-1] == 50
  counts.check_fits('', 2048, 1, vocabulary, 128)
  found = token_counts.load(tmp_path / 'new')
  for name, value in vars(counts).items():
    np.testing.assert_array_equal(getattr(found, name), value)


class TestPredictions:
  TOKENS = [[5, 6, 1], [7, 5, 1]]

  @pytest.mark.parametrize(
      'rows',
      [
          [{'tokens': ids} for ids in TOKENS],
          [
              {'baseline_tokens': ids, 'speculative_tokens': [9, 1]}
              for ids in TOKENS
          ],
          [
              {'tokens': TOKENS[0], 'prediction': 'of another vocabulary'},
              {'tokens': TOKENS[1:], 'prediction': [_text(TOKENS[1])]},
          ],
          [
              {'tokens': TOKENS, 'prediction': [*map(_text, TOKENS[::-1])]},
          ],
          [
              {'tokens': ids, 'prediction': f' {_text(ids)}'} for ids in TOKENS
          ],
      ],
      ids=['infer', 'eval', 'texts', 'best last', 'of a decoder alone'],
  )
  def test_counts_what_was_decoded(self, tmp_path, rows):
    """One file or several, with the vocabulary of the task or of a file."""
    path = write_rows(tmp_path / 'predictions.jsonl', *rows)
    own = dict(
        vocabulary_file=bulletins.VOCABULARY_FILE, mixture_or_task_name=None
    )
    for predictions, settings in ((path, {}), ([path, path], own)):
      table = tmp_path / f'table_{len(settings)}'
      found = run(table, predictions=predictions, **settings)
      times = 1 if predictions == path else 2
      assert found.counts.sum() == 6 * times
      expected = [2 * times, 2 * times, times, times, 0]
      assert found.counts[[1, 5, 6, 7, 9]].tolist() == expected
      assert found.origin == ', '.join(times * [path])
      vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
      found.check_fits('', 2048, 1, vocabulary, 128)

  def test_ids_without_a_piece(self, tmp_path):
    """The target wrote them: its head is wider than its vocabulary."""
    path = write_rows(tmp_path / 'predictions.jsonl', {'tokens': [5, 2053, 5]})
    counts = run(tmp_path / 'table', predictions=path)
    assert counts.counts.nonzero()[0].tolist() == [5, 2053]
    assert (counts.num_pieces, counts.totals[[5, 2053, -1]].tolist()) == (
        2054, [1, 1, 1]
    )  # fmt: skip
    vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
    counts.check_fits('', 2054, 1, vocabulary, 128)
    with pytest.raises(token_counts.TableError, match='vocabulary'):
      counts.check_fits('', 2053, 1, vocabulary, 128)

  @pytest.mark.parametrize(
      ('row', 'settings', 'message'),
      [
          ({'tokens': [5, 10**9]}, {}, 'token 1000000000'),
          ({'prediction': 'Hallo'}, {}, 'have no tokens. Decode again'),
          (None, {}, 'predictions.jsonl'),
          ({}, {'continuations': 0}, 'continuations'),
          (
              {},
              {'predictions': None, 'vocabulary_file': 'x'},
              'has a vocabulary of its own',
          ),
          ({'tokens': [5, 1], 'prediction': 'Hallo'}, {}, 'vocabulary_file'),
      ],
  )
  def test_bad_input(self, tmp_path, row, settings, message):
    path = str(tmp_path / 'predictions.jsonl')
    if row is not None:
      path = write_rows(tmp_path / 'predictions.jsonl', row)
    with pytest.raises((ValueError, OSError), match=message):
      run(tmp_path / 'table', **{'predictions': path, **settings})
    assert not (tmp_path / 'table').exists()

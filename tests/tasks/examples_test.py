# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading a split of a task as arrays."""

import numpy as np
import pytest
import seqio
import tensorflow as tf

from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks

_LENGTHS = {'inputs': 8, 'targets': 8}


def _feature(vocabulary=None):
  if vocabulary is None:
    vocabulary = seqio.SentencePieceVocabulary(bulletins.VOCABULARY_FILE)
  return seqio.Feature(vocabulary, add_eos=True)


@pytest.fixture
def add_task():
  """Returns a function that registers a task of rows of token ids."""
  names = []

  def add(rows, *, inputs=None, targets=None, name='examples_test', **features):
    def dataset(split, shuffle_files, seed=None):
      del split, shuffle_files, seed
      ragged = tf.ragged.constant(rows, tf.int32, ragged_rank=1)
      both = tf.data.Dataset.from_tensor_slices({'tokens': ragged, **features})
      return both.map(
          lambda x: {'inputs': x['tokens'], 'targets': x.pop('tokens'), **x}
      )

    seqio.TaskRegistry.add(
        name,
        source=seqio.FunctionDataSource(dataset, splits=('validation',)),
        preprocessors=[seqio.preprocessors.append_eos_after_trim],
        output_features={
            'inputs': inputs or _feature(),
            'targets': targets or _feature(),
        },
    )
    names.append(name)
    return name

  yield add
  for name in names:
    seqio.TaskRegistry.remove(name)


@pytest.fixture
def texts_task():
  """Registers a task of texts, one of them empty."""
  name = 'examples_test_texts'
  pairs = [(text, 'x') for text in ('one', ' ', 'three')]
  seqio_tasks.add_task(
      name,
      seqio_tasks.source_of_pairs(lambda split: pairs, ('validation',)),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
  yield name
  seqio.TaskRegistry.remove(name)


class TestLoad:

  def test_embedded_corpus(self):
    loaded = examples.load(
        ende.BULLETINS, 'validation', {'inputs': 24, 'targets': 3}, 6
    )
    pairs = bulletins.read_pairs('validation')[:6]
    assert loaded.inputs == [text for text, _ in pairs]
    # References are complete, however short the outputs.
    assert loaded.targets == [text for _, text in pairs]
    assert loaded.example_ids.tolist() == [0, 1, 2, 3, 4, 5]
    assert loaded.tokens.shape == (6, 24)
    assert loaded.tokens.dtype == loaded.example_ids.dtype == np.int32
    for row, text in zip(loaded.tokens, loaded.inputs, strict=True):
      ids = [*loaded.vocabulary.encode(text), 1]
      cut = ids if len(ids) <= 24 else [*ids[:23], 1]
      assert row.tolist() == cut + [0] * (24 - len(cut))

  @pytest.mark.parametrize('name', ['hints', 'hints_pretokenized'])
  def test_hints(self, add_task, name):
    texts = [['one bell', ''], ['two', 'the bell']]
    task = add_task([[30, 40], [50]], **{name: texts})
    lengths = _LENGTHS | {'hints': 6}
    loaded = examples.load(task, 'validation', lengths)
    encode = loaded.vocabulary.encode
    assert loaded.hints[0] == [[*encode('one bell'), 1][:6]]
    assert loaded.hints[1][0] == [*encode('two'), 1]
    assert sum(map(len, loaded.hints[1])) + 1 <= 6
    assert loaded.part(1, 2).hints == loaded.hints[1:]

  def test_hints_of_one_text(self, add_task):
    task = add_task([[30, 40], [50]], hints=['one bell', ''])
    loaded = examples.load(task, 'validation', _LENGTHS)
    assert loaded.hints == [[[*loaded.vocabulary.encode('one bell'), 1]], []]

  def test_hints_that_are_no_text(self, add_task):
    task = add_task([[30, 40]], hints=[[3, 4]])
    with pytest.raises(ValueError, match='feature hints of .* is not text'):
      examples.load(task, 'validation', _LENGTHS)

  def test_whole_split(self):
    loaded = examples.load(
        ende.BULLETINS, 'validation', {'inputs': 256, 'targets': 1}
    )
    assert len(loaded.tokens) == len(bulletins.read_pairs('validation'))
    assert loaded.num_truncated == 0

  @pytest.mark.parametrize(
      ('length', 'is_cut'), [(6, False), (7, False), (8, True)]
  )
  def test_cut_at_the_limit(self, add_task, length, is_cut):
    """The end of sequence is one of the 8 tokens."""
    name = add_task([list(range(3, 3 + length))])
    loaded = examples.load(name, 'validation', _LENGTHS)
    assert loaded.num_truncated == is_cut
    expected = [*range(3, 3 + min(length, 7)), 1]
    assert loaded.tokens.tolist() == [expected + [0] * (8 - len(expected))]

  def test_ids_without_ids_of_the_task(self, add_task):
    """They depend on the input alone, not on its position."""
    ids = [
        examples.load(
            add_task(rows, name=name), 'validation', _LENGTHS
        ).example_ids.tolist()
        for name, rows in (
            ('examples_test_1', [[30, 40], [50], [60]]),
            ('examples_test_2', [[60], [30, 40]]),
        )
    ]
    assert len(set(ids[0])) == 3 and min(ids[0]) >= 0
    assert ids[1] == [ids[0][2], ids[0][0]]

  def test_ids_of_the_task_are_kept(self, add_task):
    numbers = [2**31 - 1, -(2**31), 0]
    ids = tf.constant(numbers, tf.int64)
    loaded = examples.load(
        add_task([[3]] * 3, example_id=ids), 'validation', _LENGTHS
    )
    assert loaded.example_ids.dtype == np.int32
    assert loaded.example_ids.tolist() == numbers

  def test_truncated_examples(self, add_task):
    rows = [list(range(3, 3 + length)) for length in (9, 2, 7, 8)]
    loaded = examples.load(add_task(rows), 'validation', _LENGTHS)
    assert loaded.is_truncated.tolist() == [True, False, False, True]
    assert loaded.num_truncated == 2


class TestFirst:

  def test_columns_are_cut_alike(self, add_task):
    rows = [[30] * 9, [40, 50], [60]]
    loaded = examples.load(add_task(rows), 'validation', _LENGTHS)
    first = loaded.first(2)
    assert first.task is loaded.task
    np.testing.assert_array_equal(first.tokens, loaded.tokens[:2])
    np.testing.assert_array_equal(first.example_ids, loaded.example_ids[:2])
    assert first.inputs == loaded.inputs[:2]
    assert first.targets == loaded.targets[:2]
    assert (first.num_truncated, loaded.first(1).num_truncated) == (1, 1)
    assert loaded.first(3).inputs == loaded.inputs

  def test_counts_truncated_examples_of_the_first(self, add_task):
    rows = [[40, 50], [30] * 9]
    loaded = examples.load(add_task(rows), 'validation', _LENGTHS)
    assert (loaded.num_truncated, loaded.first(1).num_truncated) == (1, 0)


class TestBadInput:

  def test_empty_input(self, texts_task):
    with pytest.raises(ValueError, match='Example 1 of .* has an empty input'):
      examples.load(texts_task, 'validation', _LENGTHS)
    # It is not among the requested examples.
    one = examples.load(texts_task, 'validation', _LENGTHS, 1)
    assert one.inputs == ['one']

  @pytest.mark.parametrize(
      ('ids', 'dtype', 'number', 'shown'),
      [
          ([0.0, 1.0], tf.float32, 0, '0.0'),
          ([1.5, 1.2], tf.float64, 0, '1.5'),
          ([0, 2**31], tf.int64, 1, '2147483648'),
          ([0, 2**64 - 1], tf.uint64, 1, '18446744073709551615'),
          ([[0], [1]], tf.int32, 0, '[0]'),
          (['a', 'b'], tf.string, 0, "b'a'"),
      ],
  )
  def test_example_ids(self, add_task, ids, dtype, number, shown):
    name = add_task([[3], [4]], example_id=tf.constant(ids, dtype))
    with pytest.raises(ValueError) as caught:
      examples.load(name, 'validation', _LENGTHS)
    assert str(caught.value) == (
        f'Example {number} of {name}: example_id must be an integer of 32 bits,'
        f' got {shown}. Give each example such an id, or remove the'
        ' feature; ids are then hashes of the inputs.'
    )

  def test_too_few(self, add_task):
    name = add_task([[3]] * 5)
    assert len(examples.load(name, 'validation', _LENGTHS, 5).tokens) == 5
    with pytest.raises(ValueError, match='num_examples is 6, but .* has 5'):
      examples.load(name, 'validation', _LENGTHS, 6)

  def test_empty_split(self, add_task):
    with pytest.raises(ValueError, match='Split validation of .* is empty'):
      examples.load(add_task([]), 'validation', _LENGTHS)

  @pytest.mark.parametrize(
      'lengths', [{'inputs': 8}, {**_LENGTHS, 'inputs': 0}, 96, {'inputs': '8'}]
  )
  def test_lengths(self, add_task, lengths):
    with pytest.raises(ValueError, match='must give the maximum tokens'):
      examples.load(add_task([[3]]), 'validation', lengths)

  def test_vocabulary_that_cannot_be_read(self, tmp_path):
    path = str(tmp_path / 'missing.model')
    feature = _feature(seqio.SentencePieceVocabulary(path))
    task = seqio.TaskRegistry.get(ende.BULLETINS).replace(
        output_features={'inputs': feature, 'targets': feature}
    )
    with pytest.raises(
        ValueError, match='task bulletins_ende .*Set VOCABULARY'
    ):
      examples.vocabulary_of(task)

  def test_two_vocabularies(self, add_task):
    vocabulary = seqio.PassThroughVocabulary(size=17, eos_id=1)
    name = add_task([[3]], targets=_feature(vocabulary))
    with pytest.raises(ValueError, match='different vocabularies for'):
      examples.load(name, 'validation', _LENGTHS)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading a split of a task as arrays, and of example ids."""

import functools

import numpy as np
import pytest
import seqio
import tensorflow as tf

from speculative_t5x.jobs.command_line import process
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import ende
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.training import task_examples
from tests import tiny

_LENGTHS = {'inputs': 8, 'targets': 8}
_NOT_UTF8 = [b'a', b'\xff']


@seqio.map_over_dataset(num_seeds=1)
def _draw(example, seed):
  """Put a number before all texts of an example, as a template is drawn."""
  number = tf.random.stateless_uniform([], seed, 0, 1000, tf.int32)
  text = tf.strings.as_string(number) + ' ' + example['inputs']
  return dict.fromkeys(('inputs', 'targets', 'hints'), text)


def _draw_without_seed(dataset):
  """Draw by an operation of TensorFlow that seqio gives no seed."""

  def draw(example):
    number = tf.random.uniform([], 0, 1000, tf.int32)
    text = tf.strings.as_string(number) + ' ' + example['inputs']
    return dict.fromkeys(('inputs', 'targets', 'hints'), text)

  return dataset.map(draw)


def _feature(vocabulary=None):
  if vocabulary is None:
    vocabulary = seqio.SentencePieceVocabulary(bulletins.VOCABULARY_FILE)
  return seqio.Feature(vocabulary, add_eos=True)


def add_task(
    rows,
    *,
    inputs=None,
    targets=None,
    name='test_examples',
    steps=(seqio.preprocessors.append_eos_after_trim,),
    postprocess_fn=None,
    **features,
):
  """Register a task of rows of token ids; return its name."""

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
      preprocessors=steps,
      postprocess_fn=postprocess_fn,
      output_features={
          'inputs': inputs or _feature(),
          'targets': targets or _feature(),
      },
  )
  return name


@pytest.fixture(params=['seed', 'no seed'])
def random_task(request):
  """Register a task whose every reading may yield other examples."""
  name = 'test_random'
  pairs = [(f'bells of the town of number {i}', '') for i in range(20)]
  source = seqio_tasks.source_of_pairs(lambda split: pairs, ('validation',))
  draws = {'seed': _draw, 'no seed': _draw_without_seed}
  seqio_tasks.add_task(
      name,
      source,
      preprocessors=[draws[request.param]],
      metric_fns=(),
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
  return name


class TestOneReading:
  """Input, reference and hints of an example come from the same draw."""

  def test_belong_together(self, random_task):
    lengths = {'inputs': 6, 'targets': 6}
    loaded = examples.load(random_task, 'validation', lengths, 20)
    encode = loaded.vocabulary.encode
    assert loaded.num_truncated == 20
    assert len({text.split()[0] for text in loaded.inputs}) > 10
    assert loaded.targets == loaded.references == loaded.inputs
    for number, text in enumerate(loaded.inputs):
      assert loaded.tokens[number].tolist() == [*encode(text)[:5], 1]
      assert loaded.hints[number] == [[*encode(text), 1]]

  def test_a_trim_before_other_preprocessors_is_refused(self):
    trim = seqio.preprocessors.append_eos_after_trim
    name = add_task([[3, 4]], steps=[trim, lambda x: x])
    with pytest.raises(ValueError, match='Make it the last one'):
      examples.load(name, 'validation', _LENGTHS)

  def test_every_job_meets_the_same_draws(self, random_task):
    process.settle_tensorflow()
    lengths = {'inputs': 6, 'targets': 6}
    loaded = examples.load(random_task, 'validation', lengths)
    again = examples.stream(random_task, 'validation', lengths)
    assert [each.text for each in again] == loaded.inputs
    config = tiny.config(vocab_size=2048)
    trained = task_examples.References(
        random_task, 'validation', lengths
    ).read(config)
    assert trained.inputs[:, :6].tolist() == loaded.tokens.tolist()
    assert trained.targets[:, :6].tolist() == loaded.tokens.tolist()

  @pytest.mark.parametrize('add_eos', [True, False])
  @pytest.mark.parametrize(
      'steps',
      [
          [seqio.preprocessors.append_eos_after_trim],
          [functools.partial(seqio.preprocessors.append_eos_after_trim)],
          [seqio.preprocessors.append_eos],
          [],
      ],
  )
  def test_truncated_as_seqio_does(self, steps, add_eos):
    rows = [list(range(3, 3 + length)) for length in (2, 6, 7, 8, 9, 12)]
    feature = seqio.Feature(_feature().vocabulary, add_eos=add_eos)
    name = add_task(rows, inputs=feature, targets=feature, steps=steps)
    task = seqio.TaskRegistry.get(name)
    expected = task.get_dataset(_LENGTHS, 'validation', shuffle=False)
    in_full = task.get_dataset(None, 'validation', shuffle=False)
    for (full, cut), short, long in zip(
        examples.read(task, 'validation', _LENGTHS),
        expected.as_numpy_iterator(),
        in_full.as_numpy_iterator(),
        strict=True,
    ):
      for name in ('inputs', 'targets'):
        np.testing.assert_array_equal(full[name], long[name])
        np.testing.assert_array_equal(cut[name], short[name], strict=True)


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
      assert row.tolist() == cut + [-1] * (24 - len(cut))

  @pytest.mark.parametrize('name', ['hints', 'hints_pretokenized'])
  def test_hints(self, name):
    texts = [['one bell', ''], ['two', 'the bell']]
    task = add_task([[30, 40], [50]], **{name: texts})
    lengths = _LENGTHS | {'hints': 6}
    loaded = examples.load(task, 'validation', lengths)
    encode = loaded.vocabulary.encode
    assert loaded.hints[0] == [[*encode('one bell'), 1][:6]]
    assert loaded.hints[1][0] == [*encode('two'), 1]
    assert sum(map(len, loaded.hints[1])) + 1 <= 6
    assert loaded.part(1, 2).hints == loaded.hints[1:]
    # One text is a hint too, and an empty one is none.
    texts = {name: ['one bell', '']}
    one = add_task([[30, 40], [50]], name='test_one', **texts)
    loaded = examples.load(one, 'validation', _LENGTHS)
    assert loaded.hints == [[[*encode('one bell'), 1]], []]

  def test_ids_without_ids_of_the_task(self):
    """They depend on the input alone, not on its position."""
    ids = [
        examples.load(
            add_task(rows, name=name), 'validation', _LENGTHS
        ).example_ids.tolist()
        for name, rows in (
            ('test_1', [[30, 40], [50], [60]]),
            ('test_2', [[60], [30, 40]]),
        )
    ]
    assert len(set(ids[0])) == 3 and min(ids[0]) >= 0
    assert ids[1] == [ids[0][2], ids[0][0]]


class TestBadInput:

  def test_one_token_without_an_end_is_no_empty_input(self):
    """Nor is one that the task ends itself; the end alone is."""
    name = add_task([[3], [4]], steps=())
    found = examples.load(name, 'validation', _LENGTHS)
    assert [row.tokens for row in found.rows] == [[3], [4]]
    name = add_task([[3], [1]], steps=(), name='test_end')
    with pytest.raises(ValueError, match='Example 1 of .* is empty'):
      examples.load(name, 'validation', _LENGTHS)
    assert len(examples.load(name, 'validation', _LENGTHS, 1).rows) == 1

  @pytest.mark.parametrize(
      ('rows', 'features', 'arguments', 'message'),
      [
          (5, {}, (_LENGTHS, 6), '5 examples, and 6 are needed'),
          (0, {}, (_LENGTHS,), 'Split validation of .* 0 examples'),
          (1, {}, ({'inputs': 8},), 'must give the maximum tokens'),
          (1, {}, ({**_LENGTHS, 'inputs': 0},), 'must give the maximum tokens'),
          (1, {}, (96,), 'must give the maximum tokens'),
          (2, {'example_id': [1.5, 0]}, (_LENGTHS,), 'Example 0 .*1.5'),
          (2, {'example_id': np.array([0, 2**31])}, (_LENGTHS,),
           'Example 1 .*2147483648'),
          (2, {'inputs_pretokenized': _NOT_UTF8}, (_LENGTHS,), 'Example 1 of '),
          (2, {'targets_pretokenized': _NOT_UTF8}, (_LENGTHS,),
           'Example 1 of '),
          (2, {'hints': _NOT_UTF8}, (_LENGTHS,), 'Example 1 of '),
          (2, {'hints': [[3], [4]]}, (_LENGTHS,), 'Example 0 of '),
      ],
  )  # fmt: skip
  def test_data(self, rows, features, arguments, message):
    """Numbers of rows and their features, and how they are read."""
    name = add_task([[3]] * rows, **features)
    with pytest.raises(ValueError, match=message):
      examples.load(name, 'validation', *arguments)


# Recorded samples depend on these values.
@pytest.mark.parametrize(
    ('tokens', 'expected'),
    [
        (np.array([5, 1]), 360625768),
        (np.array([6, 7, 1]), 647040499),
        (np.array([6, 7, 1], np.uint16), 647040499),
    ],
)
def test_ids_never_change(tokens, expected):
  assert examples.id_of(tokens) == expected

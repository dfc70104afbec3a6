# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of metrics, alone and of a task, and of the loggers that get them."""

import json
import pathlib
import re
import types

import numpy as np
import pytest
import sentencepiece
import seqio

from speculative_t5x.decoder import batching
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import metrics
from speculative_t5x.tasks import multi30k
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import task_metrics

_EOS = 1


class TestBleu:

  def test_smoothing_is_exponential(self):
    # Words match 4 of 4, pairs 1 of 3, threes none of 2, fours none of 1.
    score = metrics.bleu(['a b c d'], ['a b d c'])['bleu']
    expected = 100 * (1 * 1 / 3 * (1 / 2) / 2 * (1 / 4) / 1) ** 0.25
    assert score == pytest.approx(expected)

  def test_of_equal_texts(self):
    texts = ['Ein Zug nach Köln fällt aus']
    assert metrics.bleu(texts, texts) == {'bleu': 100}

  @pytest.mark.parametrize('model', ['draft', 'target'])
  def test_agrees_with_t5x(self, shared, model):
    data_dir = shared / 'data' / 'multi30k'
    oracle = shared / 't5x_oracle' / model
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=str(data_dir / 'ende4k.model')
    )
    tokens = np.load(oracle / 'oracle.npz')['greedy_tokens']
    predictions = [vocabulary.decode(_until_eos(row)) for row in tokens]
    pairs = multi30k.read_pairs(data_dir, 'validation')[: len(tokens)]
    score = metrics.bleu([german for _, german in pairs], predictions)
    expected = json.loads((oracle / 'oracle.json').read_text())['greedy_bleu']
    assert score['bleu'] == pytest.approx(expected, abs=1e-9)


def _until_eos(row: np.ndarray) -> list[int]:
  """Return the tokens before EOS, or all if there is no EOS."""
  tokens = row.tolist()
  return tokens[: tokens.index(_EOS)] if _EOS in tokens else tokens


class TestRouge:

  def test_counts_by_hand(self):
    score = metrics.rouge(['the cat sat on the mat'], ['the cat on a mat'])
    # 4 of 6 and 5 words match, 1 of 5 and 4 pairs, and 4 words in order.
    assert score == {
        'rouge1': pytest.approx(100 * 8 / 11),
        'rouge2': pytest.approx(100 * 2 / 9),
        'rougeLsum': pytest.approx(100 * 8 / 11),
    }

  @pytest.mark.parametrize(
      ('separator', 'expected'), [(' . ', 100), ('\n', 100), ('. ', 50)]
  )
  def test_sentences(self, separator, expected):
    """The order of sentences does not matter to ROUGE-Lsum."""
    target = separator.join(['one two', 'three four'])
    prediction = separator.join(['three four', 'one two'])
    score = metrics.rouge([target], [prediction])
    assert score['rougeLsum'] == pytest.approx(expected)
    assert score['rouge2'] == pytest.approx(100 * 4 / 6)

  @pytest.mark.parametrize('metric', [metrics.bleu, metrics.rouge])
  def test_rejects_different_numbers_of_texts(self, metric):
    with pytest.raises(ValueError, match='argument'):
      metric(['a'], ['a', 'b'])


# Two examples, gamma 3; no draft token of position 3 was tested.
_COUNTS = {
    'scores': [-1.0, -2.0],
    'tokens': [9, 3],
    'target_calls': [2, 1],
    'tested': [5, 1],
    'accepted': [3, 0],
    'tested_per_position': [[3, 2, 0], [1, 0, 0]],
    'accepted_per_position': [[2, 1, 0], [0, 0, 0]],
}
_RATES = {
    'tokens_per_target_call': 12 / 3,
    'acceptance_rate': 3 / 6,
    'acceptance_rate/position_1': 2 / 4,
    'acceptance_rate/position_2': 1 / 2,
}


class TestSpeculation:

  def test_ratios_of_totals(self):
    assert metrics.speculation(_COUNTS) == _RATES
    names = {name.partition('/')[0] for name in _RATES}
    assert names == set(metrics.SPECULATION)

  @pytest.mark.parametrize('bad', [np.nan, -np.inf])
  def test_scores_that_are_not_finite(self, bad):
    with pytest.raises(ValueError, match='output 1 is not finite'):
      metrics.speculation(_COUNTS | {'scores': [-1.0, bad]})


_NAME = 'task_metrics_test'


def _same(targets, predictions):
  pairs = zip(targets, predictions, strict=True)
  return {'same': np.mean([target == found for target, found in pairs])}


@pytest.fixture(scope='module')
def task():
  seqio_tasks.add_task(
      _NAME,
      seqio_tasks.source_of_pairs(lambda split: [('a', 'a')], ('test',)),
      metric_fns=[metric_fns.with_aux_values(_same)],
      vocabulary_file=bulletins.VOCABULARY_FILE,
  )
  yield seqio.TaskRegistry.get(_NAME)
  seqio.TaskRegistry.remove(_NAME)


def _examples(task, targets):
  return types.SimpleNamespace(
      task=task,
      targets=targets,
      rows=[types.SimpleNamespace(features={}) for _ in targets],
  )


@pytest.fixture(scope='module')
def computed(task):
  examples = _examples(task, ['a', 'b'])
  return task_metrics.compute(examples, ['a', 'c'], _COUNTS)


def _numbers(values):
  scalars = seqio.metrics.Scalar
  return {k: v.value for k, v in values.items() if isinstance(v, scalars)}


class TestMetrics:

  def test_every_task_has_those_of_speculation(self, task, computed):
    assert _numbers(computed) == {'same': 0.5, **_RATES}
    # Otherwise seqio would decode it twice.
    kinds = {metric.model_output_type for metric in task.metric_objs}
    assert kinds == {seqio.metrics.ModelOutputType.PREDICTION_WITH_AUX}

  def test_code_of_the_page_adds_them_to_another_task(self, task):
    page = pathlib.Path(__file__).parents[2] / 'docs/t5x.md'
    (code,) = re.findall(r'```python\n(.*?)```', page.read_text(), re.DOTALL)
    name = re.search(r"get\('(.*)'\)", code)[1]
    other = task.replace(name=name, metric_fns=[_same])
    seqio.TaskRegistry.add_provider(name, other)
    exec(code)
    counted = seqio.TaskRegistry.get(f'{name}_counted')
    for each in (name, counted.name):
      seqio.TaskRegistry.remove(each)
    examples = _examples(counted, ['a', 'b'])
    values = task_metrics.compute(examples, ['a', 'c'], _COUNTS)
    assert _numbers(values) == {'same': 0.5, **_RATES}
    assert not counted.predict_metric_fns

  def test_joined_with_examples_as_seqio_does(self):
    """Outputs are postprocessed with the features of their example."""
    pairs = [('rain', 'Regen'), ('wind and snow', 'Wind'), ('sun', 'Sonne')]
    name, seen = 'test_joined', []

    def keep(targets, predictions, aux_values):
      seen.append((targets, list(predictions), len(aux_values['scores'])))
      return {}

    seqio_tasks.add_task(
        name,
        seqio_tasks.source_of_pairs(lambda split: pairs, ('validation',)),
        metric_fns=[keep],
        vocabulary_file=bulletins.VOCABULARY_FILE,
    )
    task = seqio.TaskRegistry.get(name).replace(
        postprocess_fn=lambda text, example, is_target: (
            text,
            is_target,
            example['inputs_pretokenized'],
            example['inputs'].tolist(),
            example['targets'].tolist(),
        )
    )
    seqio.TaskRegistry.remove(name)
    seqio.TaskRegistry.add_provider(name, task)
    lengths = {'inputs': 3, 'targets': 16}
    texts = ['Regen', 'Schnee', '']
    loaded = examples_lib.load(name, 'validation', lengths)
    aux_values = {'scores': np.zeros(3)}
    task_metrics.compute(loaded, texts, aux_values)
    encoded = [loaded.vocabulary.encode(text) for text in texts]
    seqio.Evaluator(
        name,
        seqio.EncDecFeatureConverter(pack=False),
        sequence_length=lengths,
        async_compute_metrics=False,
    ).evaluate(
        compute_metrics=True,
        predict_fn=None,
        predict_with_aux_fn=lambda _: (
            list(enumerate(batching.pad(encoded, 16, 0))), aux_values
        ),
    )  # fmt: skip
    ours, of_seqio = seen
    assert ours == of_seqio
    assert [each[2] for each in ours[1]] == [b'rain', b'wind and snow', b'sun']

  def test_metrics_that_would_be_left_out_are_refused(self, task):
    task_metrics.check(task)
    scored = lambda targets, scores: {}
    other = task.metric_objs[0]
    for changes in {'metric_fns': [scored]}, {'metric_objs': [other]}:
      with pytest.raises(ValueError, match='would not be computed'):
        task_metrics.check(task.replace(**changes))

  def test_quality_is_that_of_the_texts(self, computed):
    undefined = {'undefined': seqio.metrics.Scalar(float('nan'))}
    assert task_metrics.quality({**computed, **undefined}) == {'same': 0.5}

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the metrics of a task, and of the loggers that get them."""

import json
import pathlib
import re
import types

import numpy as np
import pytest
import seqio
import tensorflow as tf

from speculative_t5x.decoder import batching
from speculative_t5x.tasks import bulletins
from speculative_t5x.tasks import examples as examples_lib
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import task_metrics

_NAME = 'task_metrics_test'
_AUX_VALUES = {
    'tokens': np.array([6, 2]),
    'target_calls': np.array([2, 2]),
    'tested': np.array([4, 2]),
    'accepted': np.array([4, 0]),
    'tested_per_position': np.array([[2, 2], [2, 0]]),
    'accepted_per_position': np.array([[2, 2], [0, 0]]),
}
_RATES = {
    'tokens_per_target_call': 2,
    'acceptance_rate': 4 / 6,
    'acceptance_rate/position_1': 2 / 4,
    'acceptance_rate/position_2': 2 / 2,
}


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
  return task_metrics.compute(examples, ['a', 'c'], _AUX_VALUES)


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
    values = task_metrics.compute(examples, ['a', 'c'], _AUX_VALUES)
    assert _numbers(values) == {'same': 0.5, **_RATES}
    assert not counted.predict_metric_fns

  def test_histogram_leaves_out_examples_without_a_call(self, task):
    examples = _examples(task, ['a', 'b', 'c'])
    padded = {
        name: np.concatenate([value, np.zeros_like(value[:1])])
        for name, value in _AUX_VALUES.items()
    }
    values = task_metrics.compute(examples, ['a', 'b', 'c'], padded)
    assert _numbers(values) == {'same': 1, **_RATES}
    histogram = values['tokens_per_target_call/examples']
    assert histogram.values.tolist() == [3, 1]

  def test_joined_with_examples_as_seqio_does(self):
    """Outputs are postprocessed with the features of their example."""
    pairs = [('rain', 'Regen'), ('wind and snow', 'Wind'), ('sun', 'Sonne')]
    name, seen = f'{_NAME}_joined', []

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
    seqio.TaskRegistry.remove(name)
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


class TestLoggers:

  def test_write_to_a_new_folder(self, computed, tmp_path):
    loggers = [seqio.JSONLogger, seqio.TensorBoardLogger]
    folder = tmp_path / 'new' / 'folder'
    task_metrics.log(loggers, folder, _NAME, 7, computed)
    (line,) = (folder / f'{_NAME}-metrics.jsonl').read_text().splitlines()
    assert json.loads(line) == {'step': 7, 'same': 0.5, **_RATES}
    (events,) = (folder / _NAME).iterdir()
    tags = set()
    for event in tf.compat.v1.train.summary_iterator(str(events)):
      tags |= {value.tag for value in event.summary.value}
      assert event.step in (0, 7)  # 0 of the header
    assert tags == {f'eval/{name}' for name in computed}

  @pytest.mark.parametrize('loggers', [None, seqio.JSONLogger, ['json']])
  def test_others_are_refused(self, loggers):
    with pytest.raises(ValueError, match=r'as in \[@seqio.JSONLogger\], got'):
      task_metrics.check_loggers(loggers)

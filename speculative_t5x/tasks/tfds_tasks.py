# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of T5, from TensorFlow Datasets or from files of JSON lines.

  wmt_ende        WMT14, English to German, in Tensor2Tensor's selection:
                  newstest2013 is the validation split, newstest2014 the test
                  split. As the T5 library's `wmt_t2t_ende_v003`.
  cnn_dailymail   CNN/DailyMail, news summaries. As its `cnn_dailymail_v002`.
  xsum            XSum, news summaries of one sentence. The T5 library has no
                  such task; the prefix is that of CNN/DailyMail.

References: Bojar et al. (2014), "Findings of the 2014 Workshop on Statistical
Machine Translation"; See et al. (2017), "Get To The Point: Summarization with
Pointer-Generator Networks", arXiv:1704.04368; Narayan et al. (2018), "Don't
Give Me the Details, Just the Summary!", arXiv:1808.08745.
"""

from collections.abc import Callable, Mapping, Sequence
import os
from typing import Any, NamedTuple

import seqio
import tensorflow as tf

from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import text_files
from speculative_t5x.tasks import tfds_source


class _Task(NamedTuple):
  """How a data set becomes a task, and the remedy if it cannot be prepared."""

  tfds_name: str
  prefix: str
  inputs_key: str
  targets_key: str
  metric_fns: Sequence[Callable[..., Mapping[str, Any]]]
  remedy: str


_JSONL = "set files={'test': '<file>'} instead (docs/data.md)."
_TASKS = {
    'wmt_ende': _Task(
        'wmt_t2t_translate/de-en:1.0.0',
        'translate English to German: ',
        'en',
        'de',
        metric_fns.T5_TRANSLATION,
        'configs/tasks/newstest2014.gin reads the test split without it.',
    ),
    'cnn_dailymail': _Task(
        'cnn_dailymail:3.4.0',
        'summarize: ',
        'article',
        'highlights',
        metric_fns.SUMMARIZATION,
        'If Google Drive refuses its two files, put cnn_stories.tgz and'
        ' dailymail_stories.tgz into downloads/manual of that folder by hand,'
        f' or {_JSONL}',
    ),
    'xsum': _Task(
        'xsum:1.1.0',
        'summarize: ',
        'document',
        'summary',
        metric_fns.SUMMARIZATION,
        'Its articles must be collected by a script of its authors first;'
        f' otherwise {_JSONL}',
    ),
}
NAMES = tuple(_TASKS)


def register(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    vocabulary_file: str | os.PathLike[str] = seqio_tasks.T5_VOCABULARY_FILE,
    files: Mapping[str, str | os.PathLike[str]] | None = None,
) -> str:
  """Register a seqio task in place of one of the same name; return its name.

  Args:
    name: One of NAMES.
    data_dir: The folder of TensorFlow Datasets; None for its default, which is
      ~/tensorflow_datasets unless its environment variable names another.
    vocabulary_file: The path of a SentencePiece model.
    files: Paths of JSON lines by the names of their splits, to be read instead:
      objects with the fields that the data set has. None for `data_dir`.
  """
  task = _TASKS[name]
  if files is None:
    source = tfds_source.PreparedDataSource(
        task.tfds_name, data_dir, task.remedy
    )
  elif isinstance(files, Mapping) and files:
    source = seqio_tasks.source_of_columns(
        lambda split: _read_columns(task, files[split]), tuple(files)
    )
  else:
    raise ValueError(
        f'The files of {name} are {files!r}. Give them by their splits, as in'
        " {'test': 'test.jsonl'}."
    )
  return add(name, source, vocabulary_file)


def add(
    name: str,
    source: seqio.DataSource,
    vocabulary_file: str | os.PathLike[str],
) -> str:
  """Register a task of examples that have its fields; see `register`."""
  task = _TASKS[name]
  seqio_tasks.add_task(
      name,
      source,
      preprocessors=[
          seqio.map_over_dataset(
              lambda example: {
                  'inputs': tf.strings.join(
                      [task.prefix, example[task.inputs_key]]
                  ),
                  'targets': example[task.targets_key],
                  'example_id': example['example_id'],
              }
          )
      ],
      metric_fns=task.metric_fns,
      vocabulary_file=vocabulary_file,
  )
  return name


def _read_columns(
    task: _Task, path: str | os.PathLike[str]
) -> dict[str, list[str]]:
  keys = task.inputs_key, task.targets_key

  def parse(row: Mapping[str, Any]) -> tuple[str, ...]:
    texts = tuple(row[key] for key in keys)
    if not all(isinstance(text, str) for text in texts):
      raise TypeError('another value than a text')
    return texts

  wanted = f'an object with the texts {keys[0]!r} and {keys[1]!r}'
  remedy = 'docs/data.md says how to write such a file.'
  rows = text_files.read_rows(path, parse, wanted, remedy)
  if not rows:
    raise ValueError(f'{path} is empty. {remedy}')
  return dict(zip(keys, map(list, zip(*rows)), strict=True))

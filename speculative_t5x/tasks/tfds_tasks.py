# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of T5 whose data sets TensorFlow Datasets has prepared.

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
from speculative_t5x.tasks import tfds_source


class _Task(NamedTuple):
  """How a data set becomes a task.

  Attributes:
    tfds_name: The name of the data set, with its config and version.
    prefix: Text before each input.
    inputs_key: The feature with the text to be translated or summarized.
    targets_key: The feature with the reference.
    metric_fns: Metrics of the task.
  """

  tfds_name: str
  prefix: str
  inputs_key: str
  targets_key: str
  metric_fns: Sequence[Callable[..., Mapping[str, Any]]]


_TASKS = {
    'wmt_ende': _Task(
        'wmt_t2t_translate/de-en:1.0.0',
        'translate English to German: ',
        'en',
        'de',
        metric_fns.T5_TRANSLATION,
    ),
    'cnn_dailymail': _Task(
        'cnn_dailymail:3.4.0',
        'summarize: ',
        'article',
        'highlights',
        metric_fns.SUMMARIZATION,
    ),
    'xsum': _Task(
        'xsum:1.1.0',
        'summarize: ',
        'document',
        'summary',
        metric_fns.SUMMARIZATION,
    ),
}
NAMES = tuple(_TASKS)


def register(
    name: str,
    data_dir: str | os.PathLike[str] | None = None,
    vocabulary_file: str | os.PathLike[str] = seqio_tasks.T5_VOCABULARY_FILE,
) -> str:
  """Register a seqio task in place of one of the same name.

  Args:
    name: One of NAMES.
    data_dir: The folder of TensorFlow Datasets; None for its default, which is
      the folder that TFDS_DATA_DIR names or ~/tensorflow_datasets.
    vocabulary_file: The path of a SentencePiece model.

  Returns:
    The task's name, which is `name`.

  Raises:
    FileNotFoundError: if a local vocabulary file is missing. A missing data set
      raises it when the task is read.
  """
  task = _TASKS[name]
  seqio_tasks.add_task(
      name,
      tfds_source.PreparedDataSource(task.tfds_name, data_dir),
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

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tasks of T5, from TensorFlow Datasets or from files of JSON lines.

Nothing is downloaded: a data set must have been prepared, as by `tfds build`.

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
import dataclasses
import os
from typing import Any, NamedTuple

import seqio
import tensorflow as tf

from speculative_t5x.loading.files import user_paths
from speculative_t5x.tasks import metric_fns
from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import text_files


class _Task(NamedTuple):
  """A data set as a task, and the remedy if it cannot be prepared."""

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
_SPLITS = ('train', 'validation', 'test')


class PreparedDataSource(seqio.TfdsDataSource):
  """A prepared data set, with an `example_id` per example.

  Its name has its config and version. It is looked up when it is first read, in
  `tfds_data_dir`, or else where TensorFlow Datasets looks. seqio's
  `set_tfds_data_dir_override`, which T5X's flag --tfds_data_dir calls, takes
  precedence. The remedy says what to do where it cannot be prepared. `parts`
  has the data set's splits, or slices of them, by the splits of the task; None
  for those of the same names.
  """

  def __init__(
      self,
      tfds_name: str,
      tfds_data_dir: str | os.PathLike[str] | None = None,
      remedy: str = '',
      parts: Mapping[str, str] | None = None,
  ):
    self._remedy = remedy
    self._parts = parts and dict(parts)
    folder = tfds_data_dir and user_paths.expand(tfds_data_dir)
    super().__init__(
        tfds_name,
        tfds_data_dir=folder and os.fspath(folder),
        splits=self._parts,
        read_only=True,
    )

  @property
  def splits(self):
    """The splits of a whole data set, without looking for its files."""
    return tuple(self._parts or _SPLITS)

  @property
  def tfds_dataset(self) -> seqio.utils.LazyTfdsLoader:
    """The data set, of which everything here and in seqio is read."""
    found = super().tfds_dataset
    if not found.builder.info.splits:
      folder = found.builder.data_dir_root
      raise FileNotFoundError(
          f'TensorFlow Datasets has not prepared {found.name} in {folder}.'
          f' Prepare it with `tfds build {found.name} --data_dir={folder}`'
          ' (which needs apache-beam; docs/data.md has the same without), or'
          f' set tfds_data_dir to the folder that holds it. {self._remedy}'
      )
    return found

  def get_dataset(
      self, split='train', shuffle=True, seed=None, shard_info=None, **unused
  ) -> tf.data.Dataset:
    """Read a split, as seqio's `TfdsDataSource` does, and add example ids.

    An example's id is its index in the files of the split ([] int32). It does
    not depend on `shard_info`, nor on the order in which files are read.
    """
    if '+' in str(split):  # ids of several splits would be equal
      raise ValueError(
          f'The split {split} of data set {self.tfds_dataset.name} joins'
          ' several. Give one split, or a slice of one.'
      )
    read_config = dataclasses.replace(
        self.tfds_dataset.read_config,
        add_tfds_id=True,
        shuffle_seed=seed,
        skip_prefetch=True,
        input_context=shard_info
        and tf.distribute.InputContext(shard_info.num_shards, shard_info.index),
    )
    split = (self._parts or {}).get(split, split)
    builder = self.tfds_dataset.builder
    dataset = builder.as_dataset(
        split=split, shuffle_files=shuffle, read_config=read_config
    )
    whole = str(split).partition('[')[0]  # of a slice such as 'test[:100]'
    lengths = builder.info.splits[whole].shard_lengths
    return dataset.map(
        lambda example: _replace_id(example, lengths),
        num_parallel_calls=tf.data.AUTOTUNE,
    )


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
    files: Paths of JSON lines by their splits, to be read instead: objects with
      the fields that the data set has.
  """
  task = _TASKS[name]
  source = PreparedDataSource(task.tfds_name, data_dir, task.remedy)
  if files:
    source = seqio_tasks.source_of_columns(
        lambda split: read_columns(
            files[split], (task.inputs_key, task.targets_key)
        ),
        tuple(files),
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


def read_columns(
    path: str | os.PathLike[str], keys: Sequence[str]
) -> dict[str, list[str]]:
  """Read the texts of a file of JSON lines, by their keys."""

  def parse(row: Mapping[str, Any]) -> tuple[str, ...]:
    texts = tuple(row[key] for key in keys)
    if not all(isinstance(text, str) for text in texts):
      raise TypeError('another value than a text')
    return texts

  wanted = f'an object with the texts {" and ".join(map(repr, keys))}'
  remedy = 'docs/data.md says how to write such a file.'
  rows = text_files.read_rows(path, parse, wanted, remedy)
  if not rows:
    raise ValueError(f'{path} is empty. {remedy}')
  return dict(zip(keys, map(list, zip(*rows)), strict=True))


def _replace_id(example, shard_lengths: list[int]):
  """Replace a `tfds_id` as 'xsum-test.tfrecord-00001-of-00004__17'."""
  example = dict(example)
  numbers = tf.strings.regex_replace(
      example.pop('tfds_id'), r'.*-(\d+)-of-\d+__(\d+)', r'\1 \2'
  )
  shard, index = tf.unstack(
      tf.strings.to_number(tf.strings.split(numbers), tf.int32), num=2
  )
  first = tf.cumsum(tf.constant(shard_lengths, tf.int32), exclusive=True)
  return {**example, 'example_id': first[shard] + index}

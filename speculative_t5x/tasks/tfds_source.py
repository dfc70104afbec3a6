# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads data sets that TensorFlow Datasets has prepared.

Nothing is downloaded: a data set must have been prepared, as by `tfds build`.
"""

import dataclasses
import os

import seqio
import tensorflow as tf

_SPLITS = ('train', 'validation', 'test')


class PreparedDataSource(seqio.TfdsDataSource):
  """A prepared data set, with an `example_id` per example.

  The data set is in `tfds_data_dir`, or else in the folder that TFDS_DATA_DIR
  names or in ~/tensorflow_datasets. seqio's `set_tfds_data_dir_override`, which
  T5X's flag --tfds_data_dir calls, takes precedence.
  """

  def __init__(
      self,
      tfds_name: str,
      tfds_data_dir: str | os.PathLike[str] | None = None,
  ):
    """Names a data set, which is looked up when it is first read.

    Args:
      tfds_name: name of the data set, with its config and version.
      tfds_data_dir: folder of prepared data sets; None for TFDS's default.
    """
    super().__init__(
        tfds_name,
        tfds_data_dir=tfds_data_dir and os.fspath(tfds_data_dir),
        read_only=True,
    )

  @property
  def splits(self):
    """Returns the splits of a whole data set, without looking for its files."""
    return _SPLITS

  def num_input_examples(self, split: str) -> int:
    self._check_prepared(split)
    return super().num_input_examples(split)

  def list_shards(self, split: str) -> list[str]:
    self._check_prepared(split)
    return super().list_shards(split)

  def get_dataset(
      self,
      split: str = 'train',
      shuffle: bool = True,
      seed: int | None = None,
      shard_info: seqio.ShardInfo | None = None,
      **unused_kwargs,
  ) -> tf.data.Dataset:
    """Reads a split, as seqio's `TfdsDataSource` does, and adds example ids.

    An example's id is its index in the files of the split ([] int32). It does
    not depend on `shard_info`, nor on the order in which files are read.

    Raises:
      FileNotFoundError: if the data set has not been prepared.
      ValueError: if it has no such split.
    """
    self._check_prepared(split)
    read_config = dataclasses.replace(
        self.tfds_dataset.read_config,
        add_tfds_id=True,
        shuffle_seed=seed,
        skip_prefetch=True,
        input_context=_input_context(shard_info),
    )
    builder = self.tfds_dataset.builder
    dataset = builder.as_dataset(
        split=split, shuffle_files=shuffle, read_config=read_config
    )
    lengths = builder.info.splits[_base_split(split)].shard_lengths
    return dataset.map(
        lambda example: _replace_id(example, lengths),
        num_parallel_calls=tf.data.AUTOTUNE,
    )

  def _check_prepared(self, split: str) -> None:
    name, builder = self.tfds_dataset.name, self.tfds_dataset.builder
    folder = builder.data_dir_root
    if not builder.info.splits:
      raise FileNotFoundError(
          f'TensorFlow Datasets has not prepared {name} in {folder}. Prepare'
          f' it with `tfds build {name} --data_dir={folder}` (see'
          ' docs/jobs.md), or set TFDS_DATA_DIR to the folder that holds it.'
      )
    if '+' in str(split):  # ids of several splits would be equal
      raise ValueError(
          f'The split {split} of data set {name} joins several. Give one split,'
          ' or a slice of one.'
      )


def _base_split(split: str) -> str:
  """Returns the split of which `split` is a slice, such as 'test[:100]'."""
  return str(split).partition('[')[0]


def _input_context(shard_info) -> tf.distribute.InputContext | None:
  if shard_info is None:
    return None
  return tf.distribute.InputContext(
      num_input_pipelines=shard_info.num_shards,
      input_pipeline_id=shard_info.index,
  )


def _replace_id(example, shard_lengths: list[int]):
  """Replaces `tfds_id`, a text, by `example_id`.

  Args:
    example: whose `tfds_id` is as 'xsum-test.tfrecord-00001-of-00004__17'.
    shard_lengths: number of examples per file.
  """
  example = dict(example)
  numbers = tf.strings.regex_replace(
      example.pop('tfds_id'), r'.*-(\d+)-of-\d+__(\d+)', r'\1 \2'
  )
  shard, index = tf.unstack(
      tf.strings.to_number(tf.strings.split(numbers), tf.int32), num=2
  )
  first = tf.cumsum(tf.constant(shard_lengths, tf.int32), exclusive=True)
  return {**example, 'example_id': first[shard] + index}

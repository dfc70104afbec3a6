# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Reads data sets that TensorFlow Datasets has prepared.

Nothing is downloaded: a data set must have been prepared, as by `tfds build`.
"""

import dataclasses
import os

from etils import epath
import seqio
import tensorflow as tf

from speculative_t5x.loading.files import user_paths

_SPLITS = ('train', 'validation', 'test')


class PreparedDataSource(seqio.TfdsDataSource):
  """A prepared data set, with an `example_id` per example.

  Its name has its config and version. It is looked up when it is first read, in
  `tfds_data_dir`, or else where TensorFlow Datasets looks. seqio's
  `set_tfds_data_dir_override`, which T5X's flag --tfds_data_dir calls, takes
  precedence. The remedy says what to do where it cannot be prepared.
  """

  def __init__(
      self,
      tfds_name: str,
      tfds_data_dir: str | os.PathLike[str] | None = None,
      remedy: str = '',
  ):
    self._remedy = remedy
    folder = tfds_data_dir and user_paths.expand(tfds_data_dir)
    super().__init__(
        tfds_name,
        tfds_data_dir=folder and os.fspath(folder),
        read_only=True,
    )

  @property
  def splits(self):
    """The splits of a whole data set, without looking for its files."""
    return _SPLITS

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
      self,
      split: str = 'train',
      shuffle: bool = True,
      seed: int | None = None,
      shard_info: seqio.ShardInfo | None = None,
      **unused_kwargs,
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
    builder = self.tfds_dataset.builder
    dataset = builder.as_dataset(
        split=split, shuffle_files=shuffle, read_config=read_config
    )
    whole = str(split).partition('[')[0]  # of a slice such as 'test[:100]'
    info = builder.info.splits[whole]
    if lost := [x for x in info.filepaths if not epath.Path(x).exists()]:
      raise FileNotFoundError(
          f'The data set {self.tfds_dataset.name} lacks {lost[0]}. Copy it'
          f' again, or prepare it again with `tfds build --overwrite'
          f' {self.tfds_dataset.name} --data_dir={builder.data_dir_root}`.'
      )
    lengths = info.shard_lengths
    return dataset.map(
        lambda example: _replace_id(example, lengths),
        num_parallel_calls=tf.data.AUTOTUNE,
    )


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

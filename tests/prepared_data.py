# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes small data sets as TensorFlow Datasets prepares them."""

from collections.abc import Mapping, Sequence
import pathlib

import tensorflow_datasets as tfds


def write(
    name: str,
    splits: Mapping[str, Sequence[Mapping[str, str]]],
    folder: pathlib.Path,
    is_ordered: bool = True,
) -> pathlib.Path:
  """Writes a data set of texts and returns its folder.

  Args:
    name: with version, and with a config if the data set has configs.
    splits: examples per split.
    folder: folder of prepared data sets.
    is_ordered: whether they stay in this order, which TensorFlow Datasets then
      refuses to shuffle for a training. It shuffles others, as public data
      sets, when it writes them.
  """
  path, _, version = name.partition(':')
  data_set, _, config = path.partition('/')
  keys = next(iter(splits.values()))[0]
  tfds.dataset_builders.store_as_tfds_dataset(
      data_set,
      version,
      tfds.features.FeaturesDict({key: tfds.features.Text() for key in keys}),
      {split: list(enumerate(examples)) for split, examples in splits.items()},
      config=config or None,
      data_dir=folder,
      disable_shuffling=is_ordered,
  )
  return folder

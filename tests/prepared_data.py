# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes data sets as TensorFlow Datasets and SacreBLEU keep them."""

from collections.abc import Mapping, Sequence
import pathlib

import tensorflow_datasets as tfds


def write(
    name: str,
    splits: Mapping[str, Sequence[Mapping[str, str]]],
    folder: pathlib.Path,
    is_ordered: bool = True,
) -> pathlib.Path:
  """Write a data set of texts and return its folder.

  Args:
    name: With version, and with a config if the data set has configs.
    splits: Examples per split.
    folder: Folder of prepared data sets.
    is_ordered: Whether they stay in this order, which TensorFlow Datasets then
      refuses to shuffle for a training, as it shuffles public data sets.
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


def write_newstest2014(
    folder: pathlib.Path, count: int = 3003, german: int | None = None
) -> pathlib.Path:
  """Write stand-ins for its sentences; return SacreBLEU's folder."""
  whole = folder / 'wmt14/full'
  whole.mkdir(parents=True)
  for field in ('src', 'ref', 'docid', 'genre', 'origlang'):
    number = german if field == 'ref' and german else count
    # What follows Unicode's line separator belongs to the same sentence.
    lines = [f'{field}\u2028{i}\n' for i in range(number)]
    (whole / f'wmt14_full.en-de.{field}').write_text(''.join(lines))
  return folder

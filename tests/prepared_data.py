# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes data sets as their libraries keep them, and reads their gin files."""

from collections.abc import Mapping, Sequence
import pathlib
from typing import Any

import gin
import tensorflow_datasets as tfds

from speculative_t5x.tasks import bulletins


def write(
    name: str,
    splits: Mapping[str, Sequence[Mapping[str, str]]],
    folder: pathlib.Path,
    is_ordered: bool = True,
) -> pathlib.Path:
  """Write a data set of texts and return the folder of prepared data sets.

  Its name has the version, and the config if there is one. TensorFlow Datasets
  refuses to shuffle an ordered one for a training, unlike public data sets.
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


def parse(monkeypatch: Any, name: str, *bindings: str) -> None:
  """Parse the gin files of a task and of an eval run."""
  monkeypatch.chdir(pathlib.Path(__file__).parents[1])
  gin.parse_config_files_and_bindings(
      ['configs/runs/eval.gin', f'configs/tasks/{name}.gin'],
      [f'VOCABULARY_FILE = "{bulletins.VOCABULARY_FILE}"', *bindings],
      finalize_config=False,
  )


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

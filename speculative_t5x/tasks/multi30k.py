# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Multi30k, English to German, read from a folder that the user gives.

The folder holds `train`, `val` and `test_2016_flickr`, each as `.en.gz` and
`.de.gz` with one sentence per line. These are the files of `data/task1/raw` in
the public repository multi30k/dataset. Reading pairs does not need seqio.

Reference: Elliott et al. (2016), "Multi30K: Multilingual English-German Image
Descriptions", arXiv:1605.00459.
"""

import functools
import gzip
import os
from typing import Any
import zlib

from etils import epath

NAME = 'multi30k_ende'
# Multi30k's file names by the split names of the task.
_STEMS = {
    'train': 'train',
    'validation': 'val',
    'test': 'test_2016_flickr',
}
SPLITS = tuple(_STEMS)
VOCABULARY_FILE = 'ende4k.model'  # in the folder


def read_pairs(
    data_dir: str | os.PathLike[str], split: str
) -> list[tuple[str, str]]:
  """Read a split.

  Args:
    data_dir: The folder, which may be remote (`gs://`).
    split: One of SPLITS.

  Returns:
    Pairs of an English and a German sentence, in the order of the files.

  Raises:
    FileNotFoundError: if a file is missing.
    ValueError: if there is no such split, if its files have different numbers
      of sentences, or if a sentence is empty.
  """
  if split not in _STEMS:
    raise ValueError(f'split must be one of {SPLITS}. Got {split!r}.')
  english, german = _files(data_dir, split)
  _require([english, german])
  pairs = _read_lines(english), _read_lines(german)
  if len(pairs[0]) != len(pairs[1]):
    raise ValueError(
        f'{english} has {len(pairs[0])} lines and {german} has '
        f'{len(pairs[1])}, but line i of both must be a pair. Download both '
        'files again from the same release.'
    )
  return list(zip(*pairs, strict=True))


def register(
    data_dir: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> str:
  """Register the seqio task in place of one of the same name.

  Args:
    data_dir: The folder, which may be remote (`gs://`).
    vocabulary_file: The path of a SentencePiece model; None for `ende4k.model`
      in the folder.

  Returns:
    The task's name, `multi30k_ende`.

  Raises:
    FileNotFoundError: if a file or the vocabulary is missing.
  """
  # seqio imports TensorFlow, which reading pairs does not need.
  from speculative_t5x.tasks import metric_fns
  from speculative_t5x.tasks import seqio_tasks

  _require([path for split in SPLITS for path in _files(data_dir, split)])
  seqio_tasks.add_task(
      NAME,
      seqio_tasks.source_of_pairs(
          functools.partial(read_pairs, data_dir), SPLITS
      ),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=_vocabulary_file(data_dir, vocabulary_file),
  )
  return NAME


def load_vocabulary(
    data_dir: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> Any:
  """Load the task's `seqio.SentencePieceVocabulary`, for a model to use.

  Arguments and errors are those of `register`.
  """
  from speculative_t5x.tasks import seqio_tasks

  return seqio_tasks.load_vocabulary(
      _vocabulary_file(data_dir, vocabulary_file)
  )


def _vocabulary_file(data_dir, vocabulary_file) -> epath.Path:
  return epath.Path(vocabulary_file or epath.Path(data_dir) / VOCABULARY_FILE)


def _files(data_dir, split: str) -> list[epath.Path]:
  """Return the paths of a split, English first."""
  folder = epath.Path(data_dir)
  return [folder / f'{_STEMS[split]}.{lang}.gz' for lang in ('en', 'de')]


def _require(paths: list[epath.Path]) -> None:
  """Check that all files exist."""
  missing = [path for path in paths if not path.exists()]
  if missing:
    raise FileNotFoundError(
        f'The folder {missing[0].parent} lacks'
        f' {", ".join(path.name for path in missing)}. Copy them from'
        ' data/task1/raw of the repository multi30k/dataset.'
    )


def _read_lines(path: epath.Path) -> list[str]:
  """Read the sentences of a file, none of which may be empty."""
  try:
    text = gzip.decompress(path.read_bytes()).decode('utf-8')
  except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
    raise ValueError(
        f'{path} is not gzipped UTF-8 text ({error}). Download it again.'
    ) from error
  # Not `splitlines`, which would also split at Unicode line separators.
  lines = [line.strip() for line in text.removesuffix('\n').split('\n')]
  if '' in lines:
    raise ValueError(
        f'{path}, line {lines.index("") + 1} is empty. Remove that line from'
        ' the files of both languages.'
    )
  return lines

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
_LANGUAGES = ('en', 'de')
VOCABULARY_FILE = 'ende4k.model'  # in the folder


def read_pairs(
    data_dir: str | os.PathLike[str], split: str
) -> list[tuple[str, str]]:
  """Reads a split.

  Args:
    data_dir: the folder, which may be remote (`gs://`).
    split: one of SPLITS.

  Returns:
    Pairs of an English and a German sentence, in the order of the files.

  Raises:
    FileNotFoundError: if the folder or a file is missing.
    ValueError: if there is no such split, if its files have different numbers
      of sentences, or if a sentence is empty.
  """
  if split not in _STEMS:
    raise ValueError(f'split must be one of {SPLITS}. Got {split!r}.')
  english, german = _files(data_dir, split)
  _require_files(data_dir, [english, german])
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
  """Registers the seqio task and replaces one registered before.

  Args:
    data_dir: the folder, which may be remote (`gs://`).
    vocabulary_file: path of a SentencePiece model; None for `ende4k.model` in
      the folder.

  Returns:
    The task's name, `multi30k_ende`.

  Raises:
    FileNotFoundError: if the folder, a file or the vocabulary is missing.
  """
  # seqio imports TensorFlow, which reading pairs does not need.
  from speculative_t5x.tasks import metric_fns
  from speculative_t5x.tasks import seqio_tasks

  _require_files(data_dir, [p for s in SPLITS for p in _files(data_dir, s)])
  seqio_tasks.add_task(
      NAME,
      seqio_tasks.source_of_pairs(
          functools.partial(read_pairs, data_dir), SPLITS
      ),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=_find_vocabulary(data_dir, vocabulary_file),
  )
  return NAME


def load_vocabulary(
    data_dir: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> Any:
  """Loads the task's `seqio.SentencePieceVocabulary`, for a model to use.

  Args:
    data_dir: as for `register`.
    vocabulary_file: as for `register`.

  Raises:
    FileNotFoundError: if the vocabulary is missing.
  """
  import seqio

  path = _find_vocabulary(data_dir, vocabulary_file)
  return seqio.SentencePieceVocabulary(os.fspath(path))


def _files(data_dir, split: str) -> list[epath.Path]:
  """Returns the paths of a split, English first."""
  folder = epath.Path(data_dir)
  return [folder / f'{_STEMS[split]}.{lang}.gz' for lang in _LANGUAGES]


def _require_files(data_dir, paths: list[epath.Path]) -> None:
  """Raises FileNotFoundError unless all files exist."""
  if not epath.Path(data_dir).is_dir():
    raise FileNotFoundError(
        f'There is no folder {os.fspath(data_dir)}. Give the folder that '
        'holds the files of Multi30k, such as train.en.gz and train.de.gz.'
    )
  missing = [path.name for path in paths if not path.exists()]
  if missing:
    raise FileNotFoundError(
        f'The folder {os.fspath(data_dir)} lacks {", ".join(missing)}. Copy '
        'them from data/task1/raw of the repository multi30k/dataset.'
    )


def _find_vocabulary(data_dir, vocabulary_file) -> epath.Path:
  """Returns the given vocabulary file or the folder's, which must exist."""
  if vocabulary_file is None:
    vocabulary_file = epath.Path(data_dir) / VOCABULARY_FILE
  path = epath.Path(vocabulary_file)
  if not path.exists():
    raise FileNotFoundError(
        f'There is no vocabulary {os.fspath(path)}. Give a SentencePiece model '
        'as vocabulary_file.'
    )
  return path


def _read_lines(path: epath.Path) -> list[str]:
  """Reads the sentences of a file, none of which may be empty."""
  try:
    text = gzip.decompress(path.read_bytes()).decode('utf-8')
  except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
    raise ValueError(
        f'{path} is not gzipped UTF-8 text ({error}). Download it again.'
    ) from error
  if not text:
    raise ValueError(f'{path} is empty. Download it again.')
  # Not `splitlines`, which would also split at Unicode line separators.
  lines = [line.strip() for line in text.removesuffix('\n').split('\n')]
  for number, line in enumerate(lines, start=1):
    if not line:
      raise ValueError(
          f'{path}, line {number} is empty. Remove that line from the '
          'files of both languages.'
      )
  return lines

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Multi30k, English to German, read from a folder that the user gives.

Its English sides alone are a task of texts, see `texts`.

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

from speculative_t5x.loading.files import user_paths

NAME = 'multi30k_ende'
CAPTIONS = 'multi30k_captions'
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
  """Read the English and German sentences of one of SPLITS, in order.

  The folder may be remote (`gs://`).
  """
  stem = user_paths.expand(data_dir) / _STEMS[split]
  english, german = (
      stem.with_name(f'{stem.name}.{lang}.gz') for lang in ('en', 'de')
  )
  files = [path.read_bytes() for path in (english, german)]
  try:
    return list(zip(*map(_lines, files), strict=True))
  except (OSError, EOFError, zlib.error, ValueError) as error:
    raise ValueError(
        f'{english} and {german} are not gzipped UTF-8 text with as many lines'
        f' in both languages ({error}). Download both again from data/task1/raw'
        ' of the repository multi30k/dataset.'
    ) from error


def _lines(data: bytes) -> list[str]:
  """Return the lines of a gzipped file, without spaces around them."""
  text = gzip.decompress(data).decode('utf-8')
  # Not `splitlines`, which would also split at Unicode line separators.
  return [line.strip() for line in text.removesuffix('\n').split('\n')]


def register(
    data_dir: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> str:
  """Register the seqio task in place of one of the same name; return its name.

  The folder may be remote (`gs://`). Its `ende4k.model` is the vocabulary
  unless another SentencePiece model is given.
  """
  # seqio imports TensorFlow, which reading pairs does not need.
  from speculative_t5x.tasks import metric_fns
  from speculative_t5x.tasks import seqio_tasks

  seqio_tasks.add_task(
      NAME,
      seqio_tasks.source_of_pairs(
          functools.partial(read_pairs, data_dir), SPLITS
      ),
      metric_fns=metric_fns.TRANSLATION,
      vocabulary_file=_vocabulary_file(data_dir, vocabulary_file),
  )
  return NAME


def register_captions(
    data_dir: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str],
    prompt_tokens: int = 0,
) -> str:
  """Register the task of English captions alone; return its name.

  The folder may be remote (`gs://`). For other arguments, see `texts.add`.
  """
  from speculative_t5x.tasks import seqio_tasks
  from speculative_t5x.tasks import texts

  read = lambda split: [english for english, _ in read_pairs(data_dir, split)]
  source = seqio_tasks.source_of_columns(
      lambda split: {texts.TEXT: read(split)}, SPLITS
  )
  return texts.add(CAPTIONS, source, vocabulary_file, prompt_tokens)


def load_vocabulary(
    data_dir: str | os.PathLike[str],
    vocabulary_file: str | os.PathLike[str] | None = None,
) -> Any:
  """Load the task's `seqio.SentencePieceVocabulary`, for a model to use."""
  from speculative_t5x.tasks import seqio_tasks

  return seqio_tasks.load_vocabulary(
      _vocabulary_file(data_dir, vocabulary_file)
  )


def _vocabulary_file(data_dir, vocabulary_file) -> epath.Path:
  if vocabulary_file:
    return user_paths.expand(vocabulary_file)
  return user_paths.expand(data_dir) / VOCABULARY_FILE

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The test split of WMT14, English to German, without the rest of WMT14.

SacreBLEU downloads it when it is first read, into the folder that the variable
SACREBLEU names or ~/.sacrebleu. These are the sentences of the split `test` of
`tfds_tasks`, in the order of the test set; TensorFlow Datasets has another.
"""

from collections.abc import Mapping
import os
import pathlib

from speculative_t5x.tasks import seqio_tasks
from speculative_t5x.tasks import tfds_tasks

_NAME, _PAIR = 'wmt14/full', 'en-de'
_NUM_SENTENCES = 3003


def read(split: str) -> Mapping[str, list[str]]:
  """Read the sentences of the split 'test', the only one, as `en` and `de`."""
  del split
  import sacrebleu  # reads SACREBLEU when it is imported

  files = sacrebleu.DATASETS[_NAME].get_files(_PAIR)[:2]
  texts = [pathlib.Path(each).read_text(encoding='utf-8') for each in files]
  # Not `splitlines`, which would also split at Unicode line separators.
  english, german = (x.removesuffix('\n').split('\n') for x in texts)
  if not len(english) == len(german) == _NUM_SENTENCES:
    raise ValueError(
        f'{files[0]} and {files[1]} have {len(english)} and {len(german)}'
        f' sentences, and newstest2014 {_NUM_SENTENCES}. Remove both, and the'
        ' next run downloads them again.'
    )
  return {'en': english, 'de': german}


def register(
    vocabulary_file: str | os.PathLike[str] = seqio_tasks.T5_VOCABULARY_FILE,
) -> str:
  """Register `wmt_ende`, with the split `test` alone; return its name."""
  source = seqio_tasks.source_of_columns(read, ('test',))
  return tfds_tasks.add('wmt_ende', source, vocabulary_file)

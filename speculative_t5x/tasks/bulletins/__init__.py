# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedded corpora: bulletins in English and German, and German reports.

The bulletins are about weather, trains, prices and similar subjects, with many
dates, times, numbers, units and currencies. The reports, in German, are about
the same subjects: three to five sentences, with a summary of one or two. The
paraphrases are pairs of bulletins that state the same facts. `DATA_CARD.md`
says how the texts were made and split. This module reads them and needs
neither TensorFlow nor seqio.
"""

import gzip
import hashlib
import pathlib
from typing import NamedTuple

_FOLDER = pathlib.Path(__file__).parent

SPLITS = ('train', 'validation', 'test')
# SentencePiece model with 2,048 pieces: 0 is padding, 1 EOS, 2 unknown.
VOCABULARY_FILE = str(_FOLDER / 'bulletins.model')

__all__ = [
    'Paraphrase',
    'SPLITS',
    'VOCABULARY_FILE',
    'read_pairs',
    'read_paraphrases',
    'read_reports',
]


class Paraphrase(NamedTuple):
  """Two bulletins that state the same facts.

  Attributes:
    topic: their subject, such as 'weather'.
    first: an English and a German text.
    second: likewise, in another sentence pattern.
  """

  topic: str
  first: tuple[str, str]
  second: tuple[str, str]


def read_pairs(split: str) -> list[tuple[str, str]]:
  """Reads a split of the bulletins.

  Args:
    split: one of SPLITS.

  Returns:
    Pairs of an English and a German text, in a fixed order.

  Raises:
    ValueError: if there is no such split, or if the hash of its text is not the
      released one.
  """
  return _read(split, split)


def read_reports(split: str) -> list[tuple[str, str]]:
  """Reads a split of the reports.

  Args:
    split: one of SPLITS.

  Returns:
    Pairs of a German report and its summary, in a fixed order.

  Raises:
    ValueError: if there is no such split, or if the hash of its text is not the
      released one.
  """
  return _read(split, f'reports_{split}')


def read_paraphrases() -> list[Paraphrase]:
  """Reads the paraphrases, in a fixed order.

  Raises:
    ValueError: if the hash of the text is not the released one.
  """
  return [
      Paraphrase(topic, tuple(texts[:2]), tuple(texts[2:]))
      for topic, *texts in _read('test', 'paraphrases_test')
  ]


def _read(split: str, stem: str) -> list[tuple[str, ...]]:
  """Returns the texts of a split, which is stored in `<stem>.tsv.gz`."""
  if split not in SPLITS:
    raise ValueError(f'split must be one of {SPLITS}. Got {split!r}.')
  lines = _read_text(stem).removesuffix('\n').split('\n')
  return [tuple(line.split('\t')) for line in lines]


def _read_text(stem: str) -> str:
  """Returns the text of a file after checking its hash."""
  path = _FOLDER / f'{stem}.tsv.gz'
  text = gzip.decompress(path.read_bytes())
  expected = _read_sums()[f'{stem}.tsv']
  found = hashlib.sha256(text).hexdigest()
  if found != expected:
    raise ValueError(
        f'The text in {path} has SHA-256 {found}, expected {expected}. '
        'Install the package again.'
    )
  return text.decode()


def _read_sums() -> dict[str, str]:
  """Returns hashes by file name, read from the format of `sha256sum`."""
  lines = (_FOLDER / 'SHA256SUMS').read_text(encoding='utf-8').splitlines()
  return {name: digest for digest, name in (line.split() for line in lines)}

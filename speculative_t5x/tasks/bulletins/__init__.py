# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The embedded corpora: bulletins in English and German, and German reports.

The bulletins are about weather, trains, prices and similar subjects, with many
dates, times, numbers, units and currencies. The reports, in German, are about
the same subjects: three to five sentences, with a summary of one or two.
`DATA_CARD.md` says how the texts were made and split. This module reads them
and needs neither TensorFlow nor seqio.
"""

import gzip
import pathlib

_FOLDER = pathlib.Path(__file__).parent

SPLITS = ('train', 'validation', 'test')
# SentencePiece model with 2,048 pieces: 0 is padding, 1 EOS, 2 unknown.
VOCABULARY_FILE = str(_FOLDER / 'bulletins.model')


def read_pairs(split: str) -> list[tuple[str, str]]:
  """Read the English and German texts of one of SPLITS, in a fixed order."""
  return _read(split)


def read_reports(split: str) -> list[tuple[str, str]]:
  """Read German reports and their summaries; see `read_pairs`."""
  return _read(f'reports_{split}')


def _read(stem: str) -> list[tuple[str, ...]]:
  """Return the rows of `<stem>.tsv.gz`; gzip checks that it is undamaged."""
  text = gzip.decompress((_FOLDER / f'{stem}.tsv.gz').read_bytes()).decode()
  lines = text.removesuffix('\n').split('\n')
  return [tuple(line.split('\t')) for line in lines]

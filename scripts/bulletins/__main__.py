# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the corpora and their vocabulary: `python -m scripts.bulletins`."""

import argparse
import gzip
import hashlib
import pathlib

from scripts.bulletins import corpus
from scripts.bulletins import paraphrases
from scripts.bulletins import reports
from scripts.bulletins import vocabulary

_CHECKOUT = pathlib.Path(__file__).parents[2]
DEFAULT_FOLDER = _CHECKOUT / 'speculative_t5x' / 'tasks' / 'bulletins'


def write(folder: pathlib.Path) -> None:
  """Generates and writes the splits, the vocabulary and their hashes."""
  bulletins = _texts(corpus.bulletins())
  sums = _write_splits(folder, '', bulletins)
  listed = bulletins['train'][: corpus.NUM_LISTED]
  model = vocabulary.train(text for pair in listed for text in pair)
  (folder / 'bulletins.model').write_bytes(model)
  sums['bulletins.model'] = hashlib.sha256(model).hexdigest()
  sums |= _write_splits(folder, 'reports_', _texts(reports.reports()))
  made = _texts(paraphrases.paraphrases())
  sums |= _write_splits(folder, 'paraphrases_', made)
  lines = [f'{digest}  {name}\n' for name, digest in sums.items()]
  (folder / 'SHA256SUMS').write_text(''.join(lines))


def _texts(splits) -> dict[str, list[tuple[str, ...]]]:
  return {split: [e.texts for e in made] for split, made in splits.items()}


def _write_splits(folder, prefix, splits) -> dict[str, str]:
  """Writes one line per example, and returns the hashes of the texts."""
  sums = {}
  for split, examples in splits.items():
    name = f'{prefix}{split}.tsv'
    text = ''.join('\t'.join(each) + '\n' for each in examples).encode()
    # The hash is the text's: compressed bytes differ between versions of zlib.
    sums[name] = hashlib.sha256(text).hexdigest()
    packed = gzip.compress(text, compresslevel=9, mtime=0)
    (folder / f'{name}.gz').write_bytes(packed)
  return sums


def main() -> None:
  """Reads the command line."""
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument(
    '--folder',
    type=pathlib.Path,
    default=DEFAULT_FOLDER,
    help='an existing folder (default: the one in the package)',
  )
  write(parser.parse_args().folder)


if __name__ == '__main__':
  main()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the bulletins and their vocabulary: `python -m scripts.bulletins`."""

import argparse
import gzip
import hashlib
import pathlib

from scripts.bulletins import corpus
from scripts.bulletins import vocabulary

_CHECKOUT = pathlib.Path(__file__).parents[2]
DEFAULT_FOLDER = _CHECKOUT / 'speculative_t5x' / 'tasks' / 'bulletins'


def as_text(bulletins: list[corpus.Bulletin]) -> str:
  """Returns a split as shipped: one line per pair, separated by a tab."""
  return ''.join(f'{b.en}\t{b.de}\n' for b in bulletins)


def write(folder: pathlib.Path) -> None:
  """Generates and writes the splits, the vocabulary and their hashes."""
  splits = corpus.bulletins()
  sums = {}
  for split, bulletins in splits.items():
    text = as_text(bulletins).encode()
    # The hash is the text's: compressed bytes differ between versions of zlib.
    sums[f'{split}.tsv'] = hashlib.sha256(text).hexdigest()
    packed = gzip.compress(text, compresslevel=9, mtime=0)
    (folder / f'{split}.tsv.gz').write_bytes(packed)
  sides = [(b.en, b.de) for b in splits['train']]
  model = vocabulary.train(text for pair in sides for text in pair)
  (folder / 'bulletins.model').write_bytes(model)
  sums['bulletins.model'] = hashlib.sha256(model).hexdigest()
  lines = [f'{digest}  {name}\n' for name, digest in sums.items()]
  (folder / 'SHA256SUMS').write_text(''.join(lines))


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

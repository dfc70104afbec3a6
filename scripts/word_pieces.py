# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains a WordPiece vocabulary, as BERT's, on the lines of a text file.

  python -m scripts.word_pieces <text file> <folder> --size 8000

The folder gets a `tokenizer.json`, and a `tokenizer_config.json` that names its
special tokens: [PAD] 0, [UNK] 1, [CLS] 2 before each text, and [SEP] 3, the end
of sequence. Texts are in small letters, without accents. Token ids are what a
model reads and writes: a text that is decoded may have other spaces.
"""

import argparse
from collections.abc import Iterable
import json
import pathlib

import tokenizers
from tokenizers import decoders
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers
from tokenizers import processors
from tokenizers import trainers

_ROLES = {
    'pad_token': '[PAD]',
    'unk_token': '[UNK]',
    'bos_token': '[CLS]',
    'eos_token': '[SEP]',
}
_PREFIX = '##'  # of pieces within a word


def train(lines: Iterable[str], folder: pathlib.Path, size: int) -> int:
  """Write a vocabulary of at most `size` pieces; return how many it has."""
  tokenizer = tokenizers.Tokenizer(
      models.WordPiece(unk_token=_ROLES['unk_token'])
  )
  tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
  tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
  tokenizer.decoder = decoders.WordPiece(prefix=_PREFIX)
  trainer = trainers.WordPieceTrainer(
      vocab_size=size,
      special_tokens=[*_ROLES.values()],  # ids from 0 on
      continuing_subword_prefix=_PREFIX,
      show_progress=False,
  )
  tokenizer.train_from_iterator(lines, trainer)
  begin = _ROLES['bos_token']
  tokenizer.post_processor = processors.TemplateProcessing(
      single=f'{begin} $A',
      special_tokens=[(begin, tokenizer.token_to_id(begin))],
  )
  folder.mkdir(parents=True, exist_ok=True)
  tokenizer.save(str(folder / 'tokenizer.json'))
  roles = json.dumps(_ROLES, indent=2)
  (folder / 'tokenizer_config.json').write_text(f'{roles}\n', encoding='utf-8')
  return tokenizer.get_vocab_size()


def main() -> None:
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument('text_file', type=pathlib.Path)
  parser.add_argument('folder', type=pathlib.Path)
  parser.add_argument('--size', type=int, default=8000)
  arguments = parser.parse_args()
  with arguments.text_file.open(encoding='utf-8') as lines:
    count = train(lines, arguments.folder, arguments.size)
  print(f'Wrote {arguments.folder}: {count:,} pieces.')


if __name__ == '__main__':
  main()

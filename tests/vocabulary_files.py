# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains small SentencePiece models and writes tokenizers for tests."""

import io
import pathlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
import tokenizers
from tokenizers import decoders
from tokenizers import models
from tokenizers import normalizers
from tokenizers import pre_tokenizers


def train(path, *, text='ein Mann geht', **options):
  """Write a SentencePiece model of lines, by default of some 24 pieces."""
  defaults = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1, vocab_size=24)
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter([*text.splitlines(), 'a man walks'] * 5),
      model_writer=model,
      hard_vocab_limit=False,
      minloglevel=2,
      **(defaults | options),
  )
  path.write_bytes(model.getvalue())
  return path


def with_sentinels(source, path, count=100):
  """Write a SentencePiece model that holds sentinels, as T5X's file does."""
  proto = sentencepiece_model_pb2.ModelProto()
  proto.ParseFromString(pathlib.Path(source).read_bytes())
  for i in reversed(range(count)):
    proto.pieces.add(piece=f'▁<extra_id_{i}>', type=4)
  path.write_bytes(proto.SerializeToString())
  return path


_SPECIAL = ['<pad>', '</s>', '<unk>']


def write_byte_pieces(path, drops_space=True):
  """Write a tokenizer.json with a piece per byte, as Llama 2's or Gemma's.

  Llama 2's begins every text with a space, and drops it in outputs.
  """
  letters = ['▁', 'a', 'b', '▁a', '▁▁']
  pieces = [*_SPECIAL, *letters, *(f'<0x{byte:02X}>' for byte in range(256))]
  tokenizer = tokenizers.Tokenizer(
      models.BPE(
          {piece: i for i, piece in enumerate(pieces)},
          [('▁', 'a'), ('▁', '▁')],
          unk_token='<unk>',
          byte_fallback=True,
      )
  )
  prepend = [normalizers.Prepend('▁')] if drops_space else []
  tokenizer.normalizer = normalizers.Sequence(
      [*prepend, normalizers.Replace(' ', '▁')]
  )
  strip = [decoders.Strip(' ', 1, 0)] if drops_space else []
  tokenizer.decoder = decoders.Sequence([
      decoders.Replace('▁', ' '),
      decoders.ByteFallback(),
      decoders.Fuse(),
      *strip,
  ])
  return _write(tokenizer, path)


def write_byte_level(path):
  """Write a tokenizer.json whose pieces are letters for bytes, as GPT-2's."""
  letters = sorted(pre_tokenizers.ByteLevel.alphabet())
  pieces = [*_SPECIAL, *letters, 'Ġa', 'aÃ']
  tokenizer = tokenizers.Tokenizer(
      models.BPE(
          {piece: i for i, piece in enumerate(pieces)},
          [('Ġ', 'a'), ('a', 'Ã')],
      )
  )
  tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  tokenizer.decoder = decoders.ByteLevel()
  return _write(tokenizer, path)


def write_words(path, decoder, pieces):
  """Write a tokenizer.json of words that a decoder joins; None for spaces."""
  words = {piece: i for i, piece in enumerate([*_SPECIAL, *pieces])}
  tokenizer = tokenizers.Tokenizer(models.WordLevel(words, unk_token='<unk>'))
  if decoder is not None:
    tokenizer.decoder = decoder
  return _write(tokenizer, path)


def _write(tokenizer, path):
  tokenizer.add_special_tokens(_SPECIAL)
  path.write_text(tokenizer.to_str())
  return path

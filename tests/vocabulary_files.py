# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trains small SentencePiece models for tests."""

import io
import pathlib

import sentencepiece
from sentencepiece import sentencepiece_model_pb2


def train(path, *, text='ein Mann geht', **options):
  """Write a SentencePiece model of lines, by default of some 24 pieces."""
  ids = dict(pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
      sentence_iterator=iter([*text.splitlines(), 'a man walks'] * 5),
      model_writer=model,
      vocab_size=24,
      hard_vocab_limit=False,
      minloglevel=2,
      **(ids | options),
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

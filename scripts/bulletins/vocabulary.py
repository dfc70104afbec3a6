# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The SentencePiece model of the training split."""

from collections.abc import Iterable
import io
import string

import sentencepiece

NUM_PIECES = 2048

# Letters and signs that a reader may type though no bulletin has them.
_ALPHABET = string.ascii_letters + string.digits + 'äöüÄÖÜß.,:;-%€$£!?\'"()'


def train(texts: Iterable[str]) -> bytes:
  """Trains a unigram vocabulary and returns the serialized model.

  Digits are pieces of their own, so that a number never seen is copied digit
  by digit. One thread, no sampling and no shuffling: the same texts give the
  same model.
  """
  texts = list(texts)
  words = sorted({word for text in texts for word in text.split()})
  # SentencePiece considers only strings that are part of two distinct words.
  # A word that never stands before a comma ('weil') would thus be cut up, so
  # each is shown with one once.
  texts.append(', '.join(words))
  model = io.BytesIO()
  sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(texts),
    max_sentence_length=1_000_000,
    model_writer=model,
    model_type='unigram',
    vocab_size=NUM_PIECES,
    character_coverage=1.0,
    required_chars=_ALPHABET,
    split_digits=True,
    byte_fallback=False,
    normalization_rule_name='identity',
    pad_id=0,
    eos_id=1,
    unk_id=2,
    bos_id=-1,
    input_sentence_size=0,
    shuffle_input_sentence=False,
    num_threads=1,
    minloglevel=2,
  )
  return model.getvalue()

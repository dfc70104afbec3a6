# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""ByT5's vocabulary, which is in no file."""

import copy

from speculative_t5x.loading.vocabularies import special_tokens
from speculative_t5x.loading.vocabularies import vocabulary as vocabulary_lib

NAME = 'bytes'  # in place of a path
_NUM_SENTINELS = 125


class ByteVocabulary(vocabulary_lib.Vocabulary):
  """ByT5's: padding, end, an unknown piece, and the 256 bytes of UTF-8.

  Ids and texts are those of seqio's `ByteVocabulary`, and of transformers'
  `ByT5Tokenizer` where that skips special tokens. A text that spells one is
  bytes too. Bytes that are not UTF-8 have no text, and neither have the
  sentinels behind the bytes: ByT5 was trained with its last bytes as sentinels.

  Its 125 sentinels are numbered as in transformers, upwards.
  """

  _SPECIAL = ('<pad>', '</s>', '<unk>')
  _NUM_PIECES = len(_SPECIAL) + 256
  bad_bytes = 'ignore'

  def __init__(self, beside: special_tokens.SpecialTokens | None = None):
    self.name = NAME if beside is None else str(beside.path)
    self.pad_id, self.eos_id, self.unk_id = range(len(self._SPECIAL))
    self.num_ids = self._NUM_PIECES + _NUM_SENTINELS

  def _encode(self, text: str) -> list[int]:
    return [len(self._SPECIAL) + byte for byte in text.encode()]

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    first = len(self._SPECIAL)
    return bytes([i - first]) if first <= i < self._NUM_PIECES else None

  def id_to_piece(self, i: int) -> str:
    if i in (self.pad_id, self.eos_id):
      return self._SPECIAL[i]
    if self._NUM_PIECES <= i < self.num_ids:
      return f'<extra_id_{i - self._NUM_PIECES}>'
    # A byte that is part of a character has no text.
    return self.decode([i]) or f'<id {i}>'

  def within(self, num_logits: int) -> vocabulary_lib.Vocabulary:
    if self.num_ids <= num_logits:
      return self
    other = copy.copy(self)
    other.num_ids = self._NUM_PIECES
    return other

  def find(self, piece: str) -> int | None:
    """Return the id of a special token; None if there is none."""
    sentinels = range(self._NUM_PIECES, self.num_ids)
    ids = {self.id_to_piece(i): i for i in sentinels}
    ids |= {each: i for i, each in enumerate(self._SPECIAL)}
    return ids.get(piece)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Token ids to text, one id at a time.

A character of several bytes may have several tokens, and is text after the last
of them only. Whole texts are joined from the parts of a stream, so that both
are equal.

  ids -> Vocabulary.token_bytes -> Detokenizer -> Vocabulary.decode: whole texts
                                               -> Transcript: streams, stops
"""

import codecs
from collections.abc import Iterable, Sequence
import itertools
from typing import Protocol

import sentencepiece

from speculative_t5x.speculation import contracts

# The letters that stand for bytes in byte-level BPE: those that can be seen for
# themselves, and for the others the letters behind the last byte, in order.
_SEEN = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_BYTES = {
    chr(letter): byte
    for byte, letter in zip(
        [*_SEEN, *sorted({*range(0x100)} - {*_SEEN})],
        itertools.chain(_SEEN, itertools.count(0x100)),
    )
}


class Vocabulary(Protocol):
  """The part of a vocabulary that makes text; see `vocabularies.Vocabulary`."""

  bad_bytes: str

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    """Return what an id adds to a text."""


class Detokenizer:
  """The text of an output, of which no character changes any more.

  Attributes:
    last: Last token id of the text so far; None before the first.
  """

  def __init__(
      self,
      vocabulary: Vocabulary,
      before: Sequence[int] = (),
      padding: int = contracts.NO_TOKEN,
  ):
    """Begin with no token.

    Padding has no text. `before` are token ids of the text that this one
    continues, as of a prompt; without any, a space at the beginning may be none
    of the text.
    """
    self._vocabulary = vocabulary
    self._padding = padding
    self._decoder = codecs.getincrementaldecoder('utf-8')(vocabulary.bad_bytes)
    texts = (i for i in reversed(before) if self._bytes(i, None) is not None)
    self.last = next(texts, None)

  @property
  def is_whole(self) -> bool:
    """True if no token ended within a character."""
    unfinished, _ = self._decoder.getstate()
    return not unfinished

  def add(self, i: int) -> str:
    """Return the characters that are whole with one more token."""
    data = self._bytes(i, self.last)
    if data is None:
      return ''
    self.last = i
    return self._decoder.decode(data)

  def end(self) -> str:
    """Return what is shown of a character that was not finished."""
    return self._decoder.decode(b'', final=True)

  def text(self, ids: Iterable[int]) -> str:
    """Return the text of ids, none of which was added before."""
    return ''.join([*map(self.add, ids), self.end()])

  def _bytes(self, i: int, before: int | None) -> bytes | None:
    if i == self._padding:
      return None
    return self._vocabulary.token_bytes(int(i), before)


class PieceBytes:
  """The text that each piece of a SentencePiece model adds."""

  def __init__(self, processor: sentencepiece.SentencePieceProcessor):
    self._processor = processor
    self._size = processor.get_piece_size()
    # A text that begins with the unknown piece has a beginning.
    self._unknown = processor.id_to_piece(processor.unk_id())
    self._before = processor.decode_pieces([self._unknown])
    self._known: dict[tuple[str, bool], bytes | None] = {}

  def __call__(self, piece: str, is_first: bool) -> bytes | None:
    """Return the bytes of a piece, as the first one of a text or a later one.

    None if it leaves the text as it was.
    """
    if (piece, is_first) not in self._known:
      self._known[piece, is_first] = self._bytes(piece, is_first)
    return self._known[piece, is_first]

  def of_id(self, i: int, is_first: bool) -> bytes | None:
    """Return the bytes of an id, of one without a piece as unknown."""
    known = i < self._size
    piece = self._processor.id_to_piece(i) if known else self._unknown
    return self(piece, is_first)

  def _bytes(self, piece: str, is_first: bool) -> bytes | None:
    if self._processor.is_byte(self._processor.piece_to_id(piece)):
      return bytes.fromhex(piece[3:5])  # <0x0A>
    if is_first:
      text = self._processor.decode_pieces([piece])
      # Some models drop one space at the beginning, some drop all.
      is_text = text or self._processor.decode_pieces([piece, piece])
      return text.encode() if is_text else None
    text = self._processor.decode_pieces([self._unknown, piece])
    return text[len(self._before) :].encode()


def bytes_of_letters(piece: str) -> bytes:
  """Return the bytes of a piece of byte-level BPE, or of an added token."""
  if all(letter in _BYTES for letter in piece):
    return bytes(_BYTES[letter] for letter in piece)
  return piece.encode()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tokenizers of Hugging Face, in a tokenizer.json."""

from collections.abc import Sequence
import copy
import functools
import re
from typing import Any

from etils import epath

from speculative_t5x.loading import detokenizer
from speculative_t5x.loading import errors
from speculative_t5x.loading.vocabularies import special_tokens
from speculative_t5x.loading.vocabularies import vocabulary as vocabulary_lib
from speculative_t5x.speculation import contracts

_WORDS = ['a', '▁b']  # 'a b' where pieces mark spaces as SentencePiece does
_ENDS = '</s>', '<|endoftext|>'  # where no file names one: T5's, GPT-2's
_UNKNOWN = '▁⁇▁'  # SentencePiece's text of the unknown piece
_BYTE = re.compile('<0x[0-9A-Fa-f]{2}>')


class TokenizerVocabulary(vocabulary_lib.Vocabulary):
  """A tokenizer of Hugging Face's `tokenizers`; see `Vocabulary`.

  Unlike a SentencePiece model it encodes a text that spells a special token
  (`</s>`) as that token. In outputs, the beginning of a text has no text.
  """

  def __init__(self, beside: special_tokens.SpecialTokens):
    self.path = beside.path
    self.name = str(self.path)
    self._tokenizer = _read(beside.path)
    vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
    self.num_ids = 1 + max(vocabulary.values(), default=-1)
    find = self.find
    padding = find('<pad>')
    if padding is None:
      padding = contracts.NO_TOKEN
    self.pad_id = beside.id_of('pad_token', find, padding)
    ends = [x for x in map(find, _ENDS) if x is not None]
    self.eos_id = beside.id_of('eos_token', find, next(iter(ends), None))
    self.unk_id = find(beside.named('unk_token') or '<unk>')
    self._decoder = self._tokenizer.decoder
    self._has_metaspace = self._join(_WORDS) == 'a b'
    # Of models with this decoder SentencePiece drops every space before the
    # first word, and the decoder those of its first piece alone.
    drops_all = type(self._decoder).__name__ == 'Metaspace'
    self._dropped = '▁' if drops_all and not self._join(['▁']) else None
    self._has_bytes = self._join(['<0x41>']) == 'A'
    self._is_byte_level = self._join(['Ġ']) == ' '

  @property
  def contents(self) -> bytes:
    return self._tokenizer.to_str().encode()

  @functools.cached_property
  def begin_ids(self) -> tuple[int, ...]:
    # The file's post-processor adds them. What it adds at the end is left to
    # the network, since some files of T5 add nothing there.
    alone = self._tokenizer.encode('a', add_special_tokens=False).ids
    whole = self._tokenizer.encode('a', add_special_tokens=True).ids
    for i in range(len(whole) - len(alone) + 1):
      if whole[i : i + len(alone)] == alone:
        return tuple(whole[:i])
    return ()

  def _encode(self, text: str) -> list[int]:
    ids = self._tokenizer.encode(text, add_special_tokens=False).ids
    for i in ids:
      if i >= self.num_ids:
        raise ValueError(
            f'The text has {self._tokenizer.id_to_token(i)!r}, which the'
            ' vocabulary has and the model has not. Remove it.'
        )
    return ids

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    if i in (self.pad_id, self.eos_id, *self.begin_ids):
      return None
    piece = self._shown(i)
    if piece is None or (before is None and piece == self._dropped):
      return None
    if self._is_byte_level:
      return detokenizer.bytes_of_letters(piece)
    if self._has_bytes and _BYTE.fullmatch(piece):
      return bytes.fromhex(piece[3:5])
    if piece == _UNKNOWN:  # whose space SentencePiece never drops
      return piece.replace('▁', ' ').encode()
    pieces = [] if before is None else ['a', self._shown(before)]
    text = self._join([*pieces, piece])
    return text[len(self._join(pieces)) :].encode()

  def _join(self, pieces: Sequence[str]) -> str:
    return self._decoder.decode(pieces) if self._decoder else ' '.join(pieces)

  def _shown(self, i: int) -> str | None:
    """Return the piece that an id is shown as; None if it is not shown."""
    if not self._has_piece(i):
      i = self.unk_id
    if i is None or (self._has_metaspace and i == self.unk_id):
      return None if i is None else _UNKNOWN
    piece = self._tokenizer.id_to_token(i)
    is_sentinel = self._has_metaspace and vocabulary_lib.is_sentinel(piece)
    return f'▁{piece}' if is_sentinel else piece

  def id_to_piece(self, i: int) -> str:
    return self._tokenizer.id_to_token(i) if self._has_piece(i) else f'<id {i}>'

  def special_tokens(self) -> dict[str, int]:
    added = self._tokenizer.get_added_tokens_decoder()
    return {x.content: i for i, x in added.items() if i < self.num_ids}

  def within(self, num_logits: int) -> vocabulary_lib.Vocabulary:
    """Return the vocabulary without special tokens that a model has not.

    A model of text alone has no logits for those of images in its file. All
    sentinels of a file are kept.
    """
    beyond = range(num_logits, self.num_ids)
    added = self._tokenizer.get_added_tokens_decoder()
    if not beyond or not all(
        i in added
        and added[i].special
        and not vocabulary_lib.is_sentinel(added[i].content)
        for i in beyond
    ):
      return self
    other = copy.copy(self)
    other.num_ids = num_logits
    vars(other).pop('num_pieces', None)
    return other

  def find(self, piece: str) -> int | None:
    """Return the id of a piece; None if there is none."""
    return self._tokenizer.token_to_id(piece)

  def _has_piece(self, i: int) -> bool:
    return i < self.num_ids and self._tokenizer.id_to_token(i) is not None


def _read(path: epath.Path) -> Any:
  import tokenizers  # not needed with SentencePiece

  with errors.reading(path, vocabulary_lib.VocabularyError):
    tokenizer = tokenizers.Tokenizer.from_buffer(path.read_bytes())
  # The file may ask for both, and lengths are decided elsewhere.
  tokenizer.no_truncation()
  tokenizer.no_padding()
  return tokenizer

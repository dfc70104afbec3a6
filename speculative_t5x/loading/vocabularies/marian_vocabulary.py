# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Marian's vocabulary: a SentencePiece model per language, ids of both."""

from collections.abc import Sequence
import json

from speculative_t5x.loading import detokenizer
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.vocabularies import sentence_piece
from speculative_t5x.loading.vocabularies import special_tokens
from speculative_t5x.loading.vocabularies import vocabulary as vocabulary_lib
from speculative_t5x.speculation import contracts

BESIDE = _TARGET, _IDS = 'target.spm', 'vocab.json'


class MarianVocabulary(vocabulary_lib.Vocabulary):
  """A source.spm, a target.spm and a vocab.json; see `Vocabulary`.

  Inputs are split by the model of the source language, outputs are joined by
  that of the target language. An input may begin with the code of the language
  to translate to (`>>fra<<`), which is one token. As in transformers without
  sacremoses, punctuation is left as it is.
  """

  def __init__(self, beside: special_tokens.SpecialTokens):
    """Read the files beside the `source.spm` at a path."""
    self.path = path = beside.path
    self.name = str(path)
    self._source = sentence_piece.read(path)
    self._target = sentence_piece.read(path.parent / _TARGET)
    self._piece_bytes = detokenizer.PieceBytes(self._target)
    file = path.parent / _IDS
    with errors.reading(file, vocabulary_lib.VocabularyError):
      self._ids = {str(x): int(i) for x, i in json_files.read(file).items()}
      self.num_ids = 1 + max(self._ids.values())
      self.pad_id, self.eos_id, self.unk_id = (
          self._ids[x] for x in ('<pad>', '</s>', '<unk>')
      )
    self._pieces = {i: piece for piece, i in self._ids.items()}

  @property
  def contents(self) -> bytes:
    models = self._source, self._target
    protos = [x.serialized_model_proto() for x in models]
    return b''.join([*protos, json.dumps(self._ids, sort_keys=True).encode()])

  def _encode(self, text: str) -> list[int]:
    pieces = []
    if text.startswith('>>') and (end := text.find('<<')) >= 0:
      pieces, text = [text[: end + 2]], text[end + 2 :]
    pieces += self._source.encode(text, out_type=str)
    return [self._ids.get(piece, self.unk_id) for piece in pieces]

  def detokenizer(
      self, before: Sequence[int] = (), padding: int = contracts.NO_TOKEN
  ) -> detokenizer.Detokenizer:
    return _Stripped(self, before, padding)

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    if i in (self.pad_id, self.eos_id):
      return None
    data = self._piece_bytes(self._pieces.get(i, '<unk>'), before is None)
    # Pieces that the model of the target language lacks keep their mark.
    return data and data.replace('▁'.encode(), b' ')

  def id_to_piece(self, i: int) -> str:
    return self._pieces.get(i, f'<id {i}>')

  def find(self, piece: str) -> int | None:
    """Return the id of a piece; None if there is none."""
    return self._ids.get(piece)


class _Stripped(detokenizer.Detokenizer):
  """A text without spaces at its beginning and at its end."""

  _num_characters = 0
  _spaces = ''  # which are part of the text if more follows

  def add(self, i: int) -> str:
    text = self._spaces + super().add(i)
    if not self._num_characters:
      text = text.lstrip()
    shown = text.rstrip()
    self._spaces = text[len(shown) :]
    self._num_characters += len(shown)
    return shown

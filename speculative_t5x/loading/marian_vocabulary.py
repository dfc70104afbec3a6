# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Marian's vocabulary: a SentencePiece model per language, ids of both."""

from collections.abc import Sequence

from etils import epath
import sentencepiece

from speculative_t5x.loading import errors
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.files import json_files

_TARGET, _IDS = 'target.spm', 'vocab.json'


class MarianVocabulary(vocabularies.Vocabulary):
  """A source.spm, a target.spm and a vocab.json; see `Vocabulary`.

  Inputs are split by the model of the source language, outputs are joined by
  that of the target language. An input may begin with the code of the language
  to translate to (`>>fra<<`), which is one token. As in transformers without
  sacremoses, punctuation is left as it is.
  """

  def __init__(self, path: epath.Path):
    """Read the files beside the `source.spm` at a path."""
    self.path = path
    self.name = str(path)
    self._source = _read_model(path)
    self._target = _read_model(path.parent / _TARGET)
    file = path.parent / _IDS
    with errors.reading(file, vocabularies.VocabularyError):
      self._ids = {str(x): int(i) for x, i in json_files.read(file).items()}
      self.num_ids = 1 + max(self._ids.values())
      self.pad_id, self.eos_id, self.unk_id = (
          self._ids[x] for x in ('<pad>', '</s>', '<unk>')
      )
    self._pieces = {i: piece for piece, i in self._ids.items()}

  def _encode(self, text: str) -> list[int]:
    pieces = []
    if text.startswith('>>') and (end := text.find('<<')) >= 0:
      pieces, text = [text[: end + 2]], text[end + 2 :]
    pieces += self._source.encode(text, out_type=str)
    return [self._ids.get(piece, self.unk_id) for piece in pieces]

  def decode(self, ids: Sequence[int]) -> str:
    known = [int(i) for i in ids if i not in (self.pad_id, self.eos_id)]
    text = self._target.decode_pieces(
        [self._pieces.get(i, '<unk>') for i in known]
    )
    # Pieces that the model of the target language lacks keep their mark.
    return text.replace('▁', ' ').strip()

  def id_to_piece(self, i: int) -> str:
    return self._pieces.get(i, f'<id {i}>')

  def find(self, piece: str) -> int | None:
    """Return the id of a piece; None if there is none."""
    return self._ids.get(piece)


def _read_model(path: epath.Path) -> sentencepiece.SentencePieceProcessor:
  with errors.reading(path, vocabularies.VocabularyError):
    return sentencepiece.SentencePieceProcessor(model_proto=path.read_bytes())

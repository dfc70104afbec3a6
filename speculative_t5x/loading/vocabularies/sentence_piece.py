# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""SentencePiece models, as T5's `spiece.model`."""

import copy
import functools

from etils import epath
import sentencepiece

from speculative_t5x.loading import detokenizer
from speculative_t5x.loading import errors
from speculative_t5x.loading.vocabularies import special_tokens
from speculative_t5x.loading.vocabularies import vocabulary as vocabulary_lib

# Tags of fields in sentencepiece_model.proto: number times 8, plus 2 for bytes.
_PIECES, _TEXT, _USER_DEFINED = 0x0A, 0x0A, (0x18, 4)
_NUM_SENTINELS = 100  # where no file gives a number: T5X's and transformers'


class SentencePieceVocabulary(vocabulary_lib.Vocabulary):
  """A SentencePiece model (`spiece.model`); see `Vocabulary`.

  Sentinels that the file leaves out are added: as many as `extra_ids` of the
  tokenizer_config.json beside it says, else 100.
  """

  def __init__(self, beside: special_tokens.SpecialTokens):
    self.path = path = beside.path
    self.name = str(path)
    self._in_file = processor = read(path)
    self._processor = with_sentinels(processor, beside)
    self._piece_bytes = detokenizer.PieceBytes(self._processor)
    self.num_ids = self._processor.get_piece_size()
    self.unk_id = processor.unk_id()
    find, end = self.find, _known_id(processor.eos_id())
    self.pad_id = beside.id_of('pad_token', find, processor.pad_id())
    self.eos_id = beside.id_of('eos_token', find, end)
    self._beside = beside

  @property
  def contents(self) -> bytes:
    return self._processor.serialized_model_proto()

  @functools.cached_property
  def begin_ids(self) -> tuple[int, ...]:
    if self._beside.named('add_bos_token') != 'True':
      return ()
    begin = _known_id(self._in_file.bos_id())
    return (self._beside.id_of('bos_token', self.find, begin),)

  def _encode(self, text: str) -> list[int]:
    return self._processor.encode(text)

  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    return self._piece_bytes.of_id(i, before is None)

  def id_to_piece(self, i: int) -> str:
    if i >= self.num_ids:
      return f'<id {i}>'
    return self._processor.id_to_piece(i)

  def special_tokens(self) -> dict[str, int]:
    ids = filter(self._processor.is_control, range(self.num_ids))
    return {self.id_to_piece(i): i for i in ids}

  def within(self, num_logits: int) -> vocabulary_lib.Vocabulary:
    if self.num_ids <= num_logits:
      return self
    other = copy.copy(self)
    other._processor = self._in_file
    other.num_ids = self._in_file.get_piece_size()
    return other

  def find(self, piece: str) -> int | None:
    """Return the id of a piece; None if there is none."""
    i = self._processor.piece_to_id(piece)  # the unknown piece's if none
    return i if self._processor.id_to_piece(i) == piece else None


def read(path: epath.Path) -> sentencepiece.SentencePieceProcessor:
  """Read a model."""
  with errors.reading(path, vocabulary_lib.VocabularyError):
    if not (data := path.read_bytes()):
      raise ValueError('it is empty')
    return sentencepiece.SentencePieceProcessor(model_proto=data)


def with_sentinels(
    processor: sentencepiece.SentencePieceProcessor,
    beside: special_tokens.SpecialTokens,
) -> sentencepiece.SentencePieceProcessor:
  """Return the processor of a file with sentinels at its end.

  They are added as seqio adds them, unless the file has some.
  """
  last = processor.get_piece_size() - 1
  if vocabulary_lib.is_sentinel(processor.id_to_piece(last)):
    return processor
  count = beside.num_sentinels(_NUM_SENTINELS)
  pieces = (f'▁<extra_id_{i}>' for i in reversed(range(count)))
  # The fields of a serialized protocol buffer may go on at its end. Its Python
  # classes are not imported: two copies of them do not load in one process.
  return sentencepiece.SentencePieceProcessor(
      model_proto=processor.serialized_model_proto()
      + b''.join(map(_serialized_piece, pieces))
  )


def _serialized_piece(piece: str) -> bytes:
  """Return a user-defined piece as a field of SentencePiece's ModelProto."""
  text = piece.encode()
  content = bytes([_TEXT, len(text), *text, *_USER_DEFINED])
  return bytes([_PIECES, len(content), *content])


def _known_id(i: int) -> int | None:
  """Return an id of SentencePiece's; None for -1, where it has none."""
  return None if i < 0 else i

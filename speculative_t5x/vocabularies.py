# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabularies, from SentencePiece's files or from Hugging Face's tokenizers.

Both kinds turn text into the same ids where they were made from one another;
decoding needs no more of them than `Vocabulary` names.
"""

from collections.abc import Callable, Sequence
import dataclasses
import hashlib
import re
from typing import Any, Protocol

from etils import epath
import sentencepiece

from speculative_t5x.checkpoints import json_file

_TOKENIZER = 'tokenizer.json'
NAMES = ('spiece.model', _TOKENIZER)  # in the folder of a model, first first
# Files beside a vocabulary that name its special tokens, the first one first.
_SPECIAL_TOKENS = ('tokenizer_config.json', 'special_tokens_map.json')
# T5's tokenizer.json ends with these pieces, T5's spiece.model lacks them.
_SENTINEL = re.compile(r'<extra_id_\d+>')


class VocabularyError(ValueError):
  """A vocabulary that is missing, damaged or of another kind than expected."""


class Vocabulary(Protocol):
  """What decoding needs of a vocabulary.

  Attributes:
    path: the file that the vocabulary was read from.
    num_pieces: its size; ids run from 0 to num_pieces - 1.
    pad_id: id of padding.
    eos_id: id of the end of sequence.
  """

  path: epath.Path
  num_pieces: int
  pad_id: int
  eos_id: int

  def encode(self, text: str) -> list[int]:
    """Returns the ids of a text, without an end of sequence."""

  def decode(self, ids: Sequence[int]) -> str:
    """Returns the text of ids in [0, num_pieces); special ones have none."""

  def id_to_piece(self, i: int) -> str:
    """Returns the piece of an id in [0, num_pieces)."""


@dataclasses.dataclass(frozen=True)
class Fingerprint:
  """Identifies a vocabulary in files that are bound to it.

  Attributes:
    num_pieces: its size, without the sentinels at its end.
    sha256: hash of these pieces.
  """

  num_pieces: int
  sha256: str

  def show(self) -> str:
    """Returns a text for messages."""
    return f'{self.num_pieces} pieces, hash {self.sha256[:8]}'


class SentencePieceVocabulary:
  """A SentencePiece model (`spiece.model`); see `Vocabulary`."""

  def __init__(self, path: epath.Path):
    """Reads the model.

    Raises:
      VocabularyError: if it is damaged, or names no padding or end of sequence.
    """
    self.path = path
    self._processor = _read_sentencepiece(path)
    self.num_pieces = self._processor.get_piece_size()
    self.pad_id = _special_id(
        path, 'pad_token', self._find, self._processor.pad_id()
    )
    self.eos_id = _special_id(
        path, 'eos_token', self._find, self._processor.eos_id()
    )

  def encode(self, text: str) -> list[int]:
    return self._processor.encode(text)

  def decode(self, ids: Sequence[int]) -> str:
    return self._processor.decode([int(i) for i in ids])

  def id_to_piece(self, i: int) -> str:
    return self._processor.id_to_piece(i)

  def _find(self, piece: str) -> int | None:
    i = self._processor.piece_to_id(piece)  # the unknown piece's if none
    return i if self._processor.id_to_piece(i) == piece else None


class TokenizerVocabulary:
  """A `tokenizer.json` of Hugging Face's tokenizers; see `Vocabulary`.

  Unlike a SentencePiece model it encodes a text that spells a special token
  (`</s>`) as that token, and an unknown piece decodes to nothing.
  """

  def __init__(self, path: epath.Path):
    """Reads the file.

    Raises:
      VocabularyError: if it is damaged, or names no padding or end of sequence.
    """
    self.path = path
    self._tokenizer = _read_tokenizer(path)
    vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
    self.num_pieces = 1 + max(vocabulary.values(), default=-1)
    find = vocabulary.get
    self.pad_id = _special_id(path, 'pad_token', find, find('<pad>'))
    self.eos_id = _special_id(path, 'eos_token', find, find('</s>'))

  def encode(self, text: str) -> list[int]:
    return self._tokenizer.encode(text, add_special_tokens=False).ids

  def decode(self, ids: Sequence[int]) -> str:
    return self._tokenizer.decode([int(i) for i in ids])

  def id_to_piece(self, i: int) -> str:
    return self._tokenizer.id_to_token(i) or ''  # an id that is not taken


def load(path: epath.PathLike) -> Vocabulary:
  """Reads a vocabulary.

  Args:
    path: a SentencePiece .model file, a tokenizer.json, or a folder that holds
      spiece.model or tokenizer.json; the first counts if it holds both.
  Raises:
    VocabularyError: if there is no vocabulary, or if it is damaged or names no
      padding or end of sequence.
  """
  path = _find_file(epath.Path(path))
  match path.suffix:
    case '.model':
      return SentencePieceVocabulary(path)
    case '.json':
      return TokenizerVocabulary(path)
  raise VocabularyError(
      f'{path} is of an unknown kind of vocabulary. Pass a SentencePiece .model'
      f' file or a {_TOKENIZER} of Hugging Face.'
  )


def fingerprint(vocabulary: Vocabulary) -> Fingerprint:
  """Returns what identifies a vocabulary.

  Vocabularies that `check_same` takes for one have the same fingerprint.
  """
  pieces = [vocabulary.id_to_piece(i) for i in range(vocabulary.num_pieces)]
  while pieces and _SENTINEL.fullmatch(pieces[-1]):
    pieces.pop()
  ids = vocabulary.pad_id, vocabulary.eos_id
  text = '\0'.join([*pieces, *map(str, ids)])
  return Fingerprint(len(pieces), hashlib.sha256(text.encode()).hexdigest())


def check_same(target: Vocabulary, draft: Vocabulary) -> None:
  """Checks that an id means the same piece to the target and to the draft.

  Sentinels (`<extra_id_0>`) after the last piece of the smaller vocabulary are
  no difference: T5's spiece.model leaves them out.

  Raises:
    VocabularyError: naming the special ids, the sizes, or the first piece that
      differs.
  """
  for role in ('eos_id', 'pad_id'):
    ids = getattr(target, role), getattr(draft, role)
    if ids[0] != ids[1]:
      raise VocabularyError(
          f"The target's vocabulary has {role} {ids[0]}, the draft's {ids[1]}."
          ' Draft tokens are ids, so both must be one vocabulary.'
      )
  smaller, larger = sorted((target, draft), key=lambda x: x.num_pieces)
  rest = range(smaller.num_pieces, larger.num_pieces)
  if not all(_SENTINEL.fullmatch(larger.id_to_piece(i)) for i in rest):
    raise VocabularyError(
        f"The target's vocabulary has {target.num_pieces} pieces, the draft's"
        f' {draft.num_pieces}. Draft tokens are ids, so both must be one'
        ' vocabulary.'
    )
  for i in range(smaller.num_pieces):
    pieces = target.id_to_piece(i), draft.id_to_piece(i)
    if pieces[0] != pieces[1]:
      raise VocabularyError(
          f"Id {i} is {pieces[0]!r} in the target's vocabulary and"
          f" {pieces[1]!r} in the draft's. Draft tokens are ids, so both must"
          ' be one vocabulary.'
      )


def _find_file(path: epath.Path) -> epath.Path:
  if path.is_file():
    return path
  if not path.is_dir():
    raise VocabularyError(
        f'There is no vocabulary at {path}. Pass a SentencePiece .model file, a'
        f' {_TOKENIZER}, or a folder that holds one.'
    )
  for name in NAMES:
    if (path / name).is_file():
      return path / name
  raise VocabularyError(
      f'There is no vocabulary in {path}: it holds neither {NAMES[0]} nor'
      f' {NAMES[1]}. Copy one of them there, or pass the file.'
  )


def _read_sentencepiece(
    path: epath.Path,
) -> sentencepiece.SentencePieceProcessor:
  data = path.read_bytes()
  try:
    if not data:
      raise RuntimeError('it is empty')
    return sentencepiece.SentencePieceProcessor(model_proto=data)
  except RuntimeError as error:
    raise VocabularyError(
        f'{path} is not a SentencePiece model: {error}. Copy or download it'
        ' again.'
    ) from error


def _read_tokenizer(path: epath.Path) -> Any:
  try:
    import tokenizers  # not needed with SentencePiece
  except ModuleNotFoundError as error:
    raise VocabularyError(
        f'{path} needs the package tokenizers, which is not installed. Install'
        " it: pip install 'speculative_t5x[jobs]'."
    ) from error

  try:
    tokenizer = tokenizers.Tokenizer.from_buffer(path.read_bytes())
  except ValueError as error:
    raise VocabularyError(
        f'{path} is not a {_TOKENIZER}: {error}. Copy or download it again.'
    ) from error
  # The file may ask for both, and lengths are decided elsewhere.
  tokenizer.no_truncation()
  tokenizer.no_padding()
  return tokenizer


def _special_id(
    path: epath.Path,
    role: str,
    find: Callable[[str], int | None],
    default: int | None,
) -> int:
  """Returns a special id: of the token that files name, else the default.

  Args:
    path: of the vocabulary.
    role: eos_token or pad_token.
    find: gives the id of a piece, None if there is none.
    default: the vocabulary's own; None or -1 if it has none.
  """
  for file in (path.parent / name for name in _SPECIAL_TOKENS):
    if (token := _named_token(file, role)) is not None:
      if (i := find(token)) is None:
        raise VocabularyError(
            f'{file} has {role} {token!r}, which is no piece of {path}. Copy'
            ' both from one model.'
        )
      return i
  if default is None or default < 0:
    raise VocabularyError(
        f'{path} has no {role}. Put the tokenizer_config.json of its model'
        ' beside it.'
    )
  return default


def _named_token(file: epath.Path, role: str) -> str | None:
  """Returns the token that a file names for a role, None for none."""
  if not file.is_file():
    return None
  try:
    token = json_file.read(file).get(role)
  except (OSError, ValueError) as error:
    raise VocabularyError(
        f'{file} cannot be read as JSON: {error}. Copy or download it again.'
    ) from error
  if isinstance(token, dict):  # with how it is matched in text
    token = token.get('content')
  if token is not None and not isinstance(token, str):
    raise VocabularyError(
        f'{file} has {role} {token!r}, which is no text. Copy or download it'
        ' again.'
    )
  return token

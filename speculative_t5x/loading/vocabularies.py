# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Vocabularies: text to ids and back, with one interface for every kind.

SentencePiece's files and Hugging Face's tokenizers give the same ids where they
were made from one another. `tasks.task_vocabulary` has those of seqio tasks.
"""

import abc
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
import copy
import dataclasses
import functools
import hashlib
import os
import re
from typing import Any

from etils import epath
import sentencepiece

from speculative_t5x.loading import detokenizer
from speculative_t5x.loading import errors
from speculative_t5x.loading.files import hub
from speculative_t5x.loading.files import json_files
from speculative_t5x.loading.files import public_t5
from speculative_t5x.loading.files import user_paths
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

BYTES = 'bytes'  # names ByT5's vocabulary, which no file holds
_BYTES_CLASS = 'ByT5Tokenizer'
_TOKENIZER, _MERGES = 'tokenizer.json', 'merges.txt'
# In the folder of a model; transformers reads the first where it finds several.
# And what is read beside them.
_BESIDE = {
    _TOKENIZER: (),
    'spiece.model': (),
    'source.spm': ('target.spm', 'vocab.json'),
    _MERGES: ('vocab.json',),
}
NAMES = tuple(_BESIDE)
# Files beside a vocabulary that name its special tokens, the first one first,
# by their roles (`eos_token`) and in lists.
_TOKENIZER_CONFIG, _CONFIG = 'tokenizer_config.json', 'config.json'
_ADDED_TOKENS = 'added_tokens.json'
_SPECIAL_TOKENS = (_TOKENIZER_CONFIG, 'special_tokens_map.json')
_LISTS = (
    *('additional_special_tokens', 'extra_special_tokens'),
    'model_specific_special_tokens',
)
_SENTINEL = re.compile('▁?<extra_id_[0-9]+>')
_WORDS = ['a', '▁b']  # 'a b' where pieces mark spaces as SentencePiece does
_ENDS = '</s>', '<|endoftext|>'  # where no file names one: T5's, GPT-2's
_UNKNOWN = '▁⁇▁'  # SentencePiece's text of the unknown piece
_BYTE = re.compile('<0x[0-9A-Fa-f]{2}>')
# Tags of fields in sentencepiece_model.proto: number times 8, plus 2 for bytes.
_PIECES, _TEXT, _USER_DEFINED = 0x0A, 0x0A, (0x18, 4)
# Where no file gives a number: T5X's and transformers'.
_NUM_SENTINELS, _NUM_SENTINELS_OF_BYTES = 100, 125
_MAX_SENTINELS = 10_000  # a larger number is a damaged file's
# MADLAD-400's languages, as <2de>, and sentinels.
_CONTROL = re.compile(r'<(?:2\w+|extra_id_\d+)>')


class VocabularyError(ranges.ArgumentError):
  """A vocabulary that is missing, damaged or of another kind than expected."""


class Vocabulary(abc.ABC):
  """What decoding needs of a vocabulary.

  Sentinels (`<extra_id_0>`) take the last ids, counted down from the end. Some
  files hold them and some leave them out.

  Attributes:
    name: Names it in messages.
    num_ids: Its size; ids run from 0 to num_ids - 1. The head of a model may be
      wider, so that ids without a piece can be decoded.
    pad_id: The id of padding; `contracts.NO_TOKEN` if it has none.
    eos_id: The id of the end of sequence.
    unk_id: The id of the unknown piece; None if every text has pieces.
    begin_ids: Ids that stand before those of every input, as the beginning of a
      text.
    bad_bytes: How bytes that are not UTF-8 are shown, as `bytes.decode` has it.
  """

  name: str
  num_ids: int
  pad_id: int
  eos_id: int
  unk_id: int | None
  begin_ids: tuple[int, ...] = ()
  bad_bytes = 'replace'

  @property
  def contents(self) -> bytes:
    """What texts of ids, and ids of texts, depend on beside the attributes."""
    pieces = map(self.id_to_piece, range(self.num_ids))
    return '\0'.join(pieces).encode()

  @functools.cached_property
  def num_pieces(self) -> int:
    """Its size without the sentinels at its end."""
    size = self.num_ids
    while size and _SENTINEL.fullmatch(self.id_to_piece(size - 1)):
      size -= 1
    return size

  @functools.cached_property
  def adds_space(self) -> bool:
    """Whether a text is encoded with a space before it, as Llama 2's is."""
    ids = self.encode('a')
    return self.decode(ids, ids).startswith(' ')

  def encode(self, text: str) -> list[int]:
    """Return the ids of a text, without an end of sequence.

    Raises:
      ValueError: if it has half of a surrogate pair, which is no character.
    """
    text.encode()  # its error names the character, those of libraries a type
    return self._encode(text)

  @abc.abstractmethod
  def _encode(self, text: str) -> list[int]:
    """Return the ids of a text of whole characters."""

  def decode(self, ids: Sequence[int], before: Sequence[int] = ()) -> str:
    """Return the text of ids; padding and the end of sequence have none.

    An id has the text that SentencePiece gives it, whichever way the vocabulary
    was read: sentinels that a file leaves out have theirs too, and any other id
    without a piece is shown as the unknown piece is, if there is one. Bytes
    that are not UTF-8 are shown as U+FFFD, as often as Python's `bytes.decode`
    shows it.

    Args:
      ids: Token ids.
      before: Token ids of the text that this one continues, as of a prompt.
    """
    return self.detokenizer(before).text(ids)

  def detokenizer(
      self, before: Sequence[int] = (), padding: int = contracts.NO_TOKEN
  ) -> detokenizer.Detokenizer:
    """Return what makes a text of ids as they come."""
    return detokenizer.Detokenizer(self, before, padding)

  @abc.abstractmethod
  def token_bytes(self, i: int, before: int | None) -> bytes | None:
    """Return what an id adds to a text; None if it leaves it as it was.

    Args:
      i: The id.
      before: The id before it in the text; None if it is the first one.
    """

  @abc.abstractmethod
  def id_to_piece(self, i: int) -> str:
    """Return the piece of an id, or `<id 5>` for an id without one."""

  def special_tokens(self) -> dict[str, int]:
    """Return the ids of special and added tokens, which are no part of words.
    """
    return {}

  def within(self, num_logits: int) -> 'Vocabulary':
    """Return the vocabulary without sentinels that a model does not have.

    Only sentinels that a file leaves out, and that are therefore an assumption,
    are ever dropped.
    """
    del num_logits
    return self

  def knows(self, text: str, ids: Sequence[int]) -> bool:
    """Return whether a text was encoded without unknown pieces.

    A control token (`<2de>`) that was split is unknown too: its pieces mean
    something else to the model. `ids` are what `encode` returned.
    """
    if self.unk_id in ids:
      return False
    tokens = set(_CONTROL.findall(text))
    return not tokens or tokens <= {
        self.id_to_piece(i).removeprefix('▁') for i in ids
    }


@dataclasses.dataclass(frozen=True)
class Fingerprint:
  """Identifies a vocabulary in files that are bound to it.

  Its size is without the sentinels at its end. The hash is of these pieces, and
  of the ids of padding and end.
  """

  num_pieces: int
  sha256: str

  def __str__(self) -> str:
    return f'{self.num_pieces} pieces, hash {self.sha256[:8]}'


class SentencePieceVocabulary(Vocabulary):
  """A SentencePiece model (`spiece.model`); see `Vocabulary`.

  Sentinels that the file leaves out are added: as many as `extra_ids` of the
  tokenizer_config.json beside it says, else 100.
  """

  def __init__(self, path: epath.Path):
    self.path = path
    self.name = str(path)
    with errors.reading(path, VocabularyError):
      if not (data := path.read_bytes()):
        raise ValueError('it is empty')
      processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    self._in_file = processor
    self._processor = with_sentinels(processor, path)
    self._piece_bytes = detokenizer.PieceBytes(self._processor)
    self.num_ids = self._processor.get_piece_size()
    self.unk_id = processor.unk_id()
    find = self.find
    self.pad_id = _special_id(path, 'pad_token', find, processor.pad_id())
    end = _known_id(processor.eos_id())
    self.eos_id = _special_id(path, 'eos_token', find, end)

  @property
  def contents(self) -> bytes:
    return self._processor.serialized_model_proto()

  @functools.cached_property
  def begin_ids(self) -> tuple[int, ...]:
    if _named_beside(self.path, 'add_bos_token') != 'True':
      return ()
    begin = _known_id(self._in_file.bos_id())
    return (_special_id(self.path, 'bos_token', self.find, begin),)

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

  def within(self, num_logits: int) -> Vocabulary:
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


class TokenizerVocabulary(Vocabulary):
  """A tokenizer of Hugging Face's `tokenizers`; see `Vocabulary`.

  It is read from a tokenizer.json, or from a merges.txt and the vocab.json
  beside it. Unlike a SentencePiece model it encodes a text that spells a
  special token (`</s>`) as that token. In outputs, the beginning of a text has
  no text.
  """

  def __init__(self, path: epath.Path):
    self.path = path
    self.name = str(path)
    self._tokenizer = _read_tokenizer(path)
    vocabulary = self._tokenizer.get_vocab(with_added_tokens=True)
    self.num_ids = 1 + max(vocabulary.values(), default=-1)
    find = self.find
    padding = find('<pad>')
    if padding is None:
      padding = contracts.NO_TOKEN
    self.pad_id = _special_id(path, 'pad_token', find, padding)
    ends = [x for x in map(find, _ENDS) if x is not None]
    self.eos_id = _special_id(path, 'eos_token', find, next(iter(ends), None))
    self.unk_id = find(_named_beside(path, 'unk_token') or '<unk>')
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
    is_sentinel = self._has_metaspace and _SENTINEL.fullmatch(piece)
    return f'▁{piece}' if is_sentinel else piece

  def id_to_piece(self, i: int) -> str:
    return self._tokenizer.id_to_token(i) if self._has_piece(i) else f'<id {i}>'

  def special_tokens(self) -> dict[str, int]:
    added = self._tokenizer.get_added_tokens_decoder()
    return {x.content: i for i, x in added.items() if i < self.num_ids}

  def within(self, num_logits: int) -> Vocabulary:
    """Return the vocabulary without special tokens that a model has not.

    A model of text alone has no logits for those of images in its file. All
    sentinels of a file are kept.
    """
    beyond = range(num_logits, self.num_ids)
    added = self._tokenizer.get_added_tokens_decoder()
    if not beyond or not all(
        i in added
        and added[i].special
        and not _SENTINEL.fullmatch(added[i].content)
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


class ByteVocabulary(Vocabulary):
  """ByT5's: padding, end, an unknown piece, and the 256 bytes of UTF-8.

  Ids and texts are those of seqio's `ByteVocabulary`, and of transformers'
  `ByT5Tokenizer` where that skips special tokens. A text that spells one is
  bytes too. Bytes that are not UTF-8 have no text, and neither have the
  sentinels behind the bytes: ByT5 was trained with its last bytes as sentinels.

  Sentinels are numbered as in transformers, upwards. They are as many as files
  beside the path name or as `extra_ids` of its tokenizer_config.json says, if
  that is more, else 125.
  """

  _SPECIAL = ('<pad>', '</s>', '<unk>')
  _NUM_PIECES = len(_SPECIAL) + 256
  bad_bytes = 'ignore'

  def __init__(self, path: epath.Path | None = None):
    self.name = BYTES if path is None else str(path)
    self.pad_id, self.eos_id, self.unk_id = range(len(self._SPECIAL))
    count = _NUM_SENTINELS_OF_BYTES
    if path is not None:
      # transformers saves their names, beside an `extra_ids` of 0.
      named = {_content(token) for _, token, _ in _named_tokens(path)}
      num_named = sum(bool(_SENTINEL.fullmatch(token)) for token in named)
      count = max(num_named, _num_sentinels(path.parent, count))
    self.num_ids = self._NUM_PIECES + count

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

  def within(self, num_logits: int) -> Vocabulary:
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


def files_read(names: Collection[str]) -> list[str]:
  """Return which files of a folder `load` reads, by the names of all."""
  first = next((x for x in NAMES if x in names), None)
  beside = *_SPECIAL_TOKENS, _ADDED_TOKENS, _CONFIG
  return [first, *_BESIDE[first], *beside] if first else list(beside)


def _local(path: epath.PathLike) -> epath.Path:
  """Return the file or folder that is meant by a path or a model's name."""
  if (snapshot := hub.find(path)) is not None:
    return snapshot.fetch(files_read)
  return user_paths.expand(public_t5.vocabulary(path))


def find(path: epath.PathLike) -> epath.Path | None:
  """Return the file that `load` reads in a folder of a model; None without one.

  That of bytes is the file that names the class of the tokenizer. The path may
  be the name of a public model, as in `load`.
  """
  folder = _local(path)
  if folder.is_file():
    return folder
  for file in (folder / name for name in NAMES):
    if file.is_file():
      return file
  configs = (folder / name for name in (_TOKENIZER_CONFIG, _CONFIG))
  return next(filter(_is_of_bytes, configs), None)


def _is_of_bytes(config: epath.Path) -> bool:
  with errors.reading(config, VocabularyError):
    return _read_json(config).get('tokenizer_class') == _BYTES_CLASS


def load(path: epath.PathLike) -> Vocabulary:
  """Read a vocabulary.

  Args:
    path: A SentencePiece .model file, a tokenizer.json, a merges.txt with its
      vocab.json, the source.spm of a Marian model, or a folder that holds one
      of `NAMES`; as in transformers, the first counts if it holds several. A
      folder whose tokenizer is ByT5's needs none; without a folder, 'bytes' is
      ByT5's vocabulary. Or the name of a public model, as `checkpoints.open`
      takes it.
  Raises:
    errors.CheckpointError: if the Hugging Face hub does not give that model.
    VocabularyError: if there is no vocabulary, or if it is damaged, names no
      padding or end of sequence, or lacks a token that was added to it.
  """
  if os.fspath(path) == BYTES:
    return ByteVocabulary()
  path = _local(path)
  if path.is_dir():
    path = find(path) or path
  kind = _kind(path) if path.is_file() else None
  if kind is None:
    raise VocabularyError(
        f'There is no vocabulary at {path}. Pass a SentencePiece .model file, a'
        f' {_TOKENIZER} of Hugging Face, or a folder that holds'
        f' {" or ".join(NAMES)}; of ByT5, {BYTES!r}.'
    )
  vocabulary = kind(path)
  _check_added_tokens(path, vocabulary)
  return vocabulary


def _read_marian(path: epath.Path) -> Vocabulary:
  from speculative_t5x.loading import marian_vocabulary  # which imports this

  return marian_vocabulary.MarianVocabulary(path)


def _kind(file: epath.Path) -> Callable[[epath.Path], Vocabulary] | None:
  """Return what reads a file; None if nothing does."""
  if file.name == _MERGES:
    return TokenizerVocabulary
  if file.name in (_TOKENIZER_CONFIG, _CONFIG):
    return ByteVocabulary if _is_of_bytes(file) else None
  kinds = {
      '.model': SentencePieceVocabulary,
      '.json': TokenizerVocabulary,
      '.spm': _read_marian,
  }
  return kinds.get(file.suffix)


def fingerprint(vocabulary: Vocabulary) -> Fingerprint:
  """Return the same for vocabularies that `check_same` takes for one."""
  pieces = [vocabulary.id_to_piece(i) for i in range(vocabulary.num_pieces)]
  ids = vocabulary.pad_id, vocabulary.eos_id
  text = '\0'.join([*pieces, *map(str, ids)])
  return Fingerprint(len(pieces), hashlib.sha256(text.encode()).hexdigest())


def digest(vocabulary: Vocabulary) -> str:
  """Return the same for vocabularies that cannot be told apart, at any path.

  Unlike `fingerprint`, it tells apart how texts are split and joined.
  """
  found = hashlib.sha256(vocabulary.contents)
  ids = vocabulary.num_ids, vocabulary.pad_id, vocabulary.eos_id
  found.update(repr((*ids, vocabulary.unk_id, vocabulary.begin_ids)).encode())
  return found.hexdigest()


def check_same(target: Vocabulary, draft: Vocabulary) -> None:
  """Check that an id means the same piece to the target and to the draft.

  Sentinels after the last piece of the smaller vocabulary are no difference:
  some spiece.model files leave them out.
  """
  for role in ('eos_id', 'pad_id'):
    one, other = getattr(target, role), getattr(draft, role)
    if one != other:
      raise _differing(f'{role} {one}', other)
  one, other = (x.within(x.num_pieces).num_ids for x in (target, draft))
  if max(target.num_pieces, draft.num_pieces) > min(one, other):
    raise _differing(f'{one} pieces', other)
  check_pieces(target, draft)


def check_pieces(target: Vocabulary, draft: Vocabulary) -> None:
  """Check that an id means one piece where both vocabularies have one for it.

  A chat's target may have further tokens, and ends that its draft has not.
  Special tokens may have other names: a later model gives reserved ones some.
  """
  # Without sentinels that are assumed, which would differ if only one has them.
  both = [x.within(x.num_pieces) for x in (target, draft)]
  special = set.intersection(*({*x.special_tokens().values()} for x in both))
  for i in range(min(x.num_ids for x in both)):
    one, other = (x.id_to_piece(i) for x in both)
    if i in special and not any(map(_SENTINEL.fullmatch, (one, other))):
      continue
    # A sentinel is the same with a space before it and without.
    if one != other and not (
        f'<id {i}>' in (one, other)
        or _SENTINEL.fullmatch(one)
        and one.removeprefix('▁') == other.removeprefix('▁')
    ):
      raise _differing(f'the piece {one!r} for id {i}', repr(other))


def _differing(target: str, draft: object) -> VocabularyError:
  return VocabularyError(
      f"The target's vocabulary has {target}, the draft's {draft}. Draft tokens"
      ' are ids, so both must be one vocabulary.'
  )


def with_sentinels(
    processor: sentencepiece.SentencePieceProcessor, path: epath.Path
) -> sentencepiece.SentencePieceProcessor:
  """Return the processor of a file with sentinels at its end.

  They are added as seqio adds them, unless the file has some.
  """
  last = processor.get_piece_size() - 1
  if _SENTINEL.fullmatch(processor.id_to_piece(last)):
    return processor
  count = _num_sentinels(path.parent, _NUM_SENTINELS)
  pieces = (f'▁<extra_id_{i}>' for i in reversed(range(count)))
  # The fields of a serialized protocol buffer may go on at its end. Its Python
  # classes are not imported: two copies of them do not load in one process.
  return sentencepiece.SentencePieceProcessor(
      model_proto=processor.serialized_model_proto()
      + b''.join(map(_serialized_piece, pieces))
  )


def _num_sentinels(folder: epath.Path, default: int) -> int:
  """Return how many sentinels a folder's tokenizer_config.json says."""
  file = folder / _TOKENIZER_CONFIG
  with errors.reading(file, VocabularyError):
    count = _read_json(file).get('extra_ids', default)
    if type(count) is not int or not 0 <= count <= _MAX_SENTINELS:
      raise ValueError(f'extra_ids is {count!r}, not a number of sentinels')
  return count


def _serialized_piece(piece: str) -> bytes:
  """Return a user-defined piece as a field of SentencePiece's ModelProto."""
  text = piece.encode()
  content = bytes([_TEXT, len(text), *text, *_USER_DEFINED])
  return bytes([_PIECES, len(content), *content])


def _read_tokenizer(path: epath.Path) -> Any:
  import tokenizers  # not needed with SentencePiece

  with errors.reading(path, VocabularyError):
    if path.name == _MERGES:
      from speculative_t5x.loading import byte_pairs

      config = _read_json(path.parent / _TOKENIZER_CONFIG)
      added = [(token, i) for _, token, i in _named_tokens(path)]
      tokenizer = byte_pairs.read(path.parent, config, added)
    else:
      tokenizer = tokenizers.Tokenizer.from_buffer(path.read_bytes())
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
  """Return the id of the token that files name for a role, or the default.

  The default is the vocabulary's own; None if it has none and needs one.
  """
  named = _named_beside(path, role)
  found = default if named is None else find(named)
  if found is None:
    token = '' if named is None else f', which is named {named!r}'
    raise VocabularyError(
        f'{path} has no {role}{token}. Put the {_TOKENIZER_CONFIG} of its model'
        ' beside it.'
    )
  return found


def _known_id(i: int) -> int | None:
  """Return an id of SentencePiece's; None for -1, where it has none."""
  return None if i < 0 else i


def _named_beside(path: epath.Path, role: str) -> str | None:
  """Return the token that a file beside the vocabulary names for a role."""
  for file in (path.parent / name for name in _SPECIAL_TOKENS):
    with errors.reading(file, VocabularyError):
      named = _read_json(file).get(role)
      if named is not None:
        return _content(named)
  return None


def _content(token: Any) -> str:
  """Return a token's text; some are written with how they are matched."""
  return str(token['content'] if isinstance(token, dict) else token)


def _check_added_tokens(
    path: epath.Path,
    vocabulary: SentencePieceVocabulary | TokenizerVocabulary | ByteVocabulary,
) -> None:
  """Check that a vocabulary has the tokens that were added to its model.

  transformers keeps them in files beside it too, and adds those that it lacks;
  here they would be split into ordinary pieces.
  """
  for file, token, i in _named_tokens(path):
    token = _content(token)
    found = [vocabulary.find(x) for x in (token, f'▁{token}')]
    if found == [None, None] or i not in (None, *found):
      raise VocabularyError(
          f'{file} adds the token {errors.shown(token)}, which {path} lacks'
          f'{"" if i is None else f" as id {i}"}. Save the tokenizer again by'
          f' transformers 5, which writes all tokens to {_TOKENIZER}.'
      )


def _named_tokens(
    path: epath.Path,
) -> Iterator[tuple[epath.Path, Any, int | None]]:
  """Yield tokens that files beside a vocabulary name, with file and id, if any.

  A token may be written with how it is matched, see `_content`.
  """
  for name in (*_SPECIAL_TOKENS, _ADDED_TOKENS):
    file = path.parent / name
    with errors.reading(file, VocabularyError):
      fields = _read_json(file)
      if name == _ADDED_TOKENS:
        tokens = [(token, int(i)) for token, i in fields.items()]
      else:
        tokens = list(_added_tokens(fields))
      for token, _ in tokens:
        _content(token)  # which may fail
    yield from ((file, *each) for each in tokens)


def _added_tokens(
    fields: Mapping[str, Any],
) -> Iterator[tuple[Any, int | None]]:
  """Yield tokens that transformers adds, and the ids of those that have one."""
  for i, token in fields.get('added_tokens_decoder', {}).items():
    yield token, int(i)
  for name, value in fields.items():
    if name in _LISTS and value:
      values = value.values() if isinstance(value, dict) else value
      yield from ((token, None) for token in values)
    elif name.endswith('_token') and value:  # 'add_bos_token' is a bool
      if not isinstance(value, bool):
        yield value, None


def _read_json(file: epath.Path) -> dict[str, Any]:
  """Return a JSON object; an empty one if there is no file."""
  return json_files.read(file) if file.is_file() else {}

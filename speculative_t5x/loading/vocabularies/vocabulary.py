# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The interface of vocabularies, and whether two of them are the same."""

import abc
from collections.abc import Sequence
import dataclasses
import functools
import hashlib
import re

from speculative_t5x.loading import detokenizer
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges

_SENTINEL = re.compile('▁?<extra_id_[0-9]+>')
# MADLAD-400's languages, as <2de>, and sentinels.
_CONTROL = re.compile(r'<(?:2\w+|extra_id_\d+)>')


class VocabularyError(ranges.ArgumentError):
  """A vocabulary that is missing, damaged or of another kind than expected."""


class Vocabulary(abc.ABC):
  """The interface of a vocabulary, as decoding uses it.

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
    """Everything beside the attributes that ids and texts depend on."""
    pieces = map(self.id_to_piece, range(self.num_ids))
    return '\0'.join(pieces).encode()

  @functools.cached_property
  def num_pieces(self) -> int:
    """Its size without the sentinels at its end."""
    size = self.num_ids
    while size and is_sentinel(self.id_to_piece(size - 1)):
      size -= 1
    return size

  @functools.cached_property
  def adds_space(self) -> bool:
    """True if a text is encoded with a space before it, as Llama 2's is."""
    ids = self.encode('a')
    return self.decode(ids, ids).startswith(' ')

  def encode(self, text: str) -> list[int]:
    """Return the ids of a text, without an end of sequence.

    Raises:
      ValueError: if it has half of a surrogate pair, which is not a character.
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
    does. `before` are ids of the text that this one continues, as of a prompt.
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

    The id before it in the text is None if it is the first one.
    """

  @abc.abstractmethod
  def id_to_piece(self, i: int) -> str:
    """Return the piece of an id, or `<id 5>` for an id without one."""

  def special_tokens(self) -> dict[str, int]:
    """Return the ids of special and added tokens, no parts of words."""
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


def is_sentinel(piece: str) -> bool:
  return bool(_SENTINEL.fullmatch(piece))


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
    if i in special and not any(map(is_sentinel, (one, other))):
      continue
    # A sentinel is the same with a space before it and without.
    if one != other and not (
        f'<id {i}>' in (one, other)
        or is_sentinel(one)
        and one.removeprefix('▁') == other.removeprefix('▁')
    ):
      raise _differing(f'the piece {one!r} for id {i}', repr(other))


def _differing(target: str, draft: object) -> VocabularyError:
  return VocabularyError(
      f"The target's vocabulary has {target}, the draft's {draft}. Draft tokens"
      ' are ids, so both must be one vocabulary.'
  )

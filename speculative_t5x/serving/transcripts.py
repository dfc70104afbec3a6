# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text of tokens as they come, released once it cannot change any more.

What may be the beginning of a stop text is held back, and tokens within a
character until that has its last one.
"""

import collections
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from speculative_t5x.loading import detokenizer


class Piece(NamedTuple):
  """Tokens, and the text that they add together."""

  first: int  # index of the first token
  last: int  # index of the last token
  offset: int  # where the text begins in that of the output
  text: str


class Transcript:
  """The text of an output.

  Attributes:
    num_tokens: Tokens whose text was released.
    size: Characters of that text.
    is_stopped: Whether a stop text was found. What follows has no text.
  """

  def __init__(
      self,
      texts: detokenizer.Detokenizer,
      stops: Sequence[str] = (),
      by_token: bool = False,
  ):
    """Begin with no token.

    Before a stop text the text ends. By token, each becomes a piece of its own,
    unless it ends within a character.
    """
    self._texts = texts
    self._stops = stops
    # A stop text must end at the same token however many come at once.
    self._by_token = by_token or bool(stops)
    self._num_read = 0
    self._text = ''  # of tokens that were read and not released
    # Pieces that it may be released in: up to which token and character.
    self._parts: collections.deque[tuple[int, int]] = collections.deque()
    self.num_tokens = self.size = 0
    self.is_stopped = False

  def read(self, tokens: Sequence[int], has_ended: bool) -> list[Piece]:
    """Return the pieces that can be released now.

    The tokens are all ids so far, without an end of sequence.
    """
    for token in tokens[self._num_read :]:
      if self.is_stopped:
        break
      self._num_read += 1
      self._take(self._texts.add(token), self._texts.is_whole)
    if has_ended and not self.is_stopped and not self._texts.is_whole:
      self._take(self._texts.end(), True)
    if self.is_stopped or has_ended:
      settled = len(self._text)
    else:
      settled = len(self._text) - self._num_of_stop()
    return list(self._release(settled))

  def _take(self, text: str, is_whole: bool) -> None:
    """Add the text of the token that was read last, up to a stop text."""
    self._text += text
    places = [self._text.find(stop) for stop in self._stops]
    if places := [place for place in places if place >= 0]:
      self.is_stopped = True
      self._text = self._text[: min(places)]
    if is_whole or self.is_stopped:
      if not self._by_token:
        self._parts.clear()
      self._parts.append((self._num_read, self.size + len(self._text)))

  def _num_of_stop(self) -> int:
    """Return how many last characters may be the beginning of a stop text."""
    return max(
        (
            size
            for stop in self._stops
            for size in range(1, min(len(stop), len(self._text) + 1))
            if self._text.endswith(stop[:size])
        ),
        default=0,
    )

  def _release(self, settled: int) -> Iterator[Piece]:
    """Release the tokens whose text is among so many settled characters."""
    end = self.size + settled
    while self._parts and (self.is_stopped or self._parts[0][1] <= end):
      num_tokens, place = self._parts.popleft()
      # A stop text may begin before tokens that were held back.
      count = min(place, end) - self.size
      text, self._text = self._text[:count], self._text[count:]
      yield Piece(self.num_tokens, num_tokens - 1, self.size, text)
      self.num_tokens = num_tokens
      self.size += count

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Text of tokens as they come, released once it cannot change any more.

A character of several bytes may have several tokens, and is no text before the
last of them. What may be the beginning of a stop text is held back too.
"""

import collections
from collections.abc import Callable, Sequence
from typing import NamedTuple

_INCOMPLETE = '\ufffd'  # what the bytes of a part of a character are shown as


class Piece(NamedTuple):
  """Tokens, and the text that they add together.

  Attributes:
    first: Index of the first token.
    last: Index of the last token.
    offset: Where the text begins in that of the output.
    text: The text.
  """

  first: int
  last: int
  offset: int
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
      to_text: Callable[[list[int]], str],
      stops: Sequence[str] = (),
      by_token: bool = False,
  ):
    """Begin with no token.

    Args:
      to_text: Returns the text of token ids.
      stops: Texts before which the text ends.
      by_token: Whether each token becomes a piece of its own, unless it is a
        part of a character.
    """
    self._to_text = to_text
    self._stops = stops
    # A stop text must end at the same token however many come at once.
    self._by_token = by_token or bool(stops)
    self._num_read = 0
    # Tokens that were read, and the text up to each, until it is released.
    self._held: collections.deque[tuple[int, str]] = collections.deque()
    self.num_tokens = self.size = 0
    self.is_stopped = False

  def read(self, tokens: Sequence[int], has_ended: bool) -> list[Piece]:
    """Return the pieces that can be released now.

    Args:
      tokens: All token ids so far, without an end of sequence.
      has_ended: Whether no more come.
    """
    if self.is_stopped:
      return []
    text = ''
    for count in self._counts(len(tokens), has_ended):
      text = self._to_text(list(tokens[:count]))
      is_last = has_ended and count == len(tokens)
      if text.endswith(_INCOMPLETE) and not is_last:
        continue
      self._held.append((count, text))
      places = [text.find(stop) for stop in self._stops]
      if places := [place for place in places if place >= 0]:
        self.is_stopped = True
        return self._release(min(places), len(self._held))
    if not self._held:
      return []
    text = self._held[-1][1]
    settled = len(text) - (0 if has_ended else self._num_of_stop(text))
    is_settled = [len(held) <= settled for _, held in self._held]
    return self._release(settled, sum(is_settled))

  def _counts(self, total: int, has_ended: bool) -> Sequence[int]:
    """Return after how many tokens the text is looked at."""
    begin, self._num_read = self._num_read + 1, total
    counts = range(begin, total + 1)
    if not self._by_token:
      counts = counts[-1:]
    last = self._held[-1][0] if self._held else self.num_tokens
    if has_ended and not counts and last < total:
      return [total]  # it was read, as a part of a character
    return counts

  def _num_of_stop(self, text: str) -> int:
    """Return how many last characters may be the beginning of a stop text."""
    return max(
        (
            size
            for stop in self._stops
            for size in range(1, min(len(stop), len(text) + 1))
            if text.endswith(stop[:size])
        ),
        default=0,
    )

  def _release(self, end: int, count: int) -> list[Piece]:
    """Release the oldest held texts, so many, up to a number of characters."""
    pieces = []
    for _ in range(count):
      num_tokens, text = self._held.popleft()
      begin = self.size
      added = text[begin:end]
      pieces.append(Piece(self.num_tokens, num_tokens - 1, begin, added))
      self.num_tokens = num_tokens
      self.size = begin + len(added)
    return pieces

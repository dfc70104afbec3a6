# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs to decode, one at a time, and those that are lines of files."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import itertools
import math
from typing import Any

from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.loading import inputs_form
from speculative_t5x.loading import vocabularies
from speculative_t5x.speculation import ranges
from speculative_t5x.tasks import text_files

# What to do with a line that has no text: raise an error, give it an empty
# output, or leave it out.
REFUSE, PASS, SKIP = 'refuse', 'pass', 'skip'


@dataclasses.dataclass(frozen=True)
class Input:
  """One input to decode."""

  # The number of the line among all lines, from 0 on, or the id of the task's
  # example. With the seed, all that a sample depends on, up to rounding.
  example_id: int
  text: str  # of the line or the example
  tokens: Sequence[int]  # at most inputs_length, all of their form included
  is_truncated: bool  # whether the text has more tokens
  is_known: bool  # whether it was encoded without unknown pieces
  hints: Sequence[Sequence[int]] = ()  # token ids, see `hints.encode`
  # Further fields of the input, which its prediction repeats.
  fields: Mapping[str, Any] = dataclasses.field(default_factory=dict)
  is_empty: bool = False  # whether there is nothing to decode


def check_lengths(lengths: Mapping[str, int]) -> None:
  """Raise ValueError unless lengths of inputs and targets are given."""
  found = dict(lengths) if isinstance(lengths, Mapping) else {}
  if not {'inputs', 'targets'} <= found.keys() or not all(
      map(ranges.COUNT.includes, found.values())
  ):
    raise ranges.ArgumentError(
        'task_feature_lengths must give the maximum tokens of inputs and'
        " targets, each at least 1, as in {'inputs': 96, 'targets': 96}, got"
        f' {lengths!r}.',
        task_feature_lengths=lengths,
    )


def is_empty(text: str, ids: Sequence[int]) -> bool:
  """Return whether a text, encoded as `ids`, has nothing to decode."""
  return not ids or not text.strip()


def identity(part: Sequence[Input]) -> list[Any]:
  """Return all of inputs that their outputs depend on, as JSON."""
  found = []
  for each in part:
    others = [x for x in (each.hints, dict(each.fields)) if x]
    found.append([each.example_id, each.text, list(each.tokens), *others])
  return found


def from_lines(
    lines: Iterable[text_files.TextLine],
    vocabulary: vocabularies.Vocabulary,
    form: inputs_form.InputsForm,
    lengths: Mapping[str, int],
    on_empty: str = REFUSE,
    first: int = 0,
) -> Iterator[Input]:
  """Yield the inputs of lines, in order, by the target's vocabulary.

  The lines are numbered from `first` on. Lengths are the most tokens of
  'inputs', all of their form included, and if they have it, of the 'hints' of
  an input. A line of spaces only is refused unless `on_empty` is `PASS` or
  `SKIP`: without an input of its own, later outputs are not on the lines of
  their inputs.
  """
  has_text = False
  for number, line in enumerate(lines, first):
    ids = vocabulary.encode(line.text)
    has_none = is_empty(line.text, ids)
    if has_none and on_empty not in (PASS, SKIP):
      raise ranges.ArgumentError(
          f'{line.place} has no text. Remove the line, or give it some text,'
          " or set on_empty to 'pass' or 'skip'.",
          on_empty=on_empty,
      )
    if has_none and on_empty == SKIP:
      continue
    has_text |= not has_none
    tokens, is_cut = form.cut(ids, lengths['inputs'])
    yield Input(
        number,
        line.text,
        tokens,
        is_truncated=is_cut,
        is_known=vocabulary.knows(line.text, ids),
        hints=hints_lib.encode(line.hints, vocabulary, lengths.get('hints')),
        fields=line.fields,
        is_empty=has_none,
    )
  if not has_text:
    raise ValueError('No line of the input has text. Give other files.')


class PartReader:
  """Reads parts of inputs; in increasing order, it reads everything once."""

  def __init__(
      self,
      read: Callable[[], Iterator[Any]],
      inputs_of: Callable[[Iterator[Any], int], Iterator[Input]],
  ):
    """Read nothing yet.

    `read` reads the items, as lines, from the first one on; `inputs_of` returns
    the inputs of items, of which the first one has the number given.
    """
    self._read = read
    self._inputs_of = inputs_of
    self._items: Iterator[Any] = iter(())
    self._next = math.inf  # the number of the next item

  def part(self, first: int, count: int) -> list[Input]:
    """Return so many inputs, from the item with a number on."""
    if self._next > first:
      self._items, self._next = self._read(), 0
    skipped = self._taken(first - self._next)
    collections.deque(skipped, maxlen=0)
    inputs = self._inputs_of(self._taken(None), first)
    return list(itertools.islice(inputs, count))

  def _taken(self, count: int | None) -> Iterator[Any]:
    """Yield the next items, so many or all, and count them."""
    for item in itertools.islice(self._items, count):
      self._next += 1
      yield item

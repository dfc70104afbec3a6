# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Inputs without references, one at a time, from files or from a task."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from speculative_t5x import batching
from speculative_t5x import hints as hints_lib
from speculative_t5x import vocabularies
from speculative_t5x.tasks import examples
from speculative_t5x.tasks import text_files


class Input(NamedTuple):
  """One input to decode.

  Attributes:
    example_id: number of the line among all lines, from 0 on, or the id of the
      task's example. With the seed, all that a sample depends on, up to
      rounding.
    text: of the line or the example.
    tokens: at most inputs_length, the end of sequence included.
    is_truncated: whether the text has more tokens.
    is_known: whether it was encoded without unknown pieces.
    hints: token ids of the input's hints, see `hints.encode`.
  """

  example_id: int
  text: str
  tokens: Sequence[int]
  is_truncated: bool
  is_known: bool
  hints: Sequence[Sequence[int]] = ()


def from_lines(
    lines: Iterable[text_files.Line],
    vocabulary: vocabularies.Vocabulary,
    lengths: Mapping[str, int],
) -> Iterator[Input]:
  """Yields the inputs of lines.

  Args:
    lines: of files, in order.
    vocabulary: of the target.
    lengths: most tokens of 'inputs', the end of sequence included. If it has
      'hints', those of an input are cut to that.
  Raises:
    ValueError: naming file and line, for a line that is empty or of spaces
      only. Without an output, later outputs would not be on the lines of their
      inputs.
  """
  end, inputs_length = vocabulary.eos_id, lengths['inputs']
  for number, line in enumerate(lines):
    ids = vocabulary.encode(line.text)
    if not ids or not line.text.strip():
      raise ValueError(
          f'{line.place} has no text. Remove the line, or give it some text.'
      )
    tokens = batching.cut([*ids, end], inputs_length, end)
    yield Input(
        number,
        line.text,
        tokens,
        len(ids) >= inputs_length,
        vocabulary.knows(line.text, ids),
        hints_lib.encode(line.hints, vocabulary, lengths.get('hints')),
    )


def from_task(
    mixture_or_task_name: str, split: str, lengths: Mapping[str, int]
) -> Iterator[Input]:
  """Yields the inputs of a split of a task; see `examples.stream`."""
  for example in examples.stream(mixture_or_task_name, split, lengths):
    yield Input(
        example.example_id,
        example.text,
        example.tokens.tolist(),
        example.is_truncated,
        example.is_known,
        example.hints,
    )

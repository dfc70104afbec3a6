# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The form of an input: the token ids of a text, and ids around them."""

from collections.abc import Sequence
import dataclasses

from speculative_t5x.loading import models
from speculative_t5x.loading import vocabularies


@dataclasses.dataclass(frozen=True)
class InputsForm:
  """Ids that stand around those of a text in an input."""

  # Ids before those of the text, as the beginning of a text; those that the
  # text spells itself, as a chat's does, are not repeated.
  begin: tuple[int, ...] = ()
  # Ids behind them: the end of sequence, where an encoder reads it.
  end: tuple[int, ...] = ()
  # Whether an output continues it, as that of a decoder alone.
  is_continued: bool = False

  def cut(self, ids: Sequence[int], limit: int) -> tuple[list[int], bool]:
    """Return the input of a text's ids, and whether some were cut.

    It has at most `limit` tokens. An input keeps the first ids of the text, as
    T5X's tasks do, and one that an output continues the last ones.
    """
    ids = list(ids)
    if self.begin and tuple(ids[: len(self.begin)]) == self.begin:
      ids = ids[len(self.begin) :]
    room = max(limit - len(self.begin) - len(self.end), 0)
    is_cut = len(ids) > room
    kept = ids[:room]
    if self.is_continued:
      kept = ids[len(ids) - min(room, len(ids)) :]
    return [*self.begin, *kept, *self.end], is_cut

  def text_before(self, inputs: Sequence[int]) -> Sequence[int]:
    """Return the ids of an input whose text an output continues."""
    return inputs if self.is_continued else ()


def of(vocabulary: vocabularies.Vocabulary, target: models.Found) -> InputsForm:
  """Return the form of a target's inputs, by its vocabulary and network."""
  end = (target.special_ids.end,) if target.config.ends_inputs else ()
  is_continued = target.special_ids.start is None
  return InputsForm(vocabulary.begin_ids, end, is_continued)

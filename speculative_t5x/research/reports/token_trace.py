# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A decoded sentence with the fate of each draft token, as in Figure 1.

Of Leviathan et al. (2023), arXiv:2211.17192v2. Colour shows whether a token was
accepted, rejected or added by the target, and so does its form: rejected tokens
are struck through, those of the target bold and underlined. Where text has no
styles they stand in brackets, as in a word diff: [-rejected-] {+target+}.
"""

from collections.abc import Callable, Iterator, Sequence
import dataclasses
from typing import Any

import jax
from rich import console as console_lib
from rich import style
from rich import table
from rich import text as text_lib

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import keywords
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import whole_batches
from speculative_t5x.research.reports import console as report_console
from speculative_t5x.research.reports import walltime_summary
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib

# Dark text on a light ground, readable on any terminal and in grey.
ACCEPTED = style.Style.parse('#145a32 on #dcf3e4')
REJECTED = style.Style.parse('strike #97201a on #fce4e1')
FROM_TARGET = style.Style.parse('bold underline #103f91 on #c9dbff')

_BRACKETS = {ACCEPTED: '{}', REJECTED: '[-{}-]', FROM_TARGET: '{{+{}+}}'}
_LEGEND = {
    ACCEPTED: 'accepted draft token',
    REJECTED: 'rejected draft token',
    FROM_TARGET: 'resampled or bonus token of the target',
}


@dataclasses.dataclass(frozen=True)
class Block:
  """The tokens of one target call."""

  accepted: tuple[int, ...]  # draft tokens
  # The first draft token that the target rejected, or None. The draft tokens
  # after it were discarded untested.
  rejected: int | None
  # The resampled token after a rejection, else the bonus token; None if the row
  # ended within its accepted draft tokens.
  from_target: int | None

  @property
  def num_committed(self) -> int:
    """Tokens that the call added to the output."""
    return len(self.accepted) + (self.from_target is not None)


def blocks_of(
    decoder: token_decoder.TokenDecoder, batch: input_batch.InputBatch
) -> list[Block]:
  """Decode a batch and return the blocks of its first row, in order."""
  trace = jax.device_get(whole_batches.trace(decoder, batch))
  at_call = lambda call: jax.tree.map(lambda x: x[call, 0], trace.outcomes)
  calls = map(at_call, range(int(trace.num_steps)))
  return [_block(call) for call in calls if call.is_active]


def _block(outcome: outcome_lib.Outcome) -> Block:
  num_accepted = int(outcome.num_accepted)
  from_target = None
  if not outcome.is_cut_short:
    from_target = int(outcome.tokens[num_accepted])
  rejected = None
  if outcome.is_rejected:
    rejected = int(outcome.draft_tokens[num_accepted])
  accepted = tuple(outcome.tokens[:num_accepted].tolist())
  return Block(accepted, rejected, from_target)


@keywords.named(request_lib.Settings)
def trace(
    decoder: text_decoder.TextDecoder,
    text: str,
    **settings: Any,
) -> 'TokenTrace':
  """Decode a text speculatively and return the report of its output.

  Settings are those of `TextDecoder.decode`.
  """
  batch, _ = whole_batches.make_batch(decoder, [text], **settings)
  blocks = blocks_of(decoder.tokens, batch)
  sampling = settings.get('sampling', sampling_lib.GREEDY)
  setting = walltime_summary.setting(
      decoder.tokens,
      f'gamma {decoder.tokens.options.gamma}',
      f'temperature {sampling.temperature:g}',
  )
  return TokenTrace(blocks, decoder.vocabulary.id_to_piece, text, setting)


@dataclasses.dataclass(frozen=True)
class TokenTrace:
  """A report of one output, with one line per target call.

  A notebook shows it in colour.
  """

  blocks: Sequence[Block]  # as `blocks_of` returns them
  # Gives the piece of a token id; SentencePiece's own shows a space as '▁'.
  id_to_piece: Callable[[int], str]
  sentence: str | None = None  # the input, printed first; None to leave it out
  # Models, gamma, temperature and machine, printed next; None to leave it out.
  setting: str | None = None

  def _repr_html_(self) -> str:
    return report_console.to_html(self)

  def __rich_console__(
      self, console: console_lib.Console, options: console_lib.ConsoleOptions
  ) -> Iterator[console_lib.RenderableType]:
    def mark(words: str, look: style.Style) -> text_lib.Text:
      if console.color_system is not None:
        return text_lib.Text(words, look)
      return text_lib.Text(_BRACKETS[look].format(words))

    if self.sentence is not None:
      yield text_lib.Text(f'Input: {self.sentence}')
    if self.setting is not None:
      yield text_lib.Text(f'Setting: {self.setting}')
    yield text_lib.Text(', ').join(
        mark(meaning, look) for look, meaning in _LEGEND.items()
    )
    num_tokens = sum(block.num_committed for block in self.blocks)
    yield text_lib.Text(
        f'tokens: {num_tokens}, target calls: {len(self.blocks)}, one line per'
        ' call\n'
    )
    lines = table.Table.grid(padding=(0, 2, 0, 0))
    lines.add_column(justify='right')
    lines.add_column(overflow='fold')
    for number, block in enumerate(self.blocks, start=1):
      tokens = [(token, ACCEPTED) for token in block.accepted]
      tokens += [(block.rejected, REJECTED), (block.from_target, FROM_TARGET)]
      line = text_lib.Text(' ').join(
          mark(self.id_to_piece(token), look)
          for token, look in tokens
          if token is not None
      )
      lines.add_row(str(number), line)
    yield lines

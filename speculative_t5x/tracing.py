# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What became of each guess in one sentence: Figure 1 of the paper.

The production loop is run with a drafter that keeps every draft; blocks are
told apart afterwards.
"""

from collections.abc import Callable
import dataclasses

import jax

from speculative_t5x import token_decoder

_GREEN, _RED, _BLUE, _RESET = '\033[32m', '\033[31;9m', '\033[34;1m', '\033[0m'


@dataclasses.dataclass(frozen=True)
class Block:
  """One target call.

  Attributes:
    accepted: guesses that were kept.
    rejected: the guess that was not, or None. Later ones were not looked at.
    drawn: the token drawn after them; None where the row ended before.
  """

  accepted: tuple[int, ...]
  rejected: int | None
  drawn: int | None


def trace(
    decoder: token_decoder.TokenDecoder, request: token_decoder.Request
) -> list[Block]:
  """Decodes a request and keeps the blocks of its first row apart."""
  decoded, record = jax.device_get(decoder.recorded(request))
  num_calls = int(decoded.num_calls[0])
  starts = record.starts[0, :num_calls].tolist()
  ends = [*starts[1:], int(decoded.num_tokens[0])]
  tokens = decoded.sequences[0].tolist()
  drafts = record.drafts[0].tolist()
  return [
      _block(tokens[start:end], draft)
      for start, end, draft in zip(starts, ends, drafts)
  ]


def _block(new: list[int], draft: list[int]) -> Block:
  # A recovered token never equals the guess it replaces: max(0, p - q) is 0
  # there. So the kept guesses are the ones that the new tokens begin with.
  num_accepted = 0
  for token, guess in zip(new, draft):
    if token != guess:
      break
    num_accepted += 1
  if num_accepted == len(new):
    return Block(tuple(new), None, None)
  rejected = draft[num_accepted] if num_accepted < len(draft) else None
  return Block(tuple(new[:num_accepted]), rejected, new[num_accepted])


def render(blocks: list[Block], id_to_piece: Callable[[int], str]) -> str:
  """A line a block for a terminal: kept green, rejected red, drawn blue."""
  return '\n'.join(_render_block(block, id_to_piece) for block in blocks)


def _render_block(block: Block, id_to_piece) -> str:
  parts = [_paint(_GREEN, token, id_to_piece) for token in block.accepted]
  if block.rejected is not None:
    parts.append(_paint(_RED, block.rejected, id_to_piece))
  if block.drawn is not None:
    parts.append(_paint(_BLUE, block.drawn, id_to_piece))
  return ' '.join(parts)


def _paint(colour: str, token: int, id_to_piece) -> str:
  return f'{colour}{id_to_piece(token)}{_RESET}'


def legend() -> str:
  """What the colours of `render` mean."""
  return (
      f'{_GREEN}guessed and kept{_RESET}, {_RED}guessed and rejected{_RESET},'
      f' {_BLUE}drawn by the target{_RESET}; one line a target call'
  )

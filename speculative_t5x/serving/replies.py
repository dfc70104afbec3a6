# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Completions as answers: choices, usage, and counts of speculation."""

from collections.abc import AsyncIterator, Iterator, Sequence
import dataclasses
import time
from typing import Any
import uuid
import zlib

from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import running as running_lib
from speculative_t5x.serving import schemas
from speculative_t5x.serving import transcripts
from speculative_t5x.speculation import outcome

_MIN_LOG_PROB = -9999.0  # JSON has no -Infinity
_UNKNOWN = '\ufffd'  # stands for bytes that are no character

Pieces = Sequence[transcripts.Piece]


@dataclasses.dataclass
class Reply:
  """The answer to a completion."""

  completion: completions.Completion
  decoder: text_decoder.TextDecoder
  fingerprint: str  # name of all that samples depend on beside the request
  # Names the completion.
  id: str = dataclasses.field(
      default_factory=lambda: f'cmpl-{uuid.uuid4().hex}'
  )
  # Seconds since 1970.
  created: int = dataclasses.field(default_factory=lambda: int(time.time()))

  def event(
      self, choices: Sequence[schemas.CompletionChoice], **totals: Any
  ) -> schemas.CompletionAnswer:
    """Return an event of a stream, or the whole answer."""
    fingerprint = self.fingerprint
    search = self.completion.requests[0].search
    if search is not None:  # samples do not depend on it
      fingerprint += f'_{zlib.crc32(repr(search).encode()):08x}'
    return schemas.CompletionAnswer(
        id=self.id,
        object='text_completion',
        created=self.created,
        model=self.completion.body.model,
        system_fingerprint=fingerprint,
        seed=self.completion.seed,
        choices=choices,
        **totals,
    )

  def whole(
      self, choices: Sequence[running_lib.Choice], pieces: Sequence[Pieces]
  ) -> schemas.CompletionAnswer:
    """Return the answer, of all pieces of each choice."""
    return self.event(
        list(map(self.choice, choices, pieces)), **self.totals(choices)
    )

  def choice(
      self, choice: running_lib.Choice, pieces: Pieces
  ) -> schemas.CompletionChoice:
    """Return a choice, or what pieces add to it."""
    body, log_probs, values = self.completion.body, None, {}
    if body.logprobs is not None:
      log_probs = self._log_probs(choice, pieces)
    if body.return_trace:
      values['trace'] = list(self._trace(choice, pieces))
    return schemas.CompletionChoice(
        index=choice.index,
        text=''.join(piece.text for piece in pieces),
        finish_reason=choice.finish_reason,
        logprobs=log_probs,
        **values,
    )

  def totals(self, choices: Sequence[running_lib.Choice]) -> dict[str, Any]:
    """Return usage and metrics of a completion that has ended."""
    num_inputs = sum(len(x.inputs) for x in self.completion.requests)
    num_outputs = sum(choice.num_tokens for choice in choices)
    counts = None
    if len(choices) == 1 and choices[0].statistics is not None:
      counts = _speculation(choices[0].statistics)
    return {
        'usage': schemas.Usage(
            prompt_tokens=num_inputs,
            completion_tokens=num_outputs,
            total_tokens=num_inputs + num_outputs,
        ),
        'metrics': schemas.CompletionMetrics(speculative_decoding=counts),
    }

  async def events(self, running: running_lib.Running) -> AsyncIterator[str]:
    """Yield server-sent events of a completion as tokens come.

    The status was sent before, so that an error is an event too.
    """
    options = self.completion.body.stream_options
    includes_usage = options is not None and options.include_usage
    usage = {'usage': None} if includes_usage else {}
    try:
      async for choice, pieces in running.parts():
        yield _event(self.event([self.choice(choice, pieces)], **usage))
    except api_error.ApiError as error:
      yield _event(error.answer)
      return
    if includes_usage:
      yield _event(self.event([], **self.totals(running.choices)))
    yield 'data: [DONE]\n\n'

  def _log_probs(
      self, choice: running_lib.Choice, pieces: Pieces
  ) -> schemas.LogProbs:
    committed = choice.committed
    tokens, offsets, log_probs, alternatives = [], [], [], []
    for index, offset, text in _texts(pieces):
      if index == len(committed.tokens) - 1 and committed.has_end:
        text = self.decoder.vocabulary.id_to_piece(committed.tokens[-1])
      tokens.append(text)
      offsets.append(offset)
      log_probs.append(_finite(committed.model_log_probs[index]))
      alternatives.append(
          self._alternatives(choice, index, text, log_probs[-1])
      )
    return schemas.LogProbs(
        tokens=tokens,
        token_logprobs=log_probs,
        top_logprobs=alternatives,
        text_offset=offsets,
    )

  def _alternatives(
      self, choice: running_lib.Choice, index: int, text: str, log_prob: float
  ) -> dict[str, float]:
    """Return log-probabilities of the likeliest tokens, and of the one there.

    A token without a text of its own, as a part of a character, has its piece.
    Of tokens that look alike the likelier one is kept, or the one there.
    """
    likeliest = choice.committed.alternatives
    if likeliest is None:
      return {text: log_prob}
    own, named = choice.committed.tokens[index], {}
    for i, value in zip(
        likeliest.tokens[index].tolist(), likeliest.log_probs[index]
    ):
      name = text
      if i != own:
        name = self._text_at(choice, index, i)
        if not name or _UNKNOWN in name or name == text or name in named:
          name = self.decoder.vocabulary.id_to_piece(i)
      named.setdefault(name, _finite(value))
    return named | {text: log_prob}

  def _text_at(self, choice: running_lib.Choice, index: int, i: int) -> str:
    """Return the text that a token id would add at an index."""
    # Of the prompt one token, because it may be much longer than the output.
    before = [] if choice.before is None else [choice.before]
    before += choice.committed.tokens[:index]
    return self.decoder.vocabulary.decode([i], before)

  def _trace(
      self, choice: running_lib.Choice, pieces: Pieces
  ) -> Iterator[schemas.TraceToken]:
    """Yield how each token came about; see `outcome.Committed`."""
    for index, _, text in _texts(pieces):
      origin = int(choice.committed.origins[index])
      if origin >= 0:
        rejected = self._text_at(choice, index, origin)
        yield schemas.TraceToken(text=rejected, kind='rejected')
      kind = 'accepted' if origin == outcome.ACCEPTED else 'drawn'
      yield schemas.TraceToken(text=text, kind=kind)


def _speculation(statistics: outcome.Statistics) -> schemas.Speculation:
  num_idle, *drafted_histogram = statistics.drafted_histogram.tolist()
  histogram = statistics.accepted_histogram.tolist()
  histogram[0] -= num_idle  # target calls without draft tokens
  num_steps = sum(drafted_histogram)
  num_accepted = int(statistics.num_accepted)
  num_drafted = int(statistics.num_drafted)
  return schemas.Speculation(
      mean_acceptance_length=1 + num_accepted / max(num_steps, 1),
      draft_acceptance_rate=num_accepted / max(num_drafted, 1),
      acceptance_histogram=histogram,
      num_spec_steps=num_steps,
      num_accepted_draft_tokens=num_accepted,
      num_draft_tokens=num_drafted,
      num_spec_tokens=len(drafted_histogram),
  )


def _event(content: schemas.CompletionAnswer | schemas.ErrorAnswer) -> str:
  return f'data: {content.model_dump_json(exclude_unset=True)}\n\n'


def _finite(log_prob: float) -> float:
  return max(float(log_prob), _MIN_LOG_PROB)


def _texts(pieces: Pieces) -> Iterator[tuple[int, int, str]]:
  """Yield index, offset and text of each token of some pieces.

  Of tokens that add text together, the last one has it.
  """
  for piece in pieces:
    for index in range(piece.first, piece.last):
      yield index, piece.offset, ''
    yield piece.last, piece.offset, piece.text

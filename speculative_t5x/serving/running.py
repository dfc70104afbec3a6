# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A completion while it is decoded: between the service and one response.

The service's thread leaves the newest tokens of each choice here, and never
waits: a reader who is slow gets more of them at once.
"""

import asyncio
from collections.abc import AsyncIterator
import dataclasses
import functools

from speculative_t5x.decoder import results
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import transcripts
from speculative_t5x.speculation import outcome


@dataclasses.dataclass(eq=False)
class Choice:
  """One output of a completion."""

  index: int  # its number
  # Last token id of the text that it continues; None for none.
  before: int | None
  transcript: transcripts.Transcript
  # Its newest tokens; None before the first.
  committed: results.Decode | None = None
  num_tokens: int = 0  # tokens that were handed out, end of sequence included
  # 'stop' or 'length'; None while more may come.
  finish_reason: str | None = None

  @property
  def statistics(self) -> outcome.Statistics | None:
    """Counts of the whole output; None if it was stopped, or not drafted."""
    is_whole = self.committed is not None and self.committed.is_whole
    if not is_whole or self.transcript.is_stopped:
      return None
    return self.committed.statistics

  def advance(self) -> list[transcripts.Piece] | None:
    """Return pieces that are new, of which the end of sequence has no text.

    None if nothing is new, or if the choice has ended.
    """
    committed = self.committed
    if committed is None or self.finish_reason:
      return None
    has_ended = committed.is_whole
    pieces = self.transcript.read(committed.text_tokens, has_ended)
    self.num_tokens = self.transcript.num_tokens
    if self.transcript.is_stopped:
      self.finish_reason = 'stop'
    elif has_ended:
      self.finish_reason = 'stop' if committed.has_end else 'length'
      if committed.has_end:
        end = self.num_tokens
        pieces.append(transcripts.Piece(end, end, self.transcript.size, ''))
        self.num_tokens += 1
    return pieces if pieces or self.finish_reason else None


def choices_of(
    completion: completions.Completion, decoder: text_decoder.TextDecoder
) -> list[Choice]:
  """Return the outputs of a completion, before the first token."""
  body = completion.body
  by_token = body.logprobs is not None or body.return_trace
  choices = []
  for request in completion.requests:
    for _ in range(body.n):
      texts = decoder.detokenizer(request.inputs)
      transcript = transcripts.Transcript(texts, body.stops, by_token)
      choices.append(Choice(len(choices), texts.last, transcript))
  return choices


def not_decoded(prompt: int, error: Exception) -> api_error.ApiError:
  """Return the error of a prompt, as for logits that are not finite."""
  message = f'Prompt {prompt} could not be decoded: {error}'
  return api_error.ApiError(500, message, code='not_decoded')


class Running:
  """A completion that was submitted.

  Attributes:
    completion: The completion.
    handles: Handle of each prompt.
    choices: Its outputs.
    error: Reason why it failed, if it did.
  """

  def __init__(
      self,
      completion: completions.Completion,
      service: service_lib.Service,
      decoder: text_decoder.TextDecoder,
  ):
    """Submit all prompts, or none.

    Raises:
      BusyError: if too many requests wait.
    """
    self._loop = asyncio.get_running_loop()
    self._changed = asyncio.Event()
    self.completion = completion
    self.choices = choices_of(completion, decoder)
    self.error: api_error.ApiError | None = None
    count = len(completion.requests)
    calls = [functools.partial(self._keep, number) for number in range(count)]
    # Only a stream and stop texts need tokens before the last.
    if not completion.body.stream and not completion.body.stops:
      calls = [None] * count
    self.handles = service.submit_all(completion.requests, calls)
    for handle in self.handles:
      handle.add_done_callback(lambda _: self._wake())

  async def parts(
      self,
  ) -> AsyncIterator[tuple[Choice, list[transcripts.Piece]]]:
    """Yield choices, and the pieces that are new, until all have ended.

    Raises:
      ApiError: if a prompt could not be decoded to its end.
    """
    while not all(choice.finish_reason for choice in self.choices):
      await self._changed.wait()
      # Before anything is read: tokens that come meanwhile wake it again.
      self._changed.clear()
      for number, handle in enumerate(self.handles):
        self._take_result(number, handle)
      if self.error is not None:
        raise self.error
      for choice in self.choices:
        if (pieces := choice.advance()) is not None:
          yield choice, pieces
      for number, handle in enumerate(self.handles):
        if all(choice.finish_reason for choice in self.choices_of(number)):
          handle.cancel()  # a stop text may have ended it early

  async def all_pieces(self) -> list[list[transcripts.Piece]]:
    """Return the pieces of each choice, once all have ended; see `parts`."""
    pieces = [[] for _ in self.choices]
    async for choice, more in self.parts():
      pieces[choice.index] += more
    return pieces

  def choices_of(self, number: int) -> list[Choice]:
    """Return the outputs of a prompt."""
    count = self.completion.body.n
    return self.choices[number * count : (number + 1) * count]

  def close(self) -> None:
    """End what has not ended, because nobody waits for it any more."""
    for handle in self.handles:
      handle.cancel()

  def fail(self, error: api_error.ApiError) -> None:
    """Have `parts` raise an error; to be called in the event loop."""
    self.error = error
    self._changed.set()

  def _keep(self, prompt: int, number: int, committed: results.Decode) -> None:
    """Keep the newest tokens of a choice; called in the service's thread."""
    self.choices_of(prompt)[number].committed = committed
    self._wake()

  def _wake(self) -> None:
    self._loop.call_soon_threadsafe(self._changed.set)

  def _take_result(self, number: int, handle: service_lib.Handle) -> None:
    """Take the result of a prompt, or its error, if there is one."""
    choices = self.choices_of(number)
    if not handle.done() or all(choice.finish_reason for choice in choices):
      return
    try:
      for decode in handle.result(0).decodes:
        # A search may have found more than were asked for.
        if decode.number < len(choices):
          choices[decode.number].committed = decode
    # Logits that are not finite, or a device that failed.
    except (ValueError, service_lib.DecodeError) as error:
      self.error = not_decoded(number, error)
    except Exception as error:
      self.error = api_error.unavailable(f'The engine has stopped: {error}')

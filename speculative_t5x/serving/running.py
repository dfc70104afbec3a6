# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A completion while it is decoded: between the service and one response.

The service's thread leaves the newest tokens of each choice here, and never
waits: a reader who is slow gets more of them at once.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
import contextlib
import functools
import time
from typing import NamedTuple

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import transcripts

STOP, LENGTH = 'stop', 'length'  # why a choice has ended, as OpenAI says it


class Part(NamedTuple):
  """What is new of a choice.

  Attributes:
    index: Number of the choice.
    before: Token ids of the text that it continues, if it continues one.
    pieces: Tokens and their texts; the end of sequence is one without text.
    committed: All tokens so far, and what is known of each.
    finish_reason: `STOP` or `LENGTH`; None while more may come.
  """

  index: int
  before: Sequence[int]
  pieces: list[transcripts.Piece]
  committed: results.Committed
  finish_reason: str | None


class Choice:
  """One output of a completion.

  Attributes:
    committed: Its newest tokens; None before the first.
    num_tokens: Tokens that were handed out, end of sequence included.
    finish_reason: See `Part`.
  """

  def __init__(
      self,
      index: int,
      before: Sequence[int],
      transcript: transcripts.Transcript,
  ):
    self._index = index
    self._before = before
    self._transcript = transcript
    self.committed: results.Committed | None = None
    self.num_tokens = 0
    self.finish_reason: str | None = None

  @property
  def decode(self) -> results.Decode | None:
    """The whole output; None if a stop text ended it."""
    is_whole = isinstance(self.committed, results.Decode)
    return self.committed if is_whole and not self._is_stopped else None

  @property
  def _is_stopped(self) -> bool:
    return self._transcript.is_stopped

  def advance(self) -> Part | None:
    """Return what is new; None if nothing is, or if the choice has ended."""
    committed = self.committed
    if committed is None or self.finish_reason:
      return None
    has_ended = isinstance(committed, results.Decode)
    tokens = committed.text_tokens if has_ended else committed.tokens
    pieces = self._transcript.read(tokens, has_ended)
    self.num_tokens = self._transcript.num_tokens
    if self._is_stopped:
      self.finish_reason = STOP
    elif has_ended:
      self.finish_reason = STOP if committed.has_end else LENGTH
      if committed.has_end:
        end = self.num_tokens
        pieces.append(transcripts.Piece(end, end, self._transcript.size, ''))
        self.num_tokens += 1
    if not pieces and not self.finish_reason:
      return None
    return Part(
        self._index, self._before, pieces, committed, self.finish_reason
    )


def choices_of(
    completion: completions.Completion,
    requests: Sequence[request_lib.Request],
    decoder: text_decoder.TextDecoder,
) -> list[Choice]:
  """Return the outputs of a completion, before the first token."""
  by_token = completion.has_log_probs or completion.has_trace
  choices = []
  for request in requests:
    before = decoder.inputs_form.text_before(request.inputs)
    for _ in range(completion.num_choices):
      transcript = transcripts.Transcript(
          decoder.detokenizer(request.inputs), completion.stops, by_token
      )
      choices.append(Choice(len(choices), before, transcript))
  return choices


def not_decoded(prompt: int, error: Exception) -> api_error.ApiError:
  """Return the error of a prompt, as for logits that are not finite."""
  message = f'Prompt {prompt} could not be decoded: {error}'
  return api_error.ApiError(500, message, code='not_decoded')


@contextlib.contextmanager
def refusals() -> Iterator[None]:
  """Raise ApiError where the service refuses a request."""
  try:
    yield
  except service_lib.ClosedError as error:
    raise api_error.unavailable(str(error)) from error
  except service_lib.BusyError as error:
    raise api_error.busy(str(error)) from error
  except ValueError as error:
    raise api_error.ApiError(400, str(error), 'prompt') from error


class Running:
  """A completion that was submitted.

  Attributes:
    requests: Of its prompts.
    handles: Likewise.
    choices: Its outputs.
    error: Why it failed, if it did.
    gaps: Seconds between tokens of a choice that came at once and the next.
  """

  def __init__(
      self,
      completion: completions.Completion,
      requests: Sequence[request_lib.Request],
      service: service_lib.Service,
      decoder: text_decoder.TextDecoder,
  ):
    """Submit all prompts, or none.

    Args:
      completion: The completion.
      requests: A request of token ids per prompt.
      service: Decodes them.
      decoder: Has their texts.
    Raises:
      ApiError: if too many requests wait.
    """
    self._loop = asyncio.get_running_loop()
    self._changed = asyncio.Event()
    self._prompts = completion.prompts
    self._per_prompt = completion.num_choices
    self._decoder = decoder
    self.error: api_error.ApiError | None = None
    self.gaps: list[float] = []
    self._came: dict[int, float] = {}  # last tokens of each choice
    self.requests = requests
    self.choices = choices_of(completion, requests, decoder)
    calls = [
        functools.partial(self._keep, number) for number in range(len(requests))
    ]
    # Only a stream and stop texts need tokens before the last.
    if not completion.is_streamed and not completion.stops:
      calls = [None] * len(requests)
    with refusals():
      self.handles = service.submit_all(requests, calls)
    for handle in self.handles:
      handle.on_end(self._wake)

  async def parts(self) -> AsyncIterator[Part]:
    """Yield what is new of the choices until all have ended.

    Raises:
      ApiError: if a prompt could not be decoded to its end.
    """
    while not all(choice.finish_reason for choice in self.choices):
      await self._changed.wait()
      self._changed.clear()
      for number, handle in enumerate(self.handles):
        self._take_result(number, handle)
      if self.error is not None:
        raise self.error
      for choice in self.choices:
        if (part := choice.advance()) is not None:
          yield part
      for number, handle in enumerate(self.handles):
        if all(choice.finish_reason for choice in self.choices_of(number)):
          handle.cancel()  # a stop text may have ended it early

  def choices_of(self, number: int) -> list[Choice]:
    """Return the outputs of a prompt."""
    begin = number * self._per_prompt
    return self.choices[begin : begin + self._per_prompt]

  def answers(self) -> Iterator[tuple[str, str]]:
    """Yield texts of prompts, and the first output of each, if it is whole."""
    for number, prompt in enumerate(self._prompts):
      decode = self.choices_of(number)[0].decode
      if isinstance(prompt, str) and decode is not None and decode.has_end:
        inputs = self.requests[number].inputs
        yield prompt, self._decoder.text(decode.text_tokens, inputs)

  def close(self) -> None:
    """End what has not ended, because nobody waits for it any more."""
    for handle in self.handles:
      handle.cancel()

  def fail(self, error: api_error.ApiError) -> None:
    """Have `parts` raise an error; to be called in the event loop."""
    self.error = error
    self._changed.set()

  def _keep(
      self, prompt: int, number: int, committed: results.Committed
  ) -> None:
    """Keep the newest tokens of a choice; called in the service's thread."""
    index, now = prompt * self._per_prompt + number, time.monotonic()
    if index in self._came:
      self.gaps.append(now - self._came[index])
    self._came[index] = now
    self.choices[index].committed = committed
    self._wake()

  def _wake(self) -> None:
    self._loop.call_soon_threadsafe(self._changed.set)

  def _take_result(self, number: int, handle: service_lib.Handle) -> None:
    """Take the result of a prompt, or its error, if there is one."""
    choices = self.choices_of(number)
    if not handle.is_done or all(choice.finish_reason for choice in choices):
      return
    try:
      for decode in handle.result(0).decodes:
        # A search may have found more than were asked for.
        if decode.number < len(choices):
          choices[decode.number].committed = decode
    # Logits that are not finite, or a device that failed twice.
    except (ValueError, service_lib.DecodeError) as error:
      self.error = not_decoded(number, error)
    except service_lib.ClosedError as error:
      self.error = api_error.unavailable(str(error))
    except Exception as error:
      self.error = api_error.unavailable(f'The engine has stopped: {error}')

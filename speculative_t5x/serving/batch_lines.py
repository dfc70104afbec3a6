# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of OpenAI's batch files: requests, and the answers to them.

A line of the input is one `schemas.BatchLine`. That of the output is {"id",
"custom_id", "response", "error"}, where a response is {"status_code",
"request_id", "body"}.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import hashlib
import json
from typing import Any

import pydantic

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import replies
from speculative_t5x.serving import running
from speculative_t5x.serving import schemas

# No queue limits the choices of a line as it does in the server.
_MAX_CHOICES = schemas.MAX_CHOICES**2
_SHIFT = 38  # of the number of a line in a seed


@dataclasses.dataclass(frozen=True)
class Line:
  """A line of a batch.

  Attributes:
    number: Its number, from 0 on.
    text: Its bytes, each as a character.
    custom_id: Its name; None if it has none.
    body: Its request; None for one that is not sound.
    error: Why it is not decoded; None if it may be.
    completion: The request once it was tokenized.
  """

  number: int
  text: str
  custom_id: str | None = None
  body: schemas.CompletionRequest | None = None
  error: api_error.ApiError | None = None
  completion: completions.Completion | None = None

  @property
  def requests(self) -> Sequence[request_lib.Request]:
    """A request of token ids per prompt; none of a line with an error."""
    return self.completion.requests if self.completion else ()

  @property
  def digest(self) -> str:
    """Names the answer, the same each time that the batch is decoded."""
    return _digest(f'{self.number} {self.text}').hex()


@dataclasses.dataclass(frozen=True)
class Batch:
  """The values that all lines share.

  Attributes:
    decoder: Turns texts to tokens and back.
    model: Name of the model.
    fingerprint: What samples depend on beside a request, in a word.
    seed: Of lines without one, of 31 bits: with the number of the line, it
      decides their samples.
  """

  decoder: text_decoder.TextDecoder
  model: str
  fingerprint: str
  seed: int

  def read(self, lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with what they ask for, tokenized, or an error."""
    models = {self.model: self.decoder.tokens.reads_hints}
    offer = completions.Offer(self.decoder, models, _MAX_CHOICES)
    for line in lines:
      if line.error is None:
        try:
          completion = self._completion(line, offer)
          line = dataclasses.replace(line, completion=completion)
        except api_error.ApiError as error:
          line = dataclasses.replace(line, error=error)
      yield line

  def _completion(
      self, line: Line, offer: completions.Offer
  ) -> completions.Completion:
    if line.body.stream:
      raise api_error.ApiError(
          400, 'A batch is not streamed. Leave stream out.', 'stream'
      )
    # Above the bits of `seed_and_id`'s seed, and of the number of a prompt.
    seed = (self.seed + (line.number << _SHIFT)) % 2**63
    return offer.tokenized(offer.read(line.body, seed))

  def answer(
      self, line: Line, outcomes: Sequence[results.Result | ValueError]
  ) -> dict[str, Any]:
    """Return the line of the output of a line that was read.

    Args:
      line: The line.
      outcomes: The result of each of its requests, or why there is none.
    """
    error = line.error
    for number, result in enumerate(outcomes):
      if isinstance(result, ValueError):
        error = running.not_decoded(number, result)
        break
    if error is not None:
      return _response(line, error.status, error.answer.model_dump())
    choices = running.choices_of(line.completion, self.decoder)
    decodes = (
        decode
        for result in outcomes
        for decode in sorted(result.decodes, key=lambda x: x.number)
    )
    for choice, decode in zip(choices, decodes, strict=True):
      choice.committed = decode
    reply = replies.Reply(
        line.completion,
        self.decoder,
        self.fingerprint,
        f'cmpl-{line.digest}',
        created=0,  # a batch that resumes has the same answers
    )
    answer = reply.whole(choices, [choice.advance() for choice in choices])
    return _response(line, 200, answer.model_dump(exclude_unset=True))


def parse(lines: Iterable[bytes]) -> Iterator[Line]:
  """Yield the lines of a batch, with errors of those that are not sound.

  Blank ones are left out. Names that came before are kept as digests.
  """
  seen = set()
  for number, data in enumerate(lines):
    if not data.strip():
      continue
    line = _parse(number, data)
    name = _digest(line.custom_id or '')
    if line.error is None and name in seen:
      error = api_error.ApiError(
          400,
          f'An earlier line has the custom_id {api_error.shown(line.custom_id)}'
          ' too. Give each another one.',
          'custom_id',
          'duplicate_custom_id',
      )
      line = dataclasses.replace(line, error=error)
    seen.add(name)
    yield line
  if not seen:
    raise ValueError('The batch has no request. Give another file.')


def is_answer(line: str) -> bool:
  """Return whether a line of the output is not an error."""
  return json.loads(line)['response']['status_code'] == 200


def is_error(line: str) -> bool:
  """Return whether a line of the output is an error."""
  return not is_answer(line)


def _parse(number: int, data: bytes) -> Line:
  line = Line(number, data.decode('latin-1'), _custom_id(data))
  try:
    found = schemas.BatchLine.model_validate(json.loads(data))
  except pydantic.ValidationError as error:
    refused = api_error.invalid(error.errors(include_url=False))
  except (ValueError, RecursionError) as error:
    reason = str(error).encode('ascii', 'backslashreplace').decode()[:200]
    refused = api_error.ApiError(400, f'The line is not JSON: {reason}.')
  else:
    return dataclasses.replace(line, body=found.body)
  return dataclasses.replace(line, error=refused)


def _custom_id(data: bytes) -> str | None:
  """Return the name of a line, sound or not; None if it cannot be read."""
  # Bytes that are not in the encoding become lone surrogates, which a name has
  # not.
  try:
    text = data.decode(json.detect_encoding(data), errors='surrogateescape')
    name = json.loads(text)['custom_id']
    name.encode()
  except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
    return None
  return name


def _response(line: Line, status: int, body: dict[str, Any]) -> dict[str, Any]:
  return {
      'id': f'batch_req_{line.digest}',
      'custom_id': line.custom_id,
      'response': {
          'status_code': status, 'request_id': line.digest, 'body': body
      },
      'error': None,
  }  # fmt: skip


def _digest(text: str) -> bytes:
  return hashlib.blake2b(text.encode(), digest_size=16).digest()

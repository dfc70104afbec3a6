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

_SHIFT = 38  # of the number of a line in a seed


@dataclasses.dataclass(frozen=True)
class Line:
  """A line of a batch."""

  number: int  # its number, from 0 on
  text: str  # its bytes, each as a character
  custom_id: str | None = None  # its name; None if it has none
  # Its request; None for one that is not sound.
  body: schemas.CompletionRequest | None = None
  # Reason why it is not decoded; None if it may be.
  error: api_error.ApiError | None = None
  # The request once it was tokenized.
  completion: completions.Completion | None = None

  @property
  def requests(self) -> Sequence[request_lib.Request]:
    """A request of token ids per prompt; none of a line with an error."""
    return self.completion.requests if self.completion else ()


@dataclasses.dataclass(frozen=True)
class Batch:
  """The values that all lines share."""

  decoder: text_decoder.TextDecoder  # turns texts to tokens and back
  model: str  # name of the model
  fingerprint: str  # name of all that samples depend on beside a request
  # Of lines without one, of 31 bits: with the number of the line, it decides
  # their samples.
  seed: int

  def read(self, lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with what they ask for, tokenized, or an error."""
    models = {self.model: self.decoder.tokens.reads_hints}
    offer = completions.Offer(self.decoder, models)
    for line in lines:
      if line.error is None:
        # Above the bits of `seed_and_id`'s seed, and of the number of a prompt.
        seed = (self.seed + (line.number << _SHIFT)) % 2**63
        try:
          completion = offer.read(line.body, seed)
          line = dataclasses.replace(line, completion=completion)
        except api_error.ApiError as error:
          line = dataclasses.replace(line, error=error)
      yield line

  def answer(
      self, line: Line, outcomes: Sequence[results.Result | ValueError]
  ) -> dict[str, Any]:
    """Return the line of the output of a line that was read.

    The outcomes are the result of each of its requests, or the reason for none.
    """
    # The same each time that the batch is decoded.
    name = f'{line.number} {line.text}'.encode()
    digest = hashlib.blake2b(name, digest_size=16).hexdigest()
    errors = [
        running.not_decoded(number, result)
        for number, result in enumerate(outcomes)
        if isinstance(result, ValueError)
    ]
    if error := line.error or next(iter(errors), None):
      status, body = error.status_code, error.answer
    else:
      status, body = 200, self._completed(line.completion, outcomes, digest)
    response = {
        'status_code': status,
        'request_id': digest,
        'body': body.model_dump(exclude_unset=True),
    }
    return {
        'id': f'batch_req_{digest}',
        'custom_id': line.custom_id,
        'response': response,
        'error': None,
    }

  def _completed(
      self,
      completion: completions.Completion,
      outcomes: Sequence[results.Result],
      digest: str,
  ) -> schemas.CompletionAnswer:
    """Return the answer of a line whose requests were all decoded."""
    choices = running.choices_of(completion, self.decoder)
    decodes = (
        decode
        for result in outcomes
        for decode in sorted(result.decodes, key=lambda x: x.number)
    )
    for choice, decode in zip(choices, decodes, strict=True):
      choice.committed = decode
    reply = replies.Reply(
        completion,
        self.decoder,
        self.fingerprint,
        f'cmpl-{digest}',
        created=0,  # a batch that resumes has the same answers
    )
    return reply.whole(choices, [choice.advance() for choice in choices])


def parse(lines: Iterable[bytes]) -> Iterator[Line]:
  """Yield the lines of a batch, with errors of those that are not sound.

  Blank ones are left out.
  """
  is_empty = True
  for number, data in enumerate(lines):
    if data.strip():
      is_empty = False
      yield _parse(number, data)
  if is_empty:
    raise ValueError('The batch has no request. Give another file.')


def is_answer(line: str) -> bool:
  """Return whether a line of the output is not an error."""
  return json.loads(line)['response']['status_code'] == 200


def _parse(number: int, data: bytes) -> Line:
  """Return a line with its request, or with an error."""
  line = Line(number, data.decode('latin-1'))
  try:
    value = json.loads(data)
    request = schemas.BatchLine.model_validate(value)
    return dataclasses.replace(
        line, custom_id=request.custom_id, body=request.body
    )
  except pydantic.ValidationError as error:
    errors = error.errors(include_url=False)
    refused = api_error.invalid(errors)
    # A name that is sound itself tells which line it is.
    if not {(), ('custom_id',)} & {x['loc'] for x in errors}:
      line = dataclasses.replace(line, custom_id=value['custom_id'])
  except (ValueError, RecursionError) as error:
    reason = str(error).encode('ascii', 'backslashreplace').decode()[:200]
    refused = api_error.ApiError(400, f'The line is not JSON: {reason}.')
  return dataclasses.replace(line, error=refused)

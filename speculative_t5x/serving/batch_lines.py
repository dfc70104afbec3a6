# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Lines of OpenAI's batch files: requests, and the answers to them.

A line of the input is one request, {"custom_id", "method", "url", "body"}. That
of the output is {"id", "custom_id", "response", "error"}, where a response is
{"status_code", "request_id", "body"}.
"""

from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import hashlib
import json
from typing import Any

from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import fields
from speculative_t5x.serving import replies
from speculative_t5x.serving import running

_NAMES = 'custom_id', 'method', 'url', 'body'
_FIXED = {'method': 'POST', 'url': '/v1/completions'}
_MAX_ID = 1000  # characters of a custom_id
# No queue limits the choices of a line as it does in the server.
_MAX_CHOICES = fields.MAX_CHOICES**2
_SHIFT = 38  # of the number of a line in a seed


@dataclasses.dataclass(frozen=True)
class Line:
  """A line of a batch.

  Attributes:
    number: Its number, from 0 on.
    text: Its bytes, each as a character.
    custom_id: Its name; None if it has none.
    body: The body of the request.
    error: Why it is not decoded; None if it may be.
    completion: What it asks for, once that was read.
    requests: A request of token ids per prompt, likewise.
  """

  number: int
  text: str
  custom_id: str | None = None
  body: Any = None
  error: api_error.ApiError | None = None
  completion: completions.Completion | None = None
  requests: Sequence[request_lib.Request] = ()

  @property
  def digest(self) -> str:
    """Names the answer, the same each time that the batch is decoded."""
    return _digest(f'{self.number} {self.text}').hex()


@dataclasses.dataclass(frozen=True)
class _Ended:
  """A completion that has ended; see `replies.Ended`."""

  requests: Sequence[request_lib.Request]
  choices: Sequence[running.Choice]


@dataclasses.dataclass(frozen=True)
class Batch:
  """What all lines share.

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
    form = completions.form_of(self.decoder)
    for line in lines:
      if line.error is None:
        try:
          completion = self._completion(line, form)
          line = dataclasses.replace(
              line,
              completion=completion,
              requests=completion.requests(self.decoder),
          )
        except api_error.ApiError as error:
          line = dataclasses.replace(line, error=error)
      yield line

  def _completion(
      self, line: Line, form: fields.Form
  ) -> completions.Completion:
    # Above the bits of `seed_and_id`'s seed, and of the number of a prompt.
    seed = (self.seed + (line.number << _SHIFT)) % 2**63
    completion = completions.read(
        line.body, form, [self.model], _MAX_CHOICES, seed
    )
    if completion.is_streamed:
      raise api_error.ApiError(
          400, 'A batch is not streamed. Leave stream out.', 'stream'
      )
    return completion

  def answer(
      self, line: Line, found: Sequence[results.Result | ValueError]
  ) -> dict[str, Any]:
    """Return the line of the output of a line that was read.

    Args:
      line: The line.
      found: The result of each of its requests, or why there is none.
    """
    error = line.error
    for number, each in enumerate(found):
      if isinstance(each, ValueError):
        error = running.not_decoded(number, each)
        break
    if error is not None:
      return _response(line, error.status, error.body)
    choices = running.choices_of(line.completion, line.requests, self.decoder)
    decodes = (
        decode
        for result in found
        for decode in sorted(result.decodes, key=lambda x: x.number)
    )
    for choice, decode in zip(choices, decodes, strict=True):
      choice.committed = decode
    reply = replies.Reply(
        line.completion,
        self.decoder,
        self.model,
        self.fingerprint,
        f'cmpl-{line.digest}',
        created=0,  # a batch that resumes has the same answers
    )
    parts = [choice.advance() for choice in choices]
    return _response(
        line,
        200,
        {
            **reply.head(),
            'choices': list(map(reply.choice, parts)),
            **reply.totals(_Ended(line.requests, choices)),
        },
    )


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
  """Return whether a line of the output is no error."""
  return json.loads(line)['response']['status_code'] == 200


def is_error(line: str) -> bool:
  """Return whether a line of the output is an error."""
  return not is_answer(line)


def _parse(number: int, data: bytes) -> Line:
  line = Line(number, data.decode('latin-1'))
  try:
    found = completions.parse(data)
  except api_error.ApiError as error:
    return dataclasses.replace(line, custom_id=_custom_id(data), error=error)
  try:
    if not isinstance(found, dict):
      raise api_error.ApiError(400, 'The line must be a JSON object.')
    if isinstance(name := found.get('custom_id'), str):
      line = dataclasses.replace(line, custom_id=name)
    _check(found)
    return dataclasses.replace(line, body=found.get('body'))
  except api_error.ApiError as error:
    return dataclasses.replace(line, error=error)


def _custom_id(data: bytes) -> str | None:
  """Return the name of a line that is not JSON; None if it cannot be read.

  Bytes that are not UTF-8 become lone surrogates, which a name has not.
  """
  try:
    name = json.loads(data.decode(errors='surrogateescape'))['custom_id']
    name.encode()
  except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
    return None
  return name


def _check(found: dict[str, Any]) -> None:
  """Raise ApiError unless a line has what lines have, its body aside."""
  for name in found:
    if name not in _NAMES:
      raise api_error.ApiError(
          400,
          f'{api_error.shown(name)} is not of a line, which has'
          f' {", ".join(_NAMES)}. Leave it out.',
          name[:100],
      )
  name = found.get('custom_id')
  if not isinstance(name, str) or not 1 <= len(name) <= _MAX_ID:
    raise api_error.ApiError(
        400,
        f'custom_id must be a text of 1 to {_MAX_ID} characters, got'
        f' {api_error.shown(name)}.',
        'custom_id',
    )
  for name, value in _FIXED.items():
    if found.get(name) != value:
      raise api_error.ApiError(
          400,
          f'{name} must be {json.dumps(value)}, got'
          f' {api_error.shown(found.get(name))}.',
          name,
      )


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

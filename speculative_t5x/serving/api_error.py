# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors as OpenAI's clients read them."""

from collections.abc import Mapping, Sequence
import dataclasses
import json
from typing import Any

from speculative_t5x.serving import schemas

CLIENT_LEFT = 499  # of nginx, for logs: nobody reads the response
_TYPES = {
    401: 'authentication_error',
    404: 'not_found_error',
    429: 'rate_limit_error',
    500: 'server_error',
    503: 'service_unavailable_error',
}
_RETRY_S = 1  # a row ends, and takes a request that waits, within seconds
_MAX_SHOWN = 60  # characters of a value in a message
_MAX_NAME = 100  # characters of a field's name


@dataclasses.dataclass(eq=False)
class ApiError(Exception):
  """A request that is refused, or has failed.

  Attributes:
    status: Status of HTTP.
    message: What is wrong, and what to do.
    param: Field of the request that is to blame, if one is.
    code: Word by which programs know the error.
    headers: Further headers of the response.
  """

  status: int
  message: str
  param: str | None = None
  code: str | None = None
  headers: Mapping[str, str] = dataclasses.field(default_factory=dict)

  def __str__(self) -> str:
    return self.message

  @property
  def answer(self) -> schemas.ErrorAnswer:
    """The body of the response."""
    return schemas.ErrorAnswer(
        error=schemas.ErrorDetails(
            message=self.message,
            type=_TYPES.get(self.status, 'invalid_request_error'),
            param=self.param,
            code=self.code,
        )
    )


def busy(message: str) -> ApiError:
  """Return the error for more requests than may wait."""
  headers = {'retry-after': str(_RETRY_S)}
  return ApiError(429, message, code='queue_full', headers=headers)


def unavailable(message: str) -> ApiError:
  """Return the error of a server that decodes nothing, yet or any more."""
  headers = {'retry-after': str(_RETRY_S)}
  return ApiError(503, message, code='unavailable', headers=headers)


def left() -> ApiError:
  """Return the error of a client that has left."""
  return ApiError(CLIENT_LEFT, 'The client has left.')


def invalid(errors: Sequence[Mapping[str, Any]]) -> ApiError:
  """Return the error of a body that pydantic refuses, by its errors.

  It is that of the first field, with a reason per type that the field may have.
  """
  names = [_field(error) for error in errors]
  reasons = dict.fromkeys(
      error['msg'] for error, name in zip(errors, names) if name == names[0]
  )
  message = f'{names[0] or "The body"}: {"; or ".join(reasons)}'
  if len(reasons) == 1 and names[0] and errors[0]['type'] != 'missing':
    message += f', got {shown(errors[0]["input"])}'
  return ApiError(
      400, f'{message}. /openapi.json of a server has all fields.', names[0]
  )


def shown(value: Any) -> str:
  """Return a value of a request for a message, cut, and always printable."""
  text = json.dumps(value)
  if len(text) <= _MAX_SHOWN:
    return text
  half = _MAX_SHOWN // 2
  return f'{text[:half]}...{text[-half:]}'


def _field(error: Mapping[str, Any]) -> str | None:
  """Return the field of a body that an error is about; None for the body."""
  place = error['loc']
  if place[:1] == ('body',):
    place = place[1:]
  if not place or not isinstance(place[0], str):
    return None
  # A client may name a field by half a surrogate pair, which no JSON has.
  return place[0].encode('ascii', 'backslashreplace').decode()[:_MAX_NAME]

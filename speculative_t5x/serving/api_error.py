# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors as OpenAI's clients read them."""

from collections.abc import Mapping
import dataclasses
import json
from typing import Any

_TYPES = {
    401: 'authentication_error',
    404: 'not_found_error',
    429: 'rate_limit_error',
    500: 'server_error',
    503: 'service_unavailable_error',
}
_RETRY_S = 1  # a row ends, and takes a request that waits, within seconds
_MAX_SHOWN = 60  # characters of a value in a message


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
  def body(self) -> dict[str, Any]:
    """The JSON of the response."""
    return {
        'error': {
            'message': self.message,
            'type': _TYPES.get(self.status, 'invalid_request_error'),
            'param': self.param,
            'code': self.code,
        }
    }


def busy(message: str) -> ApiError:
  """Return the error for more requests than may wait."""
  headers = {'retry-after': str(_RETRY_S)}
  return ApiError(429, message, code='queue_full', headers=headers)


def unavailable(message: str) -> ApiError:
  """Return the error of a server that decodes nothing, yet or any more."""
  headers = {'retry-after': str(_RETRY_S)}
  return ApiError(503, message, code='unavailable', headers=headers)


def shown(value: Any) -> str:
  """Return a value of a request for a message, cut, and always printable."""
  text = json.dumps(value)
  if len(text) <= _MAX_SHOWN:
    return text
  half = _MAX_SHOWN // 2
  return f'{text[:half]}...{text[-half:]}'

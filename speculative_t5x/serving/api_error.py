# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Errors as OpenAI's clients read them."""

from collections.abc import Mapping, Sequence
import difflib
import json
from typing import Any

import fastapi

from speculative_t5x.serving import schemas

# A row ends, and takes a request that waits, within seconds.
RETRY = {'retry-after': '1'}
_MAX_SHOWN = 60  # characters of a field or a value in a message


class ApiError(fastapi.HTTPException):
  """A request that is refused, or has failed.

  The detail is the reason, and what to do; `param` the field of the request
  that is to blame, if one is, and `code` a word by which programs know the
  error.
  """

  def __init__(
      self,
      status_code: int,
      detail: str,
      param: str | None = None,
      code: str | None = None,
      headers: Mapping[str, str] | None = None,
  ):
    super().__init__(status_code, detail, headers)
    self.param = param
    self.code = code

  @property
  def answer(self) -> schemas.ErrorAnswer:
    """The body of the response."""
    kind = 'server' if self.status_code >= 500 else 'invalid_request'
    details = schemas.ErrorDetails(
        message=self.detail,
        type=f'{kind}_error',
        param=self.param,
        code=self.code,
    )
    return schemas.ErrorAnswer(error=details)


def unavailable(message: str) -> ApiError:
  """Return the error of a server that decodes nothing, yet or any more."""
  return ApiError(503, message, code='unavailable', headers=RETRY)


def invalid(errors: Sequence[Mapping[str, Any]]) -> ApiError:
  """Return the error of a body that pydantic refuses, by its errors.

  It is that of an unknown field or else of the first one, with a reason per
  type that the field may have.
  """
  unknown = [x for x in errors if x['type'] == 'extra_forbidden']
  first = (unknown or errors)[0]
  field = _field(first)
  reason = '; or '.join({x['msg']: 0 for x in errors if _field(x) == field})
  if field is None:
    return ApiError(
        400, f'The body must be JSON, sent as application/json: {reason}.'
    )
  if unknown:
    name = first['loc'][-1]
    near = difflib.get_close_matches(
        name, schemas.CompletionRequest.model_fields, 1
    )
    reason = f'there is no field {shown(name)}'
    reason += f'; the nearest is {near[0]}' if near else ''
  elif first['type'] != 'missing':
    reason += f', got {shown(first["input"])}'
  return ApiError(
      400, f'{field}: {reason}. All fields are at /openapi.json.', field
  )


def shown(value: Any) -> str:
  """Return a value of a request for a message, cut, and always printable."""
  text = json.dumps(value)
  return text if len(text) <= _MAX_SHOWN else f'{text[:_MAX_SHOWN]}...'


def _field(error: Mapping[str, Any]) -> str | None:
  """Return the field of a body that an error is about; None for the body."""
  place = error['loc']
  if place[:1] == ('body',):
    place = place[1:]
  is_named = place and isinstance(place[0], str)
  return place[0][:_MAX_SHOWN] if is_named else None

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rules that hold for every request, whichever route answers it."""

import abc
import asyncio
import dataclasses
import hmac
import logging
import time
from typing import Any
import urllib.parse
import uuid

from fastapi import datastructures
from fastapi import requests as requests_lib
from fastapi import responses
from starlette import requests as starlette_requests

from speculative_t5x.serving import api_error
from speculative_t5x.serving import prometheus

READ_S = 30  # in which a request must have come whole
_MAX_ID = 128  # characters of a client's request id
_log = logging.getLogger('speculative_t5x.serving')


@dataclasses.dataclass(eq=False, kw_only=True)
class Envelope(abc.ABC):
  """An application that gives requests an id, reads them whole and logs them.

  Attributes:
    api_key: Key that requests must have; None for any request.
    max_body_bytes: Most bytes of a body.
    is_draining: Whether no more requests are taken, as the server ends.
    num_open: Requests that have not been answered to their end.
    app: Application that answers the requests.
    metrics: Metrics that count the responses.
  """

  api_key: str | None = None
  max_body_bytes: int = 1 << 20
  is_draining: bool = False
  num_open: int = 0
  app: Any = dataclasses.field(init=False)
  metrics: prometheus.Metrics = dataclasses.field(init=False)
  _bodies: set[asyncio.Timeout] = dataclasses.field(
      init=False, default_factory=set
  )

  @abc.abstractmethod
  def check_takes_requests(self) -> None:
    """Raise ApiError if no more requests are taken."""

  @property
  def num_running(self) -> int:
    """Requests that have come whole and have not been answered."""
    return self.num_open - len(self._bodies)

  def end_reading(self) -> None:
    """Refuse requests that have not come whole; in the event loop."""
    for timeout in self._bodies:
      if not timeout.expired():
        timeout.reschedule(asyncio.get_running_loop().time())

  async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
    """Answer a request, as ASGI has it."""
    if scope['type'] != 'http':
      return await self.app(scope, receive, send)
    headers = datastructures.Headers(scope=scope)
    request_id = _request_id(headers)
    begun, status = time.monotonic(), api_error.CLIENT_LEFT

    async def send_with_id(message):
      nonlocal status
      if message['type'] == 'http.response.start':
        status = message['status']
        own = b'x-request-id', request_id.encode()
        message = {**message, 'headers': [*message.get('headers', ()), own]}
      await send(message)

    app, method, path = self.app, scope['method'], scope['path']
    self.num_open += 1
    try:
      try:
        self._check_key(path, headers)
        if (method, path) == ('POST', '/v1/completions'):
          receive = await self._read(scope, receive, headers)
      except api_error.ApiError as error:
        app = response(error)
      if method == 'HEAD':  # uvicorn, whose scope is another, sends no body
        scope = {**scope, 'method': 'GET'}
      await app(scope, receive, send_with_id)
    finally:
      self.num_open -= 1
      self.metrics.count_response(status)
      _log.info(
          '%s %s %s %d %.3f s',
          request_id,
          method,
          urllib.parse.quote(path)[:200],
          status,
          time.monotonic() - begun,
      )

  def _check_key(self, path: str, headers: datastructures.Headers) -> None:
    """Raise ApiError for a path that needs the key, without it."""
    if self.api_key is None or not path.startswith('/v1/'):
      return
    scheme, _, key = headers.get('authorization', '').partition(' ')
    # In a time that does not tell how much of it is right. The bytes of a
    # header are read as Latin-1.
    is_same = hmac.compare_digest(
        key.strip().encode('latin-1'), self.api_key.encode()
    )
    if not is_same or scheme.lower() != 'bearer':
      raise api_error.ApiError(
          401, 'The API key is missing or another one.', code='invalid_api_key'
      )

  async def _read(
      self, scope: Any, receive: Any, headers: datastructures.Headers
  ) -> Any:
    """Return a `receive` that has the body of a request, which has come whole.

    Raises:
      ApiError: for a body that comes too slowly, is too large, or is not JSON.
    """
    self.check_takes_requests()
    kind = headers.get('content-type', '').partition(';')[0]
    if kind.strip().lower() != 'application/json':
      raise api_error.ApiError(
          415, 'The body must have the content type application/json.'
      )
    body = bytearray()
    try:
      async with asyncio.timeout(READ_S) as timeout:
        self._bodies.add(timeout)
        async for chunk in requests_lib.Request(scope, receive).stream():
          body += chunk
          if len(body) > self.max_body_bytes:
            raise api_error.ApiError(
                413, f'The body has more than {self.max_body_bytes} bytes.'
            )
    except starlette_requests.ClientDisconnect as error:
      raise api_error.left() from error
    except TimeoutError as error:
      self.check_takes_requests()  # or `end_reading` has ended it
      raise api_error.ApiError(
          408,
          f'The body has not come whole within {READ_S} s. Send it again.',
          headers={'connection': 'close'},
      ) from error
    finally:
      self._bodies.discard(timeout)
    messages = [{'type': 'http.request', 'body': bytes(body)}]

    async def receive_again():
      return messages.pop() if messages else await receive()

    return receive_again


def response(error: api_error.ApiError) -> responses.JSONResponse:
  """Return the response of an error."""
  return responses.JSONResponse(
      error.answer.model_dump(), error.status, headers=dict(error.headers)
  )


def _request_id(headers: datastructures.Headers) -> str:
  """Return the client's own id, if it can stand in a log, or a new one.

  It is only a label: two requests may have the same one.
  """
  own = headers.get('x-request-id', '')
  is_plain = own.isascii() and own.isprintable() and 0 < len(own) <= _MAX_ID
  return own if is_plain else f'req-{uuid.uuid4().hex}'

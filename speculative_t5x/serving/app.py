# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The routes of the server, and what holds for all requests.

  Envelope   request ids, the key, the log; all else is within
    Starlette   routes; every error as `api_error` has it
"""

import asyncio
from collections.abc import MutableSequence, Sequence
import dataclasses
import hmac
from importlib import resources
import logging
import time
from typing import Any
import urllib.parse
import uuid

from starlette import applications
from starlette import concurrency
from starlette import datastructures
from starlette import exceptions
from starlette import requests as requests_lib
from starlette import responses
from starlette import routing

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import completions
from speculative_t5x.serving import openapi
from speculative_t5x.serving import prometheus
from speculative_t5x.serving import replies
from speculative_t5x.serving import running as running_lib
from speculative_t5x.serving import streaming

# A loop that does not return to the host for so long has hung: it makes a few
# steps at a time.
STALL_S = 120
READ_S = 30  # in which a request must have come whole
_CLIENT_LEFT = 499  # of nginx, for logs: nobody reads the response
_MAX_ID = 128  # characters of a client's request id
_PLAIN = '-plain'  # after the name of the model
_log = logging.getLogger('speculative_t5x.serving')


@dataclasses.dataclass(eq=False)
class Server:
  """What all requests share.

  Attributes:
    decoder: Turns texts to tokens and back.
    service: Decodes tokens.
    model: Name of the model.
    fingerprint: What samples depend on beside a request, in a word.
    api_key: Key that requests must have; None for any request.
    max_body_bytes: Most bytes of a body.
    plain: Decodes the same tokens by the target alone, as another model; None
      for no such model.
    examples: Inputs that the page offers.
    answered: Gets texts of prompts, and their answers that have ended; None to
      keep none.
    search: Beam search of requests that ask for beams; None for no such.
    is_draining: Whether no more requests are taken, as the server ends.
    num_open: Requests that have not been answered to their end.
  """

  decoder: text_decoder.TextDecoder
  service: service_lib.Service
  model: str
  fingerprint: str
  api_key: str | None = None
  max_body_bytes: int = 1 << 20
  plain: service_lib.Service | None = None
  examples: Sequence[str] = ()
  answered: MutableSequence[tuple[str, str]] | None = None
  search: beam_search.BeamSearch | None = None
  is_draining: bool = False
  num_open: int = 0

  def __post_init__(self):
    self.services = {self.model: self.service}
    if self.plain is not None:
      self.services[f'{self.model}{_PLAIN}'] = self.plain
    self.metrics = prometheus.Metrics(list(self.services.values()))
    self._running: set[running_lib.Running] = set()
    self._bodies: set[asyncio.Timeout] = set()  # of those that are read
    self._created = int(time.time())
    self.form = completions.form_of(self.decoder, self.search)

  def asgi(self) -> 'Envelope':
    """Return the application."""
    get = lambda path, call: routing.Route(path, call, methods=['GET'])
    app = applications.Starlette(
        routes=[
            get('/', self._page),
            get('/health', self._health),
            get('/ready', self._ready),
            get('/metrics', self._metrics),
            get('/openapi.json', self._openapi),
            get('/v1/models', self._models),
            get('/v1/models/{model:path}', self._model),
            routing.Route(
                '/v1/completions', self._completions, methods=['POST']
            ),
        ],
        exception_handlers={
            api_error.ApiError: _answer,
            exceptions.HTTPException: _answer_http,
            requests_lib.ClientDisconnect: _answer_nobody,
            Exception: _answer_bug,
        },
    )
    app.router.redirect_slashes = False
    return Envelope(app, self)

  @property
  def num_running(self) -> int:
    """Requests that have come whole and have not been answered."""
    return self.num_open - len(self._bodies)

  def end_reading(self) -> None:
    """Refuse requests that have not come whole; in the event loop."""
    for timeout in self._bodies:
      if not timeout.expired():
        timeout.reschedule(asyncio.get_running_loop().time())

  def end_all(self) -> None:
    """End what is being decoded with an error; in the event loop."""
    for running in list(self._running):
      running.fail(api_error.unavailable('The server ends.'))

  async def _page(self, request: requests_lib.Request) -> responses.Response:
    page = resources.files(__package__).joinpath('page.html').read_bytes()
    # A browser asks whether its copy is that of another release.
    headers = {'cache-control': 'no-cache'}
    return responses.HTMLResponse(page, headers=headers)

  async def _health(self, request: requests_lib.Request) -> responses.Response:
    if not self._is_alive:
      raise api_error.unavailable('The engine has stopped. Start the server.')
    return responses.JSONResponse({'status': 'alive'})

  async def _ready(self, request: requests_lib.Request) -> responses.Response:
    self._check_takes_requests()
    seconds = max(
        service.seconds_without_return for service in self.services.values()
    )
    if seconds > STALL_S:
      raise api_error.unavailable(
          f'The engine has not returned for {seconds:.0f} s.'
      )
    return responses.JSONResponse({'status': 'ready'})

  async def _metrics(self, request: requests_lib.Request) -> responses.Response:
    headers = {'content-type': prometheus.CONTENT_TYPE}
    return responses.Response(self.metrics.text(), headers=headers)

  async def _openapi(self, request: requests_lib.Request) -> responses.Response:
    return responses.JSONResponse(
        openapi.document(
            self.form, list(self.services), self.api_key is not None
        )
    )

  async def _models(self, request: requests_lib.Request) -> responses.Response:
    found = [self._description(name) for name in self.services]
    return responses.JSONResponse({'object': 'list', 'data': found})

  async def _model(self, request: requests_lib.Request) -> responses.Response:
    if (name := request.path_params['model']) not in self.services:
      raise completions.no_model(name, list(self.services))
    return responses.JSONResponse(self._description(name))

  def _description(self, name: str) -> dict[str, Any]:
    """Return what is said of a model; the last three are for the page."""
    return {
        'id': name,
        'object': 'model',
        'created': self._created,
        'owned_by': 'speculative_t5x',
        'speculative': self.services[name] is not self.plain,
        'max_tokens': self.decoder.tokens.options.max_tokens,
        'examples': list(self.examples),
    }

  async def _completions(
      self, request: requests_lib.Request
  ) -> responses.Response:
    self._check_takes_requests()
    kind = request.headers.get('content-type', '').partition(';')[0]
    if kind.strip().lower() != 'application/json':
      raise api_error.ApiError(
          415, 'The body must have the content type application/json.'
      )
    body = await self._body(request)
    # Other requests do not wait while it is read and tokenized.
    completion, to_decode = await concurrency.run_in_threadpool(
        self._read, body
    )
    reply = replies.Reply(
        completion, self.decoder, completion.model, self.fingerprint
    )
    running = running_lib.Running(
        completion,
        to_decode,
        self.services[completion.model],
        self.decoder,
    )
    self._running.add(running)
    if completion.is_streamed:
      return streaming.EventStream(reply, running, self._finish)
    try:
      parts = await _all_parts(request, running)
    finally:
      self._finish(running)
    choices = [reply.choice(part) for part in replies.whole(parts)]
    # Other requests do not wait while long predictions are compared.
    totals = await concurrency.run_in_threadpool(reply.totals, running)
    return responses.JSONResponse(
        {**reply.head(), 'choices': choices, **totals}
    )

  def _finish(self, running: running_lib.Running) -> None:
    """End a completion, however far it came."""
    running.close()
    self.metrics.count(running)
    self._running.discard(running)
    if self.answered is not None:
      self.answered.extend(running.answers())

  def _read(
      self, body: bytes
  ) -> tuple[completions.Completion, list[request_lib.Request]]:
    """Return what a body asks for, tokenized, if it may wait."""
    completion = completions.read(
        completions.parse(body),
        self.form,
        list(self.services),
        self.service.max_waiting,
        search=self.search,
    )
    service = self.services[completion.model]
    if service is self.plain and any(completion.hints):
      raise api_error.ApiError(
          400,
          f'prediction must be left out, because {completion.model} drafts'
          ' nothing.',
          'prediction',
      )
    search, count = completion.search, completion.num_choices
    count = len(completion.prompts) * (search.beams if search else count)
    with running_lib.refusals():
      service.check_room(count)
    return completion, completion.requests(self.decoder)

  async def _body(self, request: requests_lib.Request) -> bytes:
    """Read the body, as far and as long as it may be read."""
    body = b''
    try:
      async with asyncio.timeout(READ_S) as timeout:
        self._bodies.add(timeout)
        async for chunk in request.stream():
          body += chunk
          if len(body) > self.max_body_bytes:
            raise api_error.ApiError(
                413, f'The body has more than {self.max_body_bytes} bytes.'
            )
    except TimeoutError as error:
      self._check_takes_requests()  # or `end_reading` has ended it
      raise api_error.ApiError(
          408,
          f'The body has not come whole within {READ_S} s. Send it again.',
          headers={'connection': 'close'},
      ) from error
    finally:
      self._bodies.discard(timeout)
    return body

  @property
  def _is_alive(self) -> bool:
    return all(service.is_alive for service in self.services.values())

  def _check_takes_requests(self) -> None:
    if self.is_draining or not self._is_alive:
      reason = 'server ends' if self.is_draining else 'engine has stopped'
      raise api_error.unavailable(f'The {reason}. Ask another server.')


async def _all_parts(
    request: requests_lib.Request, running: running_lib.Running
) -> Sequence[running_lib.Part]:
  """Wait for a completion, as long as the client does."""

  async def collect():
    return [part async for part in running.parts()]

  async def until_left():
    while (await request.receive())['type'] != 'http.disconnect':
      pass

  tasks = [asyncio.ensure_future(x) for x in (collect(), until_left())]
  try:
    await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    if not tasks[0].done():
      raise _left()
    return tasks[0].result()
  finally:
    for task in tasks:
      task.cancel()


class Envelope:
  """Gives requests an id, checks their key, and logs how they ended."""

  def __init__(self, app: applications.Starlette, server: Server):
    self._app = app
    self._server = server

  async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
    if scope['type'] != 'http':
      return await self._app(scope, receive, send)
    headers = datastructures.Headers(scope=scope)
    request_id = _request_id(headers)
    begun, status = time.monotonic(), _CLIENT_LEFT

    async def send_with_id(message):
      nonlocal status
      if message['type'] == 'http.response.start':
        status = message['status']
        own = b'x-request-id', request_id.encode()
        message = {**message, 'headers': [*message.get('headers', ()), own]}
      await send(message)

    self._server.num_open += 1
    try:
      app = self._app
      if scope['path'].startswith('/v1/') and not self._has_key(headers):
        error = api_error.ApiError(
            401,
            'The API key is missing or another one.',
            code='invalid_api_key',
        )
        app = await _answer(None, error)
      await app(scope, receive, send_with_id)
    finally:
      self._server.num_open -= 1
      self._server.metrics.count_response(status)
      _log.info(
          '%s %s %s %d %.3f s',
          request_id,
          scope['method'],
          urllib.parse.quote(scope['path'])[:200],
          status,
          time.monotonic() - begun,
      )

  def _has_key(self, headers: datastructures.Headers) -> bool:
    if self._server.api_key is None:
      return True
    scheme, _, key = headers.get('authorization', '').partition(' ')
    is_bearer = scheme.lower() == 'bearer'
    # In a time that does not tell how much of it is right. The bytes of a
    # header are read as Latin-1.
    is_same = hmac.compare_digest(
        key.strip().encode('latin-1'), self._server.api_key.encode()
    )
    return is_bearer and is_same


def _request_id(headers: datastructures.Headers) -> str:
  """Return the client's own id, if it can stand in a log, or a new one.

  It is only a label: two requests may have the same one.
  """
  own = headers.get('x-request-id', '')
  is_plain = own.isascii() and own.isprintable() and 0 < len(own) <= _MAX_ID
  return own if is_plain else f'req-{uuid.uuid4().hex}'


async def _answer(
    request: requests_lib.Request | None, error: api_error.ApiError
) -> responses.Response:
  return responses.JSONResponse(
      error.body, error.status, headers=dict(error.headers)
  )


async def _answer_http(
    request: requests_lib.Request, error: exceptions.HTTPException
) -> responses.Response:
  """Answer with an error of the router."""
  path = urllib.parse.quote(request.url.path)[:200]
  known = {
      404: (
          f'There is no {path}. Completions are at /v1/completions, there is no'
          ' chat, and /openapi.json has all paths.'
      ),
      405: f'{path} does not take {request.method}.',
  }
  message = known.get(error.status_code, error.detail)
  return await _answer(
      request,
      api_error.ApiError(
          error.status_code, message, headers=error.headers or {}
      ),
  )


async def _answer_nobody(
    request: requests_lib.Request, error: requests_lib.ClientDisconnect
) -> responses.Response:
  """Answer a client that left while it sent its request."""
  return await _answer(request, _left())


def _left() -> api_error.ApiError:
  return api_error.ApiError(_CLIENT_LEFT, 'The client has left.')


async def _answer_bug(
    request: requests_lib.Request, error: Exception
) -> responses.Response:
  """Answer with an error that is a bug, whose traceback is in the log."""
  name = type(error).__name__
  return await _answer(request, api_error.ApiError(500, f'A bug: {name}.'))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Routes of the server, with the bodies of `schemas` and errors of OpenAI."""

import asyncio
from collections.abc import AsyncIterator, Sequence
import contextlib
import dataclasses
import hmac
import pathlib
import time
from typing import Annotated, Any
import urllib.parse

import fastapi
from fastapi import concurrency
from fastapi import exceptions
from fastapi import responses
from fastapi import security
import prometheus_client
from starlette import exceptions as starlette_exceptions

from speculative_t5x import version
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import service as service_lib
from speculative_t5x.decoder import text_decoder
from speculative_t5x.serving import api_error
from speculative_t5x.serving import body_limits
from speculative_t5x.serving import completions
from speculative_t5x.serving import prometheus
from speculative_t5x.serving import replies
from speculative_t5x.serving import running as running_lib
from speculative_t5x.serving import schemas

# A loop that does not return to the host for so long has hung: it makes a few
# steps at a time.
STALL_S = 120
_ANSWERED = (
    service_lib.BusyError,
    exceptions.RequestValidationError,
    starlette_exceptions.HTTPException,
    Exception,
)
_ERROR = {'model': schemas.ErrorAnswer}
_ERRORS = {'4XX': _ERROR, '5XX': _ERROR}
# The data of each event is a `CompletionAnswer`, or [DONE].
_EVENTS = {'content': {'text/event-stream': {}}}


async def _at_end() -> AsyncIterator[contextlib.ExitStack]:
  """Yield a stack whose callbacks run once the response was sent.

  Or cannot be sent: a client that leaves a stream ends it here too.
  """
  with contextlib.ExitStack() as stack:
    yield stack


@dataclasses.dataclass(eq=False)
class Server:
  """A server of completions; its `app` is the application of ASGI."""

  decoder: text_decoder.TextDecoder  # turns texts to tokens and back
  service: service_lib.Service
  model: str  # name of the model
  fingerprint: str  # name of all that samples depend on beside a request
  # Decodes the same tokens by the target alone, as another model; None for no
  # such model.
  plain: service_lib.Service | None = None
  examples: Sequence[str] = ()  # inputs that the page offers
  # Beam search of requests that ask for beams; None for no such.
  search: beam_search.BeamSearch | None = None
  # Key that requests must have; None for any request.
  api_key: str | None = None

  def __post_init__(self):
    self.services = {self.model: self.service}
    if self.plain is not None:
      self.services[f'{self.model}-plain'] = self.plain
    reads_hints = {
        name: service is not self.plain and self.decoder.tokens.reads_hints
        for name, service in self.services.items()
    }
    self._offer = completions.Offer(self.decoder, reads_hints, self.search)
    self._running: set[running_lib.Running] = set()
    self._created = int(time.time())
    self._metrics = prometheus.Metrics(list(self.services.values()))
    self.app = self._routes()

  def _routes(self) -> fastapi.FastAPI:
    app = fastapi.FastAPI(
        title='speculative_t5x',
        version=version.VERSION,
        redoc_url=None,
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(_ANSWERED, _answer),
    )
    app.add_middleware(body_limits.limit)
    if self.api_key is not None:
      app.add_middleware(_ask_key, key=self.api_key)
    app.get('/', include_in_schema=False)(self.page)
    app.get('/health', responses=_ERRORS)(self.health)
    app.get('/ready', responses=_ERRORS)(self.ready)
    for path, answer in (('/', self.page), ('/health', self.health)):
      app.head(path, include_in_schema=False)(answer)
    app.get('/metrics', response_class=responses.PlainTextResponse)(
        self.get_metrics
    )
    key = fastapi.Depends(security.HTTPBearer(auto_error=False))  # documented
    api = fastapi.APIRouter(
        prefix='/v1',
        responses=_ERRORS,
        dependencies=[] if self.api_key is None else [key],
    )
    api.get('/models')(self.models)
    api.get('/models/{model:path}')(self.get_model)
    api.post(
        '/completions',
        response_model=schemas.CompletionAnswer,
        response_model_exclude_unset=True,
        responses={200: _EVENTS},
    )(self.complete)
    app.include_router(api)
    return app

  def end_all(self) -> None:
    """End all decoding with an error; in the event loop."""
    for running in list(self._running):
      running.fail(api_error.unavailable('The server ends.'))

  async def page(self) -> responses.FileResponse:
    """Return the page for a person."""
    # A browser asks whether its copy is that of another release.
    return responses.FileResponse(
        pathlib.Path(__file__).with_name('page.html'),
        headers={'cache-control': 'no-cache'},
    )

  async def health(self) -> dict[str, str]:
    """Tell whether the engine is alive."""
    if not all(service.is_alive for service in self.services.values()):
      raise api_error.unavailable('The engine has stopped. Start the server.')
    return {'status': 'alive'}

  async def ready(self) -> dict[str, str]:
    """Tell whether requests are decoded."""
    await self.health()
    if any(x.seconds_without_return > STALL_S for x in self.services.values()):
      raise api_error.unavailable(f'The engine has hung for {STALL_S} s.')
    return {'status': 'ready'}

  async def get_metrics(self) -> responses.Response:
    """Return counts and times for Prometheus."""
    return responses.Response(
        self._metrics.text(), media_type=prometheus_client.CONTENT_TYPE_LATEST
    )

  async def models(self) -> schemas.ServedModels:
    """Return all models."""
    return schemas.ServedModels(
        data=[await self.get_model(name) for name in self.services]
    )

  async def get_model(self, model: str) -> schemas.ServedModel:
    """Return a model by its name."""
    if model not in self.services:
      raise completions.no_model(model, list(self.services))
    return schemas.ServedModel(
        id=model,
        created=self._created,
        speculative=self.services[model] is not self.plain,
        max_tokens=self.decoder.tokens.options.max_tokens,
        examples=list(self.examples),
    )

  async def complete(
      self,
      request: fastapi.Request,
      body: schemas.CompletionRequest,
      at_end: Annotated[contextlib.ExitStack, fastapi.Depends(_at_end)],
  ) -> responses.Response | schemas.CompletionAnswer:
    """Decode prompts; with `stream`, each event has a `CompletionAnswer`."""
    # Other requests do not wait while it is tokenized.
    completion = await concurrency.run_in_threadpool(self._offer.read, body)
    service = self.services[body.model]
    num_outputs = sum(x.num_outputs for x in completion.requests)
    if num_outputs > service.max_waiting:  # to ask again would not help
      message = f'{num_outputs} outputs never fit the queue. Ask for fewer.'
      raise api_error.ApiError(400, message, 'n')
    running = running_lib.Running(completion, service, self.decoder)
    self._running.add(running)
    at_end.callback(self._finish, running)
    reply = replies.Reply(completion, self.decoder, self.fingerprint)
    if body.stream:
      return responses.StreamingResponse(
          reply.events(running),
          media_type='text/event-stream',
          headers={'cache-control': 'no-cache', 'x-accel-buffering': 'no'},
      )
    watching = asyncio.create_task(_fail_when_left(request, running))
    at_end.callback(watching.cancel)
    return reply.whole(running.choices, await running.all_pieces())

  def _finish(self, running: running_lib.Running) -> None:
    running.close()
    self._metrics.count(running)
    self._running.discard(running)


async def _fail_when_left(
    request: fastapi.Request, running: running_lib.Running
) -> None:
  """End a completion once the client has left."""
  while (await request.receive())['type'] != 'http.disconnect':
    pass
  # Nobody reads the response; its status is nginx's.
  running.fail(api_error.ApiError(499, 'The client has left.'))


def _ask_key(app: Any, key: str) -> Any:
  """Return an application of ASGI that reads no request without the key."""

  async def asked(scope: Any, receive: Any, send: Any) -> None:
    # The routes' own path. Some releases of Starlette parse a URL's from Host.
    if scope['type'] == 'http' and scope['path'].startswith('/v1/'):
      request = fastapi.Request(scope)
      kind, _, sent = request.headers.get('authorization', '').partition(' ')
      # In a time that does not tell how much of it is right. The bytes of a
      # header are read as Latin-1.
      is_right = hmac.compare_digest(sent.encode('latin-1'), key.encode())
      if kind.lower() != 'bearer' or not is_right:
        message = 'The API key is missing or another one.'
        error = api_error.ApiError(401, message, code='invalid_api_key')
        return await (await _answer(request, error))(scope, receive, send)
    await app(scope, receive, send)

  return asked


async def _answer(
    request: fastapi.Request, error: Exception
) -> responses.Response:
  """Answer with an error as OpenAI's clients read it."""
  match error:
    case api_error.ApiError():
      answer = error
    case service_lib.ClosedError():
      answer = api_error.unavailable(str(error))
    case service_lib.BusyError():
      answer = api_error.ApiError(
          429, str(error), code='queue_full', headers=api_error.RETRY
      )
    case exceptions.RequestValidationError():
      answer = api_error.invalid(error.errors())
    case starlette_exceptions.HTTPException():
      path = urllib.parse.quote(request.url.path)[:200]
      answer = api_error.ApiError(
          error.status_code,
          f'{error.detail}: {request.method} {path}. All paths are at /docs.',
          headers=error.headers,
      )
    case _:  # a bug, whose traceback is in the log
      answer = api_error.ApiError(500, f'A bug: {type(error).__name__}.')
  return responses.JSONResponse(
      answer.answer.model_dump(), answer.status_code, answer.headers
  )

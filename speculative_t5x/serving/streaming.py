# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Completions as server-sent events, as OpenAI's clients read them."""

from collections.abc import AsyncIterator, Callable
import json
from typing import Any

from starlette import concurrency
from starlette import responses

from speculative_t5x.serving import api_error
from speculative_t5x.serving import replies
from speculative_t5x.serving import running as running_lib

_DONE = b'data: [DONE]\n\n'


class EventStream(responses.StreamingResponse):
  """The response of a completion that is streamed."""

  media_type = 'text/event-stream'

  def __init__(
      self,
      reply: replies.Reply,
      running: running_lib.Running,
      finish: Callable[[running_lib.Running], object],
  ):
    """Begin when it is called.

    Args:
      reply: Says how it is written.
      running: Is streamed.
      finish: Is called with it at the end, however that comes.
    """
    headers = {'cache-control': 'no-cache', 'x-accel-buffering': 'no'}
    super().__init__(_events(reply, running), headers=headers)
    self._running = running
    self._finish = finish

  async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
    try:
      await super().__call__(scope, receive, send)
    finally:
      # A client that leaves interrupts `send`, which `_events` does not see.
      self._finish(self._running)


async def _events(
    reply: replies.Reply, running: running_lib.Running
) -> AsyncIterator[bytes]:
  """Yield the events of a completion.

  The status was sent before, so that an error is an event too.
  """
  head = reply.head()
  if reply.completion.includes_usage:
    head['usage'] = None
  try:
    async for part in running.parts():
      yield _event({**head, 'choices': [reply.choice(part)]})
  except api_error.ApiError as error:
    yield _event(error.body)
    return
  if reply.completion.includes_usage:
    # Other requests do not wait while long predictions are compared.
    totals = await concurrency.run_in_threadpool(reply.totals, running)
    yield _event({**head, 'choices': [], **totals})
  yield _DONE


def _event(content: dict[str, Any]) -> bytes:
  return f'data: {json.dumps(content, ensure_ascii=False)}\n\n'.encode()

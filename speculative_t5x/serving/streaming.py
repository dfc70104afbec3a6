# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Completions as server-sent events, as OpenAI's clients read them."""

from collections.abc import AsyncIterator

from fastapi import concurrency

from speculative_t5x.serving import api_error
from speculative_t5x.serving import replies
from speculative_t5x.serving import running as running_lib
from speculative_t5x.serving import schemas


async def events(
    reply: replies.Reply, running: running_lib.Running
) -> AsyncIterator[str]:
  """Yield the events of a completion.

  The status was sent before, so that an error is an event too.
  """
  options = running.completion.body.stream_options
  includes_usage = options is not None and options.include_usage
  usage = {'usage': None} if includes_usage else {}
  try:
    async for choice, pieces in running.parts():
      yield _event(reply.event([reply.choice(choice, pieces)], **usage))
  except api_error.ApiError as error:
    yield _event(error.answer)
    return
  if includes_usage:
    # Other requests do not wait while long predictions are compared.
    totals = await concurrency.run_in_threadpool(reply.totals, running.choices)
    yield _event(reply.event([], **totals))
  yield 'data: [DONE]\n\n'


def _event(content: schemas.CompletionAnswer | schemas.ErrorAnswer) -> str:
  return f'data: {content.model_dump_json(exclude_unset=True)}\n\n'

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Limits on the bodies of requests: their size, and the time that they take."""

import asyncio
from typing import Any

from speculative_t5x.serving import api_error

MAX_BYTES = 1 << 20
READ_S = 30  # in which a body must have come whole


def limit(app: Any) -> Any:
  """Return an application of ASGI around another one, with these limits."""

  async def limited(scope: Any, receive: Any, send: Any) -> None:
    deadline = asyncio.get_running_loop().time() + READ_S
    num_bytes = 0

    async def receive_in_time() -> Any:
      nonlocal deadline, num_bytes
      try:
        async with asyncio.timeout_at(deadline):
          message = await receive()
      except TimeoutError as error:
        raise api_error.ApiError(
            408,
            f'The body has not come whole within {READ_S} s. Send it again.',
            headers={'connection': 'close'},
        ) from error
      num_bytes += len(message.get('body', b''))
      if num_bytes > MAX_BYTES:
        raise api_error.ApiError(
            413, f'The body has more than {MAX_BYTES} bytes.'
        )
      if not message.get('more_body'):
        deadline = None  # what follows is that the client leaves
      return message

    await app(scope, receive_in_time, send)

  return limited

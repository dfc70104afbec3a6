# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One process that serves: its socket, its signals, its end."""

import asyncio
import os
import socket
from typing import Any

import uvicorn

from speculative_t5x.serving import app as app_lib

_CLOSE_S = 5  # for responses to end after `grace_s`, then they are cut off


def listen(host: str, port: int) -> socket.socket:
  """Return a socket that listens: clients wait until the server answers.

  Raises:
    OSError: if the address cannot be had.
  """
  family = socket.AF_INET6 if ':' in host else socket.AF_INET
  return socket.create_server((host, port), family=family)


def url(listening: socket.socket) -> str:
  """Return the address that a socket listens at."""
  host, port = listening.getsockname()[:2]
  return f'http://[{host}]:{port}' if ':' in host else f'http://{host}:{port}'


class Process(uvicorn.Server):
  """A server that finishes what runs when a signal comes.

  At the first SIGTERM or SIGINT no more connections are taken, and requests
  that run go on; those that have not ended in time end with an error. At a
  second signal the process ends.
  """

  def __init__(self, server: app_lib.Server, grace_s: float):
    """Configure uvicorn; requests that run may end in so many seconds."""
    config = uvicorn.Config(
        server.app,
        http='h11',
        ws='none',
        lifespan='off',
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=grace_s + _CLOSE_S,
    )
    super().__init__(config)
    self._server = server
    self._grace_s = grace_s

  def handle_exit(self, sig: int, frame: Any) -> None:
    """Begin to end; called by signals. The base class is left out.

    It would raise the signal again at the end.
    """
    if self.should_exit:
      os._exit(128 + sig)
    self.should_exit = True

  async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
    """Finish what runs; `uvicorn.Server.run` calls it."""
    loop = asyncio.get_running_loop()
    loop.call_later(self._grace_s, self._server.end_all)
    await super().shutdown(sockets)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One process that serves: its socket, its signals, its end."""

import asyncio
import contextlib
import logging
import os
import socket
import time
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http import h11_impl

from speculative_t5x.serving import app as app_lib
from speculative_t5x.serving import envelope
from speculative_t5x.speculation import ranges

# A client that reads nothing for so long, while more than the buffers hold is
# to be sent, is cut off.
STALL_S = 30
_CLOSE_S = 5  # for connections to close after their responses, then are cut off
_log = logging.getLogger('speculative_t5x.serving')


def bind(host: str, port: int) -> socket.socket:
  """Return a socket that is bound, for `listen`; nobody else can bind it.

  Raises:
    ranges.ArgumentError: if it cannot be.
  """
  ranges.check_settings(ranges.whole(0, 65535), port=port)
  try:
    found = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    family, kind, protocol, _, address = found[0]
    with contextlib.ExitStack() as stack:
      bound = stack.enter_context(socket.socket(family, kind, protocol))
      bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
      bound.bind(address)
      # Two that may be bound anew may be bound at once, until one listens.
      bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
      stack.pop_all()
  except OSError as error:
    raise ranges.ArgumentError(
        f'Port {port} of host {host!r} cannot be had: {error}. Set others, or'
        ' port to 0 for a free one.',
        host=host,
        port=port,
    ) from error
  return bound


def listen(bound: socket.socket) -> None:
  """Let clients connect, who wait until the server answers."""
  # Connections inherit it: without it, the next server would wait for them.
  bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
  bound.listen()


def url(bound: socket.socket) -> str:
  """Return the address that a socket is bound to."""
  host, port = bound.getsockname()[:2]
  return f'http://[{host}]:{port}' if ':' in host else f'http://{host}:{port}'


def serve(server: app_lib.Server, bound: socket.socket, grace_s: float) -> None:
  """Serve until a signal comes, and then finish what runs.

  At the first SIGTERM or SIGINT, requests are refused (503), and those that run
  go on; what has not ended after `grace_s` seconds ends with an error. At a
  second signal the process ends.
  """
  config = uvicorn.Config(
      server,
      http=_Protocol,
      ws='none',
      lifespan='off',
      access_log=False,
      log_config=None,
      server_header=False,
      timeout_graceful_shutdown=_CLOSE_S,
  )
  _Uvicorn(config, server, grace_s).run(sockets=[bound])


class _Uvicorn(uvicorn.Server):
  """A uvicorn that ends when all requests have been answered."""

  def __init__(
      self, config: uvicorn.Config, server: app_lib.Server, grace_s: float
  ):
    super().__init__(config)
    self._server = server
    self._grace_s = grace_s
    self._deadline: float | None = None  # of `time.monotonic`

  def handle_exit(self, sig: int, frame: Any) -> None:
    """Begin to end; called by signals. The base class is left out.

    It would close the socket at once, and raise the signal again at the end.
    """
    if self._server.is_draining:
      os._exit(128 + sig)
    self._server.is_draining = True

  async def on_tick(self, counter: int) -> bool:
    """End when there is nothing left to do; called ten times a second."""
    if self._server.is_draining:
      self._drain()
    return await super().on_tick(counter)

  def _drain(self) -> None:
    """See whether the server may end."""
    if self._deadline is None:
      self._deadline = time.monotonic() + self._grace_s
      _log.info(
          'finishing %d requests, for %g s at most',
          self._server.num_running,
          self._grace_s,
      )
      self._server.end_reading()
    if time.monotonic() > self._deadline:
      self._server.end_all()
      self.should_exit = True
    self.should_exit |= self._server.num_open == 0


class _Protocol(h11_impl.H11Protocol):
  """HTTP that cuts off clients which do not read, or send no whole request."""

  _stalled: asyncio.TimerHandle | None = None
  _unread: asyncio.TimerHandle | None = None

  def connection_made(self, transport: Any) -> None:
    super().connection_made(transport)
    self._limit_reading()

  def handle_events(self) -> None:
    super().handle_events()
    self._limit_reading()

  def pause_writing(self) -> None:
    super().pause_writing()
    self._stalled = self.loop.call_later(STALL_S, self.transport.abort)

  def resume_writing(self) -> None:
    super().resume_writing()
    _cancel(self._stalled)

  def connection_lost(self, exc: Exception | None) -> None:
    _cancel(self._stalled)
    _cancel(self._unread)
    super().connection_lost(exc)

  def _limit_reading(self) -> None:
    """Have a request that has not come whole end, if it takes too long."""
    if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
      _cancel(self._unread)
      self._unread = None
    elif self._unread is None:
      self._unread = self.loop.call_later(envelope.READ_S, self._give_up)

  def _give_up(self) -> None:
    self._unread = None
    # While it has no response, the server limits the body itself.
    if self.cycle is None or self.cycle.response_complete:
      self.transport.close()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
  if timer is not None:
    timer.cancel()

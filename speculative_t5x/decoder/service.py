# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that are submitted one by one, from any thread, to one engine.

One thread alone decodes, and calls JAX. It takes what has been submitted each
time that the loop returns to the host.

A call of the device that fails, as for want of memory, takes all rows with it,
and their requests fail.
"""

from collections.abc import Callable, Sequence
from concurrent import futures
import contextlib
import dataclasses
import itertools
import logging
import threading
import time

import jax

from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.decoder import rows as rows_lib
from speculative_t5x.loading import errors
from speculative_t5x.speculation import ranges

# Steps between two returns while somebody is told of tokens. Where steps take a
# few milliseconds, to return after each one costs tokens per second.
_TOLD_STEPS = 2
MAX_WAITING = 1024  # decodes, of requests that have no rows yet
# After so many failed calls without another in between, the device is given up.
_MAX_FAILURES = 4
_log = logging.getLogger(__name__)


class BusyError(RuntimeError):
  """Too many requests wait already, or the service ends."""


class ClosedError(BusyError):
  """The service ends, so that no request is taken again."""


class DecodeError(RuntimeError):
  """The device failed while a request was decoded."""


@dataclasses.dataclass
class Times:
  """When something happened to a request, by `time.monotonic`."""

  # It was submitted.
  submitted: float = dataclasses.field(default_factory=time.monotonic)
  # It left the queue, to be read; None before, as all others.
  begun: float | None = None
  first_tokens: float | None = None  # the first tokens were there
  ended: float | None = None  # the result was there, or an error


class Handle(futures.Future):
  """A request that was submitted: the future of its `results.Result`.

  `result` raises TimeoutError if there is none in time, CancelledError for a
  cancelled request, ValueError for logits that are not finite, `DecodeError` if
  the device failed, `ClosedError` if the service was closed before, and
  otherwise what `on_tokens` raised or what ended the service.

  Attributes:
    request: The request, of token ids.
    times: When something happened to it.
  """

  def __init__(
      self,
      pending: pending_lib.Pending,
      on_tokens: Callable[[int, results.Decode], object] | None,
  ):
    super().__init__()
    self.request = pending.request
    self.times = Times()
    self._pending = pending
    self._on_tokens = on_tokens
    self._told: dict[int, int] = {}  # how many tokens of each decode

  def cancel(self) -> bool:
    """End the request at the next return to the host, unless it has ended."""
    self._pending.is_cancelled = True
    return super().cancel()

  def _tell(self, number: int, committed: results.Decode) -> None:
    """Tell whoever submitted it the tokens of a decode, if there are more."""
    if self.times.first_tokens is None:
      self.times.first_tokens = time.monotonic()
    if self._on_tokens is None or self._pending.is_cancelled:
      return
    if len(committed.tokens) > self._told.get(number, 0):
      self._told[number] = len(committed.tokens)
      self._on_tokens(number, committed)

  def _fail(self, error: BaseException) -> None:
    with contextlib.suppress(futures.InvalidStateError):  # it was cancelled
      self.set_exception(error)


class Service:
  """Decodes what is submitted, in a thread of its own.

  Example:

    >>> import speculative_t5x as st
    >>> engine = st.Engine(st.embedded.load_decoder(gamma=5), rows=4)
    >>> with st.Service(engine) as service:
    ...   handle = service.submit(st.Request('The train from Bonn is late.'))
    ...   text = handle.result().text

  Attributes:
    max_waiting: Most decodes of requests that have no rows yet.
  """

  def __init__(self, engine: engine_lib.Engine, max_waiting: int = MAX_WAITING):
    """Start the thread, which waits for the first request."""
    ranges.check_settings(ranges.COUNT, max_waiting=max_waiting)
    self._engine = engine
    self.max_waiting = max_waiting
    self._numbers = itertools.count()
    # Of what has not ended.
    self._handles: dict[pending_lib.Pending, Handle] = {}
    self._waiting: list[pending_lib.Pending] = []
    self._changed = threading.Condition()
    self._is_closing = False
    self._error: BaseException | None = None  # that ended the thread
    self._returned: float | None = None
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  @property
  def num_waiting(self) -> int:
    """Requests that have no rows yet."""
    return len(self._waiting)

  @property
  def num_running(self) -> int:
    """Requests that have not ended and have rows."""
    return len(self._handles) - len(self._waiting)

  @property
  def is_alive(self) -> bool:
    """True while requests are decoded."""
    return self._thread.is_alive()

  @property
  def seconds_without_return(self) -> float:
    """Since the loop last returned to the host; 0 if nothing is decoded."""
    returned = self._returned
    return 0.0 if returned is None else time.monotonic() - returned

  def submit(
      self,
      request: request_lib.Request | str | Sequence[int],
      on_tokens: Callable[[int, results.Decode], object] | None = None,
  ) -> Handle:
    """Submit a request.

    Args:
      request: A request, or an input that is decoded greedily. Its example id
        is 0 unless it has one: the same request has the same result whenever it
        is submitted.
      on_tokens: Is called in the thread that decodes, which it must not hold
        up, with a decode number and its tokens so far, each time that there are
        more; see `rows.Rows.committed`.
    Raises:
      BusyError: if too many requests wait, or the service was closed.
      ValueError: for a request that cannot be decoded.
    """
    (handle,) = self.submit_all([request], [on_tokens])
    return handle

  def submit_all(
      self,
      requests: Sequence[request_lib.Request | str | Sequence[int]],
      on_tokens: Sequence[Callable[[int, results.Decode], object] | None],
  ) -> list[Handle]:
    """Submit all of some requests or, if one is refused, none; see `submit`."""
    handles = []
    requests = map(request_lib.of, requests)
    for request, call in zip(requests, on_tokens, strict=True):
      if request.example_id is None:
        request = dataclasses.replace(request, example_id=0)
      pending = self._engine.pending(request, next(self._numbers))
      handles.append(Handle(pending, call))
    with self._changed:
      self.check_room(sum(each.request.num_outputs for each in handles))
      for handle in handles:
        self._handles[handle._pending] = handle
        self._waiting.append(handle._pending)
      self._changed.notify()
    return handles

  def check_room(self, num_decodes: int) -> None:
    """Raise BusyError where so many decodes more would be refused."""
    if self._error is not None:
      raise ClosedError(
          f'The service has ended: {errors.first_line(self._error)}. Make'
          ' another one.'
      ) from self._error
    if self._is_closing or not self.is_alive:
      raise ClosedError('The service ends. Submit to another one.')
    waiting = sum(x.request.num_outputs for x in list(self._waiting))
    if waiting + num_decodes > self.max_waiting:
      raise BusyError(
          f'{waiting} decodes wait already. Submit again later, or allow more'
          ' by max_waiting.'
      )

  def close(self, timeout: float | None = None) -> None:
    """Take no more requests, and wait for those that there are.

    After `timeout` seconds, if there is a timeout, they are cancelled.
    """
    with self._changed:
      self._is_closing = True
      self._changed.notify()
    self._thread.join(timeout)
    for handle in list(self._handles.values()):
      handle.cancel()
    self._thread.join()

  def __enter__(self) -> 'Service':
    return self

  def __exit__(self, *unused) -> None:
    self.close()

  def _run(self) -> None:
    """Decode until the service is closed and all requests have ended."""
    num_failures = 0  # without a call between that did not fail
    try:
      rows = self._engine.new_runs()
      while self._wait(rows):
        try:
          self._decode(rows)
          num_failures = 0
        except jax.errors.JaxRuntimeError as error:
          num_failures += 1
          if num_failures == _MAX_FAILURES:
            raise
          _log.warning('The device failed.', exc_info=error)
          self._fail_begun(errors.first_line(error))
          rows = self._engine.new_runs()
    except BaseException as error:  # nobody may wait for ever
      _log.critical('The service ends.', exc_info=error)
      self._error = error
      self._end_all(error)
    else:
      self._end_all(ClosedError('The service was closed.'))

  def _decode(self, rows: rows_lib.Runs) -> None:
    """Fill rows, decode a few steps, and hand out what has ended."""
    self._fill(rows)
    if rows.is_idle:
      return
    # Nobody waits for the rows of others, nor for tokens that are there.
    rows.advance(returns_early=True, limit=self._num_steps())
    for pending in rows.ended():
      self._end(pending)
    for pending, number, committed in rows.committed():
      if handle := self._handles.get(pending):
        try:
          handle._tell(number, committed)
        except Exception as error:  # a fault of one caller, not of all others
          pending.is_cancelled = True
          handle._fail(error)

  def _fail_begun(self, reason: str) -> None:
    with self._changed:
      lost = self._handles.keys() - set(self._waiting)
      handles = [self._handles.pop(pending) for pending in lost]
    for handle in handles:
      handle._fail(DecodeError(f'The device failed: {reason}'))

  def _wait(self, rows: rows_lib.Runs) -> bool:
    """Wait until there is something to do; return whether there is."""
    self._returned = None
    with self._changed:
      # One that was cancelled as its rows ended would wait for the next one.
      self._drop_cancelled()
      self._changed.wait_for(
          lambda: self._waiting or not rows.is_idle or self._is_closing
      )
    self._returned = time.monotonic()
    return bool(self._waiting) or not rows.is_idle

  def _num_steps(self) -> int:
    """Return after how many steps the loop returns to the host."""
    tells = any(each._on_tokens for each in list(self._handles.values()))
    return _TOLD_STEPS if tells else row_programs.MAX_STEPS

  def _fill(self, rows: rows_lib.Runs) -> None:
    with self._changed:
      self._drop_cancelled()
      before = list(self._waiting)
    left = list(before)
    try:
      rows.fill(left)  # it compiles at first, and `submit` must not wait for it
    finally:
      taken = set(before).difference(left)
      now = time.monotonic()
      with self._changed:
        self._waiting = [x for x in self._waiting if x not in taken]
        for pending in taken.intersection(self._handles):
          self._handles[pending].times.begun = now

  def _drop_cancelled(self) -> None:
    for pending in [x for x in self._handles if x.is_cancelled]:
      del self._handles[pending]
      with contextlib.suppress(ValueError):  # it may have rows
        self._waiting.remove(pending)

  def _end(self, pending: pending_lib.Pending) -> None:
    with self._changed:
      handle = self._handles.pop(pending, None)
    if handle is None:
      return
    handle.times.ended = time.monotonic()
    if not handle.set_running_or_notify_cancel():
      return
    try:
      handle.set_result(self._engine.result(pending))
    except ValueError as error:
      handle._fail(error)

  def _end_all(self, error: BaseException) -> None:
    """Fail all requests that have not ended, and take no more."""
    with self._changed:
      self._is_closing = True
      handles = list(self._handles.values())
      self._handles.clear()
    for handle in handles:
      handle._fail(error)

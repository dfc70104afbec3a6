# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Requests that are submitted one by one, from any thread, to one engine.

One thread alone decodes, and calls JAX. It takes what has been submitted each
time that the loop returns to the host.
"""

from collections.abc import Callable, Sequence
from concurrent import futures
import contextlib
import dataclasses
import itertools
import threading
import time

from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.speculation import ranges

# Steps between two returns while somebody is told of tokens. Where steps take a
# few milliseconds, to return after each one costs tokens per second.
_TOLD_STEPS = 2
MAX_WAITING = 1024  # decodes, of requests that have no rows yet


class BusyError(RuntimeError):
  """Too many requests wait already, or the service ends."""


class ClosedError(BusyError):
  """The service ends, so that no request is taken again."""


@dataclasses.dataclass
class Times:
  """When something happened to a request, by `time.monotonic`.

  Attributes:
    submitted: It was submitted.
    begun: It left the queue, to be read; None before, as all others.
    first_tokens: The first tokens were there.
    ended: The result was there, or an error.
  """

  submitted: float = dataclasses.field(default_factory=time.monotonic)
  begun: float | None = None
  first_tokens: float | None = None
  ended: float | None = None


class Handle:
  """A request that was submitted.

  Attributes:
    request: The request, of token ids.
    times: When something happened to it.
  """

  def __init__(
      self,
      work: engine_lib.Work,
      on_tokens: Callable[[int, results.Committed], object] | None,
  ):
    self.request = work.request
    self.times = Times()
    self._work = work
    self._on_tokens = on_tokens
    self._future: futures.Future[results.Result] = futures.Future()

  def result(self, timeout: float | None = None) -> results.Result:
    """Wait for the result, for so many seconds at most; None for any number.

    Raises:
      TimeoutError: if there is none by then.
      futures.CancelledError: if the request was cancelled.
      ValueError: for logits that are not finite.
      ClosedError: if the service was closed before.
      Exception: what `on_tokens` raised, or what ended the service.
    """
    return self._future.result(timeout)

  @property
  def is_done(self) -> bool:
    """Whether there is a result or an error, or the request was cancelled."""
    return self._future.done()

  def on_end(self, call: Callable[[], object]) -> None:
    """Call a function when there is a result or an error, in any thread."""
    self._future.add_done_callback(lambda _: call())

  def cancel(self) -> None:
    """End the request at the next return to the host, unless it has ended."""
    self._work.is_cancelled = True
    self._future.cancel()


class Service:
  """Decodes what is submitted, in a thread of its own.

  Example:

    >>> import speculative_t5x as st
    >>> engine = st.Engine(st.embedded.load_decoder(gamma=5), rows=4)
    >>> with st.Service(engine) as service:
    ...   handle = service.submit(st.Request('The train from Bonn is late.'))
    ...   text = handle.result().text
  """

  def __init__(
      self, engine: engine_lib.Engine, max_waiting: int = MAX_WAITING
  ):
    """Start the thread, which waits for the first request.

    Args:
      engine: Decodes.
      max_waiting: Most decodes of requests that have no rows yet.
    """
    ranges.check_settings(ranges.COUNT, max_waiting=max_waiting)
    self._engine = engine
    self._max_waiting = max_waiting
    self._numbers = itertools.count()
    self._handles: dict[engine_lib.Work, Handle] = {}  # of what has not ended
    self._waiting: list[engine_lib.Work] = []
    self._changed = threading.Condition()
    self._is_closing = False
    self._returned: float | None = None
    self._thread = threading.Thread(target=self._run, daemon=True)
    self._thread.start()

  @property
  def max_waiting(self) -> int:
    """Most decodes of requests that have no rows yet."""
    return self._max_waiting

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
    """Whether requests are decoded."""
    return self._thread.is_alive()

  @property
  def seconds_without_return(self) -> float:
    """Since the loop last returned to the host; 0 if nothing is decoded."""
    returned = self._returned
    return 0.0 if returned is None else time.monotonic() - returned

  def submit(
      self,
      request: request_lib.Request,
      on_tokens: Callable[[int, results.Committed], object] | None = None,
  ) -> Handle:
    """Submit a request.

    Args:
      request: Its example id is 0 unless it has one: the same request has the
        same result whenever it is submitted.
      on_tokens: Is called in the thread that decodes, which it must not hold
        up, with a decode number and its tokens so far, each time that there are
        more; see `engine.Rows.committed`.
    Raises:
      BusyError: if too many requests wait, or the service was closed.
      ValueError: for a request that cannot be decoded.
    """
    (handle,) = self.submit_all([request], [on_tokens])
    return handle

  def submit_all(
      self,
      requests: Sequence[request_lib.Request],
      on_tokens: Sequence[Callable[[int, results.Committed], object] | None],
  ) -> list[Handle]:
    """Submit all of some requests or, if one is refused, none; see `submit`.

    Args:
      requests: The requests.
      on_tokens: What is called with the tokens of each.
    """
    handles = []
    for request, call in zip(requests, on_tokens, strict=True):
      if request.example_id is None:
        request = dataclasses.replace(request, example_id=0)
      work = self._engine.work(request, next(self._numbers))
      handles.append(Handle(work, call))
    with self._changed:
      self.check_room(sum(each.request.num_decodes for each in handles))
      for handle in handles:
        self._handles[handle._work] = handle
        self._waiting.append(handle._work)
      self._changed.notify()
    return handles

  def check_room(self, num_decodes: int) -> None:
    """Raise BusyError where so many decodes more would be refused."""
    if self._is_closing or not self.is_alive:
      raise ClosedError('The service ends. Submit to another one.')
    waiting = sum(x.request.num_decodes for x in list(self._waiting))
    if waiting + num_decodes > self._max_waiting:
      raise BusyError(
          f'{waiting} decodes wait already. Submit again later, or allow more'
          ' by max_waiting.'
      )

  def close(self, timeout: float | None = None) -> None:
    """Take no more requests, and wait for those that there are.

    Args:
      timeout: Seconds to wait at most, after which they are cancelled; None for
        any number.
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
    try:
      rows = self._engine.new_rows()
      while self._wait(rows):
        self._fill(rows)
        if rows.is_idle:
          continue
        # Nobody waits for the rows of others, nor for tokens that are there.
        rows.advance(returns_early=True, limit=self._num_steps())
        for work in rows.ended():
          self._end(work)
        for work, number, committed in rows.committed():
          if handle := self._handles.get(work):
            self._tell(handle, number, committed)
    except BaseException as error:  # nobody may wait for ever
      self._fail(error)
      raise
    self._fail(ClosedError('The service was closed.'))

  def _wait(self, rows: engine_lib.Rows) -> bool:
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

  def _fill(self, rows: engine_lib.Rows) -> None:
    """Give rows to waiting requests."""
    with self._changed:
      self._drop_cancelled()
      before = list(self._waiting)
    left = list(before)
    rows.fill(left)  # it compiles at first, and `submit` must not wait for it
    taken = set(before).difference(left)
    now = time.monotonic()
    with self._changed:
      self._waiting = [x for x in self._waiting if x not in taken]
      for work in taken.intersection(self._handles):
        self._handles[work].times.begun = now

  def _drop_cancelled(self) -> None:
    for work in [x for x in self._handles if x.is_cancelled]:
      del self._handles[work]
      with contextlib.suppress(ValueError):  # it may have rows
        self._waiting.remove(work)

  def _tell(
      self, handle: Handle, number: int, committed: results.Committed
  ) -> None:
    """Tell whoever submitted a request its tokens so far."""
    if handle.times.first_tokens is None:
      handle.times.first_tokens = time.monotonic()
    if handle._on_tokens is None or handle._work.is_cancelled:
      return
    try:
      handle._on_tokens(number, committed)
    except Exception as error:  # a fault of one caller, not of all others
      handle._work.is_cancelled = True
      with contextlib.suppress(futures.InvalidStateError):
        handle._future.set_exception(error)

  def _end(self, work: engine_lib.Work) -> None:
    with self._changed:
      handle = self._handles.pop(work, None)
    if handle is None:
      return
    handle.times.ended = time.monotonic()
    if not handle._future.set_running_or_notify_cancel():
      return
    try:
      handle._future.set_result(self._engine.result(work))
    except ValueError as error:
      handle._future.set_exception(error)

  def _fail(self, error: BaseException) -> None:
    with self._changed:
      self._is_closing = True
      handles = list(self._handles.values())
      self._handles.clear()
    for handle in handles:
      with contextlib.suppress(futures.InvalidStateError):
        handle._future.set_exception(error)

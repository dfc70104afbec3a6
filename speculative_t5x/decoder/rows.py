# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows on the device, and the requests that they decode.

Legend: places (of a run, each of one row, or of all rows of a beam search),
width (requests that are read at once).
"""

import collections
from collections.abc import Callable, Iterator, Sequence
import functools
import itertools
import time
from typing import Any, NamedTuple

import jax
import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.decoder import reading
from speculative_t5x.decoder import report as report_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.loading import errors
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import outcome as outcome_lib


class Size(NamedTuple):
  """A number of places that are decoded at once.

  Attributes:
    programs: Decode them.
    load: Caps drafts; None of other policies.
  """

  programs: row_programs.RowPrograms
  load: by_load.Load | None = None

  @property
  def num_places(self) -> int:
    return self.programs.num_places


class Rows:
  """Rows on the device, and the requests that they decode."""

  def __init__(
      self,
      sizes: Sequence[Size],
      reader: reading.Reader,
      counts: counts_lib.Counts,
      rule: Any,
  ):
    """Begin with places that have ended.

    Args:
      sizes: Descending. The places are as many as the smallest has that has
        enough.
      reader: Makes batches of requests.
      counts: Are added to.
      rule: See `RowPrograms.advance`.
    """
    self._sizes = sizes
    self._index = 0  # of the present size
    self._reader = reader
    self._rule = rule
    self._cap: int | None = None
    # Target calls and accepted draft tokens of each row at the last return.
    self._seen: tuple[np.ndarray, np.ndarray] | None = None
    self._counts = counts
    self._run: Any = None
    self._report: report_lib.Report | None = None
    # Work and first decode number of each place; None for one that has ended.
    self._places: list[tuple[reading.Work, int] | None]
    self._places = [None] * sizes[0].num_places
    # Decodes that ended in the last steps, of requests that have not.
    self._ended_first: list[tuple[reading.Work, results.Decode]] = []
    # Started rows, some of which have no place yet.
    self._started: collections.deque[tuple[Any, list[reading.Work]]] = (
        collections.deque()
    )

  @property
  def is_idle(self) -> bool:
    """True if nothing is being decoded."""
    return not self._started and not any(self._places)

  @property
  def _programs(self) -> row_programs.RowPrograms:
    return self._sizes[self._index].programs

  @property
  def _load(self) -> by_load.Load | None:
    return self._sizes[self._index].load

  def fill(self, waiting: list[reading.Work]) -> None:
    """Give ended places to waiting requests, which leave the list."""
    if self._run is None and waiting:
      self._start(self._reader.take(waiting))
    self._fit(waiting)
    free = [i for i, place in enumerate(self._places) if place is None]
    while free and (self._started or waiting):
      if not self._started:
        self._start(self._reader.take(waiting))
      started, group = self._started[0]
      places = np.full(self._reader.width, -1, np.int32)
      decodes = np.zeros(self._reader.width, np.int32)
      for index, work in enumerate(group):
        if free and not work.is_begun:
          places[index], decodes[index] = free.pop(0), work.num_begun
          self._places[places[index]] = work, work.num_begun
          work.num_begun += self._programs.rows_per_place
          if self._seen is not None:
            for counted in self._seen:
              counted[places[index]] = 0
      is_last = all(work.is_begun for work in group)
      self._run = self._programs.admit(
          self._run, started, places, decodes, is_last
      )
      if is_last:
        self._started.popleft()

  def read(self, waiting: list[reading.Work]) -> None:
    """Read the next requests, which leave the list, behind a call of `advance`.

    The host prepares them while the device decodes, and the device reads them
    while the host looks at what has ended.
    """
    is_measuring = self._load is not None and self._load.is_measuring
    if len(waiting) >= self._reader.width and not (
        self._started or is_measuring
    ):
      self._start(self._reader.take(waiting))

  def warm_up(self) -> None:
    """Compile all programs; decode nothing."""
    self._start([])
    started, _ = self._started.pop()
    # Rows that have ended at once; as before all requests, in any place.
    places = np.arange(self._reader.width, dtype=np.int32) - 1
    for index in (*range(len(self._sizes)), 0):  # down, and up again
      self._resize(index)
      self._run = self._programs.admit(
          self._run, started, places, np.zeros_like(places)
      )
      self.advance(returns_early=False)
      report_lib.to_host(self._report)

  def _start(self, group: list[reading.Work]) -> None:
    started = self._programs.read(self._reader.batch(group))
    if self._run is None and len(self._places) > 1:
      nowhere = np.full(len(self._places), -1, np.int32)
      self._run = self._programs.take(started, nowhere)
    self._started.append((started, group))

  def _fit(self, waiting: Sequence[reading.Work]) -> None:
    """Have as many rows as there are decodes, as far as sizes go."""
    if len(self._sizes) == 1 or self._run is None:
      return
    needed = len(self._places) - self._places.count(None)
    groups = (group for _, group in self._started)
    # No more than the most rows, as each of them has a decode.
    first = waiting[: self._sizes[0].num_places]
    needed += sum(work.num_waiting for work in itertools.chain(first, *groups))
    num_enough = sum(size.num_places >= needed for size in self._sizes)
    self._resize(max(num_enough - 1, 0))

  def _resize(self, index: int) -> None:
    """Move the rows to a run of another size, one size at a time."""
    while index != self._index:
      self._index += 1 if index > self._index else -1
      live = [i for i, place in enumerate(self._places) if place is not None]
      rows = np.full(self._programs.num_places, -1, np.int32)
      rows[: len(live)] = live
      self._run = self._programs.take(self._run, rows)
      self._places = [self._places[i] if i >= 0 else None for i in rows]
      if self._seen is not None:  # as `take`: nothing is new in ended rows
        self._seen = tuple(x[np.maximum(rows, 0)] for x in self._seen)

  def advance(self, returns_early: bool, limit: int | None = None) -> None:
    """Decode on; asynchronous.

    Args:
      returns_early: Whether to return when a row has ended, as it can be
        refilled.
      limit: Steps to return after; None for as many as there may be.
    """
    limit = self._programs.max_steps if limit is None else limit
    cancelled = np.array([bool(x) and x[0].is_cancelled for x in self._places])
    num_ended = self._places.count(None) + int(np.sum(cancelled))
    # Decodes of requests that were read may wait too.
    returns_early = returns_early or bool(self._started)
    fewer = [size.num_places for size in self._sizes[self._index + 1 :]]
    until = len(self._places) - max(fewer, default=0)  # or when fewer suffice
    if returns_early:
      until = num_ended + 1
    advance = functools.partial(
        self._programs.advance,
        self._run,
        cancelled,
        np.int32(until),
        np.int32(limit),
        self._rule,
        keeps_alternatives=any(
            place[0].request.alternatives for place in self._places if place
        ),
    )
    if self._load is None:
      self._run, self._report = advance()
      return
    self._cap = self._load.choose()
    if self._load.is_measuring:  # reading and refilling are no part of steps
      jax.block_until_ready(self._run)
    start = time.perf_counter()
    self._run, self._report = advance(cap=np.int32(self._cap))
    if self._load.is_measuring:  # before the host goes on, whose work disturbs
      jax.block_until_ready(self._report)
    self._seconds = time.perf_counter() - start

  def ended(self) -> Iterator[reading.Work]:
    """Wait for the steps of `advance`; yield what has ended in them."""
    self._report = report = report_lib.to_host(self._report)
    num_steps = int(report.work.num_steps)
    if self._load is not None:
      self._learn(report, num_steps)
    self._counts.loop_steps += num_steps
    self._counts.row_steps += num_steps * len(report.num_calls)
    self._ended_first = []
    per_place = self._programs.rows_per_place
    for index, place in enumerate(self._places):
      rows = slice(index * per_place, (index + 1) * per_place)
      if place is None or not report.has_ended[rows.start]:
        continue
      work, number = place
      self._places[index] = None
      # Though the request may have been cancelled, or be lost.
      self._counts.tokens += int(report.num_tokens[rows].sum())
      self._counts.target_calls += int(report.num_calls[rows].sum())
      if work.is_cancelled:
        continue
      last = rows.stop - 1  # of a search the best hypothesis
      try:
        with errors.prefixed(f'Example id {work.request.example_id}'):
          report.check(last)
      except ValueError as error:
        work.error, work.is_cancelled = error, True
        yield work
        continue
      for i in range(per_place):
        work.decodes[number + i] = self._decode(last - i, work, number + i)
      if work.has_ended:
        yield work
      else:
        self._ended_first.append((work, work.decodes[number]))

  def _decode(
      self, row: int, work: reading.Work, number: int
  ) -> results.Decode:
    alternatives = work.request.alternatives
    return self._report.decode(row, number, self._programs.ends, alternatives)

  def _learn(self, report: report_lib.Report, num_steps: int) -> None:
    """Tell the load what the last steps showed."""
    accepted = outcome_lib.tokens_per_position(
        report.statistics.accepted_histogram
    )
    counted = np.array(report.num_calls), np.array(accepted)
    seen = self._seen or tuple(map(np.zeros_like, counted))
    calls, accepted_at = (
        (now - before).sum(axis=0)
        for now, before in zip(counted, seen, strict=True)
    )
    self._seen = counted
    is_timed = self._load.is_measuring and num_steps > 0
    self._load.add(
        self._cap,
        int(calls),
        accepted_at,
        self._seconds / num_steps if is_timed else None,
    )

  def committed(self) -> Iterator[tuple[reading.Work, int, results.Decode]]:
    """Yield the tokens so far of requests that have not ended.

    With the work and the number of the decode, as of the last `ended`. A decode
    that ended then, before others of its request, is whole.
    """
    for work, decode in self._ended_first:
      yield work, decode.number, decode
    if self._report.is_search:  # whose hypotheses may change to the last step
      return
    for row, place in enumerate(self._places):
      # Rows that were filled since are not in the report.
      if place is not None and self._report.num_tokens[row]:
        work, number = place
        yield work, number, self._decode(row, work, number)


class Runs:
  """Rows of samples, and of each beam search that is asked for.

  All are advanced in turn, a few steps each, so that none waits for another.
  """

  def __init__(self, new_rows: Callable[[beam_search.BeamSearch | None], Rows]):
    """Begin with none; take what makes rows of a search, or of samples."""
    self._new_rows = new_rows
    self._rows: dict[beam_search.BeamSearch | None, Rows] = {}
    self._advanced: list[Rows] = []

  @property
  def is_idle(self) -> bool:
    """True if nothing is being decoded."""
    return all(rows.is_idle for rows in self._rows.values())

  def fill(self, waiting: list[reading.Work]) -> None:
    """See `Rows.fill`."""
    for search in dict.fromkeys(work.request.search for work in waiting):
      if search not in self._rows:
        self._rows[search] = self._new_rows(search)
    self._each(Rows.fill, waiting)
    for search in [x for x, rows in self._rows.items() if rows.is_idle]:
      if search is not None:  # there may be any number of them
        del self._rows[search]

  def read(self, waiting: list[reading.Work]) -> None:
    """See `Rows.read`."""
    self._each(Rows.read, waiting)

  def _each(
      self,
      take: Callable[[Rows, list[reading.Work]], None],
      waiting: list[reading.Work],
  ) -> None:
    """Have all rows take their own of what waits."""
    if len(self._rows) == 1:
      (rows,) = self._rows.values()
      take(rows, waiting)
      return
    for search, rows in self._rows.items():
      own = [work for work in waiting if work.request.search == search]
      left = list(own)
      try:
        take(rows, left)
      finally:
        taken = set(own).difference(left)
        waiting[:] = [work for work in waiting if work not in taken]

  def advance(self, returns_early: bool, limit: int | None = None) -> None:
    """See `Rows.advance`."""
    self._advanced = [x for x in self._rows.values() if not x.is_idle]
    for rows in self._advanced:
      rows.advance(returns_early, limit)

  def ended(self) -> Iterator[reading.Work]:
    """See `Rows.ended`."""
    for rows in self._advanced:
      yield from rows.ended()

  def committed(self) -> Iterator[tuple[reading.Work, int, results.Decode]]:
    """See `Rows.committed`."""
    for rows in self._advanced:
      yield from rows.committed()

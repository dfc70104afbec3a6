# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows on the device, and the requests that they decode.

Legend: places (of a run, each of one row, or of all rows of a beam search),
width (requests that are read at once).
"""

import collections
from collections.abc import Callable, Iterator
import functools
import time
from typing import Any

import jax
import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import report as report_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.loading import errors
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import outcome as outcome_lib

# A request, the number of a decode, and its tokens so far.
_Committed = tuple[pending_lib.Pending, int, results.Decode]


class Rows:
  """Rows on the device, and the requests that they decode."""

  def __init__(
      self,
      programs: row_programs.RowPrograms,
      shape: input_batch.Shape,
      counts: counts_lib.Counts,
      rule: Any,
      load: by_load.Load | None,
  ):
    """Begin with places that have ended, as many as the programs have.

    The shape is that of the batches in which requests are read. For the rule
    see `RowPrograms.advance`. The load caps drafts; None of other policies than
    `by_load.ByLoad`.
    """
    self._programs = programs
    self._load = load
    self._shape = shape
    self._rule = rule
    self._cap: int | None = None
    # Target calls and accepted draft tokens of each row at the last return.
    self._seen: tuple[np.ndarray, np.ndarray] | None = None
    self._counts = counts
    self._run: Any = None
    self._report: report_lib.Report | None = None
    # Request and first decode number of each place; None for an ended one.
    self._places: list[tuple[pending_lib.Pending, int] | None]
    self._places = [None] * programs.num_places
    # Decodes that ended in the last steps, of requests that have not.
    self._ended_first: list[tuple[pending_lib.Pending, results.Decode]] = []
    # Started rows, some of which have no place yet.
    self._started: collections.deque[tuple[Any, list[pending_lib.Pending]]] = (
        collections.deque()
    )

  @property
  def is_idle(self) -> bool:
    """True if nothing is being decoded."""
    return not self._started and not any(self._places)

  def fill(self, waiting: list[pending_lib.Pending]) -> None:
    """Give ended places to waiting requests, which leave the list."""
    if self._run is None and waiting:
      self._start(_take_alike(waiting, self._shape.examples))
    free = [i for i, place in enumerate(self._places) if place is None]
    while free and (self._started or waiting):
      if not self._started:
        self._start(_take_alike(waiting, self._shape.examples))
      started, group = self._started[0]
      # -1 writes to no place: what fills the batch overwrites nobody's cache.
      places = np.full(self._shape.examples, -1, np.int32)
      decodes = np.zeros(self._shape.examples, np.int32)
      for index, pending in enumerate(group):
        if free and not pending.is_begun:
          places[index], decodes[index] = free.pop(0), pending.num_begun
          self._places[places[index]] = pending, pending.num_begun
          pending.num_begun += self._programs.rows_per_place
          if self._seen is not None:  # the counts of a new request begin at 0
            for counted in self._seen:
              counted[places[index]] = 0
      is_last = all(pending.is_begun for pending in group)
      self._run = self._programs.admit(
          self._run, started, places, decodes, is_last
      )
      if is_last:
        self._started.popleft()

  def read(self, waiting: list[pending_lib.Pending]) -> None:
    """Read the next requests, which leave the list, behind a call of `advance`.

    The host prepares them while the device decodes, and the device reads them
    while the host looks at what has ended.
    """
    is_measuring = self._load is not None and self._load.is_measuring
    if len(waiting) >= self._shape.examples and not (
        self._started or is_measuring
    ):
      self._start(_take_alike(waiting, self._shape.examples))

  def warm_up(self) -> None:
    """Compile all programs; decode nothing."""
    self._start([])
    started, _ = self._started.pop()
    # Rows that have ended at once; as before all requests, in any place.
    places = np.arange(self._shape.examples, dtype=np.int32) - 1
    self._run = self._programs.admit(
        self._run, started, places, np.zeros_like(places)
    )
    self.advance(returns_early=False)
    jax.device_get(self._report)

  def _start(self, group: list[pending_lib.Pending]) -> None:
    requests = [pending.request for pending in group]
    batch = input_batch.stack(requests, self._shape, self._rule)
    started = self._programs.read(batch)
    if self._run is None and len(self._places) > 1:
      nowhere = np.full(len(self._places), -1, np.int32)
      self._run = self._programs.take(started, nowhere)
    self._started.append((started, group))

  def advance(self, returns_early: bool, limit: int | None = None) -> None:
    """Decode on, for at most so many steps; asynchronous.

    It returns early when a row has ended, as it can be refilled.
    """
    limit = self._programs.max_steps if limit is None else limit
    cancelled = np.array([bool(x) and x[0].is_cancelled for x in self._places])
    num_ended = self._places.count(None) + int(np.sum(cancelled))
    # Decodes of requests that were read may wait too.
    returns_early = returns_early or bool(self._started)
    until = num_ended + 1 if returns_early else len(self._places)
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

  def ended(self) -> Iterator[pending_lib.Pending]:
    """Wait for the steps of `advance`; yield what has ended in them."""
    self._report = report = jax.device_get(self._report)
    num_steps = int(report.work.num_steps)
    if self._load is not None:
      self._learn(report, num_steps)
    self._counts.loop_steps += num_steps
    self._counts.row_steps += num_steps * len(report.num_calls)
    self._ended_first = []
    per_place = self._programs.rows_per_place
    for index, place in enumerate(self._places):
      # Hypotheses of a search end together, so that the first row tells.
      rows = slice(index * per_place, (index + 1) * per_place)
      if place is None or not report.has_ended[rows.start]:
        continue
      pending, number = place
      self._places[index] = None
      # Though the request may have been cancelled, or be lost.
      self._counts.tokens += int(report.num_tokens[rows].sum())
      self._counts.target_calls += int(report.num_calls[rows].sum())
      if pending.is_cancelled:
        continue
      last = rows.stop - 1  # of a search the best hypothesis
      try:
        with errors.prefixed(f'Example id {pending.request.example_id}'):
          report.check(last)
      except ValueError as error:
        pending.error, pending.is_cancelled = error, True
        yield pending
        continue
      for i in range(per_place):
        decode = self._decode(last - i, pending, number + i)
        pending.decodes[number + i] = decode
      if pending.has_ended:
        yield pending
      else:
        self._ended_first.append((pending, pending.decodes[number]))

  def _decode(
      self, row: int, pending: pending_lib.Pending, number: int
  ) -> results.Decode:
    alternatives = pending.request.alternatives
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

  def committed(self) -> Iterator[_Committed]:
    """Yield the tokens so far of requests that have not ended.

    With the request and the number of the decode, as of the last `ended`. A
    decode that ended then, before others of its request, is whole.
    """
    for pending, decode in self._ended_first:
      yield pending, decode.number, decode
    if self._report.is_search:  # whose hypotheses may change to the last step
      return
    for row, place in enumerate(self._places):
      # Rows that were filled since are not in the report.
      if place is not None and self._report.num_tokens[row]:
        pending, number = place
        yield pending, number, self._decode(row, pending, number)


def _take_alike(
    waiting: list[pending_lib.Pending], count: int
) -> list[pending_lib.Pending]:
  """Take the first request, and those with inputs of the most alike length.

  Reading takes as long as the longest input needs.
  """
  size = lambda pending: len(pending.request.inputs)
  first = size(waiting[0])
  group = sorted(waiting, key=lambda x: abs(size(x) - first))[:count]
  for pending in group:
    waiting.remove(pending)
  return group


class Runs:
  """Rows of samples, and of each beam search that is asked for.

  All are advanced in turn, a few steps each, and none waits for another. The
  methods are those of `Rows`.
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

  def fill(self, waiting: list[pending_lib.Pending]) -> None:
    for search in dict.fromkeys(pending.request.search for pending in waiting):
      if search not in self._rows:
        self._rows[search] = self._new_rows(search)
    self._each(Rows.fill, waiting)
    for search in [x for x, rows in self._rows.items() if rows.is_idle]:
      if search is not None:  # there may be any number of them
        del self._rows[search]

  def read(self, waiting: list[pending_lib.Pending]) -> None:
    self._each(Rows.read, waiting)

  def _each(
      self,
      take: Callable[[Rows, list[pending_lib.Pending]], None],
      waiting: list[pending_lib.Pending],
  ) -> None:
    """Have all rows take their own of what waits."""
    if len(self._rows) == 1:
      (rows,) = self._rows.values()
      take(rows, waiting)
      return
    for search, rows in self._rows.items():
      own = [pending for pending in waiting if pending.request.search == search]
      left = list(own)
      try:
        take(rows, left)
      finally:
        taken = set(own).difference(left)
        waiting[:] = [pending for pending in waiting if pending not in taken]

  def advance(self, returns_early: bool, limit: int | None = None) -> None:
    self._advanced = [x for x in self._rows.values() if not x.is_idle]
    for rows in self._advanced:
      rows.advance(returns_early, limit)

  def ended(self) -> Iterator[pending_lib.Pending]:
    for rows in self._advanced:
      yield from rows.ended()

  def committed(self) -> Iterator[_Committed]:
    for rows in self._advanced:
      yield from rows.committed()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes the inputs of an infer job, a part of them at a time."""

import collections
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import dataclasses
import functools
import itertools
import time
from typing import Any, Protocol, TypeVar

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.jobs.outputs import chunks as chunks_lib
from speculative_t5x.loading.files import json_files
from speculative_t5x.research import progress
from speculative_t5x.research.measurement import interleaved

# Of the values of a chunk: how many of its rows are errors.
NUM_ERRORS = 'num_errors'
# An input, and for each of its requests the result, or why there is none.
Answered = tuple[Any, Sequence[results.Result | ValueError]]
# Names of the files of rows, and which rows each has; None for all.
Files = Mapping[str, Callable[[str], bool] | None]
_Item = TypeVar('_Item')


class Rows(Protocol):
  """Inputs of a job as requests, and their results as rows.

  Attributes:
    files: Where the rows are written.
  """

  files: Files

  def read(self, inputs: Iterator[Any]) -> Iterator[Any]:
    """Yield inputs, read as far as it takes the model, in their order."""

  def identity(self, part: Sequence[Any]) -> list[Any]:
    """Return what the rows of inputs depend on, as JSON."""

  def requests(self, item: Any) -> Sequence[request_lib.Request]:
    """Return the requests of an input, of which there may be none."""

  def row(
      self, item: Any, found: Sequence[results.Result | ValueError]
  ) -> dict[str, Any]:
    """Return the row of an input; see `Answered`. It may raise an error."""

  def counted(self, answered: Sequence[Answered]) -> Mapping[str, int]:
    """Return the counts of inputs that are summed over chunks."""


@dataclasses.dataclass(frozen=True)
class Inference:
  """Decoding of inputs in parts, each to a chunk of rows.

  Attributes:
    is_plain: Whether the target decodes alone.
    make_engine: Reads the model, once, and returns what decodes requests.
    rows: Says which requests, and what is written of their results.
    part_size: Inputs of a chunk.
    shown: Shows how many inputs are done.
    search: Beam search of all requests; None for none.
  """

  is_plain: bool
  make_engine: Callable[[], engine_lib.Engine]
  rows: Rows
  part_size: int
  shown: progress.Progress
  search: beam_search.BeamSearch | None = None

  def take_all(
      self, inputs: Iterator[Any], chunks: chunks_lib.Chunks
  ) -> Iterator[chunks_lib.Chunk]:
    """Yield the chunks of all inputs; see `Chunks.take_all`."""
    parts = batching.parts(inputs, self.part_size)
    with_identity = ((self.rows.identity(part), part) for part in parts)
    return chunks.take_all(with_identity, self.decode)

  @functools.cached_property
  def engine(self) -> engine_lib.Engine:
    return self.make_engine()

  def warm_up(self) -> None:
    """Read the model and compile, unless that was done."""
    if not self.engine.is_warm:
      progress.say('compiling and warming up')
      self.engine.warm_up(self.search)

  def decode(
      self,
      numbered: Iterator[tuple[int, Any]],
      tell: Callable[[str], object] = lambda row: None,
  ) -> Iterator[chunks_lib.Content]:
    """Decode inputs as one stream, and yield the content of each part of them.

    Without any, the model is not read.

    Args:
      numbered: The inputs, each with its number among those of the job.
      tell: Called with each row as soon as it and those before it are there.
    """
    first = list(itertools.islice(numbered, 1))
    if not first:
      return
    self.warm_up()
    grouped = _grouped(
        self.engine.stream_ended,
        lambda each: self.rows.requests(each[1]),
        itertools.chain(first, numbered),
    )
    before, start = self._counters(), time.perf_counter()
    note = lambda: self._note(before, time.perf_counter() - start)
    while part := self._part(grouped, tell, note):
      yield part

  def _part(
      self,
      grouped: Iterator[tuple[tuple[int, Any], list[pending_lib.Pending]]],
      tell: Callable[[str], object],
      note: Callable[[], str],
  ) -> chunks_lib.Content | None:
    """Return the content of the next part of inputs; None after the last."""
    before, start = self._counters(), time.perf_counter()
    answered, rows = [], []
    for (number, item), ended in itertools.islice(grouped, self.part_size):
      found = list(map(self._result, ended))
      row = json_files.dumps(self.rows.row(item, found))
      answered.append((item, found))
      rows.append(row)
      tell(row)
      # Of the part alone the rate would be 0 where all was decoded ahead.
      self.shown.show(number + 1, note())
    if not rows:
      return None
    values = dict(self.rows.counted(answered))
    found = itertools.chain.from_iterable(found for _, found in answered)
    decoded = [each for each in found if isinstance(each, results.Result)]
    if decoded:
      # Those that are decoded ahead are counted here, and not in their part.
      run = interleaved.Run(
          counts.of_run(
              (decode for result in decoded for decode in result.decodes),
              self.engine.counters.loop_steps - before.loop_steps,
              self.engine.counters.row_steps - before.row_steps,
          ),
          (time.perf_counter() - start,),
          self.engine.compile_s,
      )
      values['run'] = run.stored()
    return chunks_lib.Content(rows, values)

  def _result(
      self, pending: pending_lib.Pending
  ) -> results.Result | ValueError:
    try:
      return self.engine.result(pending)
    except ValueError as error:
      return error

  def _counters(self) -> counts.Counts:
    return dataclasses.replace(self.engine.counters)

  def _note(self, before: counts.Counts, seconds: float) -> str:
    """Return the rate since some counters, and what was accepted."""
    counters = self.engine.counters
    tokens = counters.tokens - before.tokens
    note = f'{tokens / seconds:.0f} tokens per second'
    if self.is_plain:
      return note
    calls = counters.target_calls - before.target_calls
    return f'{note}, {tokens / max(calls, 1):.2f} per target call'


def _grouped(
    decode: Callable[[Iterator[request_lib.Request]], Iterator[Any]],
    requests_of: Callable[[_Item], Sequence[request_lib.Request]],
    items: Iterable[_Item],
) -> Iterator[tuple[_Item, list[Any]]]:
  """Yield each item with what its requests were decoded to, in their order.

  Items are read when `decode` reads requests, and kept until they are yielded.
  """
  waiting = collections.deque()

  def requests() -> Iterator[request_lib.Request]:
    for item in items:
      own = requests_of(item)
      waiting.append((item, len(own), []))
      yield from own

  def complete() -> Iterator[tuple[_Item, list[Any]]]:
    while waiting and len(waiting[0][2]) == waiting[0][1]:
      item, _, found = waiting.popleft()
      yield item, found

  for each in decode(requests()):
    yield from complete()  # those before it that have no requests
    waiting[0][2].append(each)
    yield from complete()
  yield from complete()

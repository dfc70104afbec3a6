# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Many requests through a few rows, each refilled as soon as it has ended.

  requests -> window -> read in groups -> rows of a run -> results in order
             (tokens)     (encoder)         (loop)

The host reads, tokenizes and hands out results while the device decodes. A
result depends on its own request alone, up to rounding.

Legend: rows (of the run), width (requests that are read at once).
"""

import collections
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import functools
import itertools
import time
from typing import Any, NamedTuple, Protocol

import jax
import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import counts
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.decoder import searches
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import errors
from speculative_t5x.networks import sharding
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import verification

ROWS = 8
# Requests per row that are read ahead of the oldest one without a result. More
# need more memory, and less often wait for an input of unusual length.
WINDOW = 16
HINTS = 8  # hints per input that are as long as an input may be


class Decoder(Protocol):
  """What an engine needs of a decoder of texts or of token ids."""

  tokens: token_decoder.TokenDecoder

  def tokenized(
      self, request: request_lib.Request, number: int
  ) -> request_lib.Tokenized:
    """Return the tokens of a request with a number in its stream."""

  def text(self, ids: Iterable[int], inputs: Sequence[int] = ()) -> str:
    """Return the text of an output of inputs, if the decoder has texts."""


class Answers(Protocol):
  """Adds earlier answers to what is read, see `answers.Finder`.

  Attributes:
    hints_length: The most tokens that it adds to the hints of an input.
  """

  hints_length: int

  def check_target(self, target: Any) -> None:
    """Raise ValueError unless the encoder of the target finds the answers."""

  def __call__(self, batch: input_batch.InputBatch) -> input_batch.InputBatch:
    """Return the batch with answers behind its hints, and with features."""


@dataclasses.dataclass(eq=False)
class Work:
  """A request on its way.

  Attributes:
    tokenized: The request.
    hints: Token ids of all hints that drafts are made of, answers included.
    num_begun: Decodes that have a place in the run.
    decodes: Decodes that have ended, by their number.
    is_cancelled: Whether its result is no longer wanted. Its rows end at the
      next return to the host.
    error: Why it has no result; None if it may have one.
  """

  tokenized: request_lib.Tokenized
  hints: Sequence[Sequence[int]] = ()
  num_begun: int = 0
  decodes: dict[int, results.Decode] = dataclasses.field(default_factory=dict)
  is_cancelled: bool = False
  error: ValueError | None = None

  @property
  def request(self) -> request_lib.Request:
    return self.tokenized.request

  def restart(self) -> None:
    """Begin anew, because the rows that decoded it are lost."""
    self.hints, self.num_begun = (), 0
    self.decodes.clear()

  @property
  def num_inputs(self) -> int:
    return len(self.request.inputs)

  @property
  def num_waiting(self) -> int:
    """Decodes that have no place yet and want one."""
    if self.is_cancelled:
      return 0
    return self.request.num_outputs - self.num_begun

  @property
  def is_begun(self) -> bool:
    return not self.num_waiting

  @property
  def has_ended(self) -> bool:
    has_all = len(self.decodes) == self.request.num_outputs
    return has_all or self.error is not None


@dataclasses.dataclass
class Counters:
  """What an engine has done so far, for cancelled requests too.

  Attributes:
    requests: Requests that have a result.
    tokens: Tokens of rows that have ended.
    steps: Steps of the loop.
    row_steps: Steps times rows.
    live_row_steps: Target calls of rows that have ended.
    returns: How often the loop returned to the host.
  """

  requests: int = 0
  tokens: int = 0
  steps: int = 0
  row_steps: int = 0
  live_row_steps: int = 0
  returns: int = 0

  @property
  def idle_share(self) -> float:
    """Share of row-steps in which a row had no request."""
    return 1 - self.live_row_steps / max(self.row_steps, 1)


class Reader:
  """Makes batches of waiting requests, all of one shape.

  Attributes:
    rule: Decides which draft tokens are accepted.
    width: Requests that are read at once.
  """

  def __init__(
      self,
      shape: input_batch.Shape,
      rule: contracts.Rule | contracts.CoupledRule,
      answers: Answers | None,
  ):
    """Bind the shape, the rule and what adds earlier answers, None for none."""
    self.rule = rule
    self.width = shape.examples
    self._shape = shape
    self._answers = answers

  def take(self, waiting: list[Work]) -> list[Work]:
    """Take the first request, and those with inputs of the most alike length.

    Reading takes as long as the longest input needs.
    """
    first = waiting[0].num_inputs
    order = sorted(waiting, key=lambda work: abs(work.num_inputs - first))
    group = order[: self.width]
    for work in group:
      waiting.remove(work)
    return group

  def batch(self, group: Sequence[Work]) -> input_batch.InputBatch:
    """Return the batch of at most as many requests as are read at once."""
    requests = [work.request for work in group]
    batch = input_batch.stack(requests, self._shape, self.rule)
    if self._answers is not None:
      # Of one width, whatever was found: that of the request's own, and more.
      room = hints_lib.width(self._shape.hints_length)
      room += 1 + self._answers.hints_length
      batch = self._answers(batch)
      batch = batch.replace(hints=hints_lib.stack(batch.hint_ids(), room))
    for work, own in zip(group, batch.hint_ids()[: len(group)], strict=True):
      work.hints = own
    return batch


class Size(NamedTuple):
  """A number of rows that are decoded at once.

  Attributes:
    programs: Decode them.
    load: Caps drafts; None of other policies.
  """

  programs: row_programs.RowPrograms
  load: by_load.Load | None

  @property
  def num_rows(self) -> int:
    return self.programs.num_rows


class Rows:
  """Rows on the device, and the requests that they decode."""

  def __init__(
      self, sizes: Sequence[Size], reader: Reader, counters: Counters
  ):
    """Begin with rows that have ended.

    Args:
      sizes: Descending. The rows are as many as the smallest has that has
        enough.
      reader: Makes batches of requests.
      counters: Are added to.
    """
    self._sizes = sizes
    self._index = 0  # of the present size
    self._reader = reader
    self._cap: int | None = None
    # Target calls and accepted draft tokens of each row at the last return.
    self._seen: tuple[np.ndarray, np.ndarray] | None = None
    self._counters = counters
    self._run: loop.Run | None = None
    self._report: row_programs.Report | None = None
    # Work and decode number of each row; None for a row that has ended.
    self._places: list[tuple[Work, int] | None] = [None] * sizes[0].num_rows
    # Decodes that ended in the last steps, of requests that have not.
    self._ended_first: list[tuple[Work, results.Decode]] = []
    # Started rows, some of which have no place yet.
    self._started: collections.deque[tuple[loop.Run, list[Work]]] = (
        collections.deque()
    )

  @property
  def is_idle(self) -> bool:
    """Whether nothing is being decoded."""
    return not self._started and not any(self._places)

  @property
  def _programs(self) -> row_programs.RowPrograms:
    return self._sizes[self._index].programs

  @property
  def _load(self) -> by_load.Load | None:
    return self._sizes[self._index].load

  def fill(self, waiting: list[Work]) -> None:
    """Give ended rows to waiting requests, which leave the list."""
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
          work.num_begun += 1
          if self._seen is not None:
            for counted in self._seen:
              counted[places[index]] = 0
      self._run = self._programs.admit(self._run, started, places, decodes)
      if all(work.is_begun for work in group):
        self._started.popleft()

  def read(self, waiting: list[Work]) -> None:
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
    nowhere = np.full(self._reader.width, -1, np.int32)
    for index in (*range(len(self._sizes)), 0):  # down, and up again
      self._resize(index)
      self._run = self._programs.admit(
          self._run, started, nowhere, np.zeros_like(nowhere)
      )
      self.advance(returns_early=False)
    jax.block_until_ready(self._report)

  def _start(self, group: list[Work]) -> None:
    started = self._programs.read(self._reader.batch(group))
    if self._run is None:
      nowhere = np.full(len(self._places), -1, np.int32)
      self._run = self._programs.take(started, nowhere)
    self._started.append((started, group))

  def _fit(self, waiting: Sequence[Work]) -> None:
    """Have as many rows as there are decodes, as far as sizes go."""
    if len(self._sizes) == 1 or self._run is None:
      return
    needed = len(self._places) - self._places.count(None)
    groups = (group for _, group in self._started)
    # No more than the most rows, as each of them has a decode.
    first = waiting[: self._sizes[0].num_rows]
    needed += sum(work.num_waiting for work in itertools.chain(first, *groups))
    num_enough = sum(size.num_rows >= needed for size in self._sizes)
    self._resize(max(num_enough - 1, 0))

  def _resize(self, index: int) -> None:
    """Move the rows to a run of another size, one size at a time."""
    while index != self._index:
      self._index += 1 if index > self._index else -1
      live = [i for i, place in enumerate(self._places) if place is not None]
      rows = np.full(self._programs.num_rows, -1, np.int32)
      rows[: len(live)] = live
      self._run = self._programs.take(self._run, rows)
      self._places = [self._places[i] if i >= 0 else None for i in rows]
      if self._seen is not None:  # as `take`: nothing is new in ended rows
        self._seen = tuple(x[np.maximum(rows, 0)] for x in self._seen)

  def advance(
      self, returns_early: bool, limit: int = row_programs.MAX_STEPS
  ) -> None:
    """Decode on; asynchronous.

    Args:
      returns_early: Whether to return when a row has ended, as it can be
        refilled.
      limit: Steps to return after.
    """
    cancelled = np.array([bool(x) and x[0].is_cancelled for x in self._places])
    num_ended = self._places.count(None) + int(np.sum(cancelled))
    # Decodes of requests that were read may wait too.
    returns_early = returns_early or bool(self._started)
    fewer = [size.num_rows for size in self._sizes[self._index + 1 :]]
    until = len(self._places) - max(fewer, default=0)  # or when fewer suffice
    if returns_early:
      until = num_ended + 1
    rule = self._reader.rule
    advance = functools.partial(
        self._programs.advance,
        self._run,
        cancelled,
        np.int32(until),
        np.int32(limit),
        rule,
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

  def ended(self) -> Iterator[Work]:
    """Wait for the steps of `advance`; yield what has ended in them."""
    self._report = report = jax.device_get(self._report)
    num_steps = int(report.work.num_steps)
    if self._load is not None:
      self._learn(report, num_steps)
    self._counters.returns += 1
    self._counters.steps += num_steps
    self._counters.row_steps += num_steps * len(self._places)
    self._ended_first = []
    for row, place in enumerate(self._places):
      if place is None or not report.has_ended[row]:
        continue
      work, number = place
      self._places[row] = None
      # Though the request may have been cancelled, or be lost.
      self._counters.tokens += int(report.num_tokens[row])
      self._counters.live_row_steps += int(report.num_calls[row])
      if work.is_cancelled:
        continue
      try:
        with errors.prefixed(f'Example id {work.request.example_id}'):
          decode = _decode(
              report, row, work.request, number, self._programs.ends
          )
      except ValueError as error:
        work.error, work.is_cancelled = error, True
        yield work
        continue
      work.decodes[number] = decode
      if work.has_ended:
        self._counters.requests += 1
        yield work
      else:
        self._ended_first.append((work, decode))

  def _learn(self, report: row_programs.Report, num_steps: int) -> None:
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

  def committed(self) -> Iterator[tuple[Work, int, results.Committed]]:
    """Yield the tokens so far of requests that have not ended.

    With the work and the number of the decode, as of the last `ended`. A decode
    that ended then, before others of its request, is a `results.Decode`.
    """
    for work, decode in self._ended_first:
      yield work, decode.number, decode
    for row, place in enumerate(self._places):
      # Rows that were filled since are not in the report.
      if place is not None and self._report.num_tokens[row]:
        committed = _committed(self._report, row, place[0].request)
        yield *place, results.Committed(**committed)


def _committed(
    report: row_programs.Report, row: int, request: request_lib.Request
) -> dict[str, Any]:
  """Return the values of a `results.Committed` of a row."""
  own = lambda x: x[row, : report.num_tokens[row]]
  alternatives = None
  if count := request.alternatives:  # a neighbour may have asked for more
    alternatives = jax.tree.map(
        lambda x: own(x)[:, :count], report.alternatives
    )
  scores = jax.tree.map(own, report.token_scores)
  return {
      'tokens': own(report.sequences).tolist(),
      **scores._asdict(),
      'origins': own(report.origins),
      'alternatives': alternatives,
  }


def _decode(
    report: row_programs.Report,
    row: int,
    request: request_lib.Request,
    number: int,
    ends: tuple[int, ...],
) -> results.Decode:
  """Return the output of a row that has ended, with its decode number."""
  own = jax.tree.map(lambda x: x[row : row + 1], report._replace(work=None))
  token_decoder.check_rows(
      own.log_probs, own.num_tokens, own.num_calls, own.statistics
  )
  committed = _committed(report, row, request)
  return results.Decode(
      **committed,
      number=number,
      has_end=committed['tokens'][-1] in ends,
      score=own.log_probs[0],
      num_calls=int(own.num_calls[0]),
      statistics=jax.tree.map(lambda x: x[0], own.statistics),
  )


class Engine:
  """Decodes any number of requests in constant memory, in full rows.

  Each row decodes one request at a time. When it has ended, another request
  takes its place, whatever it samples from, and however long it is.

  Example:

    >>> import speculative_t5x as st
    >>> engine = st.Engine(st.embedded.load_decoder(gamma=5), rows=4)
    >>> texts = ['The train from Bonn will be 20 minutes late.'] * 6
    >>> results = list(engine.stream(st.Request(text) for text in texts))
    >>> len({result.text for result in results})
    1

  Attributes:
    counters: What was done so far.
    is_warm: Whether `warm_up` was called.
    compile_s: See `compilation_cache.compile_seconds`; None before.
  """

  def __init__(
      self,
      decoder: Decoder,
      rows: int = ROWS,
      *,
      min_rows: int | None = None,
      rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE,
      inputs_length: int | None = None,
      hints_length: int | None = None,
      answers: Answers | None = None,
  ):
    """Bind a decoder; compile nothing yet.

    Args:
      decoder: A `TextDecoder` or a `TokenDecoder`.
      rows: Sequences that are decoded at once; on a mesh, rounded up to a
        multiple of its data axis.
      min_rows: Fewest rows that the engine goes down to where as few are
        needed, by quarters, as a step takes the time of all rows; at least 2.
        Each size is compiled. None for `rows` at all times.
      rule: Decides which draft tokens are accepted.
      inputs_length: Most tokens per input; None for the decoder's. Less takes
        less time and memory.
      hints_length: All hints of an input together are cut to this many tokens,
        rounded up to a power of two, 32 at least: nothing is drafted from what
        is behind them. None for the decoder's, or as many as `HINTS` inputs
        have. Only drafters that read hints have a use for them.
      answers: Adds earlier answers behind the hints; None for none.
    Raises:
      ValueError: for answers that are found by the encoder of another target,
        or for the policy `ByLoad` without a coupled rule.
    """
    ranges.check_settings(
        ranges.COUNT, rows=rows, min_rows=rows if min_rows is None else min_rows
    )
    tokens = decoder.tokens
    sizes = _sizes(tokens.mesh, rows, rows if min_rows is None else min_rows)
    inputs_length = inputs_length or tokens.options.inputs_length
    hints_length = hints_length or tokens.options.hints_length
    hints_length = hints_length or HINTS * inputs_length
    if answers is not None:
      answers.check_target(tokens.target)
    gamma, policy = tokens.drafter.max_draft_tokens, tokens.options.policy
    is_by_load = gamma > 0 and isinstance(policy, by_load.ByLoad)
    if is_by_load and not isinstance(rule, contracts.CoupledRule):
      raise ValueError(
          'Under the policy ByLoad drafts depend on what else is decoded, and'
          ' under this rule samples depend on drafts. Give a coupled rule, as'
          ' rule=speculative_t5x.rules.Coupled().'
      )
    rule = rule if gamma else noise.plain_rule(rule)
    shape = input_batch.Shape(
        # A run of several rows is made of several.
        sharding.round_up(tokens.mesh, max(rows // 4, min(rows, 2))),
        inputs_length,
        hints_length if tokens.reads_hints else 0,
    )
    self._decoder = decoder
    self._reader = Reader(shape, rule, answers)
    self._inputs_length = inputs_length
    self._sizes = [
        Size(
            row_programs.RowPrograms.of(tokens, size, rule),
            by_load.Load(gamma) if is_by_load else None,
        )
        for size in sizes
    ]
    self.counters = Counters()
    reader = lambda examples: Reader(
        shape._replace(examples=sharding.round_up(tokens.mesh, examples)),
        rule,
        answers,
    )
    self.searches = searches.Searches(tokens, rows, reader, self._count)
    self.is_warm = False
    self.compile_s: float | None = None

  def warm_up(self, search: beam_search.BeamSearch | None = None) -> None:
    """Compile all programs, and measure how long it takes; decode nothing.

    Those of a search if one is given, else those that decode samples.
    """
    if self.is_warm:
      return

    def run() -> float:
      start = time.perf_counter()
      if search is None:
        self.new_rows().warm_up()
      else:
        self.searches.warm_up(search)
      return time.perf_counter() - start

    self.compile_s = compilation_cache.compile_seconds(run)
    self.is_warm = True

  def stream(
      self, requests: Iterable[request_lib.Request | str | Sequence[int]]
  ) -> Iterator[results.Result]:
    """Yield the result of each request, in their order.

    Warns of the first input that is cut.

    Args:
      requests: Requests, or inputs that are decoded greedily: texts, or lists
        of token ids of a `TokenDecoder`. Read ahead by at most a window of
        `WINDOW` per row.
    Raises:
      ValueError: for a request that cannot be decoded, after the results of
        those before it, or for logits that are not finite.
      Exception: likewise, what `requests` raised.
    """
    request_lib.check_several('requests', requests, 'a list of requests')
    has_warned = False
    for index, work in enumerate(self.stream_work(requests)):
      result = self.result(work)
      if result.is_truncated and not has_warned:
        has_warned = True
        request_lib.warn_of_cut(index, self._inputs_length, stacklevel=2)
      yield result

  def stream_work(
      self, requests: Iterable[request_lib.Request]
  ) -> Iterator[Work]:
    """Yield each request once it has ended, for `result`; see `stream`.

    One whose logits are not finite does not end the others.
    """
    rows, num_rows = self.new_rows(), self._sizes[0].num_rows
    numbered, has_more, failure = enumerate(requests), True, None
    waiting, searching, in_order = [], [], collections.deque()

    def read_ahead() -> None:
      nonlocal has_more, failure
      if not has_more:
        return
      # A part at a time: a slow source does not hold up what there is.
      room = min(WINDOW * num_rows - len(in_order), num_rows)
      num_before = len(in_order)
      try:
        for number, request in itertools.islice(numbered, room):
          work = self.work(request, number)
          is_search = work.request.search is not None
          (searching if is_search else waiting).append(work)
          in_order.append(work)
      except Exception as error:  # what was read before it is not lost
        failure = error
      has_more = len(in_order) == num_before + room
      if not has_more:
        # Those that likely take long come first, so that rows end together.
        waiting.sort(key=lambda work: work.num_inputs, reverse=True)

    read_ahead()
    while in_order:
      rows.fill(waiting)
      is_decoding = not rows.is_idle
      if is_decoding:
        rows.advance(returns_early=has_more or bool(waiting))
        rows.read(waiting)
      # The device decodes meanwhile.
      while in_order and in_order[0].has_ended:
        yield in_order.popleft()
      read_ahead()
      if is_decoding:
        collections.deque(rows.ended(), maxlen=0)
      if searching:
        self.searches.run(self.searches.take(searching))
    if failure is not None:
      raise failure

  def new_rows(self) -> Rows:
    """Return rows without requests."""
    return Rows(self._sizes, self._reader, self.counters)

  def work(
      self, request: request_lib.Request | str | Sequence[int], number: int
  ) -> Work:
    """Return a request as work for rows; its number is for messages.

    Raises:
      ValueError: for a request that cannot be decoded.
    """
    tokenized = self._decoder.tokenized(request_lib.of(request), number)
    size, limit = len(tokenized.request.inputs), self._inputs_length
    if size > limit:  # it would lose its end
      raise ValueError(
          f'Request {number} has {size} tokens, and the engine takes {limit}.'
          f' Cut it, or make the engine with inputs_length={size}.'
      )
    if (search := tokenized.request.search) is not None:
      search.check_vocabulary(self._decoder.tokens.target_model.vocab_size)
    return Work(tokenized)

  def _count(self, found: beam_search.Searched, num_requests: int) -> None:
    """Count a batch of searches, whose rows are hypotheses."""
    steps, rows = int(found.num_calls.max()), found.num_tokens.size
    self.counters.requests += num_requests
    self.counters.tokens += int(found.num_tokens.sum())
    self.counters.steps += steps
    self.counters.row_steps += steps * rows
    beams = found.num_tokens.shape[1]
    self.counters.live_row_steps += int(found.num_calls.sum()) * beams
    self.counters.returns += 1

  def result(self, work: Work) -> results.Result:
    """Return the result of a request that has ended, or raise its error."""
    if work.error is not None:
      raise work.error
    by_number = [work.decodes[i] for i in range(work.request.num_outputs)]
    if work.request.search is None:
      # In T5X's order, equal ones as they were decoded.
      by_number.sort(key=lambda each: each.score)
      return self._result(by_number, work.tokenized, work.hints)
    by_number.reverse()  # the best one is the last one
    found = self._result(by_number, work.tokenized, work.hints)
    return dataclasses.replace(found, statistics=counts.of_search(by_number))

  def empty_result(self, num_decodes: int) -> results.Result:
    """Return the result of an input that is not decoded, empty outputs."""
    none = np.zeros((0,), np.float32)
    statistics = None
    if gamma := self._decoder.tokens.drafter.max_draft_tokens:
      counted = outcome_lib.COUNTING.init(1, 1, gamma)
      statistics = jax.tree.map(lambda x: np.asarray(x[0]), counted)
    decodes = [
        results.Decode(
            [], none, none, none.astype(np.int32), i, False, 0.0, 0, statistics
        )
        for i in range(num_decodes)
    ]
    return self._result(decodes, None, ())

  def _result(self, decodes, tokenized, hints) -> results.Result:
    statistics = counts.of_decodes(decodes)
    if decodes[0].statistics is not None:
      statistics |= counts.acceptance_rates(statistics)
    inputs = tokenized.request.inputs if tokenized else ()
    return results.Result(
        [self._decoder.text(each.text_tokens, inputs) for each in decodes],
        [each.text_tokens for each in decodes],
        np.array([each.score for each in decodes], np.float32),
        statistics,
        tokenized is not None and tokenized.is_truncated,
        tokenized is not None and tokenized.is_unknown,
        hints,
        decodes,
    )


def _sizes(
    mesh: jax.sharding.Mesh | None, rows: int, min_rows: int
) -> list[int]:
  """Return numbers of rows, descending: quarters, as each is compiled."""
  sizes = [sharding.round_up(mesh, rows)]
  # A run of one row has another form: its arrays have no axis for it.
  while sizes[-1] // 4 >= max(min_rows, 2):
    size = sharding.round_up(mesh, sizes[-1] // 4)
    if size == sizes[-1]:
      break
    sizes.append(size)
  return sizes

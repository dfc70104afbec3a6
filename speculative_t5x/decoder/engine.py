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
import itertools
import time
from typing import Protocol

import jax
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import reading
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.decoder import rows as rows_lib
from speculative_t5x.decoder import searches
from speculative_t5x.networks import sharding
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import verification

ROWS = 8
# Requests per row that are read ahead of the oldest one without a result. More
# need more memory, and less often wait for an input of unusual length.
WINDOW = 16
HINTS = 8  # hints per input that are as long as an input may be


class Decoder(Protocol):
  """A decoder of texts or of token ids, as an engine needs it."""

  tokens: bound_pair.BoundPair

  def tokenized(
      self, request: request_lib.Request, number: int
  ) -> request_lib.Tokenized:
    """Return the tokens of a request with a number in its stream."""

  def text(self, ids: Iterable[int], inputs: Sequence[int] = ()) -> str:
    """Return the text of an output of inputs, if the decoder has texts."""


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
    counters: What was done so far, for cancelled requests too.
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
    Raises:
      ValueError: for the policy `ByLoad` without a coupled rule.
    """
    ranges.check_settings(
        ranges.COUNT, rows=rows, min_rows=rows if min_rows is None else min_rows
    )
    tokens = decoder.tokens
    sizes = _sizes(tokens.mesh, rows, rows if min_rows is None else min_rows)
    inputs_length = inputs_length or tokens.options.inputs_length
    if hints_length is None:
      hints_length = tokens.options.hints_length or HINTS * inputs_length
    gamma, policy = tokens.drafter.form.gamma, tokens.options.policy
    is_by_load = gamma > 0 and isinstance(policy, by_load.ByLoad)
    if is_by_load and not isinstance(rule, contracts.CoupledRule):
      raise ValueError(
          'Under the policy ByLoad drafts depend on what else is decoded, and'
          ' under this rule samples depend on drafts. Give a coupled rule, as'
          ' rule=speculative_t5x.rules.Coupled().'
      )
    self._decoder = decoder
    self._rule = rule
    self._inputs_length = inputs_length
    self._hints_length = hints_length if tokens.reads_hints else 0
    self._sizes = [
        rows_lib.Size(
            row_programs.RowPrograms.of(tokens, size, rule),
            by_load.Load(gamma) if is_by_load else None,
        )
        for size in sizes
    ]
    self.counters = counts_lib.Counts()
    self.is_warm = False
    self.compile_s: float | None = None

  def warm_up(self, search: beam_search.BeamSearch | None = None) -> None:
    """Compile all programs, and measure how long it takes; decode nothing.

    Those of a search if one is given, else those that decode samples.
    """

    def run() -> float:
      start = time.perf_counter()
      self.new_rows(search).warm_up()
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
  ) -> Iterator[reading.Work]:
    """Yield each request once it has ended, for `result`; see `stream`.

    One whose logits are not finite does not end the others.
    """
    return self.run(
        self.work(request, number) for number, request in enumerate(requests)
    )

  def run(self, works: Iterable[reading.Work]) -> Iterator[reading.Work]:
    """Yield work once it has ended, in its order; see `stream_work`."""
    rows, num_rows = self.new_runs(), self._sizes[0].num_places
    works, has_more, failure = iter(works), True, None
    waiting, in_order = [], collections.deque()

    def read_ahead() -> None:
      nonlocal has_more, failure
      if not has_more:
        return
      # A part at a time: a slow source does not hold up what there is.
      room = min(WINDOW * num_rows - len(in_order), num_rows)
      num_before = len(in_order)
      try:
        for work in itertools.islice(works, room):
          waiting.append(work)
          in_order.append(work)
      except Exception as error:  # what was read before it is not lost
        failure = error
      has_more = len(in_order) == num_before + room
      if not has_more:
        # Those that likely take long come first, so that rows end together.
        waiting.sort(key=lambda x: len(x.request.inputs), reverse=True)

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
    if failure is not None:
      raise failure

  def new_runs(self) -> rows_lib.Runs:
    """Return what decodes requests, without any."""
    return rows_lib.Runs(self.new_rows)

  def new_rows(
      self, search: beam_search.BeamSearch | None = None
  ) -> rows_lib.Rows:
    """Return rows without requests: of samples, or of a search."""
    sizes, rule = self._sizes, self._rule
    tokens, num_places = self._decoder.tokens, sizes[0].num_places
    if search is not None:
      num_places = max(1, num_places // search.beams)
      num_places = sharding.round_up(tokens.mesh, num_places)
      programs = searches.SearchPrograms.of(tokens, num_places, search)
      sizes = [rows_lib.Size(programs)]
      _, rule = search.bind(tokens.target_model)
    # A run of several places is made of several.
    width = max(num_places // 4, min(num_places, 2))
    shape = input_batch.Shape(
        sharding.round_up(tokens.mesh, width),
        self._inputs_length,
        self._hints_length,
    )
    reader = reading.Reader(shape, self._rule)
    return rows_lib.Rows(sizes, reader, self.counters, rule)

  def work(
      self, request: request_lib.Request | str | Sequence[int], number: int
  ) -> reading.Work:
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
    return reading.Work(tokenized)

  def result(self, work: reading.Work) -> results.Result:
    """Return the result of a request that has ended, or raise its error."""
    if work.error is not None:
      raise work.error
    decodes = [work.decodes[i] for i in range(work.request.num_outputs)]
    if work.request.search is None:
      # In T5X's order, equal ones as they were decoded.
      decodes.sort(key=lambda decode: decode.score)
      statistics = counts_lib.of_decodes(decodes)
    else:
      decodes.reverse()  # the best one is the last one
      statistics = counts_lib.of_search(decodes)
    return self._result(decodes, statistics, work.tokenized)

  def empty_result(self, num_decodes: int) -> results.Result:
    """Return the result of an input that is not decoded, empty outputs."""
    none = np.zeros((0,), np.float32)
    statistics = None
    if gamma := self._decoder.tokens.drafter.form.gamma:
      counted = outcome_lib.COUNTING.init(1, 1, gamma)
      statistics = jax.tree.map(lambda x: np.asarray(x[0]), counted)
    decodes = [
        results.Decode(
            [], none, none, none.astype(np.int32), i, False, 0.0, 0, statistics
        )
        for i in range(num_decodes)
    ]
    return self._result(decodes, counts_lib.of_decodes(decodes), None)

  def _result(self, decodes, statistics, tokenized) -> results.Result:
    if 'accepted' in statistics:  # of a speculative run of samples
      statistics |= counts_lib.acceptance_rates(statistics)
    inputs = tokenized.request.inputs if tokenized else ()
    return results.Result(
        [self._decoder.text(each.text_tokens, inputs) for each in decodes],
        [each.text_tokens for each in decodes],
        np.array([each.score for each in decodes], np.float32),
        statistics,
        tokenized is not None and tokenized.is_truncated,
        tokenized is not None and tokenized.is_unknown,
        decodes,
    )


def decode(
    decoder: Decoder,
    tokenized: Sequence[request_lib.Tokenized],
    rule: contracts.Rule | contracts.CoupledRule,
    batch_size: int,
) -> tuple[list[results.Result], counts_lib.Counts]:
  """Decode requests that are all known, by an engine as large as they need.

  Few shapes are compiled, however many requests there are: for fewer requests
  than are decoded at once it is a power of two, and for short inputs see
  `batching.input_width`.

  Args:
    decoder: See `Engine`.
    tokenized: One request or more, all with as many outputs.
    rule: See `Engine`.
    batch_size: Most requests that are decoded at once.
  Returns:
    Their results, and what the engine counted.
  """
  ranges.check_settings(ranges.COUNT, batch_size=batch_size)
  requests = [each.request for each in tokenized]
  at_once = min(batch_size, batching.power_of_two(len(requests)))
  longest = max(len(request.inputs) for request in requests)
  hints = hints_lib.stack([request.hints for request in requests])
  engine = Engine(
      decoder,
      at_once * requests[0].num_outputs,
      rule=rule,
      inputs_length=batching.input_width(
          longest, decoder.tokens.options.inputs_length
      ),
      hints_length=0 if hints is None else hints.shape[1],
  )
  works = engine.run(map(reading.Work, tokenized))
  return [*map(engine.result, works)], engine.counters


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

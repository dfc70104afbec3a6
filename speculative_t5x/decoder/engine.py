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

import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import compilation_cache
from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import options as options_lib
from speculative_t5x.decoder import pending as pending_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import row_programs
from speculative_t5x.decoder import rows as rows_lib
from speculative_t5x.decoder import searches
from speculative_t5x.networks import sharding
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import verification

ROWS = 8
# Requests per row that are read ahead of the oldest one without a result. More
# need more memory, and less often wait for an input of unusual length.
WINDOW = 16
HINTS = 8  # hints per input that are as long as an input may be


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
      decoder: pending_lib.AnyDecoder,
      rows: int = ROWS,
      *,
      rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE,
      inputs_length: int | None = None,
      hints_length: int | None = None,
  ):
    """Bind a decoder; compile nothing yet.

    Args:
      decoder: A `TextDecoder` or a `TokenDecoder`.
      rows: Sequences that are decoded at once; on a mesh, rounded up to a
        multiple of its data axis.
      rule: Decides which draft tokens are accepted.
      inputs_length: Most tokens per input; None for the decoder's. Less takes
        less time and memory.
      hints_length: All hints of an input together are cut to this many tokens,
        rounded up to a power of two, 32 at least: nothing is drafted from what
        is behind them. None for the decoder's, or as many as `HINTS` inputs
        have. Only drafters that read hints have a use for them.
    Raises:
      TypeError: for something that is not a decoder.
      ValueError: for the policy `ByLoad` without a coupled rule.
    """
    options_lib.check_type(
        'decoder',
        decoder,
        pending_lib.AnyDecoder,
        'a TextDecoder or a TokenDecoder, as speculative_t5x.load returns one',
    )
    ranges.check_settings(ranges.COUNT, rows=rows)
    tokens = decoder.tokens
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
    num_rows = sharding.round_up(tokens.mesh, rows)
    self._programs = row_programs.RowPrograms.of(tokens, num_rows, rule)
    self._load = by_load.Load(gamma) if is_by_load else None
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
    for index, pending in enumerate(self.stream_ended(requests)):
      result = self.result(pending)
      if result.is_truncated and not has_warned:
        has_warned = True
        request_lib.warn_of_cut(index, self._inputs_length, stacklevel=2)
      yield result

  def stream_ended(
      self, requests: Iterable[request_lib.Request]
  ) -> Iterator[pending_lib.Pending]:
    """Yield each request once it has ended, for `result`; see `stream`.

    One whose logits are not finite does not end the others.
    """
    return self.run(map(self.pending, requests, itertools.count()))

  def run(
      self, requests: Iterable[pending_lib.Pending]
  ) -> Iterator[pending_lib.Pending]:
    """Yield requests once they have ended, in their order."""
    rows, num_rows = self.new_runs(), self._programs.num_places
    requests, has_more, failure = iter(requests), True, None
    waiting, in_order = [], collections.deque()

    def read_ahead() -> None:
      nonlocal has_more, failure
      if not has_more:
        return
      # A part at a time: a slow source does not hold up what there is.
      room = min(WINDOW * num_rows - len(in_order), num_rows)
      num_before = len(in_order)
      try:
        for pending in itertools.islice(requests, room):
          waiting.append(pending)
          in_order.append(pending)
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
    tokens, rule, load = self._decoder.tokens, self._rule, self._load
    programs = self._programs
    num_places = programs.num_places
    if search is not None:
      num_places = max(1, num_places // search.beams)
      num_places = sharding.round_up(tokens.mesh, num_places)
      programs = searches.SearchPrograms.of(tokens, num_places, search)
      _, rule = search.bind(tokens.target_model)
      load = None
    # A run of several places is made of several: one row has no axis for it.
    width = max(num_places // 4, min(num_places, 2))
    shape = input_batch.Shape(
        sharding.round_up(tokens.mesh, width),
        self._inputs_length,
        self._hints_length,
    )
    return rows_lib.Rows(programs, shape, self.counters, rule, load)

  def pending(
      self, request: request_lib.Request | str | Sequence[int], number: int
  ) -> pending_lib.Pending:
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
      tokens = self._decoder.tokens
      search.check_vocabulary(tokens.target_model.vocab_size)
      searches.drafter_of(tokens, search)  # here, and not beside other requests
    return tokenized

  def result(self, pending: pending_lib.Pending) -> results.Result:
    """Return the result of a request that has ended, or raise its error."""
    if pending.error is not None:
      raise pending.error
    request = pending.request
    is_search = request.search is not None
    decodes = [pending.decodes[i] for i in range(request.num_outputs)]
    if is_search:
      decodes.reverse()  # the best one is the last one
    else:
      # In T5X's order, equal ones as they were decoded.
      decodes.sort(key=lambda decode: decode.score)
    text = self._decoder.text
    return results.Result(
        [text(each.text_tokens, request.inputs) for each in decodes],
        [each.text_tokens for each in decodes],
        np.array([each.score for each in decodes], np.float32),
        counts_lib.of_result(decodes, is_search),
        pending.is_truncated,
        pending.is_unknown,
        decodes,
    )


def decode(
    decoder: pending_lib.AnyDecoder,
    pending: Sequence[pending_lib.Pending],
    rule: contracts.Rule | contracts.CoupledRule,
    batch_size: int,
) -> list[results.Result]:
  """Decode requests that are all known, by an engine as large as they need.

  Few shapes are compiled, however many requests there are: for fewer requests
  than are decoded at once it is a power of two, and for short inputs see
  `batching.input_width`. There is at least one request, and all have as many
  outputs. At most `batch_size` are decoded at once.
  """
  ranges.check_settings(ranges.COUNT, batch_size=batch_size)
  requests = [each.request for each in pending]
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
  return [engine.result(each) for each in engine.run(pending)]

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Batches that are decoded from their first token to their last, to be timed.

A run of one compiled program, with nothing of the host in it. All that is not
timed, traced or read by a compiler goes through `decoder.engine`.

Legend: examples, num_decodes (samples per example), rows (examples times
num_decodes, an example's next to each other).
"""

from collections.abc import Callable, Iterable
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import hints as hints_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import pending
from speculative_t5x.decoder import report as report_lib
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import results
from speculative_t5x.decoder import searches
from speculative_t5x.decoder import text_decoder
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib

# Decodes the examples of a batch.
Way = Callable[[input_batch.InputBatch], report_lib.Report]


def ways(
    pair: bound_pair.BoundPair, search: beam_search.BeamSearch | None = None
) -> tuple[Way, Way]:
  """Return what decodes batches plainly, and speculatively.

  Both search where a search is given, in place of samples.
  """
  if search is None:
    make = lambda pair: functools.partial(decode, pair)
  else:
    make = lambda pair: functools.partial(search_for, pair, asked=search)
  return make(pair.alone), make(pair)


def decode(
    pair: bound_pair.BoundPair, batch: input_batch.InputBatch
) -> report_lib.Report:
  """Decode a batch; asynchronous, as all of JAX."""
  with pair.scope():
    return _decoding(pair)(*_arguments(pair, batch))


def search_for(
    pair: bound_pair.BoundPair,
    batch: input_batch.InputBatch,
    asked: beam_search.BeamSearch,
) -> report_lib.Report:
  """Search for all examples of a batch; asynchronous.

  The sampling of the batch is not used. Errors are those of
  `searches.drafter_of`.
  """
  if not pair.reads_hints:
    batch = batch.replace(hints=None)
  examples, length = len(batch.example_ids), pair.options.max_tokens
  programs = searches.SearchPrograms.of(pair, examples, asked)
  none = np.zeros(examples, bool)
  _, scoring = asked.bind(pair.target_model)
  _, report = programs.advance(
      programs.read(batch), none, np.int32(examples), np.int32(length), scoring
  )
  return report


def compiled(
    pair: bound_pair.BoundPair, batch: input_batch.InputBatch
) -> jax.stages.Compiled:
  """Return the compiled program of `decode`, to be read.

  A batch of `jax.ShapeDtypeStruct`s must give their shardings.
  """
  with pair.scope():
    return _decoding(pair).lower(*_arguments(pair, batch)).compile()


def outputs(
    pair: bound_pair.BoundPair,
    reports: Iterable[report_lib.Report],
    count: int,
) -> list[list[results.Decode]]:
  """Return the outputs of so many examples of decoded batches, as NumPy arrays.

  In T5X's order, the best one last. Examples past the count fill a batch.
  """
  ends = pair.target_model.special_ids.ends
  size, examples = pair.options.num_decodes, []
  for report in reports:
    for first in range(0, len(report.num_tokens), size):
      decodes = [report.decode(first + i, i, ends) for i in range(size)]
      if not report.is_search:  # which has an order, see `beams.hypotheses`
        decodes.sort(key=lambda decode: decode.score)
      examples.append(decodes)
  return examples[:count]


def trace(
    pair: bound_pair.BoundPair, batch: input_batch.InputBatch
) -> outcome_lib.Trace:
  """Decode a batch and return the outcome of every target call."""
  run = pair.program(
      trace, lambda: jax.jit(functools.partial(_run, pair, outcome_lib.TRACING))
  )
  with pair.scope():
    return run(*_arguments(pair, batch))[2]


def make_batch(
    decoder: text_decoder.TextDecoder,
    texts: Iterable[str],
    *,
    example_ids: Iterable[int] | None = None,
    hints: Iterable[hints_lib.Hints] | None = None,
    **settings: Any,
) -> tuple[input_batch.InputBatch, list[pending.Pending]]:
  """Return texts as a batch, and as the requests that it was made of.

  It is as wide as inputs may be; see `TextDecoder.decode`.
  """
  shared = request_lib.Settings(**settings)
  columns = {'example_ids': example_ids, 'hints': hints}
  rows = decoder.all_tokenized(texts, columns, shared)
  (batch,) = input_batch.whole_batches(
      [each.request for each in rows],
      shared,
      size=len(rows),
      inputs_length=decoder.options.inputs_length,
  )
  return batch, rows


def _arguments(
    pair: bound_pair.BoundPair, batch: input_batch.InputBatch
) -> tuple[Any, ...]:
  if not pair.reads_hints:  # another width of them would compile again
    batch = batch.replace(hints=None)
  return *pair.params, pair.place(batch)


def _decoding(pair: bound_pair.BoundPair) -> Callable[..., report_lib.Report]:
  drafts = pair.drafter.form.gamma > 0
  fold = outcome_lib.COUNTING if drafts else outcome_lib.NOTHING

  def run(*args) -> report_lib.Report:
    state, work, statistics = _run(pair, fold, *args)
    return report_lib.Report(
        state.has_ended,
        state.sequences,
        state.num_tokens,
        state.log_probs,
        state.num_calls,
        work,
        statistics,
    )

  return pair.program(decode, lambda: jax.jit(run))


def _run(
    pair: bound_pair.BoundPair,
    fold: outcome_lib.Fold,
    target_params: contracts.Params,
    draft_params: contracts.Params,
    batch: input_batch.InputBatch,
) -> tuple[state_lib.State, loop.Work, Any]:
  num_decodes, length = pair.options.num_decodes, pair.options.max_tokens
  setup = pair.setup(target_params, draft_params, batch.rule)
  of_rows = lambda x: jnp.repeat(x, num_decodes) if jnp.ndim(x) else x
  begun = state_lib.begin(
      setup,
      batch.inputs,
      state_lib.row_keys(batch.seed, batch.example_ids, num_decodes),
      # A limit past the buffers would have the loop write beyond their ends.
      of_rows(jnp.minimum(batch.limits, length)),
      *jax.tree.map(of_rows, (batch.sampling, batch.draft_sampling)),
      length=length,
      hints=batch.hints,
  )
  return loop.decode(setup, begun, fold)

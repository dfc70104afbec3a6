# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The compiled functions by which an engine fills rows and decodes them.

  read     inputs of a few requests  ->  started rows, which wait beside the run
  admit    started rows              ->  places of the run whose rows have ended
  advance  the run                   ->  the run some steps later, and a report
  take     rows of a run             ->  a run of another number of rows

Each is compiled once, whatever the requests are. `admit` and `advance` take
over the run's memory, so that no cache is copied; a run that was given to them
is deleted.

Legend: rows (of the run), width (rows that are read at once), length (of the
longest output).
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step

# Steps between two returns to the host at most. A new request, a cancellation
# and a streamed token wait for as many; each return hashes uniforms for them.
MAX_STEPS = 8


class Report(NamedTuple):
  """What the host reads after some steps.

  Attributes:
    has_ended: [rows] bool.
    sequences: [rows, length] int32, see `state.State`.
    num_tokens: [rows] int32.
    log_probs: [rows] float32, of all tokens of a row.
    num_calls: [rows] int32.
    statistics: Counts, see `outcome.Statistics`; None of plain decoding.
    token_scores: See `outcome.TokenScores`.
    origins: [rows, length] int32, see `outcome.Originating`.
    alternatives: See `outcome.Alternating`; None of steps that kept none.
    work: Work of these steps.
  """

  has_ended: jax.Array
  sequences: jax.Array
  num_tokens: jax.Array
  log_probs: jax.Array
  num_calls: jax.Array
  statistics: outcome_lib.Statistics | None
  token_scores: outcome_lib.TokenScores
  origins: jax.Array
  alternatives: outcome_lib.Alternatives | None
  work: loop.Work


class RowPrograms:
  """Programs of one decoder for one number of rows.

  Attributes:
    num_rows: Rows of the run.
  """

  def __init__(self, decoder: token_decoder.TokenDecoder, num_rows: int):
    """Compile nothing yet."""
    self._decoder = decoder
    self.num_rows = num_rows
    drafts = decoder.drafter.max_draft_tokens > 0
    counting = outcome_lib.COUNTING if drafts else outcome_lib.NOTHING
    count = step.num_alternatives(decoder.target_model.vocab_size)
    self._fold = outcome_lib.Several((
        counting,
        outcome_lib.SCORING,
        outcome_lib.ORIGINATING,
        outcome_lib.Alternating(count),
    ))
    self._read = jax.jit(self._start)
    self._admit = jax.jit(_admit, donate_argnums=0)
    self._advance = jax.jit(self._step, donate_argnums=3)
    # By what is started: hints and rules may come with arrays of their own.
    self._take: dict[Any, Callable[..., list[jax.Array]]] = {}

  @classmethod
  def of(
      cls,
      decoder: token_decoder.TokenDecoder,
      num_rows: int,
      rule: contracts.Rule | contracts.CoupledRule,
  ) -> 'RowPrograms':
    """Return those of earlier engines of the decoder, which are compiled.

    Rules of two classes share none: see `input_batch.InputBatch`.
    """
    key = num_rows, type(rule)
    if key not in decoder.row_programs:
      decoder.row_programs[key] = cls(decoder, num_rows)
    return decoder.row_programs[key]

  @property
  def ends(self) -> tuple[int, ...]:
    """Ids that end a sequence."""
    return self._decoder.target_model.special_ids.ends

  def read(self, batch: input_batch.InputBatch) -> loop.Run:
    """Return started rows, one per input; asynchronous, as all functions."""
    with self._decoder.scope():
      return self._read(*self._params, self._decoder.place(batch))

  def take(self, run: loop.Run, rows: jax.Array) -> loop.Run:
    """Return a run of rows of another one, which stays as it is.

    Args:
      run: Has more than one row, unless these programs have one too.
      rows: [rows] int32, which row comes to each place; -1 for a row that has
        ended.
    """
    leaves, structure = jax.tree.flatten(run)
    if structure not in self._take:
      # On a mesh, laid out as the run, for which all else is compiled.
      self._take[structure] = jax.jit(
          lambda run, rows: jax.tree.leaves(_take(run, rows)),
          out_shardings=[leaf.sharding for leaf in leaves],
      )
    with self._decoder.scope():
      taken = self._take[structure](run, rows)
    return jax.tree.unflatten(structure, taken)

  def admit(
      self,
      run: loop.Run,
      started: loop.Run,
      places: jax.Array,
      decodes: jax.Array,
  ) -> loop.Run:
    """Put started rows in places of ended ones.

    Args:
      run: Is deleted.
      started: From `read`; may be admitted again, as another decode.
      places: [width] int32, see `loop.admit`; -1 leaves a row out.
      decodes: [width] int32, the decode number of each row.
    """
    return self._admit(run, started, places, decodes)

  def advance(
      self,
      run: loop.Run,
      cancelled: jax.Array,
      until: jax.Array,
      limit: jax.Array,
      rule: Any,
      cap: jax.Array | None = None,
      keeps_alternatives: bool = False,
  ) -> tuple[loop.Run, Report]:
    """Decode until enough rows have ended.

    Args:
      run: Is deleted.
      cancelled: [rows] bool, rows that end at once.
      until: int32 scalar, the number of ended rows to return at.
      limit: int32 scalar, the steps to return after, `MAX_STEPS` at most.
      rule: See `contracts.Rule`.
      cap: int32 scalar, the cap of a `by_load.ByLoad`; None of other policies.
      keeps_alternatives: Whether a row wants the likeliest tokens.
    """
    keeps = np.bool_(keeps_alternatives)
    with self._decoder.scope():
      run, report = self._advance(
          *self._params, rule, run, cancelled, until, limit, cap, keeps
      )
    if not keeps_alternatives:  # the host does not wait for them
      report = report._replace(alternatives=None)
    return run, report

  @property
  def _params(self) -> tuple[Any, Any]:
    return self._decoder.target.params, self._decoder.loaded_drafter.params

  def _start(self, target_params, draft_params, batch) -> loop.Run:
    decoder = self._decoder
    setup = decoder.setup(target_params, draft_params, batch.rule)
    begun = state_lib.begin(
        setup,
        batch.inputs,
        # `admit` makes them keys of decodes.
        state_lib.example_keys(batch.seed, batch.example_ids),
        batch.limits,
        batch.sampling,
        batch.draft_sampling,
        length=decoder.options.max_tokens,
        hints=batch.hints,
        features=batch.features,
    )
    return loop.start(begun, self._fold)

  def _step(
      self,
      target_params,
      draft_params,
      rule,
      run,
      cancelled,
      until,
      limit,
      cap,
      keeps_alternatives,
  ):
    setup = self._decoder.setup(target_params, draft_params, rule)
    setup = setup._replace(keeps_alternatives=keeps_alternatives)
    if cap is not None:
      setup = setup._replace(policy=by_load.ByLoad(cap))
    ended = run.state.has_ended | cancelled
    run = run._replace(state=run.state.replace(has_ended=ended))
    run, work = loop.advance(
        setup, run, MAX_STEPS, until, limit, fold=self._fold
    )
    state = run.state
    report = Report(
        state.has_ended,
        state.sequences,
        state.num_tokens,
        state.log_probs,
        state.num_calls,
        *run.kept,
        work,
    )
    return run, report


def _admit(run, started, places, decodes) -> loop.Run:
  keys = state_lib.decode_keys(started.batch.keys, decodes)
  started = started._replace(batch=started.batch.replace(keys=keys))
  return loop.admit(run, started, places)


def _take(run, rows) -> loop.Run:
  index = jnp.maximum(rows, 0)
  # A single row may have no axis for it. It is copied, as runs are donated.
  of_rows = jnp.copy if len(rows) == 1 else lambda x: x[index]
  taken = jax.tree.map(of_rows, run)
  ended = taken.state.has_ended | (rows < 0)
  return taken._replace(state=taken.state.replace(has_ended=ended))

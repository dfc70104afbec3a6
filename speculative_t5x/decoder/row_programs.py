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
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import report as report_lib
from speculative_t5x.policies import by_load
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib

# Steps between two returns to the host at most. A new request, a cancellation
# and a streamed token wait for as many; each return hashes uniforms for them.
MAX_STEPS = 8


class RowPrograms:
  """Programs of one decoder for one number of places, by default of samples.

  Attributes:
    num_places: Places of the run, each of one row, or of those of a search.
    rows_per_place: How many.
    max_steps: Most steps between two returns to the host.
  """

  rows_per_place = 1

  def __init__(self, pair: bound_pair.BoundPair, num_places: int):
    self._pair = pair
    self.num_places = num_places
    # Nobody waits for a single row but its own request.
    one = num_places == 1
    self.max_steps = pair.options.max_tokens if one else MAX_STEPS
    self._read = jax.jit(self._start)
    self._admit = jax.jit(self._put, donate_argnums=0)
    self._advance = jax.jit(self._step, donate_argnums=3)
    # By what is started: hints and rules may come with arrays of their own.
    self._take: dict[Any, Callable[..., list[jax.Array]]] = {}

  @classmethod
  def of(
      cls,
      pair: bound_pair.BoundPair,
      num_places: int,
      rule: contracts.Rule | contracts.CoupledRule,
  ) -> 'RowPrograms':
    """Return those of earlier engines of the decoder, which are compiled.

    Rules of two classes share none: see `input_batch.InputBatch`.
    """
    key = num_places, type(rule)
    return pair.program(key, lambda: cls(pair, num_places))

  @property
  def ends(self) -> tuple[int, ...]:
    """Ids that end a sequence."""
    return self._pair.target_model.special_ids.ends

  def read(self, batch: input_batch.InputBatch) -> Any:
    """Return what was started, a place per input; asynchronous, as all."""
    with self._pair.scope():
      return self._read(*self._pair.params, self._pair.place(batch))

  def take(self, run: Any, places: jax.Array) -> Any:
    """Return a run of places of another one, which stays as it is.

    That has more than one place, unless these programs have one too. `places`,
    [places] int32, says which one comes to each place; -1 for one that has
    ended.
    """
    leaves, structure = jax.tree.flatten(run)
    if structure not in self._take:
      # On a mesh, laid out as the run, for which all else is compiled.
      self._take[structure] = jax.jit(
          lambda *args: jax.tree.leaves(_take(*args)),
          out_shardings=[leaf.sharding for leaf in leaves],
      )
    with self._pair.scope():
      taken = self._take[structure](run, places)
    return jax.tree.unflatten(structure, taken)

  def admit(
      self,
      run: Any,
      started: Any,
      places: np.ndarray,
      decodes: np.ndarray,
      is_last: bool = False,
  ) -> Any:
    """Put what was started in places that have ended.

    Args:
      run: Is deleted. None of a single place that has had no request.
      started: From `read`; may be admitted again, as another decode.
      places: [width] int32, see `loop.put`; -1 leaves one out.
      decodes: [width] int32, the decode number of each sample.
      is_last: Whether it is not.
    """
    if self.num_places > 1:
      return self._admit(run, started, places, decodes)
    # A single place becomes what was started, and no cache is copied.
    if not is_last:
      started = self.take(started, places)
    return self._numbered(started, decodes)

  def advance(
      self,
      run: Any,
      cancelled: jax.Array,
      until: jax.Array,
      limit: jax.Array,
      rule: Any,
      cap: jax.Array | None = None,
      keeps_alternatives: bool = False,
  ) -> tuple[Any, report_lib.Report]:
    """Decode until enough places have ended.

    Args:
      run: Is deleted.
      cancelled: [places] bool, places that end at once.
      until: int32 scalar, the number of ended places to return at.
      limit: int32 scalar, the steps to return after, `max_steps` at most.
      rule: See `contracts.Rule`; of a search what scores its hypotheses.
      cap: int32 scalar, the cap of a `by_load.ByLoad`; None of other policies.
      keeps_alternatives: Whether a row wants the likeliest tokens.
    """
    keeps = np.bool_(keeps_alternatives)
    with self._pair.scope():
      run, report = self._advance(
          *self._pair.params, rule, run, cancelled, until, limit, cap, keeps
      )
    if report.committed is not None and not keeps_alternatives:
      # The host does not wait for them.
      committed = report.committed._replace(alternatives=None)
      report = report.replace(committed=committed)
    return run, report

  def _fold(self, keeps_alternatives: jax.Array | bool) -> outcome_lib.Fold:
    drafts = self._pair.drafter.form.gamma > 0
    count = outcome_lib.num_alternatives(self._pair.target_model.vocab_size)
    counting = outcome_lib.COUNTING if drafts else outcome_lib.NOTHING
    return outcome_lib.Committing(counting, count, keeps_alternatives)

  def _start(self, target_params, draft_params, batch) -> loop.Run:
    pair = self._pair
    setup = pair.setup(target_params, draft_params, batch.rule)
    begun = state_lib.begin(
        setup,
        batch.inputs,
        # `admit` makes them keys of decodes.
        state_lib.example_keys(batch.seed, batch.example_ids),
        batch.limits,
        batch.sampling,
        batch.draft_sampling,
        length=pair.options.max_tokens,
        hints=batch.hints,
    )
    return loop.start(begun, self._fold(False))

  def _numbered(self, started, decodes) -> loop.Run:
    keys = _decode_keys(started.batch.keys, decodes)
    return started._replace(batch=started.batch.replace(keys=keys))

  def _put(self, run, started, places, decodes) -> loop.Run:
    return loop.admit(run, self._numbered(started, decodes), places)

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
    setup = self._pair.setup(target_params, draft_params, rule)
    setup = setup._replace(keeps_alternatives=keeps_alternatives)
    if cap is not None:
      setup = setup._replace(policy=by_load.ByLoad(cap))
    # Before the first step: a cancelled row is neither written nor counted.
    ended = run.state.has_ended | cancelled
    run = run._replace(state=run.state.replace(has_ended=ended))
    fold = self._fold(keeps_alternatives)
    run, work = loop.advance(
        setup, run, self.max_steps, until, limit, fold=fold
    )
    state = run.state
    report = report_lib.Report(
        state.has_ended,
        state.sequences,
        state.num_tokens,
        state.log_probs,
        state.num_calls,
        work,
        *run.kept,
    )
    return run, report


_decode_keys = jax.jit(state_lib.decode_keys)


def _take(run, places):
  index, count = jnp.maximum(places, 0), len(run.state.has_ended)

  def take(x):
    if len(places) == 1:  # it may have no axis; copied, as runs are donated
      return jnp.copy(x)
    if len(x) == count:
      return x[index]
    # Several rows per place, as of a search: they move together.
    by_place = x.reshape(count, len(x) // count, *x.shape[1:])
    return by_place[index].reshape(-1, *x.shape[1:])

  taken = jax.tree.map(take, run)
  ended = taken.state.has_ended | (places < 0)
  return taken._replace(state=taken.state.replace(has_ended=ended))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam searches as programs of an engine: a place has all rows of a search."""

import warnings

import jax.numpy as jnp

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import bound_pair
from speculative_t5x.decoder import report as report_lib
from speculative_t5x.decoder import row_programs
from speculative_t5x.drafters import beam_drafts
from speculative_t5x.networks import network
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import loop


class SearchPrograms(row_programs.RowPrograms):
  """Programs of searches that differ by nothing but a penalty's value."""

  def __init__(
      self,
      pair: bound_pair.BoundPair,
      num_places: int,
      search: beam_search.BeamSearch,
  ):
    super().__init__(pair, num_places)
    self.rows_per_place = search.beams
    self._target, _ = search.bind(pair.target_model)
    self._drafter = drafter_of(pair, search)

  @classmethod
  def of(
      cls,
      pair: bound_pair.BoundPair,
      num_places: int,
      search: beam_search.BeamSearch,
  ) -> 'SearchPrograms':
    """Return those of earlier engines of the decoder, which are compiled."""
    return pair.program(
        (num_places, search.compiled),
        lambda: cls(pair, num_places, search),
    )

  def _start(self, target_params, draft_params, batch) -> beams_lib.Run:
    setup = beams_lib.SearchSetup(
        self._target, target_params, None, self._drafter, draft_params
    )
    return beam_loop.start(
        setup,
        batch.inputs,
        jnp.minimum(batch.limits, self._pair.options.max_tokens),
        beams=self.rows_per_place,
        length=self._pair.options.max_tokens,
        hints=batch.hints,
    )

  def _numbered(self, started, decodes) -> beams_lib.Run:
    return started  # nothing is drawn

  def _put(self, run, started, places, decodes) -> beams_lib.Run:
    return loop.put(run, started, places, self.num_places)

  def _step(
      self,
      target_params,
      draft_params,
      scoring,
      run,
      cancelled,
      until,
      limit,
      cap,
      keeps_alternatives,
  ):
    setup = beams_lib.SearchSetup(
        self._target, target_params, scoring, self._drafter, draft_params
    )
    ended = run.state.has_ended | cancelled
    run = run._replace(state=run.state.replace(has_ended=ended))
    run, num_calls = beam_loop.advance(setup, run, until, limit)
    ids = self._target.special_ids
    return run, report_lib.of_search(run, num_calls, scoring, ids)


def drafter_of(
    pair: bound_pair.BoundPair, search: beam_search.BeamSearch
) -> contracts.Drafter | None:
  """Return what drafts for a search; None if the drafter drafts nothing.

  A tree of drafts is gamma deep. A drafter that draws tokens and makes no trees
  drafts chains, with a warning.

  Raises:
    ValueError: for fewer draft beams than beams, for a drafter that cannot
      draft for a search, or for a network that cannot decode trees.
  """
  if not pair.drafter.form.gamma:
    return None
  asks = 'Speculative beam search'
  network.check_offers(pair.target.config, asks, *network.DECODES_TREES)
  drafter = beam_drafts.of(pair.drafter, search.beams, search.draft_beams)
  is_chain = isinstance(drafter.form, forms.Chain)
  if is_chain and drafter.form.num_uniforms:
    warnings.warn(
        f'The drafter {pair.loaded_drafter.description.name} makes no trees: it'
        ' drafts a chain behind each beam. A draft model makes trees.',
        stacklevel=2,
    )
  return drafter

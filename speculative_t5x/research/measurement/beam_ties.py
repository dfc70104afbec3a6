# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compares speculative beam searches with plain ones, which they should equal.

Where they differ, the plain search is repeated, and the smallest margin of its
decisions up to its end is compared with the difference of scores that rounding
makes: a search all of whose decisions have larger margins has one result.

Legend: examples, beams (hypotheses per example), vocab.
"""

from collections.abc import Sequence
import functools

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts

# Of a score, the least difference that rounding may make.
_ROUNDING = 8 * float(np.finfo(np.float32).eps)


def compare(
    decoder: token_decoder.TokenDecoder,
    search: beam_search.BeamSearch,
    batches: Sequence[input_batch.InputBatch],
    plain: interleaved.Run,
    speculative: interleaved.Run,
) -> run_record.Greedy:
  """Count examples with identical hypotheses, near ties and mismatches.

  The runs are of hypotheses as rows, see `report.of_search`.
  """
  found = [
      (one.hypotheses(search.beams), other.hypotheses(search.beams))
      for one, other in zip(plain.decoded, speculative.decoded, strict=True)
  ]
  tolerance = max(tolerance_of(*sides) for sides in found)
  num_examples = near_tie = mismatch = 0
  for batch, (one, other) in zip(batches, found, strict=True):
    num_examples += int(np.sum(np.asarray(batch.limits) > 0))  # no padding
    differs = np.any(one[0] != other[0], axis=(1, 2))
    if np.any(differs):
      is_near = margins(decoder, batch, search) <= tolerance
      near_tie += int(np.sum(differs & is_near))
      mismatch += int(np.sum(differs & ~is_near))
  identical = num_examples - near_tie - mismatch
  return run_record.Greedy(identical, near_tie, mismatch)


def tolerance_of(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> float:
  """Return the largest margin that rounding explains.

  Of hypotheses in both results, each sequences and scores, the scores differ by
  rounding alone. It may move both sides of a comparison, hence the factor 2.
  """
  is_same = np.all(one[0] == other[0], axis=-1)
  difference = np.abs(one[1] - other[1])[is_same].max(initial=0)
  scores = np.abs(one[1])[one[1] > beams_lib.NONE / 2].max(initial=1)
  return 2 * float(max(difference, _ROUNDING * scores))


def margins(
    decoder: token_decoder.TokenDecoder,
    batch: input_batch.InputBatch,
    search: beam_search.BeamSearch,
) -> np.ndarray:
  """Return the smallest margin of all decisions of each plain search.

  [examples] float32, in differences of scores.
  """
  batch = decoder.place(batch.replace(hints=None))
  target, scoring = search.bind(decoder.target_model)
  with decoder.scope():
    return jax.device_get(
        _margins(
            target,
            search.beams,
            decoder.options.max_tokens,
            decoder.target.params,
            batch,
            scoring,
        )
    )


@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _margins(target, beams, length, params, batch, scoring) -> jax.Array:
  limits = jnp.minimum(batch.limits, length)
  setup = beams_lib.Setup(target, params, scoring)

  def advance(carry):
    run, smallest = carry
    # The compiler makes one of this call of the target and that of `call`.
    logits, _ = beams_lib.decode(setup, run)
    after = beams_lib.call(setup, run)
    margin = step_margin(
        run.state, after.state, logits, limits, scoring, target.special_ids
    )
    smallest = jnp.where(
        run.state.has_ended, smallest, jnp.minimum(smallest, margin)
    )
    return after, smallest

  run = beam_loop.start(
      setup,
      batch.inputs,
      limits,
      beams=beams,
      length=length,
      features=batch.features,
  )
  run, smallest = lax.while_loop(
      lambda carry: ~jnp.all(carry[0].state.has_ended),
      advance,
      (run, jnp.full(limits.shape, jnp.inf)),
  )
  # The order of the result is decided last.
  found = beams_lib.hypotheses(run.state, scoring, target.special_ids)
  return jnp.minimum(smallest, _gaps(found.scores))


def step_margin(
    state: beams_lib.Beams,
    after: beams_lib.Beams,
    logits: jax.Array,
    limits: jax.Array,
    scoring: beam_scores.Scoring,
    special_ids: contracts.SpecialIds,
) -> jax.Array:
  """Return the smallest margin of the decisions of a step, [examples].

  Which candidates live on; which of those that end are of a rank that counts,
  and are kept; and whether the search stops.
  """
  examples, beams, vocab_size = logits.shape
  scores = scoring.log_probs(logits) + state.live.scores[..., None]
  scores = scores.reshape(examples, beams * vocab_size)
  is_end = special_ids.is_end(jnp.arange(vocab_size, dtype=jnp.int32))
  lives, _ = lax.top_k(
      jnp.where(jnp.tile(is_end, beams), -jnp.inf, scores), beams + 1
  )
  margin = lives[:, -2] - lives[:, -1]

  best, index = lax.top_k(
      scores, beams_lib.num_candidates(beams, special_ids) + 1
  )
  is_end = is_end[index % vocab_size]
  is_last = after.num_steps >= limits
  counts = scoring.ends(is_end[:, :-1], is_last, beams)
  all_end = jnp.any(counts & ~is_end[:, :-1], axis=1, keepdims=True)
  ranks = scoring.ends(jnp.ones_like(counts), is_last, beams)
  size = jnp.sum(ranks, axis=1, dtype=jnp.int32)[:, None]
  inner = jnp.take_along_axis(best, size - 1, axis=1)
  outer = jnp.take_along_axis(best, size, axis=1)
  is_in = jnp.arange(best.shape[1]) < size
  border = jnp.where(is_in, best - outer, inner - best)
  border = jnp.where(is_end | all_end, border, jnp.inf)
  margin = jnp.minimum(margin, jnp.min(border, axis=1))

  new = jnp.where(counts, best[:, :-1], beams_lib.NONE)
  new = scoring.score(new, after.num_steps[:, None])
  new = jnp.where(counts, new, -jnp.inf)
  ended = jnp.concatenate([_real(state.ended.scores), new], axis=1)
  ended, _ = lax.top_k(ended, beams + 1)
  margin = jnp.minimum(margin, _gaps(ended[:, -2:]))

  bound = scoring.bound(after.live.scores[:, -1], after.num_steps, limits)
  worst = jnp.min(_real(after.ended.scores), axis=1)
  return jnp.minimum(margin, jnp.abs(worst - bound))


def _real(scores: jax.Array) -> jax.Array:
  """Return scores, -inf of hypotheses that are not there."""
  return jnp.where(scores > beams_lib.NONE / 2, scores, -jnp.inf)


def _gaps(scores: jax.Array) -> jax.Array:
  """Return the smallest difference between neighbours in order, [examples].

  Hypotheses that are not there have none.
  """
  scores = jnp.sort(_real(scores), axis=1)
  gaps = jnp.where(
      scores[:, :-1] > -jnp.inf, scores[:, 1:] - scores[:, :-1], jnp.inf
  )
  return jnp.min(gaps, axis=1, initial=jnp.inf)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam search as T5X defines it, one token of every beam at a time.

`step` is the definition, a pure function of logits; `call` calls the target for
them, and `beam_loop` calls that. They compute what `t5x.decoding.beam_search`
does (google-research/t5x at cc342d4) with its scoring, see `beam_scores`:
tokens, order and scores of all hypotheses. The one difference: a row that may
stop stops, where T5X goes on until all rows of a batch may. Scores do not
change by it, only the order of hypotheses of exactly equal score.

Legend: examples, beams (hypotheses per example), vocab, length (of the longest
output), rows (examples times beams, the beams of an example next to each
other).
"""

from typing import Any, NamedTuple

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import beam_rows
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import state as state_lib

# The score of a hypothesis that is not there, finite as in T5X. Differences of
# real scores are lost beside it: float32 has a spacing of 1 there.
NONE = -1e7
BREVITY_PENALTY = 0.6


@struct.dataclass
class Hypotheses:
  """Hypotheses of each example, in ascending order of their scores.

  Attributes:
    tokens: [examples, beams, length] int32, padding past the last one.
    scores: [examples, beams] float32.
    counts: [examples, beams] int32, tokens of each.
  """

  tokens: jax.Array
  scores: jax.Array
  counts: jax.Array


@struct.dataclass
class Beams:
  """The state of a beam search.

  Attributes:
    live: Hypotheses without an end, all as long. A score is the sum of the
      log-probabilities of the tokens.
    ended: Hypotheses with an end, or a limit that counts as one, with the
      scores of a `beam_scores.Scoring`.
    is_there: [examples, beams] bool. Which of `ended` are real.
    has_ended: [examples] bool. Whether no step can change the outcome.
    num_steps: [examples] int32, steps so far: the tokens of live hypotheses.
  """

  live: Hypotheses
  ended: Hypotheses
  is_there: jax.Array
  has_ended: jax.Array
  num_steps: jax.Array


class SearchSetup(NamedTuple):
  """The way to search: the same for all examples.

  Attributes:
    target: The model.
    target_params: Its parameters.
    scoring: Says how ended hypotheses compete.
    drafter: Drafts trees of as many roots as beams, or a chain behind each, as
      at temperature 0; None for a plain search.
    draft_params: Parameters of the drafter.
  """

  target: contracts.Model
  target_params: contracts.Params
  scoring: beam_scores.Scoring
  drafter: Any = None
  draft_params: contracts.Params = None


class Run(NamedTuple):
  """Searches on their way.

  Attributes:
    limits: [examples] int32, see `begin`.
    offsets: [rows] int32, see `contracts.Started`.
    first_tokens: Likewise.
    memory: What decoding only reads of the target, one row per example.
    draft_memory: Likewise, of the drafter.
    state: State of the searches.
    cache: Cache of the target.
    draft_state: State of the drafter.
    counts: Counts [examples], in which a depth of a tree is a draft token: it
      is accepted if all live hypotheses are among its nodes, so that a call
      makes a step more. None of plain searches, as all of the drafter.
  """

  limits: jax.Array
  offsets: jax.Array
  first_tokens: jax.Array
  memory: contracts.Memory
  draft_memory: contracts.Memory
  state: Beams
  cache: contracts.Cache
  draft_state: Any
  counts: outcome_lib.Statistics | None


def begin(
    limits: jax.Array,
    beams: int,
    length: int,
    special_ids: contracts.SpecialIds,
) -> Beams:
  """Return the state before the first step: one empty hypothesis.

  Args:
    limits: [examples] int32 in [0, length]. The most tokens of a hypothesis;
      0 in a row that only fills the batch.
    beams: Hypotheses per example (static).
    length: Tokens of the longest output (static).
    special_ids: Those of the target.
  """
  shape = limits.shape[0], beams
  none = Hypotheses(
      jnp.full((*shape, length), special_ids.padding, jnp.int32),
      jnp.full(shape, NONE, jnp.float32),
      jnp.zeros(shape, jnp.int32),
  )
  return Beams(
      # The first one is the empty one, though not the last in order: all others
      # have its logits, and would give each candidate once more.
      none.replace(scores=none.scores.at[:, 0].set(0.0)),
      none,
      jnp.zeros(shape, bool),
      limits <= 0,
      jnp.zeros(limits.shape, jnp.int32),
  )


def step(
    state: Beams,
    logits: jax.Array,
    limits: jax.Array,
    scoring: beam_scores.Scoring,
    special_ids: contracts.SpecialIds,
) -> tuple[Beams, jax.Array]:
  """Take the best continuations of all live hypotheses.

  An example, 2 beams: of the 4 best candidates those that end join the ended
  hypotheses, by T5X's scoring also at ranks 3 and 4, and of the others the best
  2 live on. At most 2 of 4 can end, since a hypothesis ends in one way. Where
  it can end in several, there are as many more candidates, or fewer than 2
  would live on.

  Args:
    state: Rows that have ended stay as they are.
    logits: [examples, beams, vocab], of the token after each live hypothesis.
    limits: [examples] int32, see `begin`.
    scoring: Says how ended hypotheses compete.
    special_ids: Those of the target.
  Returns:
    The next state, and the hypothesis that each live one continues,
    [examples, beams] int32.
  """
  beams, vocab_size = logits.shape[1:]
  # The sum first and the best ones then: float32 merges sums of different
  # terms, and of equal ones the lowest index wins, here as in T5X.
  scores = scoring.log_probs(logits) + state.live.scores[..., None]
  scores, index = lax.top_k(
      scores.reshape(scores.shape[0], beams * vocab_size),
      num_candidates(beams, special_ids),
  )
  parents, tokens = index // vocab_size, index % vocab_size
  candidates = _append(beam_rows.gather(state.live, parents), tokens, scores)
  is_end = special_ids.is_end(tokens)
  num_steps = state.num_steps + 1

  lives = candidates.replace(scores=jnp.where(is_end, scores + NONE, scores))
  live, chosen = _best(lives, beams)
  has_ended = scoring.ends(is_end, num_steps >= limits, beams)
  ends = candidates.replace(
      scores=scoring.score(scores, num_steps[:, None])
      + jnp.where(has_ended, 0.0, NONE)
  )
  both = lambda old, new: jnp.concatenate([old, new], axis=1)
  ended, kept = _best(jax.tree.map(both, state.ended, ends), beams)
  after = Beams(
      live,
      ended,
      beam_rows.gather(both(state.is_there, has_ended), kept),
      state.has_ended,
      num_steps,
  )
  after = after.replace(has_ended=_may_stop(after, limits, scoring))
  return (
      beam_rows.where(state.has_ended, state, after),
      beam_rows.gather(parents, chosen),
  )


def num_candidates(beams: int, special_ids: contracts.SpecialIds) -> int:
  """Return how many continuations a step looks at: see `step`."""
  return (1 + len(special_ids.ends)) * beams


def outputs(state: Beams) -> Hypotheses:
  """Return T5X's: the ended hypotheses, or the live ones where none has ended.

  Of fewer than there are beams the first ones are `NONE`; live ones have their
  sums as scores.
  """
  has_any = jnp.any(state.is_there, axis=1)
  return beam_rows.where(has_any, state.ended, state.live)


def hypotheses(
    state: Beams,
    scoring: beam_scores.Scoring,
    special_ids: contracts.SpecialIds,
) -> Hypotheses:
  """Return the ended hypotheses, and the best live ones in the places left.

  The best one is last. Live ones come before all ended ones, whatever their
  scores, which are those of an end at the limit. A place that is left over is
  `NONE`, without tokens: there are fewer hypotheses than beams.
  """
  beams = state.live.scores.shape[1]
  least = NONE / 2  # of a sum; a score is divided, which may raise it above
  # Negated, so that scores that are not finite reach those who check them.
  is_live = ~(state.live.scores <= least) & (not scoring.limit_ends)
  is_ended = ~(state.ended.scores <= scoring.score(least, state.ended.counts))
  # Within a rank they are in order already.
  rank = jnp.concatenate([1 * is_live, 2 * (is_ended & state.is_there)], axis=1)
  index = jnp.argsort(rank, axis=1, stable=True)[:, -beams:]
  scores = scoring.score(state.live.scores, state.live.counts)
  best = beam_rows.gather(
      jax.tree.map(
          lambda *x: jnp.concatenate(x, axis=1),
          state.live.replace(scores=scores),
          state.ended,
      ),
      index,
  )
  is_there = beam_rows.gather(rank, index) > 0
  return Hypotheses(
      jnp.where(is_there[..., None], best.tokens, special_ids.padding),
      jnp.where(is_there, best.scores, NONE),
      jnp.where(is_there, best.counts, 0),
  )


def call(setup: SearchSetup, run: Run) -> Run:
  """Make a step of each search by one call of the target."""
  logits, cache = decode(setup, run)
  state, parents = step(
      run.state, logits, run.limits, setup.scoring, setup.target.special_ids
  )
  return run._replace(state=state, cache=beam_rows.take(cache, parents))


def decode(setup: SearchSetup, run: Run) -> tuple[jax.Array, contracts.Cache]:
  """Return the logits after each live hypothesis, and the next cache.

  They are [examples, beams, vocab], of a run without drafts.
  """
  examples, beams, length = run.state.live.tokens.shape
  index = jnp.repeat(run.state.num_steps, beams)
  tokens = state_lib.decoder_inputs(
      run.state.live.tokens.reshape(examples * beams, length),
      run.first_tokens,
      index,
      1,
  )
  logits, cache = setup.target.decode(
      setup.target_params,
      run.memory,
      run.cache,
      tokens,
      run.offsets + index,
      None,
  )
  return logits.reshape(examples, beams, -1), cache


def _append(
    hypotheses: Hypotheses, tokens: jax.Array, scores: jax.Array
) -> Hypotheses:
  """Return hypotheses with one more token each, [examples, any], and scores."""
  index = jnp.arange(hypotheses.tokens.shape[-1], dtype=jnp.int32)
  # By selection: a scatter at unequal places is serial on a TPU.
  is_next = index == hypotheses.counts[..., None]
  return Hypotheses(
      jnp.where(is_next, tokens[..., None], hypotheses.tokens),
      scores,
      hypotheses.counts + 1,
  )


def _best(
    hypotheses: Hypotheses, beams: int
) -> tuple[Hypotheses, jax.Array]:
  """Return the best hypotheses, the best one last, and their index."""
  _, index = lax.top_k(hypotheses.scores, beams)
  # Of equal scores the one before comes first, and so lies behind it here.
  index = jnp.flip(index, axis=1)
  return beam_rows.gather(hypotheses, index), index


def _may_stop(
    state: Beams, limits: jax.Array, scoring: beam_scores.Scoring
) -> jax.Array:
  """Return whether nothing better can come, [examples] bool."""
  worst = jnp.min(state.ended.scores, axis=1)  # NONE if one is not there
  bound = scoring.bound(state.live.scores[:, -1], state.num_steps, limits)
  return (state.num_steps >= limits) | scoring.stops(worst, bound)

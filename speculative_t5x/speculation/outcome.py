# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The outcome of a step, and folds, which keep parts of the outcomes of a run.

Legend: rows, gamma (draft tokens per block).
"""

import dataclasses
from typing import Any, NamedTuple

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import widths

# Likeliest tokens that are kept per token, where any are.
MAX_ALTERNATIVES = 5


class Alternatives(NamedTuple):
  """The likeliest tokens at each position, of all tokens, the likeliest first.

  Attributes:
    tokens: [..., count] int32.
    log_probs: [..., count] float32, as `Outcome.model_log_probs`.
  """

  tokens: jax.Array
  log_probs: jax.Array

  @classmethod
  def zeros(cls, *shape: int) -> 'Alternatives':
    """Return what stands where none were kept."""
    return cls(jnp.zeros(shape, jnp.int32), jnp.zeros(shape, jnp.float32))


def num_alternatives(vocab_size: int) -> int:
  """Return how many likeliest tokens are kept of so many."""
  return min(MAX_ALTERNATIVES, vocab_size)


class Outcome(NamedTuple):
  """The outcome of one step, per row.

  In rows that had ended before the step, the numbers from `num_computed` to
  `num_committed` are 0 and the tokens have no meaning. No number depends on the
  other rows.

  Attributes:
    num_before: [rows] int32, tokens committed before the step.
    num_computed: [rows] int32, draft tokens that were made.
    num_drafted: [rows] int32, those up to the first end of sequence and up to
      the limit: the others cannot be accepted.
    num_accepted: [rows] int32.
    num_committed: [rows] int32, the accepted ones and the one drawn after
      them, if any.
    is_active: [rows] bool, False in rows that had ended before.
    is_cut_short: [rows] bool: the accepted draft tokens end the row, so that
      no further token was drawn.
    has_ended: [rows] bool, after the step.
    draft_tokens: [rows, gamma] int32.
    tokens: [rows, gamma + 1] int32, what was committed first.
    log_probs: [rows, gamma + 1] float32, of the tokens, as a row's score adds
      them up: see `state.Setup.rescale_log_probs`.
    model_log_probs: Likewise, under the model's own distribution, before
      temperature and filters.
    alternatives: [rows, gamma + 1, count], see `state.Setup`; None if none are
      kept.
  """

  num_before: jax.Array
  num_computed: jax.Array
  num_drafted: jax.Array
  num_accepted: jax.Array
  num_committed: jax.Array
  is_active: jax.Array
  is_cut_short: jax.Array
  has_ended: jax.Array
  draft_tokens: jax.Array
  tokens: jax.Array
  log_probs: jax.Array
  model_log_probs: jax.Array
  alternatives: Alternatives | None = None

  @property
  def is_rejected(self) -> jax.Array:
    """[rows] bool: whether the block ended in a rejected draft token."""
    return self.num_accepted < self.num_drafted

  @property
  def num_tested(self) -> jax.Array:
    """[rows] int32, draft tokens that were accepted or rejected."""
    return self.num_accepted + self.is_rejected.astype(jnp.int32)


def none_yet(rows: int, gamma: int) -> Outcome:
  """Return the outcome that stands for the step before the first one."""
  counts = lambda *shape: jnp.zeros((rows, *shape), jnp.int32)
  no = jnp.zeros((rows,), bool)
  log_probs = jnp.zeros((rows, gamma + 1), jnp.float32)
  return Outcome(
      counts(), counts(), counts(), counts(), counts(), no, no, no,
      counts(gamma), counts(gamma + 1), log_probs, log_probs,
  )  # fmt: skip


def append(to: jax.Array, block: jax.Array, outcome: Outcome) -> jax.Array:
  """Put what a block committed behind what each row had, [rows, length, ...].

  Args:
    to: [rows, length, ...], an entry per token.
    block: [rows, gamma + 1, ...], an entry per token of the block.
    outcome: Says how many entries there are, and how many are committed.
  """
  slots = jnp.arange(to.shape[1], dtype=jnp.int32)[None]
  # A row of 2 tokens x y that commits a b z: slots 0 1 2 3 4 have the indices
  # -2 -1 0 1 2 within the block, and slots 2 to 4 get a b z.
  index = slots - outcome.num_before[:, None]
  is_new = (index >= 0) & (index < outcome.num_committed[:, None])
  of_entries = lambda x: x.reshape(x.shape + (1,) * (to.ndim - 2))
  index = of_entries(jnp.clip(index, 0, block.shape[1] - 1))
  new = jnp.take_along_axis(block, index, axis=1)
  return jnp.where(of_entries(is_new), new, to)


class Fold:
  """Keeps parts of a run's outcomes; this one keeps nothing, at no cost.

  It is static, and its arrays are a pytree.
  """

  def init(self, rows: int, length: int, gamma: int) -> Any:
    """Return what is kept before the first step."""

  def update(self, kept: Any, outcome: Outcome) -> Any:
    """Return what is kept after one more step."""


NOTHING = Fold()


@struct.dataclass
class Statistics:
  """Counts of a run, per row.

  Draft tokens are counted up to a block's first end of sequence and up to the
  length limit; what lies past either is computed and cannot be accepted.

  Attributes:
    accepted_histogram: [rows, gamma + 1] int32, blocks by the number of draft
      tokens that were accepted.
    tested_histogram: [rows, gamma + 1] int32, blocks by the number of draft
      tokens that were accepted or rejected.
    drafted_histogram: [rows, gamma + 1] int32, blocks by the number of draft
      tokens.
    num_computed: [rows] int32, draft tokens made, those past the end included.
    num_cut_short: [rows] int32, blocks that ended inside their draft, by an
      end of sequence or the limit, so that no further token was drawn.
  """

  accepted_histogram: jax.Array
  tested_histogram: jax.Array
  drafted_histogram: jax.Array
  num_computed: jax.Array
  num_cut_short: jax.Array

  @property
  def num_accepted(self) -> jax.Array:
    """[rows], draft tokens that were committed."""
    return tokens_per_position(self.accepted_histogram).sum(axis=-1)

  @property
  def num_tested(self) -> jax.Array:
    """[rows], draft tokens that were accepted or rejected."""
    return tokens_per_position(self.tested_histogram).sum(axis=-1)

  @property
  def num_drafted(self) -> jax.Array:
    """[rows], draft tokens that could be accepted."""
    return tokens_per_position(self.drafted_histogram).sum(axis=-1)

  def named(self) -> dict[str, jax.Array]:
    """Return counts [rows] under the names of the run record.

    The last two are counts per position of a block, [rows, gamma].
    """
    return {
        'drafted': self.num_drafted,
        'drafted_computed': self.num_computed,
        'tested': self.num_tested,
        'accepted': self.num_accepted,
        'tested_per_position': tokens_per_position(self.tested_histogram),
        'accepted_per_position': tokens_per_position(self.accepted_histogram),
    }


def tokens_per_position(histogram: jax.Array) -> jax.Array:
  """Return how many blocks have a token at each position, from 1 to gamma.

  Args:
    histogram: [..., gamma + 1], blocks by number of tokens; of JAX or NumPy.
  Returns:
    [..., gamma], an array of the same library.
  """
  # Blocks of k or more tokens have one at position k; 0 tokens have none.
  return histogram[..., ::-1].cumsum(axis=-1)[..., ::-1][..., 1:]


class Counting(Fold):
  """Keeps `Statistics`."""

  def init(self, rows: int, length: int, gamma: int) -> Statistics:
    counts = lambda *shape: jnp.zeros((rows, *shape), jnp.int32)
    histograms = (counts(gamma + 1) for _ in range(3))
    return Statistics(*histograms, counts(), counts())

  def update(self, kept: Statistics, outcome: Outcome) -> Statistics:
    bins = jnp.arange(kept.accepted_histogram.shape[1], dtype=jnp.int32)[None]
    is_active = outcome.is_active[:, None]
    # A row that has ended counts 0 of all, and must not count as a block of 0.
    mark = lambda n: ((bins == n[:, None]) & is_active).astype(jnp.int32)
    return Statistics(
        kept.accepted_histogram + mark(outcome.num_accepted),
        kept.tested_histogram + mark(outcome.num_tested),
        kept.drafted_histogram + mark(outcome.num_drafted),
        kept.num_computed + outcome.num_computed,
        kept.num_cut_short + outcome.is_cut_short.astype(jnp.int32),
    )


COUNTING = Counting()


# How a token came about, in place of the draft token that was rejected.
ACCEPTED, DRAWN = -2, -1


class Committed(NamedTuple):
  """All that is known of each committed token, [rows, length].

  Attributes:
    log_probs: float32, see `Outcome.log_probs`.
    model_log_probs: float32, see `Outcome.model_log_probs`.
    origins: int32, how it came about: `ACCEPTED` for a draft token, `DRAWN` for
      a token that was drawn after all draft tokens of its block, and otherwise
      the draft token that was rejected in its place.
    alternatives: [rows, length, count].
  """

  log_probs: jax.Array
  model_log_probs: jax.Array
  origins: jax.Array
  alternatives: Alternatives


@dataclasses.dataclass(frozen=True)
class Committing(Fold):
  """Keeps what another fold keeps, and `Committed`.

  Attributes:
    counting: The other fold.
    count: Alternatives of each token.
    is_wanted: bool scalar, see `state.Setup.keeps_alternatives`.
  """

  counting: Fold
  count: int
  is_wanted: jax.Array | bool

  def init(self, rows: int, length: int, gamma: int) -> tuple[Any, Committed]:
    counts = self.counting.init(rows, length, gamma)
    log_probs = jnp.zeros((rows, length), jnp.float32)
    origins = jnp.full((rows, length), DRAWN, jnp.int32)
    alternatives = Alternatives.zeros(rows, length, self.count)
    return counts, Committed(log_probs, log_probs, origins, alternatives)

  def update(
      self, kept: tuple[Any, Committed], outcome: Outcome
  ) -> tuple[Any, Committed]:
    counts, committed = kept
    # Draft a b c, a accepted, b rejected and z drawn: a z is committed, and
    # ACCEPTED b is kept of it. What is past the drawn token is not committed.
    drafted = jnp.pad(outcome.draft_tokens, ((0, 0), (0, 1)))
    index = jnp.arange(drafted.shape[1], dtype=jnp.int32)[None]
    drawn = jnp.where(outcome.is_rejected[:, None], drafted, DRAWN)
    is_accepted = index < outcome.num_accepted[:, None]
    put = lambda kept, new: jax.tree.map(
        lambda *x: append(*x, outcome), kept, new
    )
    return self.counting.update(counts, outcome), Committed(
        put(committed.log_probs, outcome.log_probs),
        put(committed.model_log_probs, outcome.model_log_probs),
        put(committed.origins, jnp.where(is_accepted, ACCEPTED, drawn)),
        # A gather over all that is kept, in each step: only if it is wanted.
        widths.when(
            jnp.asarray(self.is_wanted),
            lambda kept: put(kept, outcome.alternatives),
            committed.alternatives,
        ),
    )


class Trace(NamedTuple):
  """All outcomes of a run.

  Attributes:
    outcomes: Arrays [steps, rows, ...], with room for as many steps as an
      output has tokens.
    num_steps: int32 scalar, how many there are.
  """

  outcomes: Outcome
  num_steps: jax.Array


class Tracing(Fold):
  """Keeps a `Trace`."""

  def init(self, rows: int, length: int, gamma: int) -> Trace:
    room = jax.tree.map(
        lambda x: jnp.zeros((length, *x.shape), x.dtype), none_yet(rows, gamma)
    )
    return Trace(room, jnp.int32(0))

  def update(self, kept: Trace, outcome: Outcome) -> Trace:
    # Each step commits a token, so that steps never outgrow the room, past
    # which a write would be dropped.
    outcomes = jax.tree.map(
        lambda all, one: all.at[kept.num_steps].set(one), kept.outcomes, outcome
    )
    return Trace(outcomes, kept.num_steps + 1)


TRACING = Tracing()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Rows as compiled programs leave them: arrays, and outputs made of them.

Legend: rows, length (of the longest output).
"""

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import results
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib

_WRONG = (
    ', and its counts contradict each other: the compiled program is wrong.'
    ' Unset XLA_FLAGS, or use another version of JAX.'
)


@struct.dataclass
class Report:
  """Rows after some steps, or at their end."""

  has_ended: jax.Array  # [rows] bool
  # [rows, length] int32, with the end of sequence, then padding.
  sequences: jax.Array
  num_tokens: jax.Array  # [rows] int32, end of sequence included
  log_probs: jax.Array  # [rows] float32, of all tokens of a row
  num_calls: jax.Array  # [rows] int32, target calls
  work: loop.Work
  # Counts per row; None of plain decoding.
  statistics: outcome_lib.Statistics | None = None
  # What is known of each token; None if it is not kept.
  committed: outcome_lib.Committed | None = None
  # Whether rows are hypotheses of a beam search, an example's next to each
  # other, the best one last, each with the counts of its example and a score as
  # its log-probability (static).
  is_search: bool = struct.field(pytree_node=False, default=False)

  def check(self, row: int) -> None:
    """Check what a program has computed of a row, as a NumPy array.

    Raises:
      ValueError: if its log-probability is not finite, as logits were lost to
        overflow, or if counts contradict each other, as no decoding can make
        them and a wrongly compiled program did.
    """
    # Of a search the best one counts: places without a hypothesis have none.
    if not np.isfinite(self.log_probs[row]):
      raise ValueError(
          f'Row {row} of a batch has log-probability {self.log_probs[row]}: the'
          " model's logits are not finite. Decode in float32, or use another"
          ' checkpoint.'
      )
    if self._is_contradictory(row):
      raise ValueError(
          f'Row {row} of a batch has {self.num_tokens[row]} tokens of'
          f' {self.num_calls[row]} target calls{_WRONG}'
      )

  def check_whole(self) -> None:
    """Check all rows of a batch that was decoded to its end; see `check`."""
    for row in range(len(self.num_tokens)):
      self.check(row)
    if np.sum(self.work.calls_by_width) != self.work.num_steps or np.any(
        self.num_calls > self.work.num_steps
    ):
      raise ValueError(
          f'A batch has {self.num_calls.max()} target calls in'
          f' {self.work.num_steps} steps{_WRONG}'
      )

  def _is_contradictory(self, row: int) -> bool:
    """Return whether no decoding can have the counts of a row."""
    num_tokens, num_calls = self.num_tokens[row], self.num_calls[row]
    num_made = num_calls  # plain decoding: each call gives a token
    counts = self._statistics_of(row)
    if counts is not None:
      num_made = counts.num_accepted + num_calls - counts.num_cut_short
      # A histogram of all calls also bounds the tokens by gamma + 1 per call.
      if counts.accepted_histogram.sum() != num_calls or not (
          counts.num_computed >= counts.num_drafted >= counts.num_tested
          >= counts.num_accepted >= 0 <= counts.num_cut_short
      ):  # fmt: skip
        return True
    # A hypothesis may have ended before its search.
    return num_tokens > num_made or not self.is_search and num_tokens < num_made

  def _statistics_of(self, row: int) -> outcome_lib.Statistics | None:
    return jax.tree.map(lambda x: x[row], self.statistics)

  def decode(
      self,
      row: int,
      number: int = 0,
      ends: tuple[int, ...] = (),
      alternatives: int = 0,
  ) -> results.Decode:
    """Return a row, as a NumPy array, as an output.

    The number is that of `results.Decode`, `ends` are the ids that end a
    sequence, and so many of the kept likeliest tokens become its alternatives.
    """
    # Past its tokens a row holds padding, and zeros that no token has.
    own = lambda x: x[row, : self.num_tokens[row]]
    none = np.zeros((0,), np.float32)
    known = outcome_lib.Committed(none, none, none.astype(np.int32), None)
    if self.committed is not None:
      known = jax.tree.map(own, self.committed)
    likeliest = None
    if alternatives:  # a neighbour may have asked for more
      first = lambda x: x[:, :alternatives]
      likeliest = jax.tree.map(first, known.alternatives)
    tokens = own(self.sequences).tolist()
    return results.Decode(
        tokens,
        *known[:3],
        number,
        bool(tokens) and tokens[-1] in ends,
        self.log_probs[row],
        int(self.num_calls[row]),
        self._statistics_of(row),
        alternatives=likeliest,
        is_whole=bool(self.has_ended[row]),
    )

  def hypotheses(self, beams: int) -> tuple[np.ndarray, np.ndarray]:
    """Return those of a search by example, the best one last, and their scores.

    They are [examples, beams, length] int32, and [examples, beams] float32.
    """
    return (
        self.sequences.reshape(-1, beams, self.sequences.shape[1]),
        self.log_probs.reshape(-1, beams),
    )


def of_search(
    run: beams_lib.Run,
    num_steps: jax.Array,
    scoring: beam_scores.Scoring,
    special_ids: contracts.SpecialIds,
) -> Report:
  """Return the hypotheses of searches as rows, after so many target calls."""
  state, counts = run.state, run.counts
  found = beams_lib.hypotheses(state, scoring, special_ids)
  num_calls, depth = state.num_steps, 0
  if counts is not None:
    num_calls = jnp.sum(counts.accepted_histogram, axis=-1)
    depth = counts.accepted_histogram.shape[1] - 1
  of_rows = lambda x: jnp.repeat(x, found.counts.shape[1], axis=0)
  join = lambda x: x.reshape(-1, *x.shape[2:])
  return Report(
      of_rows(state.has_ended),
      join(found.tokens),
      join(found.counts),
      join(found.scores),
      of_rows(num_calls),
      loop.Work(num_steps, num_steps * depth, num_steps[None]),
      jax.tree.map(of_rows, counts),
      is_search=True,
  )

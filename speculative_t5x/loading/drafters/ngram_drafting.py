# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables of n-grams as drafters, smoothed from counted texts.

Probabilities are smoothed as Witten and Bell (1991) do, interpolated at every
order: with N tokens after a context x, T(x) of them different, a token y has

  q(y | x) = (N(x, y) + T(x) q(y)) / (N(x) + T(x))

where q(y) is the unigram distribution, which is interpolated in the same way
with the uniform distribution. There is nothing to tune. A token after which
nothing was counted has the unigram distribution.

A dense bigram table of 32,128 tokens would take 4 GB. Stored are the most
frequent continuations of each token; the counts of the others are given to the
unigram distribution.

Legend: vocab (the target's), kept (continuations per token).
"""

import dataclasses
import numbers
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.drafters import tables
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.files import user_paths
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import ranges

KINDS = {1: 'unigram', 2: 'bigram'}  # by order, in a run record
_ORDER = ranges.Kind(
    'be 1 (unigram) or 2 (bigram)', numbers.Integral, KINDS.__contains__
)


@dataclasses.dataclass(frozen=True)
class NGrams:
  """A unigram or bigram drafter from a file: a `drafting.Drafting`.

  Attributes:
    path: Output folder of the make-table job.
    order: 1 for unigrams, 2 for bigrams.
  """

  path: checkpoints.Path
  order: int = 2

  def __post_init__(self):
    ranges.check_settings(_ORDER, order=self.order)

  def find(self, target) -> drafting.Drafting:
    path = str(user_paths.expand(self.path))
    counts = token_counts.load(path)
    vocab_size, special_ids = target.config.vocab_size, target.special_ids
    counts.check_fits(
        path,
        vocab_size,
        special_ids.end,
        target.vocabulary,
        target.max_padded_ids,
    )

    start = special_ids.start
    if start is None and target.vocabulary is not None:
      # A prompt of nothing else ends with what stands before a text.
      start = next(reversed(target.vocabulary.begin_ids), None)

    def read() -> drafting.Drafting:
      table = smooth(counts, self.order, vocab_size, start)
      return of_table(table, self.order, path, target.mesh)

    # Two numbers of 4 bytes per token, and two per continuation.
    kept = counts.next_counts.shape[1] if self.order == 2 else 0
    size = 8 * vocab_size * (1 + kept)
    return _of(self.order, path, target.mesh, num_bytes=size, read=read)


def of_table(
    table: tables.NgramTable,
    order: int,
    path: str | None = None,
    mesh: jax.sharding.Mesh | None = None,
) -> drafting.Drafting:
  """Return the drafting by a table that `smooth` made.

  Each device of a mesh holds all of it. The run record has the path.
  """
  if mesh is None:
    table = jax.tree.map(jnp.asarray, table)
  else:
    table = jax.device_put(table, sharding.replicated(mesh))
  return _of(order, path, mesh, params=table)


def _of(
    order: int, path: str | None, mesh: jax.sharding.Mesh | None, **values: Any
) -> drafting.Drafting:
  kind = KINDS[order]
  described = descriptions.DrafterDescription(kind, kind, table=path)
  return drafting.Drafting(tables.make_ngram, described, mesh=mesh, **values)


def smooth(
    counts: token_counts.TokenCounts,
    order: int,
    vocab_size: int,
    start: int | None,
) -> tables.NgramTable:
  """Return the smoothed table of counts, in numpy arrays.

  It has the width of the target's logits. `start` is the token after which a
  text begins; None where it goes on from its input.

  Reference: Witten and Bell (1991), method C; interpolated as in Chen and
    Goodman (1999), Section 2.5.
  """
  num_kept = counts.next_counts.shape[1] if order == 2 else 0

  def by_token(values: np.ndarray) -> np.ndarray:
    """Return values of contexts by previous token, with 0 for the others."""
    found = np.zeros((vocab_size, *values.shape[1:]), values.dtype)
    found[: counts.num_pieces] = values[:-1]
    if start is not None:
      found[start] = values[-1]
    return found

  kept = by_token(counts.next_counts[:, :num_kept])
  weights = np.maximum(by_token(counts.totals + counts.num_next), 1)
  unigram = np.zeros(vocab_size, np.float32)
  unigram[: counts.num_pieces] = _unigram(counts.counts)
  return tables.NgramTable(
      unigram=unigram,
      backoff=np.float32(1 - kept.sum(axis=1) / weights),
      next_tokens=by_token(counts.next_tokens[:, :num_kept]),
      next_probs=np.float32(kept / weights[:, None]),
  )


def _unigram(counts: np.ndarray) -> np.ndarray:
  """Return the smoothed distribution of tokens, [pieces]."""
  num_different = np.count_nonzero(counts)
  return (counts + num_different / counts.size) / (counts.sum() + num_different)

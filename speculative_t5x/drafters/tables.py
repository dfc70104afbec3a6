# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tables as draft models: uniform, unigram and bigram (Section 3.6).

A table is a `contracts.Model` whose next token depends on the last token at
most, so that `draft_model.ModelDrafter` drafts with it as with a network.

Legend: rows, block, vocab (the target's), kept (continuations per token).
"""

import dataclasses

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import contracts


@struct.dataclass
class NgramTable:
  """A smoothed distribution of the next token, given the last.

  Attributes:
    unigram: [vocab] float32, sums to 1; 0 past the vocabulary's last piece.
    backoff: [vocab] float32, weight of the unigram distribution after each
      token.
    next_tokens: [vocab, kept] int32, the most frequent continuations.
    next_probs: [vocab, kept] float32, what is added to theirs; 0 fills a row.
      Each row sums to 1 - backoff.
  """

  unigram: jax.Array
  backoff: jax.Array
  next_tokens: jax.Array
  next_probs: jax.Array


@dataclasses.dataclass(frozen=True)
class _WithoutInputs:
  """The common part of models that read no inputs and keep no cache.

  They begin with the target's first token: the end of a prompt.
  """

  vocab_size: int
  special_ids: contracts.SpecialIds

  def start(self, params, inputs, rows, slots) -> contracts.Started:
    """See `contracts.Model.start`; nothing is read."""
    return contracts.Started(
        memory=None,
        cache=None,
        offsets=jnp.zeros((rows,), jnp.int32),
        first_tokens=None,
    )

  def share_rows(self, cache, examples: int) -> None:
    """See `contracts.DecodesTrees.share_rows`; nothing is kept."""

  def separate_rows(self, cache) -> None:
    """See `contracts.DecodesTrees.separate_rows`; likewise."""

  def new_block(self, cache, examples: int, nodes: int) -> None:
    """See `contracts.DecodesTrees.new_block`; nothing is kept."""

  def decode_tree(
      self, params, memory, cache, block, nodes: contracts.Nodes, first, count,
      num_cached,
  ) -> tuple[jax.Array, None]:  # fmt: skip
    """See `contracts.DecodesTrees.decode_tree`: a path is its last token."""
    tokens = nodes.tokens[:, first : first + count]
    return self.decode(params, memory, cache, tokens, num_cached, None)

  def commit(self, cache, block, rows, paths, num_cached) -> None:
    """See `contracts.DecodesTrees.commit`."""


@dataclasses.dataclass(frozen=True)
class Ngram(_WithoutInputs):
  """A `contracts.Model` whose parameters are a `NgramTable`; see there.

  Attributes:
    vocab_size: Width of the logits.
    special_ids: The target's.
  """

  def decode(
      self, params: NgramTable, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    if at is not None:
      tokens = jnp.take_along_axis(tokens, at[:, None], axis=1)
    rows, block = np.indices(tokens.shape)[..., None]
    probs = params.backoff[tokens][..., None] * params.unigram
    # What fills a row adds 0, and to a token that a row has twice both add.
    probs = probs.at[rows, block, params.next_tokens[tokens]].add(
        params.next_probs[tokens]
    )
    return jnp.log(probs), cache


@dataclasses.dataclass(frozen=True)
class Uniform(_WithoutInputs):
  """A `contracts.Model` to which all tokens are equal.

  Attributes:
    vocab_size: Width of the logits.
    special_ids: The target's.
  """

  def decode(
      self, params, memory, cache, tokens, positions, at
  ) -> tuple[jax.Array, contracts.Cache]:
    rows, block = tokens.shape
    num_positions = block if at is None else 1
    return jnp.zeros((rows, num_positions, self.vocab_size)), cache


def make_uniform(
    target: contracts.Model, gamma: int
) -> draft_model.ModelDrafter:
  """Return the uniform drafter, which has no parameters."""
  return _make(Uniform, target, gamma)


def make_ngram(
    target: contracts.Model, gamma: int
) -> draft_model.ModelDrafter:
  """Return the drafter whose parameters are a `NgramTable`."""
  return _make(Ngram, target, gamma)


def _make(
    model: type, target: contracts.Model, gamma: int
) -> draft_model.ModelDrafter:
  return draft_model.ModelDrafter(
      model(target.vocab_size, target.special_ids),
      gamma,
      target.vocab_size,
  )

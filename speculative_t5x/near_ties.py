# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Whether two greedy outputs that differ do so by rounding alone.

A block of tokens and single tokens go through matrix products of different
shapes, which round differently. Where the two likeliest tokens are closer than
that, either may win; anywhere else a difference is a bug. So at the first
token that differs both paths are run on this device, and the margin of the
two tokens is held against how far the paths' logits lie apart there.

Legend: vocab, length (of the outputs).
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.networks import t5_decoding


@dataclasses.dataclass(frozen=True)
class Difference:
  """The first token in which two greedy outputs of a row differ.

  Attributes:
    row: of the batch.
    position: of the token.
    plain_token: what plain decoding wrote.
    speculative_token: what speculative decoding wrote.
    margin: difference of the two tokens' logits when decoding token by token.
    path_difference: largest difference of any logit there between decoding
      token by token and in blocks.
  """

  row: int
  position: int
  plain_token: int
  speculative_token: int
  margin: float
  path_difference: float

  @property
  def is_near_tie(self) -> bool:
    """Whether rounding can have decided: each path may move both logits."""
    return self.margin <= 2 * self.path_difference


@dataclasses.dataclass(frozen=True)
class Comparison:
  """Greedy outputs of two runs over the same rows.

  Attributes:
    num_identical: rows without a difference.
    differences: one for each other row.
  """

  num_identical: int
  differences: tuple[Difference, ...]

  @property
  def near_ties(self) -> tuple[Difference, ...]:
    return tuple(d for d in self.differences if d.is_near_tie)

  @property
  def mismatches(self) -> tuple[Difference, ...]:
    return tuple(d for d in self.differences if not d.is_near_tie)


def compare(
    decoder: token_decoder.TokenDecoder,
    request: token_decoder.Request,
    plain_sequences: np.ndarray,
    speculative_sequences: np.ndarray,
) -> Comparison:
  """Compares what one batch gave in both ways at temperature 0.

  Args:
    decoder: that decoded them, with one decode an example.
    request: the batch.
    plain_sequences: [examples, length] int32.
    speculative_sequences: likewise.
  """
  if decoder.num_decodes != 1:
    raise ValueError(
        'Greedy outputs are compared with one decode an example, got'
        f' num_decodes {decoder.num_decodes}.'
    )
  rows = np.flatnonzero(
      np.any(plain_sequences != speculative_sequences, axis=1)
  )
  differences = tuple(
      _explain(decoder, request, row, plain_sequences, speculative_sequences)
      for row in rows.tolist()
  )
  return Comparison(len(plain_sequences) - len(rows), differences)


def _explain(decoder, request, row, plain, speculative) -> Difference:
  position = int(np.flatnonzero(plain[row] != speculative[row])[0])
  tokens = int(plain[row, position]), int(speculative[row, position])
  single = _logits_at(decoder, request, row, plain[row], position, 1)
  block = _logits_at(
      decoder, request, row, plain[row], position, decoder.gamma + 1
  )
  # Forbidden ids have logit -inf on both paths.
  both = np.isfinite(single) & np.isfinite(block)
  return Difference(
      row,
      position,
      *tokens,
      margin=float(abs(single[tokens[0]] - single[tokens[1]])),
      path_difference=float(np.max(np.abs(single[both] - block[both]))),
  )


def _logits_at(
    decoder: token_decoder.TokenDecoder,
    request: token_decoder.Request,
    row: int,
    sequence: np.ndarray,
    position: int,
    block: int,
) -> np.ndarray:
  """Logits of the token at a position, the ones before it fed in blocks.

  The batch keeps its shape, since rounding depends on it.
  """
  params = decoder.target.params
  batch = request.encoder_input_tokens.shape[0]
  tile = lambda x: jnp.broadcast_to(x[row], (batch, *x.shape[1:]))
  fed = np.concatenate([[seam.BOS_ID], sequence[:position]]).astype(np.int32)
  # The last block ends at the position. What the first one feeds past that,
  # where it is filled up, is overwritten.
  starts = [0, *reversed(range(position + 1 - block, 0, -block))]
  with decoder.scope():
    context, cache = _begin(
        decoder, params, tile(request.encoder_input_tokens)
    )
    for start in starts:
      tokens = np.resize(fed[start : start + block], (1, block))
      tokens = jnp.asarray(np.repeat(tokens, batch, axis=0))
      positions = jnp.full((batch,), start, jnp.int32)
      logits, cache = _feed(
          decoder, params, context, cache, tokens, positions
      )
  return np.asarray(logits[0, position - starts[-1]])


@functools.partial(jax.jit, static_argnums=0)
def _begin(decoder: token_decoder.TokenDecoder, params, tokens):
  _, context = t5_decoding.encode(decoder.target.config, params, tokens)
  slots = speculation.cache_slots(decoder.length, decoder.gamma)
  return context, decoder.target_decoder.init_cache(
      context, tokens.shape[0], slots
  )


@functools.partial(jax.jit, static_argnums=0)
def _feed(decoder, params, context, cache, tokens, positions):
  return decoder.target_decoder.decode_block(
      params, context, cache, tokens, positions, None
  )

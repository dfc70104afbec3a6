# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two different greedy outputs differ only by rounding.

Decoding in blocks and token by token uses matrix products of different shapes,
which round differently. If the two most likely tokens are closer than the
rounding (a near tie), either may be chosen; any other difference is a bug.
Therefore both paths are run on this device up to the first token that differs,
and the margin between the two tokens' logits is compared with the difference
between the paths' logits.

Legend: vocab, length (of the outputs).
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import token_decoder
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib


@dataclasses.dataclass(frozen=True)
class Difference:
  """The first token in which two greedy outputs of a row differ.

  Attributes:
    row: index of the row in the batch.
    position: position of the token.
    plain_token: token of plain decoding.
    speculative_token: token of speculative decoding.
    margin: difference of the two tokens' logits in decoding token by token.
    path_difference: largest difference of any logit at this position between
      decoding token by token and in blocks.
  """

  row: int
  position: int
  plain_token: int
  speculative_token: int
  margin: float
  path_difference: float

  @property
  def is_near_tie(self) -> bool:
    """Whether rounding explains the difference.

    Rounding may change both logits, hence the factor 2.
    """
    return self.margin <= 2 * self.path_difference


@dataclasses.dataclass(frozen=True)
class Comparison:
  """The comparison of two runs' greedy outputs for the same rows.

  Attributes:
    num_identical: number of rows without a difference.
    differences: the first difference of each other row.
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
  """Compares the plain and speculative outputs of a batch at temperature 0.

  Args:
    decoder: the decoder of both outputs, with one decode per example.
    request: the batch.
    plain_sequences: [examples, length] int32.
    speculative_sequences: [examples, length] int32.
  Raises:
    ValueError: if the decoder has several decodes per example.
  """
  if decoder.num_decodes != 1:
    raise ValueError(
        'Greedy outputs can be compared only with one decode per example, got'
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
  """Returns the logits at a position after decoding the sequence in blocks.

  The batch keeps its shape, because rounding depends on it.
  """
  params = decoder.target.params
  batch = request.encoder_input_tokens.shape[0]
  tile = lambda x: jnp.broadcast_to(x[row], (batch, *x.shape[1:]))
  model = decoder.target_model
  first = model.special_ids.start
  fed = np.concatenate([[first], sequence[:position]]).astype(np.int32)
  # The last block ends at the position. The first block may overlap the second,
  # which then overwrites its cache slots. If there is one block, tokens after
  # the position only fill it up; the logits do not depend on them.
  starts = [0, *reversed(range(position + 1 - block, 0, -block))]
  slots = state_lib.cache_slots(decoder.length, decoder.gamma)
  with decoder.scope():
    memory, cache, *_ = _start(
        model, params, tile(request.encoder_input_tokens), slots
    )
    for start in starts:
      tokens = np.resize(fed[start : start + block], (1, block))
      tokens = jnp.asarray(np.repeat(tokens, batch, axis=0))
      positions = jnp.full((batch,), start, jnp.int32)
      logits, cache = _decode(model, params, memory, cache, tokens, positions)
  return np.asarray(logits[0, position - starts[-1]])


@functools.partial(jax.jit, static_argnums=(0, 3))
def _start(
    model: contracts.Model, params, tokens, slots: int
) -> contracts.Started:
  return model.start(params, tokens, tokens.shape[0], slots)


@functools.partial(jax.jit, static_argnums=0)
def _decode(model: contracts.Model, params, memory, cache, tokens, positions):
  return model.decode(params, memory, cache, tokens, positions, None)

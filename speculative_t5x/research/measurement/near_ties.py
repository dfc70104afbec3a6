# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two different outputs of a row differ only by rounding.

Batches and blocks of different sizes are computed by matrix products of
different shapes, which round differently. Rounding can change a token where the
two most likely tokens are almost equally likely (a near tie); any other
difference is a bug. Therefore all paths are run on this device up to the
position at which the outputs first differ, and the margin of the decision there
is compared with the difference between the paths. `docs/correctness.md` defines
both, for greedy outputs and for samples of a coupled rule.

Legend: vocab, length (of the outputs), paths (ways to compute the same logits).
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.rules import coupled
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib

# Of sums of probabilities, which are float32 whatever the models are, and of
# the integers that a draw makes of them.
_ROUNDING = 4 * float(np.finfo(np.float32).eps)
_standardize = jax.jit(sampling_lib.standardize)


@dataclasses.dataclass(frozen=True)
class BatchRow:
  """A row of a batch, by its index among all decodes of all examples."""

  decoder: token_decoder.TokenDecoder
  batch: input_batch.InputBatch
  index: int
  is_speculative: bool


@dataclasses.dataclass(frozen=True)
class Difference:
  """Where two outputs of a row first differ, and how close the decision was."""

  row: int  # index in the batch of the first output
  position: int  # of the first token that differs
  decision: str  # 'argmax' at temperature 0, or 'draw' of a coupled rule
  tokens: tuple[int, int]  # each output's token at this position
  # Of the two tokens, in the path of each output.
  logits: tuple[tuple[float, float], ...]
  # How far the decision is from being the other one. At temperature 0 the
  # difference of the two logits, else the distance of the uniform from the
  # farther of the two tokens' intervals of the inverse CDF; with Gumbel noise
  # the difference of p over an exponential number, the largest of which wins.
  margin: float
  # Largest difference between paths of what the margin is measured in: logits
  # at temperature 0, else ends of intervals, or p over an exponential number.
  path_difference: float

  @property
  def tolerance(self) -> float:
    """The largest margin that rounding explains.

    Rounding may move both sides of the comparison, hence the factor 2.
    """
    return 2 * self.path_difference

  @property
  def is_near_tie(self) -> bool:
    """True if rounding explains the difference."""
    return self.margin <= self.tolerance


def compare(
    decoder: token_decoder.TokenDecoder,
    batch: input_batch.InputBatch,
    plain_sequences: np.ndarray,
    speculative_sequences: np.ndarray,
) -> list[Difference]:
  """Return a difference per row whose outputs, [rows, length], differ.

  They are argmax, or the samples of a coupled rule.
  """
  both = np.stack([plain_sequences, speculative_sequences], axis=1)
  differing = np.flatnonzero(np.any(both[:, 0] != both[:, 1], axis=1))
  return [
      explain(
          *(BatchRow(decoder, batch, row, way) for way in (False, True)),
          both[row],
      )
      for row in differing.tolist()
  ]


def explain(
    first: BatchRow, second: BatchRow, sequences: np.ndarray
) -> Difference:
  """Return where two outputs of a row first differ, and how closely.

  They are greedy, or samples of the first batch's coupled rule with the same
  seed and sampling. `sequences`, [2, length] int32, are what each run wrote,
  not the same.
  """
  position = int(np.flatnonzero(sequences[0] != sequences[1])[0])
  tokens = sequences[:, position].tolist()
  logits = path_logits(first, second, sequences[0], position)
  batch = first.batch
  is_greedy = batch.sampling.is_greedy
  if is_greedy:
    margin, path_difference = _of_largest(tokens, logits)
  else:
    probs = _standardize(jnp.asarray(logits, jnp.float32), batch.sampling)
    is_gumbel = isinstance(batch.rule, coupled.CoupledGumbel)
    find = _by_gumbel if is_gumbel else _by_inverse_cdf
    margin, path_difference = find(
        tokens, np.asarray(probs, np.float64), _uniform(first, position)
    )
  return Difference(
      first.index,
      position,
      'argmax' if is_greedy else 'draw',
      tuple(tokens),
      # In each run's own path.
      tuple(map(tuple, logits[::2, tokens].tolist())),
      margin,
      path_difference,
  )


def _of_largest(tokens: list[int], values: np.ndarray) -> tuple[float, float]:
  """Return the margin and the path difference where the largest value wins.

  The values are [paths, vocab].
  """
  # Both tokens must almost have the largest one, whichever token has it.
  margin = float(np.max(values[0]) - np.min(values[0, tokens]))
  return margin, _largest_difference(values)


def _by_gumbel(
    tokens: list[int], probs: np.ndarray, uniform: tuple[float, float]
) -> tuple[float, float]:
  """Return both of the draw of `coupled.CoupledGumbel`."""
  words = (np.array(uniform) * 2**32).astype(np.uint32)
  times = coupled.exponentials(words, probs.shape[-1], jnp.float32)
  # A token that only one path rules out differs by all of its rate.
  rates = probs / np.asarray(times, np.float64)
  margin, path_difference = _of_largest(tokens, rates)
  return margin, path_difference + _ROUNDING * float(np.max(rates))


def _by_inverse_cdf(
    tokens: list[int], probs: np.ndarray, uniform: tuple[float, float]
) -> tuple[float, float]:
  """Return both of the draw of `sampling.draw`."""
  ends = np.cumsum(probs, axis=-1)
  ends /= ends[:, -1:]
  margin = max(_distance_to_drawing(x, uniform, ends[0]) for x in tokens)
  return margin, _largest_difference(ends) + _ROUNDING


def _uniform(row: BatchRow, position: int) -> tuple[float, float]:
  """Return the two words that draw a token of plain decoding, over 2^32.

  A draw picks a block of tokens by the first and a token in it by the second.
  """
  batch = row.batch
  keys = state_lib.row_keys(
      batch.seed, batch.example_ids, row.decoder.options.num_decodes
  )
  # Each call writes one token and has one uniform.
  key, call = keys[row.index : row.index + 1], jnp.full((1,), position)
  table = noise.uniform_table(key, call, 1, 1)
  words = np.asarray(table)[0, 0, 0].astype(np.float64)
  return tuple((words / 2**32).tolist())


def _distance_to_drawing(
    token: int, uniform: tuple[float, float], ends: np.ndarray
) -> float:
  """Return how far a uniform is from drawing a token, as a probability."""
  ends = np.append(0, ends)
  begin = token - token % sampling_lib.BLOCK
  end = min(begin + sampling_lib.BLOCK, len(ends) - 1)
  outside = lambda x, i, j: max(ends[i] - x, x - ends[j], 0)
  inner = ends[begin] + uniform[1] * (ends[end] - ends[begin])
  return float(
      max(outside(uniform[0], begin, end), outside(inner, token, token + 1))
  )


def _largest_difference(values: np.ndarray) -> float:
  """Return the largest difference of a value between paths [paths, vocab]."""
  finite = np.all(np.isfinite(values), axis=0)  # forbidden ids have -inf
  return float(np.max(np.ptp(values[:, finite], axis=0)))


def path_logits(
    first: BatchRow, second: BatchRow, sequence: np.ndarray, position: int
) -> np.ndarray:
  """Return the target's logits at a position by all paths of two runs.

  [4, vocab] float64: the first run's own path and its other one, token by token
  or in blocks, then those of the second run.
  """
  logits = []
  for row in (first, second):
    blocks = 1, row.decoder.options.gamma + 1
    for block in reversed(blocks) if row.is_speculative else blocks:
      logits.append(logits_at(row, sequence, position, block))
  return np.stack(logits).astype(np.float64)


def logits_at(
    row: BatchRow, sequence: np.ndarray, position: int, block: int
) -> np.ndarray:
  """Return the logits at a position, [vocab], after decoding in blocks.

  Matrix products of different shapes round differently. The batch therefore has
  the shape that it has when it is decoded, and one row of it in all its places.
  The sequence, [length] int32, has the tokens before the position, and a target
  call takes `block` positions.
  """
  decoder = row.decoder
  params, model = decoder.target.params, decoder.target_model
  inputs = repeat_row(row).inputs
  count = len(inputs) * decoder.options.num_decodes
  # The last block ends at the position. The first block may overlap the second,
  # which then overwrites its cache slots. If there is one block, tokens after
  # the position only fill it up; the logits do not depend on them.
  starts = [0, *reversed(range(position + 1 - block, 0, -block))]
  options = decoder.options
  slots = state_lib.cache_slots(options.max_tokens, options.gamma)
  with decoder.scope():
    started = _start(model, params, inputs, count, slots)
    cache = started.cache
    fed = np.append(started.first_tokens[row.index], sequence[:position])
    for start in starts:
      tokens = np.resize(fed[start : start + block], (1, block))
      logits, cache = _decode(
          model,
          params,
          started.memory,
          cache,
          jnp.asarray(np.repeat(tokens, count, axis=0), jnp.int32),
          started.offsets + start,
          None,
      )
  return np.asarray(logits[row.index, position - starts[-1]])


# What is static holds no weights: it stays in JAX's cache of programs.
_start = jax.jit(
    lambda model, *given: model.start(*given), static_argnums=(0, 3, 4)
)
_decode = jax.jit(lambda model, *given: model.decode(*given), static_argnums=0)


def repeat_row(row: BatchRow) -> input_batch.InputBatch:
  """Return a batch of the same shape with one row's input in all places."""
  example = row.index // row.decoder.options.num_decodes
  repeat = lambda x: jnp.broadcast_to(x[example], x.shape)
  hints = row.batch.hints
  return row.batch.replace(
      inputs=repeat(row.batch.inputs),
      hints=None if hints is None else repeat(hints),
  )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Checks whether two different outputs of a row differ only by rounding.

Batches and blocks of different sizes are computed by matrix products of
different shapes, which round differently. Rounding can change a token where the
two most likely tokens are almost equally likely (a near tie); any other
difference is a bug. Therefore all paths are run on this device up to the
position at which the outputs first differ, and the margin of the decision there
is compared with the difference between the paths. `docs/correctness.md` defines
both, for greedy outputs and for samples of plain decoding, which those of a
coupled rule are.

Legend: vocab, length (of the outputs), paths (ways to compute the same logits).
"""

import dataclasses
import enum

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


class Kind(enum.StrEnum):
  """What was decided."""

  ARGMAX = 'argmax'  # the likeliest token, at temperature 0
  DRAW = 'draw'  # a token of plain decoding, by its uniform


@dataclasses.dataclass(frozen=True)
class Row:
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
  decision: Kind
  tokens: tuple[int, int]  # each output's token at this position
  # Of the two tokens, in the path of each output.
  logits: tuple[tuple[float, float], tuple[float, float]]
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
    """Whether rounding explains the difference."""
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
  is_greedy = batch.sampling.is_greedy
  explain_row = explain if is_greedy else explain_sample
  both = np.stack([plain_sequences, speculative_sequences], axis=1)
  found = []
  for index in np.flatnonzero(np.any(both[:, 0] != both[:, 1], axis=1)):
    rows = [Row(decoder, batch, int(index), way) for way in (False, True)]
    found.append(explain_row(*rows, both[index]))
  return found


def explain(first: Row, second: Row, sequences: np.ndarray) -> Difference:
  """Return where two greedy outputs of a row first differ, and how closely.

  `sequences`, [2, length] int32, are what each run wrote, not the same.
  """
  position = first_difference(sequences)
  tokens = sequences[:, position].tolist()
  logits = path_logits(first, second, sequences[0], position)
  return Difference(
      first.index,
      position,
      Kind.ARGMAX,
      tuple(tokens),
      logits_of(tokens, logits),
      # Both tokens must almost be the argmax, whichever token is.
      margin=float(np.max(logits[0]) - np.min(logits[0, tokens])),
      path_difference=largest_difference(logits),
  )


def explain_sample(
    first: Row, second: Row, sequences: np.ndarray
) -> Difference:
  """Return where two samples of a row first differ, and how closely.

  As `explain`; both runs decoded plainly or by a coupled rule, with the same
  seed, sampling and coupled rule.
  """
  position = first_difference(sequences)
  tokens = sequences[:, position].tolist()
  logits = path_logits(first, second, sequences[0], position)
  probs = np.asarray(
      _standardize(jnp.asarray(logits, jnp.float32), first.batch.sampling),
      np.float64,
  )
  uniform = _uniform(first, position)
  is_gumbel = isinstance(first.batch.rule, coupled.CoupledGumbel)
  find = _by_gumbel if is_gumbel else _by_inverse_cdf
  margin, path_difference = find(tokens, probs, uniform)
  return Difference(
      first.index,
      position,
      Kind.DRAW,
      tuple(tokens),
      logits_of(tokens, logits),
      margin,
      path_difference,
  )


def _by_inverse_cdf(
    tokens: list[int], probs: np.ndarray, uniform: tuple[float, float]
) -> tuple[float, float]:
  """Return the margin and the path difference of `sampling.draw`.

  The probabilities are [paths, vocab].
  """
  ends = np.cumsum(probs, axis=-1)
  ends /= ends[:, -1:]
  margin = max(_distance_to_drawing(x, uniform, ends[0]) for x in tokens)
  return margin, largest_difference(ends) + _ROUNDING


def _by_gumbel(
    tokens: list[int], probs: np.ndarray, uniform: tuple[float, float]
) -> tuple[float, float]:
  """As `_by_inverse_cdf`, of the draw of `coupled.CoupledGumbel`."""
  words = (np.array(uniform) * 2**32).astype(np.uint32)
  times = coupled.exponentials(words, probs.shape[-1], jnp.float32)
  # The largest wins. A token that only one path rules out differs by all of it.
  rates = probs / np.asarray(times, np.float64)
  margin = float(np.max(rates[0]) - np.min(rates[0, tokens]))
  rounding = _ROUNDING * float(np.max(rates))
  return margin, largest_difference(rates) + rounding


def _uniform(row: Row, position: int) -> tuple[float, float]:
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


def first_difference(sequences: np.ndarray) -> int:
  """Return the first position at which two outputs have other tokens."""
  return int(np.flatnonzero(sequences[0] != sequences[1])[0])


def path_logits(
    first: Row, second: Row, sequence: np.ndarray, position: int
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


def logits_of(
    tokens: tuple[int, int], logits: np.ndarray
) -> tuple[tuple[float, float], ...]:
  """Return the logits of tokens in each run's own path of `path_logits`."""
  return tuple(map(tuple, logits[::2, list(tokens)].tolist()))


def largest_difference(bounds: np.ndarray) -> float:
  """Return the largest difference between paths, [paths, vocab], of a value.
  """
  finite = np.all(np.isfinite(bounds), axis=0)  # forbidden ids have -inf
  return float(np.max(np.ptp(bounds[:, finite], axis=0)))


def logits_at(
    row: Row, sequence: np.ndarray, position: int, block: int
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


def repeat_row(row: Row) -> input_batch.InputBatch:
  """Return a batch of the same shape with one row's input in all places."""
  example = row.index // row.decoder.options.num_decodes
  repeat = lambda x: jnp.broadcast_to(x[example], x.shape)
  names = 'inputs', 'hints', 'features'
  found = {name: getattr(row.batch, name) for name in names}
  return row.batch.replace(**jax.tree.map(repeat, found))

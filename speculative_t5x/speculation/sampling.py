# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Standardized sampling: Section 2.2 of Leviathan et al. (2023).

Temperature, top-k, top-p, min-p and typical sampling turn logits into a single
distribution to sample from; argmax is the special case of all mass on one
token. Other modules work only with distributions. They are applied in this
order, the first three as in T5X, each to the distribution that the one before
leaves; all but the temperature are off at 0, top-p and typical sampling at 1
too. If a logit is NaN or infinity, or all are -infinity, no token has a
positive probability, so that the log-probability of whatever is drawn is not
finite.

Each row may have a sampling of its own: then the values of a `Sampling` are
[rows], and rows are the first axis of the logits.

Legend: rows, vocab. `...` stands for any leading axes.
"""

from collections.abc import Callable, Sequence
import functools
import numbers
from typing import NamedTuple, TypeVar

from flax import struct
import jax
from jax import lax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt32
import numpy as np

from speculative_t5x.speculation import ranges

MIN_TEMPERATURE = 1e-4  # at or below it, argmax (T5X's constant)
_GROUP = 16  # integers that are added up at once, see `_cumulative`
BLOCK = 128  # tokens; a multiple of both CPU and TPU vector widths
_SHARES = 'top_p', 'min_p', 'typical_p'
_Made = TypeVar('_Made')
_FLOAT32, _INT32 = jnp.finfo(jnp.float32), jnp.iinfo(jnp.int32)
# A share that float32 would flush to 0 would be off.
_SHARE = ranges.Kind(
    'lie in [0, 1] (0 is off) and be 0 or a normal float32 number',
    is_allowed=lambda x: x == 0 or float(_FLOAT32.tiny) <= x <= 1,
)
_KINDS = dict.fromkeys(_SHARES, _SHARE) | {
    'temperature': ranges.Kind(
        'be finite and at least 0 (0 is argmax)',
        is_allowed=lambda x: 0 <= x <= float(_FLOAT32.max),
    ),
    'top_k': ranges.Kind(
        'be a whole number of 32 bits and at least 0 (0 is off)',
        is_allowed=lambda x: 0 <= x <= _INT32.max and x == int(x),
    ),
}


@struct.dataclass
class Sampling:
  """The parameters of sampling. No value causes recompilation.

  Numbers are checked and become Python's. Arrays, which may be traced, stay:
  scalars for all rows, or [rows].

  Attributes:
    temperature: float32; at most 1e-4 means argmax.
    top_k: int32; keeps the k most likely tokens, with ties; 0 for off.
    top_p: float32 in [0, 1]; keeps the most likely tokens whose total
      probability reaches this value, with ties; 0 or 1 for off.
    min_p: float32 in [0, 1]; keeps the tokens that are at least this share as
      likely as the likeliest; 0 for off.
    typical_p: float32 in [0, 1]; keeps the tokens whose information is closest
      to the entropy and whose total probability reaches this value, with ties;
      0 or 1 for off.
  Raises:
    ValueError: if the temperature is negative or not finite, if top_k is not a
      non-negative int32, or if another value is outside [0, 1] or so small that
      float32 would flush it to 0.
  """

  temperature: Array | np.ndarray | float | int = 1.0
  top_k: Array | np.ndarray | int = 0
  top_p: Array | np.ndarray | float | int = 0.0
  min_p: Array | np.ndarray | float | int = 0.0
  typical_p: Array | np.ndarray | float | int = 0.0

  def __post_init__(self):
    for name, value in vars(self).items():
      if isinstance(value, numbers.Real | tuple | list | str):
        # Numbers of one value are one setting in records, of NumPy's types too.
        as_plain = int if name == 'top_k' else float
        ranges.check_settings(_KINDS[name], **{name: value})
        object.__setattr__(self, name, as_plain(value))

  @property
  def is_greedy(self) -> bool:
    """True for argmax; for a temperature that is not traced."""
    return bool(self.temperature <= MIN_TEMPERATURE)

  def as_arrays(self) -> 'Sampling':
    """Return the same with arrays of the types above."""
    return Sampling(
        jnp.asarray(self.temperature, jnp.float32),
        jnp.asarray(self.top_k, jnp.int32),
        *(jnp.asarray(getattr(self, name), jnp.float32) for name in _SHARES),
    )

  def of_rows(self, rows: int) -> 'Sampling':
    """Return the same with arrays [rows]."""
    return jax.tree.map(
        lambda x: jnp.broadcast_to(x, (rows,)), self.as_arrays()
    )


GREEDY = Sampling(temperature=0.0)


def stack(samplings: Sequence[Sampling]) -> Sampling:
  """Return the sampling of rows that have one each, as NumPy arrays [rows]."""
  dtype = lambda name: np.int32 if name == 'top_k' else np.float32
  return Sampling(
      **{
          name: np.array([getattr(x, name) for x in samplings], dtype(name))
          for name in vars(GREEDY)
      }
  )


def each(
    temperature: float | Sequence[float],
    top_k: int = 0,
    top_p: float = 0.0,
    min_p: float = 0.0,
    typical_p: float = 0.0,
) -> tuple[Sampling, ...]:
  """Return one sampling per temperature, of which there may be several.

  Raises:
    ValueError: for a value that is not a number, or out of range.
  """
  try:
    several = np.atleast_1d(np.asarray(temperature, float)).tolist()
  except (TypeError, ValueError) as error:
    raise ValueError(
        'temperature must be a number or several in parentheses, got'
        f' {temperature!r}.'
    ) from error
  return tuple(Sampling(x, top_k, top_p, min_p, typical_p) for x in several)


class Pair(NamedTuple):
  """The samplings of a target and of its drafter."""

  target: Sampling
  drafter: Sampling


def pairs(
    samplings: Sequence[Sampling], draft_samplings: Sequence[Sampling]
) -> list[Pair]:
  """Return each sampling of a target with that of its drafter, once.

  The drafter has one for all, one per sampling of the target, or the target's.

  Raises:
    ValueError: for no sampling, or another number of the drafter's.
  """
  if not samplings:
    raise ValueError('No temperature was given. Give one, or several.')
  if len(draft_samplings) <= 1:
    draft_samplings = [*draft_samplings] * len(samplings) or samplings
  if len(draft_samplings) != len(samplings):
    raise ValueError(
        f'There are {len(draft_samplings)} draft temperatures for'
        f' {len(samplings)} temperatures. Give one for all, or one for each.'
    )
  found = map(Pair, samplings, draft_samplings)
  return list(dict.fromkeys(found))


def standardize(
    logits: Float[Array, '*batch vocab'], sampling: Sampling
) -> Float[Array, '*batch vocab']:
  """Turn logits into the distribution to sample from.

  What no row needs takes no time: argmax computes no softmax, and filters that
  are off everywhere are not computed. A row that needs less than others is
  selected unchanged, so that its distribution does not depend on them.

  Args:
    logits: [rows, ..., vocab]; -inf for a token that cannot occur.
    sampling: The parameters of sampling, scalars or [rows].
  Returns:
    Probabilities [..., vocab], at least float32; rows sum to 1, but a row with
    a logit that is NaN or infinity, or without a finite one, has no positive
    value.
  Reference: Leviathan et al. (2023), Section 2.2, arXiv:2211.17192v2.
  """
  return _of_probs(logits, sampling, _argmax_probs, lambda probs: probs)


def standardize_and_draw(
    logits: Float[Array, '*batch vocab'],
    sampling: Sampling,
    draw: Callable[[jax.Array], jax.Array],
) -> tuple[Float[Array, '*batch vocab'], Int[Array, '*batch']]:
  """Return the distributions of `standardize`, and tokens drawn from them.

  `draw` takes distributions and returns tokens [...], each of a positive
  probability. Where every row is an argmax nothing is drawn, which is most of
  what a draft token takes on a GPU beside its network.
  """

  def argmax(logits):
    first = _argmax(logits)
    # Where no token is positive, the one that `draw` below finds.
    return _one_hot(first, logits), jnp.maximum(first[..., 0], 0)

  return _of_probs(
      logits,
      sampling,
      argmax,
      lambda probs: (probs, draw(probs).astype(jnp.int32)),
  )


def _of_probs(
    logits: jax.Array,
    sampling: Sampling,
    argmax: Callable[[jax.Array], _Made],
    make: Callable[[jax.Array], _Made],
) -> _Made:
  """Return what is made of distributions; by `argmax` if all rows are one."""
  dtype = jnp.float64 if logits.dtype == jnp.float64 else jnp.float32
  logits = logits.astype(dtype)
  # A value per row gets the other axes of the logits.
  values = jax.tree.map(
      lambda x: jnp.expand_dims(x, range(1, logits.ndim)) if x.ndim else x,
      sampling.as_arrays(),
  )
  is_sampled = values.temperature > MIN_TEMPERATURE
  is_filtered = functools.reduce(
      jnp.logical_or, (is_on for *_, is_on in _filters(values))
  )
  is_simple = is_sampled & ~is_filtered

  def in_each_row_as_it_wants():
    filtered = _filtered(_tempered(logits, values), values)
    return jnp.where(
        is_sampled, jax.nn.softmax(filtered), _argmax_probs(logits)
    )

  # One choice, as a GPU waits for the host at each; most runs filter nothing.
  return lax.switch(
      jnp.where(
          jnp.any(is_sampled), jnp.where(jnp.all(is_simple), 1, 2), 0
      ),
      (
          lambda: argmax(logits),
          lambda: make(jax.nn.softmax(_tempered(logits, values))),
          lambda: make(in_each_row_as_it_wants()),
      ),
  )


def _argmax_probs(logits: jax.Array) -> jax.Array:
  return _one_hot(_argmax(logits), logits)


def _one_hot(token: jax.Array, logits: jax.Array) -> jax.Array:
  index = lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
  return (index == token).astype(logits.dtype)


def _argmax(logits: jax.Array) -> jax.Array:
  """Return the first of the largest logits, [..., 1] int32; -1 for none.

  There is none if a logit is NaN or infinity, whose softmax would be NaN, or if
  no token can occur.
  """
  return lax.platform_dependent(
      logits, cuda=argmax_in_one_pass, default=argmax_in_two_passes
  )


def argmax_in_two_passes(logits: jax.Array) -> jax.Array:
  """Return `_argmax`, on a CPU far faster than a reduction of pairs."""
  index = lax.broadcasted_iota(jnp.int32, logits.shape, logits.ndim - 1)
  largest = jnp.max(logits, axis=-1, keepdims=True)
  at = jnp.where(logits == largest, index, logits.shape[-1])
  # XLA's max may pass over NaN.
  at = jnp.where(logits < jnp.inf, at, -1)
  first = jnp.min(at, axis=-1, keepdims=True)
  return jnp.where(largest > -jnp.inf, first, -1)


def argmax_in_one_pass(logits: jax.Array) -> jax.Array:
  """Return `_argmax`, on a GPU in half as many kernels."""
  axis, size = logits.ndim - 1, logits.shape[-1]
  index = lax.broadcasted_iota(jnp.int32, logits.shape, axis)
  ranked = jnp.where(logits < jnp.inf, logits, jnp.inf)  # NaN too

  def larger(one, other):
    (x, i), (y, j) = one, other
    is_other = (y > x) | ((y == x) & (j < i))
    return jnp.where(is_other, y, x), jnp.where(is_other, j, i)

  zero = jnp.zeros((), logits.dtype)
  largest, first = lax.reduce(
      (ranked, index), (zero - jnp.inf, jnp.int32(size)), larger, (axis,)
  )
  is_finite = (largest > -jnp.inf) & (largest < jnp.inf)
  return jnp.where(is_finite, first, -1)[..., None]


def _tempered(logits: jax.Array, sampling: Sampling) -> jax.Array:
  temperature = jnp.maximum(sampling.temperature, MIN_TEMPERATURE)
  return logits / temperature.astype(logits.dtype)


def _filters(sampling: Sampling) -> tuple[tuple, ...]:
  """Return the filters in order: function, value, and whether it is on."""
  # All of the mass is not a part: its computed sum may be less than 1.
  is_part = lambda mass: (mass > 0) & (mass < 1)
  return (
      (_keep_top_k, sampling.top_k, sampling.top_k > 0),
      (_keep_top_p, sampling.top_p, is_part(sampling.top_p)),
      (_keep_min_p, sampling.min_p, sampling.min_p > 0),
      (_keep_typical_p, sampling.typical_p, is_part(sampling.typical_p)),
  )


def _filtered(logits: jax.Array, sampling: Sampling) -> jax.Array:
  for keep, value, is_on in _filters(sampling):
    select = lambda x, keep=keep, value=value, is_on=is_on: jnp.where(
        is_on, keep(x, value), x
    )
    logits = lax.cond(jnp.any(is_on), select, lambda x: x, logits)
  return logits


def _keep_top_k(logits: jax.Array, top_k: jax.Array) -> jax.Array:
  keys = _ordered_ints(logits)
  enough = lambda is_kept: (
      jnp.sum(is_kept, axis=-1, keepdims=True, dtype=jnp.int32) >= top_k
  )
  is_kept = _largest_upper_set(keys, enough) | jnp.isnan(logits)
  return jnp.where(is_kept, logits, -jnp.inf)


def _keep_top_p(logits: jax.Array, top_p: jax.Array) -> jax.Array:
  probs = jax.nn.softmax(logits)
  return _keep_mass(logits, probs, probs, top_p)


def _keep_min_p(logits: jax.Array, min_p: jax.Array) -> jax.Array:
  """Keep tokens near the likeliest one: Nguyen et al., arXiv:2407.01082."""
  largest = jnp.max(logits, axis=-1, keepdims=True)
  relative = jnp.exp(logits - largest)  # to the likeliest token
  # NaN is not less than anything, so that it stays.
  return jnp.where(relative < min_p.astype(logits.dtype), -jnp.inf, logits)


def _keep_typical_p(logits: jax.Array, typical_p: jax.Array) -> jax.Array:
  """Keep tokens of typical surprise: Meister et al., arXiv:2202.00666."""
  log_probs = jax.nn.log_softmax(logits)
  probs = jnp.exp(log_probs)
  terms = jnp.where(probs > 0, probs * log_probs, 0)
  distance = jnp.abs(log_probs - jnp.sum(terms, axis=-1, keepdims=True))
  return _keep_mass(logits, probs, -distance, typical_p)


def _keep_mass(
    logits: jax.Array, probs: jax.Array, ranks: jax.Array, mass: jax.Array
) -> jax.Array:
  """Keep the tokens of the highest ranks whose probability reaches a mass."""
  mass = mass.astype(probs.dtype)
  enough = lambda is_kept: (
      jnp.sum(jnp.where(is_kept, probs, 0), axis=-1, keepdims=True) >= mass
  )
  # Where rounding keeps the sum of all below the mass, all are kept.
  is_kept = _largest_upper_set(_ordered_ints(ranks), enough)
  return jnp.where(is_kept, logits, -jnp.inf)


def _ordered_ints(x: jax.Array) -> jax.Array:
  """Map floats to integers with the same order and the same equalities."""
  x = jnp.where(x == 0, jnp.zeros_like(x), x)  # -0.0 equals 0.0
  dtype = jnp.int64 if x.dtype == jnp.float64 else jnp.int32
  bits = lax.bitcast_convert_type(x, dtype)
  return jnp.where(bits < 0, bits ^ jnp.iinfo(dtype).max, bits)


def _largest_upper_set(keys: jax.Array, enough) -> jax.Array:
  """Return the smallest set {keys >= threshold} that is enough, else all.

  `enough` takes a set, [..., vocab] bool, and returns [..., 1] bool.

  Bisects the threshold, with one pass over the vocabulary per bit. At a
  vocabulary of 32128, sorting takes 20 times as long.
  """
  info = jnp.iinfo(keys.dtype)
  shape = *keys.shape[:-1], 1

  def halve(_, bounds):
    low, high = bounds  # {keys >= low} is enough, {keys >= high} is not
    middle = (low & high) + ((low ^ high) >> 1)  # no overflow
    is_enough = enough(keys >= middle)
    return (
        jnp.where(is_enough, middle, low),
        jnp.where(is_enough, high, middle),
    )

  bounds = (
      jnp.full(shape, info.min, keys.dtype),
      jnp.full(shape, info.max, keys.dtype),
  )
  low, _ = lax.fori_loop(0, info.bits, halve, bounds)
  return keys >= low


def draw(
    weights: Float[Array, '*batch vocab'], uniforms: UInt32[Array, '*batch 2']
) -> Int[Array, '*batch']:
  """Draw tokens by inverse CDF, in two levels: a block of tokens, then one.

  The first word of a uniform picks the block and the second the token in it,
  each in integers: one float32 uniform would have too few values for a large
  vocabulary. A block with less than 2^-31 of all weight is never drawn, nor a
  token with less than 2^-31 of its block's. The weights need not sum to 1; they
  are normalised by their computed sum. With any rounding, a drawn token is in
  range and its weight is not 0.

  Args:
    weights: [..., vocab], non-negative, not all 0.
    uniforms: [..., 2] random bits, see `uniforms`.
  Returns:
    Tokens [...] int32.
  """
  size = min(BLOCK, weights.shape[-1])
  padding = [(0, 0)] * (weights.ndim - 1) + [(0, -weights.shape[-1] % size)]
  # What pads the last block weighs 0 and is never drawn.
  blocks = jnp.pad(weights, padding).reshape(*weights.shape[:-1], -1, size)
  # Without the barrier, XLA adds up all weights again to add up the sums.
  sums = lax.optimization_barrier(jnp.sum(blocks, axis=-1))
  block = _pick(sums, uniforms[..., 0])
  inner = jnp.take_along_axis(blocks, block[..., None, None], axis=-2)
  token = _pick(jnp.squeeze(inner, axis=-2), uniforms[..., 1])
  return block * size + token


def _pick(weights: jax.Array, word: jax.Array) -> jax.Array:
  """Return an index of positive weight by inverse CDF, [...] int32.

  The weights are [..., count], the word is [...] uint32. The integers add up to
  2^31 and rounding, so that their sum cannot overflow.
  """
  share = weights / jnp.sum(weights, axis=-1, keepdims=True)
  scaled = (share * 2.0**31).astype(jnp.uint32)
  # On TPU, adding in groups takes more cycles than a sum along the lanes.
  cumulative = lax.platform_dependent(
      scaled,
      tpu=lambda x: jnp.cumsum(x, axis=-1, dtype=x.dtype),
      default=_cumulative,
  )
  threshold = _high_word(word, cumulative[..., -1])
  # The first index past the threshold. If weights are too small to be divided,
  # there may be none: then the last, so that its weight is positive at least.
  size = weights.shape[-1]
  index = jnp.arange(size, dtype=jnp.int32)
  is_past = cumulative > threshold[..., None]
  rank = jnp.where(is_past, index, 2 * size - index)
  first = jnp.min(jnp.where(weights > 0, rank, 2 * size), axis=-1)
  return jnp.where(first < size, first, 2 * size - first)


def _cumulative(counts: jax.Array) -> jax.Array:
  """Return the cumulative sums of integers [..., count].

  In two levels, groups and what is in them. XLA:CPU makes a dozen programs of
  `jnp.cumsum`, and starting them takes longer than adding.
  """
  size = counts.shape[-1]
  group = min(_GROUP, size)
  padding = [(0, 0)] * (counts.ndim - 1) + [(0, -size % group)]
  groups = jnp.pad(counts, padding).reshape(*counts.shape[:-1], -1, group)
  within = _prefix_sums(groups)
  # Groups of 3: 1 2 3 | 4 5 6 has 1 3 6 | 4 9 15 within, and 0 | 6 before.
  totals = within[..., -1]
  before = _prefix_sums(totals) - totals
  sums = within + before[..., None]
  return sums.reshape(*counts.shape[:-1], -1)[..., :size]


def _prefix_sums(x: jax.Array) -> jax.Array:
  """Return the cumulative sums of a few integers, each from the first on."""
  index = np.arange(x.shape[-1])
  terms = jnp.where(index <= index[:, None], x[..., None, :], 0)
  return jnp.sum(terms, axis=-1, dtype=x.dtype)


def _high_word(a: jax.Array, b: jax.Array) -> jax.Array:
  """Return floor(a * b / 2^32) of uint32, without 64-bit integers."""
  # In halves of 16 bits, whose products and sums of two fit into 32.
  low = jnp.uint32(0xFFFF)
  a_high, a_low, b_high, b_low = a >> 16, a & low, b >> 16, b & low
  one, other = a_high * b_low, a_low * b_high
  middle = (a_low * b_low >> 16) + (one & low) + (other & low)
  return a_high * b_high + (one >> 16) + (other >> 16) + (middle >> 16)

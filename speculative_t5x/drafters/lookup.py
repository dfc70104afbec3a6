# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Draft tokens copied from what the row has: hints, its input, its own output.

The last tokens of a row's output are looked up, and what followed them there is
the draft. No network runs.

Legend: rows, examples (each has rows // examples rows), width (positions that
are searched), gamma (draft tokens per block), length (of the longest output).
"""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import views

# Beside token ids: what an output and each hint begin with, what ends a text,
# and what is before the beginning of an output. Only a start equals another.
_START, _BREAK, _NOTHING = -1, -2, -3


class LookupMemory(NamedTuple):
  """The texts of each example that do not change.

  Attributes:
    hints: [examples, any] int32, a start before each.
    inputs: [examples, any] int32, a break before and after.
    before: [examples, max_ngram] int32, what is before the output, the latest
      first.
  """

  hints: jax.Array
  inputs: jax.Array
  before: jax.Array


class _Texts(NamedTuple):
  """All that a row may copy from: hints, then its input, then its output.

  Attributes:
    tokens: [rows, width] int32.
    hints_width: Positions of hints.
    output_start: First position of the output.
  """

  tokens: jax.Array
  hints_width: int
  output_start: int

  def only_hints(self) -> '_Texts':
    """Return the hints, and an empty input and output."""
    width = self.hints_width
    return _Texts(self.tokens[:, :width], width, width)


@dataclasses.dataclass(frozen=True)
class LookupDrafter:
  """Drafts what followed the longest match of the last tokens.

  A match has min_ngram to max_ngram tokens. Among matches of one length those
  in hints come first, then those in the input, then those in the output. Among
  several in the hints, the one nearest to the alignment is taken: the place
  that a hint would be at if nothing had been inserted or deleted since the last
  copy from it. In the input it is the first match, in the output the last.

  An output and each hint begin with the same symbol, so that the first block
  copies the beginning of the first hint. If there is no match, but the token
  before the last one is that of the alignment, then the last one replaced a
  token of the hint, and the draft goes on behind that.

  Attributes:
    gamma: Draft tokens per block.
    max_ngram: Most tokens of a match, at least min_ngram.
    min_ngram: Fewest tokens of a match, at least 1.
    only_hints: Whether input and output are not searched, so that nothing is
      drafted without hints.
    continues_input: Whether an output goes on where its input ends, as that of
      a decoder alone: the first match is then one of the input's last tokens.
  """

  gamma: int
  max_ngram: int
  min_ngram: int
  only_hints: bool = False
  continues_input: bool = False

  @property
  def form(self) -> forms.Chain:
    return forms.Chain(self.gamma, reads_hints=True)

  def init(
      self, params, context: views.Context, rows, slots
  ) -> tuple[LookupMemory, jax.Array]:
    """See `contracts.Drafter.init`; the state is the alignment of each row.

    The alignment is a place in the hints less a place in the output, [rows].
    """
    inputs, hints = context.inputs, context.hints
    if hints is None:
      hints = jnp.full((inputs.shape[0], 1), _START, jnp.int32)
    else:
      hints = _fill(hints, _START, before=1, after=0)
    memory = LookupMemory(
        hints, _fill(inputs, _BREAK, before=1, after=1), self._before(inputs)
    )
    return memory, jnp.zeros((rows,), jnp.int32)

  def _before(self, inputs: jax.Array) -> jax.Array:
    """Return what is before the output, see `LookupMemory`."""
    ago = jnp.arange(max(self.max_ngram, 2), dtype=jnp.int32)
    if not self.continues_input:
      before = jnp.where(ago == 0, _START, _NOTHING)
      return jnp.broadcast_to(before, (inputs.shape[0], ago.size))
    # The last token of a prompt, the one before, ...; below 0 there is none.
    at = jnp.sum(inputs >= 0, axis=1, dtype=jnp.int32)[:, None] - 1 - ago
    tokens = jnp.take_along_axis(inputs, jnp.maximum(at, 0), axis=1)
    return jnp.where(at >= 0, tokens, _NOTHING).astype(jnp.int32)

  def propose(
      self, params, memory: LookupMemory, state, view: views.View
  ) -> tuple[contracts.Draft, jax.Array]:
    texts = _texts(memory, view)
    if self.only_hints:
      texts = texts.only_hints()
    # A hint has a start before it, which an output has not.
    aligned = view.num_tokens + state + 1
    per_example = view.num_tokens.shape[0] // memory.before.shape[0]
    last = _last_tokens(view, jnp.repeat(memory.before, per_example, axis=0))
    found, is_found = self._find(texts, aligned, last, view)
    tokens = _copy(texts.tokens, found, self.gamma)
    num_copied = jnp.sum(
        jnp.cumprod(tokens >= 0, axis=1), axis=1, dtype=jnp.int32
    )
    lengths = jnp.where(is_found, num_copied, 0)
    draft = contracts.Draft(
        tokens=jnp.maximum(tokens, 0),
        lengths=jnp.minimum(lengths, view.num_wanted),
    )
    is_hint = is_found & (found < texts.hints_width)
    state = jnp.where(is_hint, found - view.num_tokens - 1, state)
    return draft, state

  def _find(
      self,
      texts: _Texts,
      aligned: jax.Array,
      last: jax.Array,
      view: views.View,
  ) -> tuple[jax.Array, jax.Array]:
    """Return where each row's draft begins, [rows], and whether there is one.

    By the alignment, the hints go on at `aligned`, [rows]; `last` are the last
    tokens, see `_last_tokens`.
    """
    width = texts.tokens.shape[1]
    place = jnp.arange(width, dtype=jnp.int32)[None]
    is_hint = place < texts.hints_width
    is_output = place >= texts.output_start
    equal = [
        _before(texts.tokens, ago + 1) == last[:, ago : ago + 1]
        for ago in range(last.shape[1])
    ]
    num_equal, is_match = 0, True
    for each in equal[: self.max_ngram]:
      is_match &= each
      num_equal += is_match.astype(jnp.int32)

    # From most to least important: length, kind of text, place.
    kind = jnp.where(is_hint, 2, jnp.where(is_output, 0, 1))
    distance = jnp.where(
        is_hint,
        jnp.abs(place - aligned[:, None]),
        jnp.where(is_output, width - place, place),
    )
    # Distances are below 2 * width, so that they never outweigh a kind, and all
    # is far from the end of int32.
    score = (3 * num_equal + kind) * (2 * width) - distance
    score = jnp.where(num_equal >= self.min_ngram, score, -1)

    is_replaced = equal[1] | (view.num_tokens == 0)[:, None]
    is_replaced &= is_hint & (place == aligned[:, None])
    score = jnp.where(is_replaced, jnp.maximum(score, 0), score)
    score = jnp.where(texts.tokens >= 0, score, -1)
    found = jnp.argmax(score, axis=1).astype(jnp.int32)
    return found, jnp.max(score, axis=1) >= 0


def _texts(memory: LookupMemory, view: views.View) -> _Texts:
  """Return the texts of each row, without tokens that are not committed."""
  rows, length = view.sequences.shape
  per_example = rows // memory.inputs.shape[0]
  fixed = jnp.concatenate([memory.hints, memory.inputs], axis=1)
  # Behind the committed tokens lie rejected ones, or padding.
  is_committed = jnp.arange(length, dtype=jnp.int32) < view.num_tokens[:, None]
  output = jnp.where(is_committed, view.sequences, _BREAK)
  return _Texts(
      jnp.concatenate([jnp.repeat(fixed, per_example, axis=0), output], axis=1),
      memory.hints.shape[1],
      fixed.shape[1],
  )


def _last_tokens(view: views.View, before: jax.Array) -> jax.Array:
  """Return the last tokens of each row, the latest first, [rows, count].

  `before`, [rows, count], are those before its output, the latest first.
  """
  count = before.shape[1]
  at = view.num_tokens[:, None] - jnp.arange(1, count + 1, dtype=jnp.int32)
  tokens = jnp.take_along_axis(view.sequences, jnp.maximum(at, 0), axis=1)
  # Place -1 is the latest before the output, index 0 of `before`.
  earlier = jnp.take_along_axis(before, jnp.maximum(-at - 1, 0), axis=1)
  return jnp.where(at >= 0, tokens, earlier)


def _before(tokens: jax.Array, count: int) -> jax.Array:
  """Return the token `count` places before each place, [rows, width]."""
  width = tokens.shape[1]
  padding = ((0, 0), (count, 0))
  return jnp.pad(tokens, padding, constant_values=_BREAK)[:, :width]


def _copy(tokens: jax.Array, start: jax.Array, count: int) -> jax.Array:
  """Return tokens from a place on, [rows, count], breaks past the end."""
  # Past the end an index would be clamped, and copy the last token again.
  tokens = jnp.pad(tokens, ((0, 0), (0, count)), constant_values=_BREAK)
  at = start[:, None] + jnp.arange(count, dtype=jnp.int32)
  return jnp.take_along_axis(tokens, at, axis=1)


def _fill(
    tokens: jax.Array, value: int, *, before: int, after: int
) -> jax.Array:
  """Replace what is not a token, and add one value at both ends."""
  tokens = jnp.where(tokens < 0, value, tokens).astype(jnp.int32)
  return jnp.pad(tokens, ((0, 0), (before, after)), constant_values=value)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that hold for all lengths, drafts, batches and seeds, by random cases.

The models are tables. A program is compiled once per shape; everything else is
data: the tables, the limits (0 is a row of padding, so that the limits are also
the batch size), the number of draft tokens wanted, the temperatures, the seed.
Rows want their own numbers of draft tokens, and some of their tokens come from
a drafter before the model. See `rows_test.py` for rows in other batches.
"""

import dataclasses
import functools

import hypothesis
from hypothesis import strategies
import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.networks import t5
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import table_model
from tests import mixed_drafts
from tests import repeat_last

VOCAB, NUM_TABLES = 5, 3
MODEL = table_model.Model(VOCAB)
EOS = t5.SPECIAL_IDS.end
# Temperatures of greedy decoding, of few likely tokens and of many.
TEMPERATURES = 0.0, 0.3, 1.0, 3.0


@dataclasses.dataclass(frozen=True)
class Shape:
  """What a program is compiled for."""

  rows: int
  length: int
  gamma: int
  drafts_by: str  # 'model', 'point masses', or 'both': some, then the model

  @property
  def drafter(self):
    model = draft_model.ModelDrafter(MODEL, self.gamma, VOCAB)
    some = mixed_drafts.MixedDrafts(VOCAB, self.gamma)
    return {
        'model': model,
        'point masses': repeat_last.RepeatLast(MODEL, self.gamma),
        'both': in_order.DraftersInOrder((some, model), MODEL),
    }[self.drafts_by]

  def draft_params(self, tables):
    """Return the drafter's parameters, given those of the draft model."""
    every = {'model': tables, 'point masses': None, 'both': (None, tables)}
    return every[self.drafts_by]


SHAPES = (
    Shape(1, 4, 2, 'model'),
    Shape(4, 9, 4, 'model'),
    Shape(6, 7, 1, 'point masses'),
    Shape(3, 16, 3, 'both'),
)


@dataclasses.dataclass(frozen=True)
class Case:
  """What a program is given."""

  shape: Shape
  tables: list[int]  # [rows], which table each row uses
  tables_seed: int
  share: float  # of the target's tables in those of the draft model
  end_bias: float  # added to the logits of the end of sequence
  limits: list[int]  # [rows] in [0, length]
  # [rows][length], draft tokens wanted by tokens committed; those below 0 and
  # above gamma are clipped.
  wanted: list[list[int]]
  temperature: float
  draft_temperature: float
  seed: int

  @property
  def has_equal_draft(self) -> bool:
    """Whether the drafter draws from the target's own distribution."""
    return (
        self.shape.drafts_by == 'model'
        and self.share == 1
        and self.temperature == self.draft_temperature
    )

  def params(self) -> tuple[np.ndarray, np.ndarray]:
    """Return the tables of target and draft model, float32."""
    target, other = (
        table_model.random_logits(2 * self.tables_seed + i, NUM_TABLES, VOCAB)
        for i in range(2)
    )
    target[..., EOS] += self.end_bias
    draft = self.share * target + (1 - self.share) * other
    return target.astype(np.float32), draft.astype(np.float32)


@strategies.composite
def cases(draw) -> Case:
  """Draw a case of one of the shapes."""
  shape = draw(strategies.sampled_from(SHAPES))
  temperature = draw(strategies.sampled_from(TEMPERATURES))
  integers = strategies.integers
  per_row = lambda one: draw(
      strategies.lists(one, min_size=shape.rows, max_size=shape.rows)
  )
  wanted = strategies.lists(
      integers(-1, shape.gamma + 1),
      min_size=shape.length,
      max_size=shape.length,
  )
  return Case(
      shape,
      tables=per_row(integers(0, NUM_TABLES - 1)),
      tables_seed=draw(integers(0, 1000)),
      share=draw(strategies.sampled_from([0.0, 0.5, 0.9, 1.0])),
      end_bias=draw(strategies.sampled_from([-9.0, 0.0, 2.0])),
      limits=per_row(integers(0, shape.length)),
      wanted=per_row(wanted),
      temperature=temperature,
      draft_temperature=draw(
          strategies.sampled_from([temperature, *TEMPERATURES])
      ),
      seed=draw(integers(-(2**31), 2**31 - 1)),
  )


@dataclasses.dataclass(frozen=True)
class Scheduled(draft_length.DraftsOn):
  """A policy that is data: [rows, length] by tokens committed."""

  wanted: jax.Array
  limits: jax.Array
  name = 'scheduled'
  is_constant = False

  def init(self, rows):
    return None

  def num_wanted(self, state, num_remaining, gamma):
    at = jnp.maximum(self.limits - num_remaining, 0)[:, None]
    at = jnp.minimum(at, self.wanted.shape[1] - 1)
    return jnp.take_along_axis(self.wanted, at, axis=1)[:, 0]

  def update(self, state, outcome):
    return None


def compiled(shape: Shape):
  """Return a function from the arrays of a case to a last state and counts."""

  def decode(params, tables, limits, wanted, temperatures, seed):
    target, draft = params
    setup = state_lib.Setup(
        MODEL,
        target,
        shape.drafter,
        shape.draft_params(draft),
        policy=Scheduled(wanted, limits),
    )
    keys = state_lib.row_keys(seed, jnp.arange(shape.rows, dtype=jnp.int32))
    samplings = map(sampling.Sampling, temperatures)
    begun = state_lib.begin(
        setup, tables, keys, limits, *samplings, length=shape.length
    )
    state, _, counts = loop.decode(setup, begun, outcome_lib.COUNTING)
    return state, counts

  return jax.jit(decode)


def decode(program, case: Case):
  arrays = case.tables, case.limits, case.wanted
  return jax.device_get(
      program(
          case.params(),
          *(np.array(each, np.int32) for each in arrays),
          np.array([case.temperature, case.draft_temperature], np.float32),
          np.int32(case.seed),
      )
  )


def check(case: Case, state, counts) -> None:
  """Check what must hold for every row."""
  num_tokens, num_calls = state.num_tokens, state.num_calls
  accepted, drafted = counts.num_accepted, counts.num_drafted
  np.testing.assert_array_equal(
      num_tokens, accepted + num_calls - counts.num_cut_short
  )
  assert np.all(accepted <= counts.num_tested)
  assert np.all(counts.num_tested <= drafted)
  assert np.all(drafted <= counts.num_computed)
  assert np.all(counts.num_computed <= case.shape.gamma * num_calls)
  is_padding = np.array(case.limits) == 0  # such a row takes no step
  assert not np.any(num_calls[is_padding])
  if case.has_equal_draft:
    np.testing.assert_array_equal(accepted, counts.num_tested)
  for histogram in (counts.accepted_histogram, counts.drafted_histogram):
    np.testing.assert_array_equal(histogram.sum(axis=1), num_calls)
  columns = zip(state.sequences, num_tokens, case.limits, strict=True)
  tables, _ = case.params()
  for row, (tokens, count, limit) in enumerate(columns):
    check_tokens(tokens.tolist(), int(count), limit)
    table, score = tables[case.tables[row]], 0.0
    for at in range(count):
      logits = table[table_model.place(tuple(tokens[:at].tolist()))]
      if case.temperature == 0:
        assert tokens[at] == logits.argmax()
      else:
        logits = np.float64(logits) / case.temperature
        score += logits[tokens[at]] - np.log(np.sum(np.exp(logits)))
    np.testing.assert_allclose(
        state.log_probs[row], score, rtol=1e-4, atol=1e-4
    )


def check_tokens(tokens: list[int], count: int, limit: int) -> None:
  """Check that a row ends at its end of sequence or limit, and not before."""
  assert count <= limit
  assert EOS not in tokens[: count - 1]
  assert count == limit or tokens[count - 1] == EOS
  assert not any(tokens[count:])  # padding


PROGRAM = functools.cache(compiled)


@hypothesis.settings(
    max_examples=200,
    deadline=None,
    derandomize=True,  # the same cases in every run
    database=None,
)
@hypothesis.given(cases())
def test_counts_and_ends(case):
  check(case, *decode(PROGRAM(case.shape), case))

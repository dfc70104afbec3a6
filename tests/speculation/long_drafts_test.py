# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of drafts of 6 and 8 tokens, and of texts of over 64 target calls.

The models depend on every token before (`tests.history`). All blocks are
enumerated exactly; the loop is compared with Algorithm 1 written by hand, fed
by the uniforms that the documentation promises.
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import nothing
from speculative_t5x.networks import t5
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import step_programs
from tests import combinations
from tests import history

EOS = t5.SPECIAL_IDS.end


def related_tables(seed, num_tables, vocab_size, share):
  """Return tables of a target and of a similar draft model."""
  target = history.random_tables(seed, num_tables, vocab_size)
  own = history.random_tables(seed + 1, num_tables, vocab_size)
  return target, share * target + (1 - share) * own


@pytest.mark.usefixtures('float64')
@pytest.mark.parametrize(
    ('gamma', 'temperature', 'draft_temperature'),
    [
        (6, 0.7, 1.3),
        pytest.param(8, 1.0, 1.0, marks=pytest.mark.exhaustive),
    ],
)
def test_every_path_of_long_blocks(gamma, temperature, draft_temperature):
  """Without an end; a limit cuts the draft of the second example."""
  target, draft = related_tables(1, 2, 3, share=0.5)
  target[:, ::5, 2] += 11  # the other token is rarer than 1e-4
  for tables in (target, draft):
    tables[..., EOS] = -np.inf
  model = history.Model(3)
  pair = pairs.Pair(
      model,
      target,
      draft_model.ModelDrafter(model, gamma, 3),
      draft,
      np.arange(2, dtype=np.int32),
      (gamma + 1, gamma - 1),
      lambda example, tokens: target[example, *history.place(tokens)],
      1e-9,
  )
  program = step_programs.Program(pair, draft_length.Fixed()).with_sampling(
      sampling_lib.Sampling(temperature),
      sampling_lib.Sampling(draft_temperature),
  )
  found = reachable.reach(
      program, verification.TOKENWISE, combinations.enumerator('tokenwise')
  )
  assert combinations.error(program, found) < 1e-9
  assert min(found.distributions[0].values()) < 1e-5


VOCAB, LENGTH, DECODES = 5, 400, 2
# All 32 bits of ids matter: those that float32 rounds, and the sign.
IDS = (5, -5, 2**24, 2**24 + 1, 2**31 - 1, -(2**31))
LIMITS = (LENGTH, LENGTH, LENGTH, LENGTH - 1, LENGTH - 5, 3)


class Texts(NamedTuple):
  """Long texts with a high acceptance rate."""

  gamma: int  # draft tokens per block; 0 for plain decoding
  tables: np.ndarray  # of the target, [examples, ...]
  draft_tables: np.ndarray
  p: np.ndarray  # probabilities of the target, in the form of its tables
  q: np.ndarray


SAMPLINGS = tuple(map(sampling_lib.Sampling, (0.9, 1.1)))


def make_texts(gamma) -> Texts:
  tables = related_tables(5, len(IDS), VOCAB, share=0.75)
  for each in tables:
    each[..., EOS] -= 6
  probs = [
      np.asarray(sampling_lib.standardize(jnp.asarray(each), sampling))
      for each, sampling in zip(tables, SAMPLINGS)
  ]
  return Texts(gamma, *tables, *probs)


def decode(case: Texts) -> tuple[state_lib.State, outcome_lib.Statistics]:
  """Return all rows and statistics of the loop; plain for gamma 0."""
  model = history.Model(VOCAB)
  drafter = nothing.NoDrafter()
  if case.gamma:
    drafter = draft_model.ModelDrafter(model, case.gamma, VOCAB)

  @jax.jit
  def run(tables, draft_tables, ids):
    setup = state_lib.Setup(
        model, tables, drafter, draft_tables,
        rescale_log_probs=False,
    )  # fmt: skip
    begun = state_lib.begin(
        setup,
        jnp.arange(len(IDS), dtype=jnp.int32),
        state_lib.row_keys(jnp.int32(3), ids, DECODES),
        jnp.repeat(jnp.asarray(LIMITS, jnp.int32), DECODES),
        *SAMPLINGS,
        length=LENGTH,
    )
    return loop.decode(setup, begun, outcome_lib.COUNTING)

  tables = map(jnp.asarray, (case.tables, case.draft_tables))
  state, _, statistics = run(*tables, jnp.array(IDS, jnp.int32))
  return jax.device_get((state, statistics))


def promised_uniforms(example, decode_number, count) -> np.ndarray:
  """Return the words of each call, by seed, id, decode and call alone."""
  key = jax.random.key(3, impl='threefry2x32')
  for number in (IDS[example], decode_number):
    key = jax.random.fold_in(key, np.uint32(number % 2**32))
  of_call = lambda k: jax.random.bits(
      jax.random.fold_in(key, k), (count, 2), jnp.uint32
  )
  return np.asarray(jax.vmap(of_call)(jnp.arange(LENGTH)))


def draw(weights, uniform) -> int:
  """Return the token of a uniform; the only block needs no first word."""
  ends = np.cumsum(weights)
  point = uniform[1] / 2**32 * ends[-1]
  return int(np.searchsorted(ends, point, side='right'))


def coin(uniform) -> float:
  return uniform[0] / 2**32 + uniform[1] / 2**64


def algorithm_1(case, example, uniforms) -> dict:
  """Write one text by the paper; return what the row must hold, by name.

  The uniforms [calls, 2 * gamma + 1, 2] are for the draft tokens, for accepting
  them, and for the token at the end.
  """
  gamma, limit = case.gamma, LIMITS[example]

  @functools.cache
  def distributions(text):
    place = example, *history.place(text)
    return case.p[place], case.q[place]

  own = np.asarray(jax.nn.log_softmax(case.tables[example]))
  tokens = ()
  found = dict(
      num_calls=0, num_cut_short=0, num_computed=0,
      accepted_histogram=[0] * (gamma + 1), tested_histogram=[0] * (gamma + 1),
      drafted_histogram=[0] * (gamma + 1),
  )  # fmt: skip
  while len(tokens) < limit and EOS not in tokens:
    u = uniforms[found['num_calls']]
    text = tokens
    for i in range(gamma):
      text += (draw(distributions(text)[1], u[i]),)
    draft = text[len(tokens) :]
    p, q = zip(*(distributions(tokens + draft[:i]) for i in range(gamma + 1)))
    drafted = min(gamma, limit - len(tokens))
    if EOS in draft:
      drafted = min(drafted, draft.index(EOS) + 1)
    ratios = [p[i][draft[i]] / q[i][draft[i]] for i in range(drafted)]
    rejected = [i for i in range(drafted) if coin(u[gamma + i]) >= ratios[i]]
    n = min(rejected, default=drafted)
    new = draft[:n]
    is_cut_short = EOS in new or len(tokens) + n == limit
    if not is_cut_short:
      weights = np.maximum(p[n] - q[n], 0) if rejected else p[n]
      new += (draw(weights, u[2 * gamma]),)
    tokens += new
    found['num_calls'] += 1
    found['num_cut_short'] += is_cut_short
    found['num_computed'] += drafted
    found['accepted_histogram'][n] += 1
    found['tested_histogram'][n + bool(rejected)] += 1
    found['drafted_histogram'][drafted] += 1
  score = sum(
      own[history.place(tokens[:i])][token] for i, token in enumerate(tokens)
  )
  sequences = [*tokens, *[0] * (LENGTH - len(tokens))]
  return found | dict(
      sequences=sequences,
      num_tokens=len(tokens),
      log_probs=pytest.approx(score, rel=1e-4),
  )


@pytest.mark.usefixtures('float64')
@pytest.mark.parametrize('gamma', [0, 8])
def test_is_algorithm_1(gamma):
  """Every token of every row, its score and all counts are compared."""
  case = make_texts(gamma)
  state, statistics = decode(case)
  for row in range(len(IDS) * DECODES):
    example, decode_number = divmod(row, DECODES)
    uniforms = promised_uniforms(example, decode_number, 2 * gamma + 1)
    expected = algorithm_1(case, example, uniforms)
    found = vars(state) | vars(statistics)
    assert {name: found[name][row].tolist() for name in expected} == expected
  assert np.median(state.num_calls) >= 64
  if gamma:
    assert np.all(statistics.accepted_histogram.sum(0) > 0)
    assert np.any(state.sequences == EOS)

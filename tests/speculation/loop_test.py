# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decoding loop: forced steps, accounting, keys and formulas."""

import dataclasses
import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import counts as counts_lib
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import nothing
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop as loop_lib
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model

EOS = t5.SPECIAL_IDS.end
A, B, C = 2, 3, 0
ROW_FIELDS = ('sequences', 'num_tokens', 'has_ended', 'log_probs', 'num_calls')


@dataclasses.dataclass(frozen=True)
class Constant:
  """A model with one distribution everywhere: logits [vocab]."""

  vocab_size: int
  special_ids = t5.SPECIAL_IDS

  def start(self, params, inputs, rows, slots):
    zeros = jnp.zeros((rows,), jnp.int32)
    return contracts.Started(None, None, zeros, zeros)

  def decode(self, params, memory, cache, tokens, positions, at):
    block = tokens.shape[1] if at is None else 1
    shape = (tokens.shape[0], block, self.vocab_size)
    return jnp.broadcast_to(params[None, None], shape), cache


@dataclasses.dataclass(frozen=True)
class Scripted:
  """A drafter of given tokens and given distributions."""

  max_draft_tokens: int

  @property
  def num_uniforms(self):
    return self.max_draft_tokens

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, view):
    tokens, probs = params
    rows = view.num_tokens.shape[0]
    shape = (rows, self.max_draft_tokens)
    draft = contracts.Draft(
        jnp.broadcast_to(tokens[None], shape),
        view.num_wanted,
        jnp.broadcast_to(probs[None, None], (*shape, probs.shape[-1])),
        jnp.zeros(shape, bool),
    )
    return draft, state, view.target.cache


UNIFORM = (0.25, 0.25, 0.25, 0.25)


def scripted_step(
    draft_tokens,
    *,
    limit=9,
    accept=0.9,
    last=0.6,
    draft_probs=UNIFORM,
    state=None,
):
  """Makes one step of one row with a uniform target distribution."""
  gamma = len(draft_tokens)
  coins = np.broadcast_to(accept, (gamma,))
  uniforms = step_programs.words([[*[0.5] * gamma, *coins, last]])
  draft = np.array(draft_tokens, np.int32), np.array(draft_probs, np.float32)
  limits = np.array([limit], np.int32)
  return compiled_step(draft, limits, state and state.run, uniforms)


def compiled_step(draft, limits, run, uniforms):
  run = jit_step(draft, limits, run, uniforms)
  return types.SimpleNamespace(
      **vars(run.state), num_steps=1, statistics=run.kept, run=run
  )


@jax.jit
def jit_step(draft, limits, run, uniforms):
  setup = state_lib.Setup(
      Constant(4),
      jnp.log(jnp.array(UNIFORM)),
      sampling_lib.Sampling(1.0),
      Scripted(draft[0].size),
      draft,
      sampling_lib.Sampling(1.0),
  )
  if run is None:
    begun = state_lib.begin(setup, None, None, limits, length=9)
    run = loop_lib.start(begun, outcome_lib.COUNTING)
  batch = run.batch.replace(limits=limits)
  state, outcome = step_lib.step(setup, batch, run.state, uniforms)
  kept = outcome_lib.COUNTING.update(run.kept, outcome)
  return loop_lib.Run(batch, state, kept)


def committed(state):
  tokens = state.sequences[0].tolist()
  num_tokens = int(state.num_tokens[0])
  assert tokens[num_tokens:] == [0] * (len(tokens) - num_tokens)
  return tokens[:num_tokens]


def counts(state):
  """Returns the numbers of draft tokens by fate, and of calls cut short."""
  record = counts_lib.count_speculation(counts_lib.total([state]))
  keys = ('drafted', 'drafted_computed', 'tested', 'accepted', 'cut_short')
  return tuple(record[key] for key in keys)


# With these probabilities, draft tokens 1 and 2 are accepted below 0.42 and
# 0.5, 0 always; the residual is on 0, 2 or 3.
OTHER = dict(draft_probs=(0.1, 0.6, 0.2, 0.1))
LESS = dict(draft_probs=(0.2, 0.1, 0.5, 0.2))
# The draft tokens and further arguments; the tokens committed, counts (drafted,
# computed, tested, accepted, cut short), and whether the row has ended.
FORCED = {
    # The run record's worked block: a b end c, without c.
    'end inside the draft': (
        [A, B, EOS, C], {}, [A, B, EOS], (3, 4, 3, 3, 1), True,
    ),
    'limit after the end': (
        [A, B, EOS, C], dict(limit=4), [A, B, EOS], (3, 4, 3, 3, 1), True,
    ),
    'limit at the end': (
        [A, B, EOS, C], dict(limit=3), [A, B, EOS], (3, 3, 3, 3, 1), True,
    ),
    'end as the bonus token': (
        [A, B, A, B], dict(last=0.3), [A, B, A, B, EOS], (4, 4, 4, 4, 0), True,
    ),
    'bonus token': (
        [A, B, A, B], dict(last=0.9), [A, B, A, B, B], (4, 4, 4, 4, 0), False,
    ),
    'rejected end is not an end': (
        [A, EOS, B], dict(accept=[0.1, 0.9, 0.1], last=0.99, **OTHER),
        [A, B], (2, 3, 2, 1, 0), False,
    ),
    'end as the resampled token': (
        [A, B, A], dict(last=0.4, **LESS), [EOS], (3, 3, 1, 0, 0), True,
    ),
    # The token after the end would be rejected.
    'tokens past the end are not tested': (
        [EOS, A, B],
        dict(accept=[0.1, 0.99, 0.99], draft_probs=(0.01, 0.01, 0.97, 0.01)),
        [EOS], (1, 3, 1, 1, 1), True,
    ),
    'limit inside the draft': (
        [A, B, A, B], dict(limit=2), [A, B], (2, 2, 2, 2, 1), True,
    ),
    'limit at the end of the draft': (
        [A, B, A, B], dict(limit=4), [A, B, A, B], (4, 4, 4, 4, 1), True,
    ),
    'limit leaves room for the bonus': (
        [A, B, A, B], dict(limit=5, last=0.9),
        [A, B, A, B, B], (4, 4, 4, 4, 0), True,
    ),
    'limit of one': ([A, B, A], dict(limit=1), [A], (1, 1, 1, 1, 1), True),
    'limit of one and a rejection': (
        [A, B, A], dict(limit=1, last=0.99, **LESS),
        [B], (1, 1, 1, 0, 0), True,
    ),
    'rejection at the limit': (
        [B, A, B], dict(limit=2, last=0.99, **LESS),
        [B, B], (2, 2, 2, 1, 0), True,
    ),
}  # fmt: skip


@pytest.mark.usefixtures('strict_types')
class TestForcedStep:
  """Tier 2: given uniforms; equal distributions accept every draft token."""

  @pytest.mark.parametrize('name', FORCED)
  def test_step(self, name):
    draft_tokens, arguments, tokens, expected, has_ended = FORCED[name]
    state = scripted_step(draft_tokens, **arguments)
    assert committed(state) == tokens
    assert counts(state) == expected
    assert state.has_ended.tolist() == [has_ended]
    assert state.num_calls.tolist() == [1]
    drafted, _, _, accepted, _ = expected
    bins = np.arange(len(draft_tokens) + 1)
    stats = state.statistics
    assert stats.drafted_histogram.tolist() == [(bins == drafted).tolist()]
    assert stats.accepted_histogram.tolist() == [(bins == accepted).tolist()]
    np.testing.assert_allclose(
        state.log_probs, len(tokens) * math.log(0.25), rtol=1e-6
    )

  def test_blocks_follow_each_other(self):
    state = scripted_step([A, B], last=0.9)
    state = scripted_step([B, EOS], state=state)
    assert committed(state) == [A, B, B, B, EOS]
    assert counts(state) == (4, 4, 4, 4, 1)
    assert state.num_calls.tolist() == [2]

  def test_ended_row_is_unchanged(self):
    before = scripted_step([A, EOS])
    after = scripted_step([B, B], state=before)
    assert_same(results(after), results(before))


class TestDecoderInputs:

  def test_shifted_behind_a_start_token(self):
    sequences = jnp.array([[5, 6, 7], [8, 9, 0]])
    inputs = functools.partial(
        state_lib.decoder_inputs, sequences, jnp.array([4, 3])
    )
    assert inputs(jnp.array([0, 1]), 4).tolist() == [[4, 5, 6, 7], [8, 9, 0, 0]]
    inputs = inputs(jnp.array([3, 2]), 1)
    assert inputs.tolist() == [[7], [9]]


VOCAB, GAMMA, LENGTH, ROWS, TABLES = 5, 3, 12, 32, 4


@functools.cache
def tables():
  """Returns tables of a target and of a draft model that resembles it."""
  target = table_model.random_logits(3, TABLES, VOCAB)
  own = table_model.random_logits(4, TABLES, VOCAB)
  target[..., EOS] -= 2.5  # a rare end, so that sequences are not too short
  draft = 0.6 * target + 0.4 * own
  return target.astype(np.float32), draft.astype(np.float32)


class TabularLoop:
  """Speculative and plain loops on tables, compiled once per batch size."""

  def __init__(self, num_decodes=1, rescale_log_probs=True):
    self.num_traces = 0
    self._num_decodes = num_decodes
    self._rescale = rescale_log_probs
    self._drafter = draft_model.DraftModel(
        table_model.Model(VOCAB), GAMMA, VOCAB
    )
    self._jit_speculative = jax.jit(self._speculative)
    self._jit_plain = jax.jit(self._plain)

  def speculative(self, **arguments):
    return self._call(self._jit_speculative, **arguments)

  def plain(self, **arguments):
    return self._call(self._jit_plain, **arguments)

  def _call(
      self, run, *, example_ids=None, limits=LENGTH, seed=0, both=None, **rules
  ):
    if example_ids is None:
      example_ids = np.arange(ROWS)
    example_ids = jnp.asarray(example_ids, jnp.int32)
    limits = jnp.broadcast_to(jnp.asarray(limits, jnp.int32), example_ids.shape)
    rules = sampling_lib.Sampling(**rules)
    both = tables() if both is None else both
    state, work, statistics = jax.device_get(
        run(both, example_ids, limits, jnp.int32(seed), rules)
    )
    found = types.SimpleNamespace(**vars(state), statistics=statistics)
    return found, int(work.num_steps)

  def _decode(self, drafter, both, example_ids, limits, seed, rules):
    self.num_traces += 1
    setup = state_lib.Setup(
        table_model.Model(VOCAB), both[0], rules, drafter, both[1], rules,
        rescale_log_probs=self._rescale,
    )  # fmt: skip
    begun = state_lib.begin(
        setup,
        example_ids % TABLES,
        state_lib.row_keys(seed, example_ids, self._num_decodes),
        jnp.repeat(limits, self._num_decodes),
        length=LENGTH,
    )
    return loop_lib.decode(setup, begun, outcome_lib.COUNTING)

  def _speculative(self, *args):
    return self._decode(self._drafter, *args)

  def _plain(self, *args):
    return self._decode(nothing.Nothing(), *args)


@pytest.fixture(scope='module')
def loop():
  return TabularLoop()


@pytest.fixture(scope='module')
def whole(loop):
  return loop.speculative(seed=2)[0]


def results(state, rows=slice(None)):
  """Returns all results of some rows."""
  fields = [getattr(state, name) for name in ROW_FIELDS] + [state.statistics]
  return jax.tree.map(lambda x: x[rows], fields)


def assert_same(one, two):
  jax.tree.map(np.testing.assert_array_equal, one, two)


class TestBatchIndependence:
  """Tier 6, exact: the sample of a row does not depend on other rows."""

  def test_among_others_in_another_order(self, loop, whole):
    order = np.random.default_rng(6).permutation(ROWS)
    ids = np.where(order % 2, order + 1000, order)
    state, num_steps = loop.speculative(seed=2, example_ids=ids)
    same = order % 2 == 0
    assert_same(results(state, same), results(whole, order[same]))
    assert num_steps == state.num_calls.max()

  def test_with_padding_rows(self, loop, whole):
    is_padding = np.arange(ROWS) % 3 == 1
    limits = np.where(is_padding, 0, LENGTH)
    state, num_steps = loop.speculative(seed=2, limits=limits)
    assert_same(results(state, ~is_padding), results(whole, ~is_padding))
    *fields, stats = results(state, is_padding)
    sequences, num_tokens, has_ended, log_probs, num_calls = fields
    assert has_ended.all()
    for zeros in (sequences, num_tokens, log_probs, num_calls):
      assert not zeros.any()
    assert not any(x.any() for x in jax.tree.leaves(stats))
    assert num_steps == state.num_calls[~is_padding].max()

  def test_only_padding_rows_take_no_step(self, loop):
    state, num_steps = loop.speculative(limits=0)
    assert num_steps == 0
    assert not state.sequences.any()

  def test_lower_limit_gives_the_same_beginning(self, loop, whole):
    """Draft tokens beyond a limit do not change the tokens before it."""
    state, _ = loop.speculative(seed=2, limits=5)
    np.testing.assert_array_equal(
        state.sequences[:, :5], whole.sequences[:, :5]
    )
    assert np.all(state.num_tokens == np.minimum(whole.num_tokens, 5))

  def test_example_id_and_seed_matter(self, loop, whole):
    other, _ = loop.speculative(seed=3)
    assert np.mean(np.any(other.sequences != whole.sequences, axis=1)) > 0.7
    # These have the same table and other ids.
    ids = np.arange(ROWS) + 10 * TABLES
    other, _ = loop.speculative(seed=2, example_ids=ids)
    assert np.mean(np.any(other.sequences != whole.sequences, axis=1)) > 0.7

  def test_decodes_of_an_example(self, whole):
    several = TabularLoop(num_decodes=3)
    state, _ = several.speculative(seed=2)
    by_decode = state.sequences.reshape(ROWS, 3, LENGTH)
    np.testing.assert_array_equal(by_decode[:, 0], whole.sequences)
    for one, two in ((0, 1), (0, 2), (1, 2)):
      is_other = np.any(by_decode[:, one] != by_decode[:, two], axis=1)
      assert is_other.mean() > 0.7


@dataclasses.dataclass(frozen=True)
class Prompted(table_model.Model):
  """A decoder alone: its inputs are prompts, which are its first tokens.

  The inputs are the table, the prompt's length and the prompt of each example,
  [examples, 2 + longest].
  """

  def start(self, params, inputs, rows, slots) -> contracts.Started:
    """See `contracts.Model.start`."""
    inputs = jnp.asarray(inputs)
    repeats = rows // inputs.shape[0]
    offsets = jnp.repeat(inputs[:, 1] - 1, repeats)
    prompts = jnp.repeat(inputs[:, 2:], repeats, axis=0)
    fed = jnp.where(
        jnp.arange(prompts.shape[1]) < offsets[:, None],
        prompts,
        table_model.STALE,
    )
    cache = jnp.pad(
        fed, ((0, 0), (0, slots)), constant_values=table_model.STALE
    )
    first = jnp.take_along_axis(prompts, offsets[:, None], axis=1)[:, 0]
    return contracts.Started(inputs[:, 0], cache, offsets, first)


class TestPrompts:
  """A model whose first position is not 0, and another one in each row."""

  NUM_DECODES = 2
  PROMPTS = np.array(
      [[0, 1, 3, 0, 0], [1, 3, 2, 4, 3], [2, 2, 4, 2, 0], [3, 3, 3, 3, 2]],
      np.int32,
  )

  def decode(self, temperature, drafter, both):
    model = Prompted(VOCAB)
    rules = sampling_lib.Sampling(temperature)
    if drafter is None:
      drafter = draft_model.DraftModel(model, GAMMA, VOCAB)
    target, draft = map(jnp.asarray, both)
    setup = state_lib.Setup(model, target, rules, drafter, draft, rules)
    rows = len(self.PROMPTS) * self.NUM_DECODES

    @jax.jit
    def run(prompts):
      keys = state_lib.row_keys(
          jnp.int32(0), jnp.arange(len(prompts)), self.NUM_DECODES
      )
      limits = jnp.full((rows,), LENGTH, jnp.int32)
      begun = state_lib.begin(setup, prompts, keys, limits, length=LENGTH)
      return loop_lib.decode(setup, begun, outcome_lib.COUNTING)

    state, _, statistics = jax.device_get(run(self.PROMPTS))
    return state, statistics

  @pytest.mark.parametrize('drafter', [None, nothing.Nothing()])
  def test_greedy_tokens(self, drafter):
    state, _ = self.decode(0.0, drafter, tables())
    for row, tokens in enumerate(state.sequences):
      table, size, *prompt = self.PROMPTS[row // self.NUM_DECODES].tolist()
      fed = [0, *prompt[:size]]
      for token in tokens[: state.num_tokens[row]]:
        assert token == tables()[0][table, fed[-2], fed[-1]].argmax()
        fed.append(token)


class TestRowKeys:

  def test_threefry_whatever_the_default(self):
    make = lambda: state_lib.row_keys(jnp.int32(5), jnp.arange(3), 2)
    expected = make()
    before = jax.config.jax_default_prng_impl
    jax.config.update('jax_default_prng_impl', 'unsafe_rbg')
    try:
      keys = make()
      uniforms = loop_lib.uniform_table(keys, jnp.arange(6), 2, 4)
    finally:
      jax.config.update('jax_default_prng_impl', before)
    assert 'fry' in str(jax.random.key_impl(keys))
    np.testing.assert_array_equal(
        jax.random.key_data(keys), jax.random.key_data(expected)
    )
    np.testing.assert_array_equal(
        uniforms, loop_lib.uniform_table(expected, jnp.arange(6), 2, 4)
    )


class TestScores:

  @staticmethod
  def expected(state, log_probs):
    """Returns sums over the tokens of each row of log-probabilities."""
    scores = []
    for row, num in zip(state.sequences, state.num_tokens):
      fed = [0, 0, *row[:num]]
      table = log_probs[len(scores) % TABLES]
      scores.append(
          sum(table[fed[i], fed[i + 1], fed[i + 2]] for i in range(num))
      )
    return np.array(scores)

  @pytest.mark.parametrize('way', ['speculative', 'plain'])
  def test_greedy_scores_are_exactly_zero(self, loop, way):
    state, _ = getattr(loop, way)(temperature=0.0)
    np.testing.assert_array_equal(state.log_probs, np.zeros(ROWS))

  @pytest.mark.parametrize('way', ['speculative', 'plain'])
  def test_scores_of_the_models_own_distribution(self, way):
    own = TabularLoop(rescale_log_probs=False)
    target = tables()[0].astype(np.float64)
    log_probs = target - np.log(np.exp(target).sum(-1, keepdims=True))
    for rules in (dict(temperature=0.0), dict(temperature=2.0, topk=2)):
      state, _ = getattr(own, way)(**rules)
      np.testing.assert_allclose(
          state.log_probs, self.expected(state, log_probs), rtol=1e-4
      )

  def test_greedy_decoding_is_plain_decoding(self, loop):
    """Tier 5, exact: a table rounds equally in blocks of any size."""
    speculative, _ = loop.speculative(temperature=0.0)
    plain, _ = loop.plain(temperature=0.0)
    np.testing.assert_array_equal(speculative.sequences, plain.sequences)


# Context-free distributions without an end.
TARGET_PROBS = np.array([0.05, 0, 0.4, 0.25, 0.1, 0.2])
DRAFT_PROBS = np.array([0.15, 0, 0.2, 0.35, 0.3, 0.0])
ALPHA = np.minimum(TARGET_PROBS, DRAFT_PROBS).sum()
CONSTANT_GAMMA, NUM_CALLS, NUM_ROWS = 4, 20, 6000


@functools.cache
def constant_run():
  """Makes a fixed number of calls of many rows with constant distributions."""
  target = Constant(6)
  length = NUM_CALLS * (CONSTANT_GAMMA + 1) + CONSTANT_GAMMA
  rules = sampling_lib.Sampling(1.0)

  @jax.jit
  def decode(target_logits, draft_logits):
    setup = state_lib.Setup(
        target, target_logits, rules,
        draft_model.DraftModel(target, CONSTANT_GAMMA, 6), draft_logits, rules,
    )  # fmt: skip
    begun = state_lib.begin(
        setup,
        None,
        state_lib.row_keys(jnp.int32(0), jnp.arange(NUM_ROWS)),
        jnp.full((NUM_ROWS,), length, jnp.int32),
        length=length,
    )
    run = loop_lib.start(begun, outcome_lib.COUNTING)
    return loop_lib.advance(setup, run, NUM_CALLS, fold=outcome_lib.COUNTING)[0]

  with np.errstate(divide='ignore'):
    logits = [
        jnp.asarray(np.log(distribution), jnp.float32)
        for distribution in (TARGET_PROBS, DRAFT_PROBS)
    ]
  run = jax.device_get(decode(*logits))
  return types.SimpleNamespace(**vars(run.state), statistics=run.kept)


@pytest.mark.usefixtures('optimized')
class TestFormulas:
  """Tier 7: each bound is exceeded with probability at most 1e-6."""

  def test_acceptance_is_the_shared_mass(self):
    """Corollary 3.6, with bounds by Hoeffding and Azuma."""
    stats = constant_run().statistics
    accepted = (stats.accepted_histogram @ np.arange(CONSTANT_GAMMA + 1)).sum()
    tested = accepted + stats.num_rejections.sum()
    most = NUM_ROWS * NUM_CALLS * CONSTANT_GAMMA
    bound = math.sqrt(most * math.log(2e6) / 2) / tested
    print(f'{accepted / tested:.4f}, alpha {ALPHA:.4f}, bound {bound:.4f}')
    assert bound < 0.01
    assert abs(accepted / tested - ALPHA) <= bound

  def test_model_is_traced_once(self, loop, whole):
    num_traces = loop.num_traces
    outputs = {whole.sequences.tobytes()}
    for i in range(10):
      state, _ = loop.speculative(
          seed=i,
          temperature=0.5 + 0.2 * i,
          topk=0 if i % 2 else 2 + i,
          topp=0.0 if i % 3 else 1 - 0.05 * i,
          limits=LENGTH - i,
      )
      outputs.add(state.sequences.tobytes())
    assert loop.num_traces == num_traces
    assert len(outputs) == 11

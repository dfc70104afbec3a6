# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of decoding token ids with a tiny T5, in float32 at full precision."""

import dataclasses
import functools
import gc
from unittest import mock
import weakref

from flax import struct
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import report
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import verification
from tests import compilation
from tests import tiny

ROWS, LENGTH, GAMMA = 32, 14, 3
SETTINGS = dict(
    gamma=GAMMA, max_tokens=LENGTH, inputs_length=9, matmul_precision='highest'
)
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def models():
  """Return a target, and a draft model with a moderate acceptance rate."""
  draft = tiny.model(CONFIG, noise=0.15)
  return tiny.model(CONFIG), model_drafting.of_model(draft)


@functools.cache
def decoder(**options) -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(*models(), **(SETTINGS | options))


def batch(
    order=None,
    limits=LENGTH,
    seed=0,
    draft_temperature=None,
    temperature=1.0,
    **rules,
) -> input_batch.InputBatch:
  """Return a batch of examples in an order, by default all."""
  order = np.arange(ROWS) if order is None else np.asarray(order)
  if draft_temperature is None:
    draft_temperature = temperature
  return input_batch.InputBatch(
      tiny.encoder_tokens(ROWS, 9)[order],
      jnp.asarray(order, jnp.int32),
      jnp.broadcast_to(jnp.asarray(limits, jnp.int32), order.shape),
      jnp.int32(seed),
      sampling.Sampling(temperature, **rules).as_arrays(),
      sampling.Sampling(draft_temperature).as_arrays(),
  )


def speculative(**options) -> report.Report:
  return tiny.decoded(decoder(), batch(**options))


def plain(**options) -> report.Report:
  return tiny.decoded(decoder().alone, batch(**options))


@functools.cache
def whole():
  return speculative(seed=1)


def assert_rows_equal(one, two, rows):
  """Check that results of the given rows are equal."""
  for name in ('sequences', 'num_tokens', 'num_calls'):
    np.testing.assert_array_equal(getattr(one, name), getattr(two, name)[rows])
  np.testing.assert_allclose(one.log_probs, two.log_probs[rows], atol=1e-3)
  jax.tree.map(
      lambda x, y: np.testing.assert_array_equal(x, y[rows]),
      one.statistics,
      two.statistics,
  )


@pytest.mark.parametrize('draft_temperature', [0.0, 1.5])
def test_greedy_equals_plain_decoding(draft_temperature):
  """Tier 5."""
  found = speculative(temperature=0.0, draft_temperature=draft_temperature)
  expected = plain(temperature=0.0)
  np.testing.assert_array_equal(found.sequences, expected.sequences)
  np.testing.assert_array_equal(found.num_tokens, expected.num_tokens)
  np.testing.assert_array_equal(found.log_probs, np.zeros(ROWS))
  stats = found.statistics
  assert (stats.num_tested - stats.num_accepted).sum() > ROWS
  assert stats.accepted_histogram[:, 1:].sum() > ROWS
  # Otherwise the tests here would show little.
  assert len(np.unique(found.sequences, axis=0)) > 4
  np.testing.assert_array_equal(expected.num_calls, expected.num_tokens)
  factor = 0.8 if draft_temperature == 0 else 1
  assert found.num_calls.sum() < factor * expected.num_calls.sum()


class TestBatch:
  """Tier 6, up to near ties, of which these seeds have none."""

  def test_in_another_order(self):
    order = np.random.default_rng(0).permutation(ROWS)
    assert_rows_equal(speculative(seed=1, order=order), whole(), order)

  def test_alone(self):
    for row in range(0, ROWS, 4):
      assert_rows_equal(speculative(seed=1, order=[row]), whole(), [row])

  def test_with_padding_rows(self):
    is_padding = np.arange(ROWS) % 4 == 2
    found = speculative(seed=1, limits=np.where(is_padding, 0, LENGTH))
    rows = lambda x: x[~is_padding] if x.shape[:1] == (ROWS,) else x
    assert_rows_equal(
        jax.tree.map(rows, found), whole(), np.flatnonzero(~is_padding)
    )
    assert not found.sequences[is_padding].any()
    assert not found.num_calls[is_padding].any()

  def test_rows_of_a_request(self, monkeypatch):
    """Keys use all bits of seed and id, and limits are capped."""
    ids = np.array([5, -5, 2**24, 2**24 + 1, -(2**31)], np.int32)
    limits = [3, 0, LENGTH, LENGTH + 1, 2]
    asked = batch(order=range(5), limits=limits, seed=-7)
    several = decoder(num_decodes=2)
    found = []
    monkeypatch.setattr(loop, 'decode', lambda *_: None)
    monkeypatch.setattr(
        state_lib, 'begin', lambda *args, **_: found.extend(args)
    )
    asked = asked.replace(example_ids=jnp.asarray(ids))
    whole_batches._run(several, None, *several.params, asked)
    *_, keys, row_limits, _, _ = found
    start = jax.random.key(-7, impl='threefry2x32')
    expected = [
        jax.random.fold_in(jax.random.fold_in(start, example), decode)
        for example in ids.view(np.uint32)
        for decode in range(2)
    ]
    np.testing.assert_array_equal(
        jax.random.key_data(keys), [*map(jax.random.key_data, expected)]
    )
    assert row_limits.tolist() == [3, 3, 0, 0, *[LENGTH] * 4, 2, 2]


class TestPlain:

  def test_scores_of_the_models_own_distribution(self):
    own = _endless()
    asked = batch(temperature=0.0)
    found, expected = (way(asked) for way in whole_batches.ways(own))
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-3)
    assert np.all(found.log_probs < 0)


# What a policy wants in each call in turn. Numbers out of range are clipped,
# and `_LESS` stands for one less than remains.
_LESS = 1000
_WANTED = np.array([-3, 1, 99, _LESS])


@dataclasses.dataclass(frozen=True)
class Wanting(draft_length.DraftsOn):
  """Wants each of `_WANTED` in turn, or one number for all rows."""

  is_per_row: bool = True
  name = 'wanting'
  is_constant = False

  def init(self, rows):
    return jnp.zeros((rows,), jnp.int32)

  def num_wanted(self, state, num_remaining, gamma):
    if not self.is_per_row:
      return jnp.ones((1,), jnp.int32)
    wanted = jnp.asarray(_WANTED)[state % len(_WANTED)]
    return jnp.where(wanted == _LESS, num_remaining - 1, wanted)

  def update(self, state, outcome):
    return state + 1


def test_numbers_of_draft_tokens_of_a_policy():
  """As many as are wanted are computed, and no output changes."""
  wanting = decoder(policy=Wanting())
  limits = 1 + np.arange(ROWS) % LENGTH
  asked = batch(temperature=0.0, limits=limits)
  found = tiny.decoded(wanting, asked)
  outcomes, _ = jax.device_get(whole_batches.trace(wanting, asked))
  expected = speculative(temperature=0.0, limits=limits)
  np.testing.assert_array_equal(found.sequences, expected.sequences)

  calls = np.arange(len(outcomes.num_before))[:, None]
  remaining = limits - outcomes.num_before
  wanted = _WANTED[calls % len(_WANTED)]
  wanted = np.where(wanted == _LESS, remaining - 1, wanted).clip(0, GAMMA)
  # Drafts end at the limit and at the end of sequence, and nowhere else.
  is_end = outcomes.draft_tokens == t5.SPECIAL_IDS.end
  to_end = np.where(is_end.any(-1), is_end.argmax(-1) + 1, GAMMA)
  np.testing.assert_array_equal(
      outcomes.num_computed,
      np.where(
          outcomes.is_active,
          np.minimum(np.minimum(wanted, remaining), to_end),
          0,
      ),
  )
  # The first call of every row drafts nothing.
  assert not np.any(outcomes.num_drafted[0])
  assert np.any(outcomes.num_accepted == GAMMA)
  assert np.any(outcomes.is_active & (remaining < GAMMA))


@pytest.mark.parametrize('temperature', [0.0, 1.0])
def test_every_output_that_may_not_end_has_its_limit(temperature):
  """The end is that of the target: id 1 is then a token as any other."""
  endless = _endless()
  limits = 1 + np.arange(ROWS) % LENGTH
  asked = batch(temperature=temperature, limits=limits)
  one, other = (
      jax.device_get(way(asked))
      for way in whole_batches.ways(endless)
  )
  for found in (one, other):
    np.testing.assert_array_equal(found.num_tokens, limits)
    assert not np.any(found.sequences == 7)
    assert np.isfinite(found.log_probs).all()
  if temperature:
    assert np.any(one.sequences == t5.SPECIAL_IDS.end)
    assert np.any(plain().sequences == 7)  # otherwise nothing was forbidden
  else:
    np.testing.assert_array_equal(one.sequences, other.sequences)


@functools.cache
def _endless() -> token_decoder.TokenDecoder:
  """Return a decoder whose scores are the model's own."""
  special_ids = contracts.SpecialIds(end=7, padding=0, start=0)
  target, draft = (
      dataclasses.replace(tiny.model(CONFIG, noise=x), special_ids=special_ids)
      for x in (0.0, 0.15)
  )
  return token_decoder.TokenDecoder(
      target, draft, may_end=False, rescale_log_probs=False, **SETTINGS
  )


class TestWithDrafter:

  def test_another_draft_and_gamma(self):
    worse = model_drafting.of_model(tiny.model(CONFIG, noise=1.0))
    other = decoder().with_drafter(worse, 2)
    found = tiny.decoded(other, batch(temperature=0.0))
    expected = speculative(temperature=0.0)
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    assert found.statistics.accepted_histogram.shape == (ROWS, 3)
    assert found.num_calls.sum() > expected.num_calls.sum()
    # The original decoder is unchanged.
    assert (decoder().options.gamma, other.options.gamma) == (GAMMA, 2)
    assert decoder().loaded_drafter is models()[1]
    assert other.loaded_drafter is worse and other.target is decoder().target
    # Plain decoding stays compiled.
    plain(temperature=0.0)
    before = compilation.count()
    whole_batches.decode(other.alone, batch(temperature=0.0))
    assert compilation.count() == before

  def test_replaced_drafter_is_released(self):
    target, draft = tiny.model(CONFIG), tiny.model(CONFIG, noise=0.5)
    replaced = weakref.ref(draft)
    other = token_decoder.TokenDecoder(
        target, model_drafting.of_model(draft), gamma=2, max_tokens=4
    )
    other = other.with_drafter(models()[1], 2)
    del draft
    gc.collect()
    assert replaced() is None
    assert other.loaded_drafter is models()[1]


class TestMatmulPrecision:
  """The setting that is in force where programs are traced."""

  @staticmethod
  def traced(decoder):
    """Return the setting within the functions that are compiled."""
    found, asked = [], batch(order=[0])
    start = type(decoder.target.config).start

    def watched(self, *args, **options):
      found.append(jax.config.jax_default_matmul_precision)
      return start(self, *args, **options)

    with mock.patch.object(type(decoder.target.config), 'start', watched):
      trace = functools.partial(whole_batches.trace, decoder)
      for way in (*whole_batches.ways(decoder), trace):
        jax.eval_shape(way, asked)
    assert len(found) > 2
    return set(found)

  @staticmethod
  def make(dtype, **options):
    model = tiny.model(dataclasses.replace(CONFIG, dtype=dtype))
    return token_decoder.TokenDecoder(model, gamma=2, max_tokens=3, **options)

  @pytest.mark.parametrize(
      ('dtype', 'expected'), [('float32', 'highest'), ('bfloat16', None)]
  )
  def test_default_suits_the_dtype(self, dtype, expected):
    assert self.traced(self.make(dtype)) == {expected}
    assert jax.config.jax_default_matmul_precision is None

  def test_a_setting_of_the_user_stands(self):
    """Unless an option sets another."""
    made = self.make('float32')
    for own in ('highest', 'default'):
      with jax.default_matmul_precision(own):
        assert self.traced(made) == {made.matmul_precision} == {own}
    with jax.default_matmul_precision('highest'):
      made = self.make('float32', matmul_precision='high')
      assert self.traced(made) == {'high'}
      assert jax.config.jax_default_matmul_precision == 'highest'


class TestRuleClass:
  """A compiled program is never run for a rule of another class."""

  def make_class(self):
    @struct.dataclass
    class Other(verification.Tokenwise):
      pass

    return Other

  def test_programs(self):
    """JAX looks programs up by a hash of which it compares a part at first."""
    program = jax.jit(lambda batch: batch.rule.number())
    for i in range(30):
      rule = self.make_class()
      rule.number = lambda _, i=i: i
      assert program(batch().replace(rule=rule())) == i


class TestGenerate:

  IDS = [
      [i for i in row if i > 0] for row in tiny.encoder_tokens(ROWS, 9).tolist()
  ]

  def test_is_the_decoding_of_a_request(self):
    """Sizes between two powers of two do not recompile."""
    for temperature in (0.0, 1.0):
      found = decoder().generate(
          self.IDS,
          batch_size=ROWS,
          sampling=sampling.Sampling(temperature, top_k=9),
          draft_sampling=sampling.Sampling(temperature),
          seed=3,
      )
      decoded = speculative(temperature=temperature, top_k=9, seed=3)
      for ids, row, count in zip(found, decoded.sequences, decoded.num_tokens):
        row = row[:count].tolist()
        assert ids == (row[:-1] if row[-1] == 1 else row)
        assert all(type(i) is int for i in ids)
    assert any(len(ids) < LENGTH for ids in found)
    before = compilation.count()
    decoder().generate(self.IDS[:20], batch_size=ROWS, seed=1)
    assert compilation.count() == before

  def test_one_input(self):
    expected = decoder().generate(self.IDS[:1])[0]
    arrays = np.asarray(self.IDS[0]), jnp.asarray(self.IDS[0])
    for ids in (self.IDS[0], tuple(self.IDS[0]), *arrays):
      assert decoder().generate(ids) == expected

  def test_any_iterable_of_inputs(self):
    expected = decoder().generate(self.IDS, batch_size=ROWS)
    more = iter([*self.IDS, *self.IDS[:3]])
    found = decoder().generate(more, batch_size=ROWS)
    assert found == expected + expected[:3]
    found = decoder().generate(iter(self.IDS[:3]), batch_size=1)
    assert found == expected[:3]
    inputs = np.array([[2, 7, 1], [3, 0, 1]])  # id 0 is a token like others
    found = decoder().generate(inputs, batch_size=1)
    assert found == decoder().generate(inputs.tolist(), batch_size=1)
    assert found[1] != decoder().generate([3, 1])

  @pytest.mark.parametrize(
      ('ids', 'named'),
      [
          (['a text'], r'ids\[0\] must be a list of ids'),
          ('a text', 'ids must be a list of lists of ids'),
          ([[2, 1], []], r'ids\[1\] is empty'),
          ([[2] * 10], r'ids\[0\] has 10 tokens.*inputs_length=10'),
          ([[2, -1, 1]], 'from 0 to 63, .* got -1'),
          ([2, 2.5, 1], 'from 0 to 63, .* got 2.5'),
      ],
  )
  def test_wrong_ids(self, ids, named):
    with compilation.unchecked_types():
      with pytest.raises(ValueError, match=named):
        decoder().generate(ids)


def _with(**changes):
  """Return a change of some values of what was decoded, row by row."""
  return lambda found: found.replace(
      **{name: change(getattr(found, name)) for name, change in changes.items()}
  )


_FEWER_CALLS = _with(
    num_calls=lambda x: np.minimum(x, 1),
    work=lambda x: loop.Work(1, 0, np.eye(1, len(x.calls_by_width))[0]),
)
_more = lambda x: x + np.eye(1, len(x), dtype=np.int32)[0]
_of_counts = lambda **changes: _with(statistics=_with(**changes))
_OF_BOTH = [
    _with(log_probs=lambda x: x * np.nan),
    _with(log_probs=lambda x: x - np.inf),
    _FEWER_CALLS,  # as XLA's command buffers for loops did
    _with(num_tokens=lambda x: 4 * x),
    _with(num_tokens=lambda x: 0 * x),
    _with(num_calls=_more),
    _with(work=lambda x: x._replace(num_steps=x.num_steps - 1)),
    _with(work=lambda x: x._replace(calls_by_width=2 * x.calls_by_width)),
]
_OF_DRAFTS = [
    _of_counts(accepted_histogram=lambda x: 2 * x),
    _of_counts(tested_histogram=lambda x: x[:, ::-1]),
    _of_counts(drafted_histogram=lambda x: x[:, ::-1]),
    _of_counts(num_computed=lambda x: 0 * x),
    _of_counts(num_cut_short=_more),
]


@pytest.mark.parametrize(
    ('is_plain', 'changes'), [(True, _OF_BOTH), (False, _OF_BOTH + _OF_DRAFTS)]
)
def test_results_that_cannot_be(is_plain, changes):
  found = plain() if is_plain else speculative()
  found.check_whole()
  for change in changes:
    with pytest.raises(ValueError, match='not finite|contradict'):
      change(found).check_whole()

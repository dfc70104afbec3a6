# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of coupled rules: samples that depend on target, seed and position.

`engine_test.py` has them in refilled rows, and `rules_test.py` in jobs.
"""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import nothing
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.rules import coupled
from speculative_t5x.rules import description
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import step_programs
from tests import combinations
from tests import combinations_test
from tests import exhaustive
from tests import mixed_drafts
from tests import tiny
from tests import tiny_drafters
from tests.rules import coupled_paths

pytestmark = pytest.mark.long

RULES = coupled.Coupled(), coupled.CoupledGumbel()
# Rules differ by the words of a position and how they draw, see `TestSamples`.
ONE_RULE = pytest.mark.parametrize(
    'rule', exhaustive.all_but(RULES[1:], RULES), ids=lambda rule: rule.name
)
SAMPLINGS = {
    'greedy': dict(temperature=0.0),
    'temperature 0.3': dict(temperature=0.3),
    'temperature 1': dict(temperature=1.0),
    'top-p': dict(temperature=1.0, top_p=0.8),
    'top-k': dict(temperature=0.7, top_k=2),
}


def mixed(gamma):
  return tiny_drafters.of_tables(mixed_drafts.MixedDrafts(3, gamma))


def make_program(drafter, gamma=2, policy=None) -> step_programs.Program:
  make = mixed if drafter == 'mixed' else functools.partial(
      tiny_drafters.make, drafter
  )  # fmt: skip
  policy = policy or combinations.PolicyOfRow()
  return step_programs.Program(make(gamma), policy)


# Each drafter, with another policy and gamma than the one before.
# `combinations_test.py` and `TestSamples` have the others, so that `make test`
# enumerates few.
ALWAYS = [
    ('draft model', 3, 'fixed'),
    ('lookup then model', 2, 'expected speed'),
    ('mixed', 2, 'by key'),
]
ENUMERATED = [
    *ALWAYS,
    ('draft model', 2, 'confidence'),
    ('short vocabulary', 2, 'marginal gain'),
    ('uniform', 2, 'schedule'),
    ('bigram', 2, 'entropy'),
    ('lookup in hints', 2, 'fixed'),
    ('three in order', 2, 'tuned confidence'),
    ('external', 2, 'fixed'),
    ('early exit', 1, 'fixed'),
    ('shared encoder', 1, 'fixed'),
    ('block head', 2, 'confidence'),
    ('independent block', 2, 'entropy'),
    ('lookup then block', 2, 'marginal gain'),
]
POLICIES = {**combinations.POLICIES, 'by key': mixed_drafts.KeyPolicy()}


class TestEnumeratedDistribution:

  @pytest.mark.parametrize(
      ('drafter', 'gamma', 'policy'), exhaustive.all_but(ALWAYS, ENUMERATED)
  )
  def test_keeps_the_target_s(self, drafter, gamma, policy):
    with combinations_test.precision(drafter):
      program = make_program(drafter, gamma, POLICIES[policy])
      for name in ('temperature 1', 'top-k'):
        program = program.with_sampling(
            sampling_lib.Sampling(**SAMPLINGS[name])
        )
        found = coupled_paths.reach(program)
        assert combinations.error(program, found) < program.pair.tolerance

  def test_another_draft_sampling(self):
    with combinations_test.precision('draft model'):
      program = make_program('draft model', policy=draft_length.Fixed())
      program = program.with_sampling(
          sampling_lib.Sampling(1.0), sampling_lib.Sampling(0.3)
      )
      found = coupled_paths.reach(program)
      assert combinations.error(program, found) < program.pair.tolerance


@pytest.mark.parametrize(
    'drafter',
    exhaustive.all_but(
        ['draft model', 'independent block'],
        ['draft model', 'lookup then model', *tiny_drafters.BLOCKS],
    ),
)
def test_a_position_draws_its_draft_token(drafter):
  """Outputs do not show it: fewer draft tokens are accepted otherwise."""
  rule, gamma, rows = coupled.Coupled(), 3, 64
  with combinations_test.precision(drafter):
    program = make_program(drafter, gamma, draft_length.Fixed())
    examples = np.arange(rows) % 2
    state = step_programs.take(program.begin(rule), examples)
    uniforms = np.random.default_rng(0).random((rows, gamma + 1))
    draft = program.draft(rule, examples, state, uniforms)
    drawn = sampling_lib.draw(
        jnp.asarray(draft.probs),
        jnp.asarray(step_programs.words(uniforms[:, :gamma])),
    )
  is_drawn = np.arange(gamma) < draft.lengths[:, None]
  if draft.is_point_mass is not None:
    is_drawn &= ~draft.is_point_mass
  assert np.any(is_drawn, axis=0).all()
  assert np.all((drawn == draft.tokens) | ~is_drawn)


def _accepts_by_chance(rule, scores, draft, uniforms):
  """Accept by p / q, by the noise that drew the draft."""
  width = draft.tokens.shape[1]
  coins = uniforms_lib.coins(uniforms[:, :width], scores.probs.dtype)
  verdict = verification.verify(scores.probs, draft, coins)
  at = verdict.num_accepted[:, None, None]
  own = jnp.take_along_axis(uniforms, at, axis=1)[:, 0]
  return verdict.num_accepted, rule.draw(verdict.next_weights, own)


def _writes_the_draft(rule, scores, draft, uniforms):
  """Write a rejected draft token instead of the target's."""
  tokens = rule.draw(scores.probs, uniforms[:, : scores.probs.shape[1]])
  padded = jnp.pad(draft.tokens, ((0, 0), (0, 1)))
  is_draft = jnp.arange(tokens.shape[1]) < draft.lengths[:, None]
  written = jnp.where(is_draft, padded, tokens)
  same = draft.tokens == tokens[:, :-1]
  count = verification.count_prefix(draft, same)
  return count, jnp.take_along_axis(written, count[:, None], axis=1)[:, 0]


def _noise_of_the_next_position(rule, scores, draft, uniforms):
  return _decide(rule, scores, draft, jnp.roll(uniforms, -1, axis=1))


def _noise_of_the_first_position(rule, scores, draft, uniforms):
  first = jnp.broadcast_to(uniforms[:, :1], uniforms.shape)
  return _decide(rule, scores, draft, first)


def _decide(rule, *args):
  return _ORIGINAL(noise.ByPosition(rule, None), *args)


_ORIGINAL = noise.ByPosition.decide
MUTANTS = {
    'token-wise with coupled noise': _accepts_by_chance,
    'the draft token is written': _writes_the_draft,
    'noise of the next position': _noise_of_the_next_position,
    'noise of the first position': _noise_of_the_first_position,
}


def plant(monkeypatch, mutant):
  monkeypatch.setattr(
      noise.ByPosition, 'decide', lambda self, *args: mutant(self.rule, *args)
  )


class TestMutantsFail:

  @pytest.mark.parametrize('name', MUTANTS)
  def test_enumeration_detects(self, name, monkeypatch):
    plant(monkeypatch, MUTANTS[name])
    with combinations_test.precision('draft model'):
      program = make_program('draft model', policy=draft_length.Fixed())
      found = coupled_paths.reach(program)
      assert combinations.error(program, found) > 1e-3

  @pytest.mark.parametrize(
      'name', exhaustive.all_but(['token-wise with coupled noise'], MUTANTS)
  )
  def test_samples_of_plain_decoding_detect(self, name, monkeypatch):
    plant(monkeypatch, MUTANTS[name])
    assert share_of_others('draft model') > 0.01

  def test_noise_of_calls(self, monkeypatch):
    """It keeps the distribution, and samples depend on the drafts."""

    def by_call(self, keys, state, max_steps):
      return noise.uniform_table(
          keys, state.num_calls, max_steps, self.num_uniforms
      )

    look_up = lambda self, table, first, state: noise.uniforms_at(
        table, state.num_calls - first.num_calls
    )
    monkeypatch.setattr(noise.ByPosition, 'table', by_call)
    monkeypatch.setattr(noise.ByPosition, 'look_up', look_up)
    assert share_of_others('draft model') > 0.1


ROWS = 1024  # an example with other keys and, in turn, policies


class Decoding:
  """Decodes the first example of a program in all rows, by a rule.

  A drafter without parameters takes the place of the program's, if given.
  """

  def __init__(self, program, rule, rows=ROWS, drafter=None):
    self.program, self.rule, self.drafter = program, rule, drafter
    self.rows, self.length = rows, max(program.pair.limits)
    self._start = jax.jit(self._begin)
    self._advance = jax.jit(self._step, static_argnums=2)

  def run(self, sampling=None, size=None):
    """Return tokens, lengths and statistics.

    Each call of `advance` takes `size` steps; None for all at once.
    """
    own = sampling_lib.Sampling(**(sampling or {})).as_arrays()
    samplings = own, own
    with jax.default_matmul_precision('highest'):
      run = self._start(samplings)
      while not np.all(run.state.has_ended):
        run = self._advance(samplings, run, size or self.length)
    state = run.state
    return np.asarray(state.sequences), np.asarray(state.num_tokens), run.kept

  def _setup(self, samplings) -> tuple:
    setup, batch, state = self.program.start(
        self.rule, samplings, np.array([0]), self.rows
    )
    keys = state_lib.row_keys(7, jnp.arange(self.rows, dtype=jnp.int32))
    if self.drafter is None:
      return setup, batch.replace(keys=keys), state
    setup = setup._replace(drafter=self.drafter, draft_params=None)
    inputs = jnp.asarray(self.program.pair.inputs)[:1]
    return setup, *state_lib.begin(
        setup, inputs, keys, batch.limits, *samplings, length=self.length
    )

  def _begin(self, samplings):
    _, *begun = self._setup(samplings)
    return loop.start(tuple(begun), outcome.COUNTING)

  def _step(self, samplings, run, max_steps):
    setup, *_ = self._setup(samplings)
    return loop.advance(setup, run, max_steps, fold=outcome.COUNTING)[0]


def plain(program, rule, rows=ROWS) -> Decoding:
  return Decoding(program, rule, rows, nothing.NoDrafter())


@functools.cache
def plain_of(is_network, rule) -> Decoding:
  """Return plain decoding of a target, which no drafter changes."""
  return plain(make_program('early exit' if is_network else 'uniform'), rule)


def share_of_others(drafter, rule=RULES[0]) -> float:
  """Return how many rows have other samples than by plain decoding."""
  program = make_program(drafter)
  return share_that_differs(Decoding(program, rule), plain(program, rule))


def share_that_differs(one, other, sampling=None) -> float:
  """Return how many rows of two ways to decode have other samples."""
  (tokens, count, _), (others, other_count, _) = (
      way.run(sampling) for way in (one, other)
  )
  is_other = np.any(tokens != others, axis=1) | (count != other_count)
  return float(np.mean(is_other))


# The others by `make test-all`: whatever is drafted, the target's own draws are
# written, and `enumeration_test.py` finds drafters that spoil its cache.
ALWAYS_SAMPLED = [
    ('draft model', 2), ('lookup then model', 2), ('mixed', 2),
    ('feature head', 2), ('lookup then block', 2), ('three in order', 4),
]  # fmt: skip


def _with_a_rule_each():
  """Return drafters with one rule in turn, and exhaustively with the other."""
  drafters = [
      *((name, 2) for name in (*tiny_drafters.NAMES, 'mixed')),
      ('draft model', 1),
      ('draft model', 5),
      ('three in order', 4),
  ]
  for number, drafter in enumerate(drafters):
    for rule in RULES:
      # Networks by one rule, whose plain samples they share.
      is_first = rule is RULES[number // 2 % 2] and drafter in ALWAYS_SAMPLED
      marks = () if is_first else pytest.mark.exhaustive
      label = f'{"-".join(map(str, drafter))}-{rule.name}'
      yield pytest.param(*drafter, rule, id=label, marks=marks)


class TestSamples:
  """Of speculative and plain decoding, token for token."""

  @pytest.mark.parametrize(('drafter', 'gamma', 'rule'), _with_a_rule_each())
  def test_every_drafter_and_policy(self, drafter, gamma, rule):
    """Row i has the policy i."""
    expected = plain_of(drafter in tiny_drafters.NETWORKS, rule)
    found = Decoding(make_program(drafter, gamma), rule)
    for sampling in SAMPLINGS.values():
      assert share_that_differs(found, expected, sampling) == 0

  @pytest.mark.exhaustive  # `engine_test.py` has them with a draft model
  @ONE_RULE
  def test_batches_and_bounded_steps(self, rule):
    program = make_program('lookup then model', 3)
    several = Decoding(program, rule, 64)
    whole = several.run()[:2]
    assert len(np.unique(whole[0], axis=0)) > 10
    for way, size in ((Decoding(program, rule, 1), None), (several, 2)):
      found = way.run(size=size)
      for one, other in zip(found, whole):
        np.testing.assert_array_equal(one, other[: way.rows])

  def test_one_uniform_is_that_of_any_plain_decoding(self):
    found = plain_of(False, coupled.Coupled()).run()
    program = make_program('draft model')
    expected = plain(program, verification.TOKENWISE).run()
    np.testing.assert_array_equal(found[0], expected[0])

  @ONE_RULE
  def test_through_a_decoder(self, rule):
    """In several decodes, and in another order."""
    config = tiny.config(num_encoder_layers=1)
    decoder = tiny.decoder(config, gamma=2, length=12, num_decodes=2)
    inputs = np.asarray(tiny.encoder_tokens(6, 9))
    request = tiny.batch(inputs, 12, 1.0, seed=4).replace(rule=rule)
    expected = tiny.decoded(decoder.alone, request).sequences
    found = tiny.decoded(decoder, request).sequences
    differences = near_ties.compare(decoder, request, expected, found)
    assert all(each.is_near_tie for each in differences)
    assert len(differences) <= 1 and len(np.unique(found, axis=0)) > 8
    order = np.array([4, 5, 0, 3, 2, 1], np.int32)
    other = request.replace(
        inputs=request.inputs[order], example_ids=request.example_ids[order]
    )
    again = tiny.decoded(decoder, other).sequences.reshape(6, 2, -1)
    is_other = again != expected.reshape(6, 2, -1)[order]
    assert np.sum(np.any(is_other, axis=-1)) <= 1


class TestJittedDistribution:

  @ONE_RULE
  def test_loop(self, rule):
    program = make_program('draft model')
    # Of the first names, only the number of rows counts.
    choices = [('tokenwise', policy) for policy in ('fixed', 'confidence')]
    found = combinations_test.sample(program, choices, 2, rule=rule)
    for distance, bound in found.values():
      assert distance <= bound


_draw_gumbel = jax.jit(jax.vmap(coupled.CoupledGumbel().draw, (None, 0)))


class TestDraw:
  """Of Gumbel noise; `sampling_test.py` has that of the inverse CDF."""

  VOCAB, COUNT = 40, 100_000

  def draws(self, *distributions):
    rng = np.random.default_rng(0)
    words = rng.integers(0, 2**32, (self.COUNT, 2), np.uint32)
    return [
        np.asarray(_draw_gumbel(jnp.asarray(p), words)) for p in distributions
    ]

  def distributions(self):
    rng = np.random.default_rng(1)
    logits = 2 * rng.normal(size=self.VOCAB)
    logits[3] = -np.inf
    other = logits + 0.7 * rng.normal(size=self.VOCAB)
    return [
        np.asarray(jax.nn.softmax(jnp.asarray(x, jnp.float32)))
        for x in (logits, other)
    ]

  def test_follows_the_distribution(self):
    p, _ = self.distributions()
    (drawn,) = self.draws(p)
    found = np.bincount(drawn, minlength=self.VOCAB) / self.COUNT
    assert found[3] == 0
    bound = math.sqrt(
        (self.VOCAB * math.log(2) + math.log(1e6)) / (2 * self.COUNT)
    )
    assert 0.5 * np.sum(np.abs(found - p)) < bound

  def test_how_often_both_draw_the_same(self):
    """Daliri et al.: sum of 1 / sum of max(p_y / p_x, q_y / q_x)."""
    p, q = (x.astype(np.float64) for x in self.distributions())
    one, other = self.draws(np.float32(p), np.float32(q))
    some = np.flatnonzero((p > 0) & (q > 0))
    expected = sum(
        1 / np.sum(np.maximum(p / p[x], q / q[x])) for x in some
    )
    found = np.mean(one == other)
    assert abs(found - expected) < 4 * math.sqrt(0.25 / self.COUNT)
    distance = 0.5 * np.sum(np.abs(p - q))
    assert (1 - distance) / (1 + distance) <= expected <= 1 - distance

  def test_probabilities_that_are_tiny(self):
    """One token in a million is drawn as often as it should be."""
    p = np.float32([1 - 1e-4, 1e-4])
    (drawn,) = self.draws(p)
    assert abs(np.sum(drawn) - 10) < 5 * math.sqrt(10)

  @pytest.mark.parametrize('value', [0.0, np.nan])
  def test_no_positive_probability(self, value):
    (drawn,) = self.draws(np.full(self.VOCAB, value, np.float32))
    assert np.all((drawn >= 0) & (drawn < self.VOCAB))


class TestCheck:

  def test_coupled_rules_pass(self):
    for rule in RULES:
      description.check(rule)

  def test_a_coupled_rule_does_not_accept_by_chance(self):

    class Both(coupled.Coupled):

      def __call__(self, scores, draft, accept_uniforms):
        return verification.verify(scores.probs, draft, accept_uniforms)

    with pytest.raises(ValueError, match='rules'):
      description.check(Both())

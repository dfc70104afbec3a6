# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the distribution of outputs, by enumeration and by mutants."""

import functools
import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.rules import lenience
from speculative_t5x.rules import typical_acceptance
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import verification
from speculative_t5x.testing import table_model
from tests import combinations
from tests import enumeration
from tests import tabular

VOCAB = 3
TOLERANCE = 1e-6

RULES = combinations.RULES
LOSSY_RULES = lenience.make_rule(0.3), typical_acceptance.make_rule()

FACTORS = {
    'gamma': (1, 2, 3),
    'temperature': (0.0, 0.7, 1.0),
    'topk': (0, 2),
    'cut': (('topp', 0.0), ('topp', 0.8), ('minp', 0.4), ('typicalp', 0.7)),
    'draft_temperature': (None, 0.0, 1.6),
    'draft_width': (3, 2, 5),
    'rule': tuple(RULES),
}
# Of the full product of the rules beside the paper's.
OF_RULES = {k: v for k, v in FACTORS.items() if k not in ('topk', 'topp')}
OF_TOKENWISE = FACTORS | {'rule': ('tokenwise',)}


def make_case(
    gamma=3,
    temperature=1.0,
    topk=0,
    cut=('topp', 0.0),
    draft_temperature=None,
    draft_width=VOCAB,
    limits=(5, 4, 2, 1),
) -> enumeration.Case:
  """Returns a batch of examples with different tables and limits."""
  target = table_model.random_logits(1, len(limits), VOCAB)
  draft = table_model.random_logits(2, len(limits), VOCAB, draft_width)
  # A draft that resembles the target, so that all of accepting, rejecting and
  # accepting everything have weight.
  common = min(draft_width, VOCAB)
  draft[..., :common] = 0.5 * draft[..., :common] + target[..., :common]
  own = temperature if draft_temperature is None else draft_temperature
  return enumeration.Case(
      target,
      draft,
      limits,
      gamma,
      sampling_lib.make_sampling(temperature, topk, **dict([cut])),
      sampling_lib.make_sampling(own, topk, **dict([cut])),
  )


def make_production(
    case: enumeration.Case, rule=verification.TOKENWISE
) -> enumeration.Production:
  return enumeration.Production(
      case.gamma,
      case.vocab_size,
      case.draft_tables.shape[-1],
      max(case.limits),
      rule=rule,
  )


@functools.cache
def unmutated_production(*sizes: int, rule: str) -> enumeration.Production:
  return enumeration.Production(*sizes, rule=RULES[rule])


def distribution_error(
    case: enumeration.Case, production: enumeration.Production
) -> tuple[float, float, int]:
  """Returns the largest errors of probabilities and scores, and the paths."""
  distributions, scores, num_paths = enumeration.joint_distributions(
      case, production
  )
  target = enumeration.standardized(
      case.target_tables, case.sampling, case.vocab_size
  )
  error = score_error = 0.0
  for table, limit, distribution, score in zip(
      target, case.limits, distributions, scores
  ):
    exact = tabular.exact_distribution(table, limit)
    for output in exact.keys() | distribution.keys():
      error = max(
          error, abs(exact.get(output, 0.0) - distribution.get(output, 0.0))
      )
    for output, value in score.items():
      if exact.get(output, 0.0) > 0:
        difference = abs(value - math.log(exact[output]))
        score_error = max(score_error, difference)
  return error, score_error, num_paths


def pairwise() -> list[dict]:
  """Returns few settings with each pair of values of any two factors."""
  names = list(FACTORS)
  products = [
      dict(zip(names, values))
      for values in itertools.product(*FACTORS.values())
  ]
  pairs = lambda s: {
      ((a, s[a]), (b, s[b])) for a, b in itertools.combinations(names, 2)
  }
  missing = set().union(*map(pairs, products))
  chosen = []
  while missing:
    best = max(products, key=lambda s: len(pairs(s) & missing))
    chosen.append(best)
    missing -= pairs(best)
  return chosen


def _label(setting: dict) -> str:
  return '-'.join(str(value) for value in setting.values())


@pytest.mark.usefixtures('float64')
class TestEnumeratedDistribution:
  """Tier 3, exact: every path of the production step, weighted."""

  @pytest.mark.parametrize('setting', pairwise(), ids=_label)
  def test_each_pair_of_values(self, setting):
    self._check(dict(setting))

  @pytest.mark.exhaustive
  @pytest.mark.parametrize(
      'values', list(itertools.product(*OF_TOKENWISE.values())), ids=str
  )
  def test_full_product(self, values):
    self._check(dict(zip(OF_TOKENWISE, values)))

  @pytest.mark.exhaustive
  @pytest.mark.parametrize(
      'values', list(itertools.product(*OF_RULES.values())), ids=str
  )
  def test_full_product_of_rules(self, values):
    self._check(dict(zip(OF_RULES, values)))

  def _check(self, setting):
    rule = setting.pop('rule')
    case = make_case(**setting)
    production = unmutated_production(
        case.gamma, VOCAB, setting['draft_width'], max(case.limits), rule=rule
    )
    error, score_error, num_paths = distribution_error(case, production)
    print(f'{num_paths} paths, errors {error:.1e} and {score_error:.1e}')
    assert error < TOLERANCE
    assert score_error < 1e-5

  @pytest.mark.parametrize('rule', LOSSY_RULES, ids=lambda rule: rule.name)
  def test_a_rule_that_is_not_lossless_fails(self, rule):
    case = make_case(gamma=2, limits=(3,))
    error, _, _ = distribution_error(case, make_production(case, rule))
    print(f'{rule.name}: off by {error:.3f}')
    assert error > 1e-2

  def test_number_of_paths_is_complete(self):
    """One token has 3 draft tokens, 2 tests and at most 3 draws."""
    case = make_case(gamma=1, limits=(1,))
    _, _, num_paths = distribution_error(case, make_production(case))
    target = enumeration.standardized(case.target_tables, case.sampling, VOCAB)
    draft = enumeration.standardized(
        case.draft_tables, case.draft_sampling, VOCAB
    )
    p, q = target[0, 0, 0], draft[0, 0, 0]
    residual = np.maximum(p - q, 0)
    residual_cuts = set(np.round(np.cumsum(residual) / residual.sum(), 12))
    cuts = set(np.round(np.cumsum(p), 12))
    draws_after_rejection = len((residual_cuts | cuts) - {0.0})
    # An accepted draft token is followed by the draws of a bonus token.
    draws_after_keeping = 3
    num_rejectable = int(np.sum(q > p))
    expected = 3 * draws_after_keeping + num_rejectable * draws_after_rejection
    print(f'{num_paths} paths')
    assert num_paths == expected


def _mutant_residual(target_probs, draft_probs):
  return target_probs


def _shared_uniforms(original):
  def accept(target_probs, draft, uniforms):
    shared = jnp.broadcast_to(uniforms[:, :1], uniforms.shape)
    return original(target_probs, draft, shared)

  return accept


def _shifted_draft_probs(original):
  def accept(target_probs, draft, uniforms):
    shifted = draft.replace(probs=jnp.roll(draft.probs, 1, axis=1))
    return original(target_probs, shifted, uniforms)

  return accept


def _counted_past_rejection(target_probs, draft, uniforms):
  tokens = draft.tokens[..., None]
  take = lambda probs: jnp.take_along_axis(probs, tokens, axis=-1)[..., 0]
  is_kept = verification.acceptance(
      take(target_probs[:, :-1]), take(draft.probs), uniforms
  )
  index = jnp.arange(is_kept.shape[1])
  return jnp.sum(is_kept & (index < draft.lengths[:, None]), axis=1)


def _bonus_from_draft(original):
  def verify(target_probs, draft, accept_uniforms):
    probs = target_probs.at[:, -1].set(draft.probs[:, -1])
    return original(probs, draft, accept_uniforms)

  return verify


def _drafts_on(setup, state, progress, logits, tokens):
  return jnp.ones(tokens.shape, bool), progress


def _end_ignored(draft, end, vocab_size):
  return draft.lengths


def _limit_ignored(setup, batch, state):
  return jnp.full_like(state.num_tokens, setup.drafter.max_draft_tokens)


def _never_cut_short(original):
  """Patches the first of two calls per step, about the accepted tokens."""
  calls = itertools.count()

  def is_last(tokens, count, remaining, end):
    found = original(tokens, count, remaining, end)
    return jnp.zeros_like(found) if next(calls) % 2 == 0 else found

  return is_last


def _last_token_off_by_one(original):
  def inputs(sequences, first_tokens, index, block):
    return original(sequences, first_tokens, jnp.maximum(index - 1, 0), block)

  return inputs


MUTANTS = {
    'residual is p': (verification, 'residual', lambda _: _mutant_residual),
    'one uniform for all tests': (
        verification,
        '_accepted_prefix',
        _shared_uniforms,
    ),
    'draft probabilities one off': (
        verification,
        '_accepted_prefix',
        _shifted_draft_probs,
    ),
    'accepts past a rejection': (
        verification,
        '_accepted_prefix',
        lambda _: _counted_past_rejection,
    ),
    'bonus token from the draft': (verification, 'verify', _bonus_from_draft),
    'the limit does not cut': (
        step_lib,
        '_num_wanted',
        lambda _: _limit_ignored,
    ),
    'a token is drawn after the end': (
        step_lib,
        '_is_last',
        _never_cut_short,
    ),
    'last token one off': (state_lib, 'decoder_inputs', _last_token_off_by_one),
}


@pytest.mark.usefixtures('float64')
class TestMutantsFail:
  """Tier 4: every wrong rule, patched into production, must be detected."""

  def test_production_passes(self):
    case = make_case(gamma=2, limits=(4, 1))
    error, _, _ = distribution_error(case, make_production(case))
    assert error < TOLERANCE

  @pytest.mark.parametrize('name', MUTANTS)
  def test_enumeration_detects(self, name, monkeypatch):
    module, attribute, mutate = MUTANTS[name]
    monkeypatch.setattr(module, attribute, mutate(getattr(module, attribute)))
    case = make_case(gamma=2, limits=(4, 1))
    error, _, _ = distribution_error(case, make_production(case))
    print(f'{name}: off by {error:.3f}')
    assert error > 1e-3

  def test_enumeration_detects_draft_tokens_past_the_end(self, monkeypatch):
    """A drafter may draft on after the end, and the step cuts the draft."""
    case = make_case(gamma=2, limits=(4, 1))
    monkeypatch.setattr(step_lib, '_continues', _drafts_on)
    error, _, _ = distribution_error(case, make_production(case))
    assert error < TOLERANCE
    monkeypatch.setattr(step_lib, '_count_draft_tokens', _end_ignored)
    error, _, _ = distribution_error(case, make_production(case))
    assert error > 1e-3

  def test_enumeration_detects_misreported_probabilities(self, monkeypatch):
    """Draft tokens are drawn at one temperature and reported at another."""
    original = draft_model.DraftModel.propose

    def propose(self, *args):
      draft, state, cache = original(self, *args)
      flatter = jnp.sqrt(draft.probs)
      flatter = flatter / jnp.sum(flatter, axis=-1, keepdims=True)
      return draft.replace(probs=flatter), state, cache

    monkeypatch.setattr(draft_model.DraftModel, 'propose', propose)
    case = make_case(gamma=2, limits=(4, 1))
    error, _, _ = distribution_error(case, make_production(case))
    assert error > 1e-3


GAMMA, LENGTH, NUM_ROWS = 2, 4, 200_000


def loop_outputs(seed: int, num_rows: int, rule):
  """Returns outputs of the jitted loop on independent rows, [rows, length]."""
  case = make_case(gamma=GAMMA, limits=(LENGTH,))
  drafter = draft_model.DraftModel(table_model.Model(VOCAB), GAMMA, VOCAB)

  def decode(tables, draft_tables, example_ids):
    setup = state_lib.Setup(
        table_model.Model(VOCAB), tables, case.sampling,
        drafter, draft_tables, case.draft_sampling, rule,
    )  # fmt: skip
    state, *_ = loop.decode(
        setup,
        jnp.zeros((num_rows,), jnp.int32),
        state_lib.row_keys(jnp.int32(seed), example_ids),
        jnp.full((num_rows,), LENGTH, jnp.int32),
        length=LENGTH,
    )
    return state

  state = jax.jit(decode)(
      jnp.asarray(case.target_tables, jnp.float32),
      jnp.asarray(case.draft_tables, jnp.float32),
      jnp.arange(num_rows, dtype=jnp.int32),
  )
  return case, np.asarray(state.sequences), np.asarray(state.num_tokens)


def total_variation(
    seed: int,
    num_rows: int = NUM_ROWS,
    rule=verification.TOKENWISE,
) -> tuple[float, float]:
  """Returns the distance of empirical and exact distribution, and its bound.

  With K outputs and N rows, a correct loop exceeds t = sqrt((K ln 2 +
  ln 10^6) / 2N) with probability at most 10^-6, and one whose distribution is
  2t away stays below t with probability at most 10^-6.
  """
  case, sequences, num_tokens = loop_outputs(seed, num_rows, rule)
  table = enumeration.standardized(case.target_tables, case.sampling, VOCAB)[0]
  exact = tabular.exact_distribution(table, LENGTH)
  return distance(exact, sequences, num_tokens)


def distance(
    exact: dict[tuple[int, ...], float],
    sequences: np.ndarray,
    num_tokens: np.ndarray,
) -> tuple[float, float]:
  """Returns the total variation distance of samples, and its bound.

  Args:
    exact: the probability of every possible output.
    sequences: [rows, length], of tokens below VOCAB.
    num_tokens: [rows].
  """
  length = sequences.shape[1]
  number = lambda tokens, n: tokens @ (VOCAB ** np.arange(length)) * 10 + n
  padded = np.array([[*o, *[0] * (length - len(o))] for o in exact])
  codes = number(padded, np.array([len(o) for o in exact]))
  found, counts = np.unique(number(sequences, num_tokens), return_counts=True)
  assert set(found) <= set(codes)
  share = dict(zip(found, counts / len(sequences)))
  distance = 0.5 * sum(
      abs(share.get(code, 0.0) - p) for code, p in zip(codes, exact.values())
  )
  bound = math.sqrt(
      (len(exact) * math.log(2) + math.log(1e6)) / (2 * len(sequences))
  )
  return distance, bound


def keyed_by_position(step):
  """Returns a step with uniforms of positions, for drafting and drawing."""

  def by_position(setup, batch, state, uniforms):
    of = lambda key, at: jax.random.bits(
        jax.random.fold_in(key, at), (2, 2), jnp.uint32
    )
    at = state.num_tokens[:, None] + jnp.arange(GAMMA)
    drawn = jax.vmap(jax.vmap(of, (None, 0)))(batch.keys, at)
    uniforms = [drawn[:, :, 0], drawn[:, :, 1], drawn[:, :1, 0]]
    return step(setup, batch, state, jnp.concatenate(uniforms, axis=1))

  return by_position


@pytest.mark.usefixtures('optimized')
class TestJittedDistribution:
  """Tier 3, sampled: the compiled loop with its own uniforms."""

  @pytest.mark.parametrize('rule', ['tokenwise', 'block'])
  def test_joint_distribution_within_the_bound(self, rule):
    distance, bound = total_variation(seed=0, rule=RULES[rule])
    print(f'total variation {distance:.4f}, bound {bound:.4f}')
    assert 2 * bound <= 0.02
    assert distance <= bound

  # Enumeration detects the other lossy rule.
  @pytest.mark.parametrize(
      'rule',
      [
          LOSSY_RULES[0],
          pytest.param(LOSSY_RULES[1], marks=pytest.mark.exhaustive),
      ],
      ids=lambda rule: rule.name,
  )
  def test_detects_a_rule_that_is_not_lossless(self, rule):
    distance, bound = total_variation(seed=0, num_rows=NUM_ROWS // 4, rule=rule)
    print(f'total variation {distance:.4f}, bound {bound:.4f}')
    assert distance > 2 * bound

  @pytest.mark.parametrize(
      'rule',
      ['tokenwise', pytest.param('block', marks=pytest.mark.exhaustive)],
  )
  def test_detects_uniforms_keyed_by_position(self, rule, monkeypatch):
    """After a rejection, a position needs new uniforms."""
    monkeypatch.setattr(step_lib, 'step', keyed_by_position(step_lib.step))
    distance, bound = total_variation(
        seed=0, num_rows=NUM_ROWS // 4, rule=RULES[rule]
    )
    print(f'total variation {distance:.4f}, bound {bound:.4f}')
    assert distance > 2 * bound

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of standardized sampling, against plain sorting in numpy."""


import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.speculation import sampling

VOCABS = (3, 130, 32128)
RULES = [
    dict(temperature=1.0),
    dict(temperature=0.3),
    dict(temperature=2.5, top_k=2),
    dict(temperature=0.7, top_k=40),
    dict(temperature=1.0, top_p=0.85),
    dict(temperature=1.7, top_p=0.31),
    dict(temperature=0.8, top_k=7, top_p=0.6),
    dict(temperature=1.3, top_k=50, top_p=0.95),
    dict(temperature=1.5, min_p=0.2),
    dict(temperature=1.0, typical_p=0.3),
    dict(temperature=2.0, top_k=100, typical_p=0.95),
    dict(temperature=1.2, top_k=20, top_p=0.9, min_p=0.05, typical_p=0.8),
]

# Weights, rules, and the distribution.
BY_HAND = {
    'ties at the top-k threshold are kept': (
        [1, 4, 1, 0.5, 1], dict(top_k=2), [1 / 7, 4 / 7, 1 / 7, 0, 1 / 7],
    ),
    'top-k beyond the vocabulary keeps all': (
        [0.2, 0.5, 0.3], dict(top_k=10**9), [0.2, 0.5, 0.3],
    ),
    'ties at the top-p threshold are kept': (
        [0.2, 0.4, 0.2, 0.2], dict(top_p=0.5), [0.2, 0.4, 0.2, 0.2],
    ),
    'a mass of exactly top-p is enough': (
        [0.5, 0.25, 0.25], dict(top_p=0.5), [1, 0, 0],
    ),
    # At temperature 2 the first token alone has less than 0.6.
    'temperature comes before top-p': (
        [0.64, 0.36, 0], dict(temperature=2.0, top_p=0.6), [4 / 7, 3 / 7, 0],
    ),
    # Of two tokens the first has 0.57, and of all three only 0.4.
    'top-k comes before top-p': (
        [0.4, 0.3, 0.299], dict(top_k=2, top_p=0.5), [1, 0, 0],
    ),
    'min-p is relative to the likeliest': (
        [0.4, 0.2, 0.1, 0.3], dict(min_p=0.6), [4 / 7, 0, 0, 3 / 7],
    ),
    'min-p of 1 keeps the likeliest': (
        [1, 3, 3, 2.9], dict(min_p=1.0), [0, 0.5, 0.5, 0],
    ),
    # The entropy is 1.16; -log 0.3 is 1.20, and -log 0.5 is 0.69.
    'typical sampling may drop the likeliest': (
        [0.5, 0.3, 0.1, 0.1], dict(typical_p=0.25), [0, 1, 0, 0],
    ),
    'typical sampling keeps ties': (
        [0.2] * 5, dict(typical_p=0.1), [0.2] * 5,
    ),
    # Of the two tokens that min-p leaves, the first alone would have 0.53.
    'top-p comes before min-p': (
        [0.4, 0.35, 0.15, 0.1], dict(top_p=0.5, min_p=0.8),
        [8 / 15, 7 / 15, 0, 0],
    ),
    # The first token is more typical of two, the second of all four.
    'min-p comes before typical sampling': (
        [0.4, 0.35, 0.15, 0.1], dict(min_p=0.8, typical_p=0.5), [1, 0, 0, 0],
    ),
}  # fmt: skip

jit_standardize = jax.jit(sampling.standardize)
draw = jax.jit(sampling.draw)

# Rows whose mass comes this close to top_p or typical_p, or a token's share to
# min_p, or whose tokens are this close in distance to the entropy at the edge
# of typical_p may be rounded to either side.
MARGIN = 1e-5


def one_hot(token, vocab):
  return (np.arange(vocab) == token).astype(np.float32)


def softmax(logits):
  logits = logits.astype(np.float64)
  weights = np.exp(logits - logits.max(-1, keepdims=True))
  return weights / weights.sum(-1, keepdims=True)


def reference(
    logits, temperature=1.0, top_k=0, top_p=0.0, min_p=0.0, typical_p=0.0
):
  """Return a row's distribution, and whether it is clear of all edges."""
  if temperature <= 1e-4:
    return one_hot(np.argmax(logits), logits.size), True
  logits = logits / logits.dtype.type(temperature)
  if top_k:
    kth = np.sort(logits)[::-1][min(top_k, logits.size) - 1]
    logits = np.where(logits < kth, -np.inf, logits)
  is_clear = True
  if top_p:
    probs = softmax(logits)
    descending = np.sort(probs)[::-1]
    mass = np.cumsum(descending)
    is_clear = np.min(np.abs(mass - top_p)) > MARGIN
    last = min(np.searchsorted(mass, top_p), logits.size - 1)
    logits = np.where(probs < descending[last], -np.inf, logits)
  if min_p:
    probs = softmax(logits)
    share = probs / probs.max()
    is_clear &= np.min(np.abs(share - min_p)) > MARGIN
    logits = np.where(share < min_p, -np.inf, logits)
  if typical_p:
    probs = softmax(logits)
    information = -np.log(np.where(probs > 0, probs, 1))
    entropy = np.sum(probs * information)
    distance = np.where(probs > 0, np.abs(information - entropy), np.inf)
    order = np.argsort(distance, kind='stable')
    mass = np.cumsum(probs[order])
    is_clear &= np.min(np.abs(mass - typical_p)) > MARGIN
    last = min(np.searchsorted(mass, typical_p), logits.size - 1)
    edge = distance[order[last]]
    gaps = np.abs(distance - edge)[information != information[order[last]]]
    is_clear &= np.min(gaps, initial=np.inf) > MARGIN
    # Tokens of one probability are one distance, whatever the rounding.
    tied = information == information[order[last]]
    logits = np.where((distance <= edge) | tied, logits, -np.inf)
  return softmax(logits), is_clear


def random_logits(seed, rows, vocab, dtype=np.float32):
  logits = np.random.default_rng(seed).normal(0, 3, (rows, vocab))
  return logits.astype(dtype)


def standardize(logits, **rules):
  return np.asarray(
      jit_standardize(jnp.asarray(logits), sampling.Sampling(**rules))
  )


def assert_matches(logits, rules, atol=2e-6):
  found = standardize(logits, **rules)
  num_clear = 0
  for row, probs in zip(np.asarray(logits), found):
    expected, is_clear = reference(row, **rules)
    if is_clear:
      num_clear += 1
      np.testing.assert_array_equal(probs > 0, expected > 0)
      np.testing.assert_allclose(probs, expected, rtol=1e-4, atol=atol)
  assert num_clear >= 0.7 * len(logits)


@pytest.mark.usefixtures('strict_types')
class TestStandardize:

  @pytest.mark.parametrize('rules', RULES, ids=str)
  def test_random_logits(self, rules):
    for vocab in VOCABS:
      assert_matches(random_logits(0, 20 if vocab < 1000 else 6, vocab), rules)
    assert_matches(np.round(random_logits(1, 20, 130)), rules)  # many ties

  @pytest.mark.parametrize('rules', RULES, ids=str)
  def test_tokens_that_cannot_occur(self, rules):
    logits = random_logits(2, 20, 130)
    logits[np.random.default_rng(3).random(logits.shape) < 0.5] = -np.inf
    logits[:, 0] = -np.inf
    found = standardize(logits, **rules)
    assert not np.any(found[~np.isfinite(logits)])
    assert_matches(logits, rules)

  @pytest.mark.parametrize('vocab', VOCABS)
  @pytest.mark.parametrize('value', [np.nan, -np.nan, np.inf], ids=str)
  @pytest.mark.parametrize('count', [1, 2])
  def test_lost_logits_leave_no_probability(self, vocab, value, count):
    """XLA's max passes over NaN where vocabularies are large."""
    logits = random_logits(6, 20 if vocab < 1000 else 6, vocab)
    rows = np.arange(len(logits))
    for i in range(count):
      logits[rows, (rows + i) * 7919 % vocab] = value
    for rules in [dict(temperature=0.0), *RULES]:
      assert not np.any(standardize(logits, **rules) > 0), rules

  def test_no_token_that_can_occur(self):
    logits = np.full((2, 130), -np.inf, np.float32)
    for rules in [dict(temperature=0.0), *RULES]:
      assert not np.any(standardize(logits, **rules) > 0), rules

  @pytest.mark.parametrize('kinds', [RULES, [dict(temperature=0.0), *RULES]])
  def test_each_row_has_its_own_sampling(self, kinds):
    """It is what the row has alone, whatever the others sample from."""
    logits = random_logits(8, 3 * len(kinds), 130).reshape(len(kinds), 3, 130)
    drawn_from = sampling.stack([sampling.Sampling(**x) for x in kinds])
    found = jit_standardize(jnp.asarray(logits), drawn_from)
    for row, rules in enumerate(kinds):
      expected = standardize(logits[row], **rules)
      np.testing.assert_array_equal(found[row] > 0, expected > 0)
      np.testing.assert_allclose(found[row], expected, rtol=1e-4, atol=2e-6)

  @pytest.mark.parametrize('name', BY_HAND)
  def test_by_hand(self, name):
    probs, rules, expected = BY_HAND[name]
    found = standardize(np.log(np.array([probs], np.float32)), **rules)
    np.testing.assert_allclose(found, [expected], rtol=1e-6)

  @pytest.mark.parametrize('zeros', [(0.0, -0.0), (-0.0, 0.0)])
  def test_zero_ties_with_minus_zero(self, zeros):
    logits = np.array([[*zeros, -1.0, -2.0]], np.float32)
    expected = [[0.5, 0.5, 0, 0]]
    np.testing.assert_array_equal(standardize(logits, top_k=1), expected)
    np.testing.assert_array_equal(standardize(logits, top_p=0.1), expected)
    greedy = standardize(logits, temperature=0.0)
    np.testing.assert_array_equal(greedy, [[1, 0, 0, 0]])

  @pytest.mark.parametrize(
      'rules', [dict(top_p=1.0), dict(min_p=0), dict(typical_p=1)], ids=str
  )
  @pytest.mark.parametrize('vocab', VOCABS)
  def test_all_of_the_mass_is_kept_exactly(self, vocab, rules):
    logits = random_logits(5, 20 if vocab < 1000 else 6, vocab) * 8
    np.testing.assert_array_equal(
        standardize(logits, **rules), standardize(logits)
    )

  @pytest.mark.parametrize('vocab', VOCABS)
  @pytest.mark.parametrize('temperature', [0.0, 1e-4])
  def test_argmax_is_one_hot_of_the_first_largest(self, vocab, temperature):
    logits = np.round(random_logits(7, 6, vocab))  # many ties
    found = standardize(logits, temperature=temperature, top_k=3, top_p=0.9)
    for row, probs in zip(logits, found):
      np.testing.assert_array_equal(probs, one_hot(np.argmax(row), vocab))


@pytest.mark.parametrize('vocab', VOCABS)
@pytest.mark.parametrize('kinds', [[dict(temperature=0.0)], RULES], ids=len)
def test_draws_what_is_drawn_from_the_distributions(vocab, kinds):
  """Also where nothing is drawn, and where no token can be."""
  logits = np.round(random_logits(9, 4 * len(kinds), vocab))
  logits[0, 1], logits[1, 2], logits[2] = np.nan, np.inf, -np.inf
  drawn_from = sampling.stack([sampling.Sampling(**x) for x in kinds * 4])
  uniforms = np.random.default_rng(0).integers(2**32, size=(len(logits), 2))
  draw = lambda probs: sampling.draw(probs, jnp.asarray(uniforms, jnp.uint32))
  probs, tokens = jax.jit(
      lambda x: sampling.standardize_and_draw(x, drawn_from, draw)
  )(jnp.asarray(logits))
  expected = jit_standardize(jnp.asarray(logits), drawn_from)
  np.testing.assert_array_equal(probs, expected)
  np.testing.assert_array_equal(tokens, jax.jit(draw)(expected))


@pytest.mark.parametrize('vocab', VOCABS)
def test_argmax_of_a_gpu_is_that_of_others(vocab):
  logits = np.round(random_logits(9, 8, vocab))
  logits[0, 1], logits[1, 2], logits[2] = np.nan, np.inf, -np.inf
  logits[3, 1:], logits[4, :3] = -np.inf, (np.nan, np.inf, -np.inf)
  np.testing.assert_array_equal(
      jax.jit(sampling.argmax_in_one_pass)(logits),
      jax.jit(sampling.argmax_in_two_passes)(logits),
  )


class TestDtypes:

  @pytest.mark.usefixtures('strict_types')
  @pytest.mark.parametrize('rules', RULES + [dict(temperature=0.0)], ids=str)
  def test_bfloat16_computes_in_float32(self, rules):
    logits = jnp.asarray(random_logits(8, 4, 130), jnp.bfloat16)
    found = standardize(logits, **rules)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(
        found, standardize(logits.astype(jnp.float32), **rules)
    )

  @pytest.mark.usefixtures('strict_types', 'float64')
  @pytest.mark.parametrize('rules', RULES + [dict(temperature=0.0)], ids=str)
  def test_float64_stays(self, rules):
    # The settings themselves are float32.
    rules = {
        name: float(np.float32(x)) if name != 'top_k' else x
        for name, x in rules.items()
    }
    logits = random_logits(9, 20, 130, np.float64)
    found = standardize(logits, **rules)
    assert found.dtype == np.float64
    for row, probs in zip(logits, found):
      expected, _ = reference(row, **rules)
      np.testing.assert_allclose(probs, expected, rtol=1e-12, atol=1e-15)


class TestSampling:

  @pytest.mark.parametrize(
      ('name', 'value'),
      [
          ('temperature', -0.1),
          ('temperature', float('inf')),
          ('top_k', -1),
          ('top_p', 1.01),
          ('top_p', 1e-40),
          ('min_p', float('nan')),
          ('typical_p', -0.1),
      ],
  )
  def test_out_of_range(self, name, value):
    with pytest.raises(ValueError, match=name):
      sampling.Sampling(**{name: value})


class TestPairs:

  def test_samplings_of_drafters(self):
    hot, cold = sampling.Sampling(1.0), sampling.Sampling(0.0)
    pairs = lambda *args: list(map(tuple, sampling.pairs(*args)))
    assert pairs((hot, cold), ()) == [(hot, hot), (cold, cold)]
    assert pairs((hot, cold), (cold,)) == [(hot, cold), (cold, cold)]
    assert pairs((hot, cold), (cold, hot)) == [(hot, cold), (cold, hot)]
    assert pairs((hot, cold, hot), ()) == [(hot, hot), (cold, cold)]
    with pytest.raises(ValueError, match='2 draft temperatures for 3'):
      sampling.pairs((hot, cold, hot), (hot, cold))


LARGEST_WORD = 2**32 - 1


def words_of(weights, tokens) -> np.ndarray:
  """Return uniforms in the middle of the tokens' intervals, [tokens, 2]."""
  weights = weights.astype(np.float64)
  index = np.arange(weights.size) // sampling.BLOCK
  of_block = np.bincount(index, weights)
  middle = lambda weights: (np.cumsum(weights) - weights / 2) / weights.sum()
  within = [middle(weights[index == b]) for b in range(of_block.size)]
  pairs = np.stack([middle(of_block)[index], np.concatenate(within)], axis=-1)
  found = np.floor(pairs[tokens] * 2**32)
  return np.minimum(found, LARGEST_WORD).astype(np.uint32)


def sparse_weights() -> dict[str, np.ndarray]:
  """Return rows by name, with zeros where rounding could matter."""
  rng = np.random.default_rng(11)
  sparse = lambda n: (rng.random(n) * (rng.random(n) < 0.3)).astype(np.float32)
  only = lambda n, *at: np.isin(np.arange(n), at).astype(np.float32)
  tiny = sparse(300)
  tiny[[0, 128, 255]] = 1e-45
  tiny[[1, 129, 299]] = 1e-38
  return {
      'sparse': sparse(300),
      'sparse, one block': sparse(128),
      'sparse, large': sparse(32128),
      'zeros at both ends': np.pad(sparse(100) + 1e-3, 140),
      'first alone': only(300, 0),
      'last alone': only(300, 299),
      'ends of blocks': only(400, 127, 128, 255, 399),
      'one of three': only(3, 1),
      'tiny masses': tiny,
      'tiny beside large': only(300, 130) + 1e-38 * only(300, 131, 290),
      'large before tiny': only(300, 5) + 1e-9 * only(300, 127, 200),
      'tiny before large': only(300, 290) + 1e-9 * only(300, 3, 127, 200),
      'subnormals beside one': only(300, 200) + np.float32(1e-45),
      'unnormalised': 1e30 * sparse(300),
      'unnormalised, small': 1e-30 * sparse(300),
  }


@pytest.mark.usefixtures('strict_types')
@pytest.mark.parametrize('name', sparse_weights())
def test_never_draws_a_token_of_no_weight(name):
  weights = sparse_weights()[name]
  # Near boundaries, anywhere, and the ends.
  near = words_of(weights, np.flatnonzero(weights)).reshape(-1).astype(int)
  steps = [0, 1, -1, 2**23, -(2**23)]
  rng = np.random.default_rng(16)
  candidates = np.concatenate(
      [(near[:, None] + steps).reshape(-1), rng.integers(0, 2**32, 500)]
  )
  candidates = candidates.clip(0, LARGEST_WORD)
  num_rows = 120 if weights.size > 1000 else 900
  uniforms = rng.choice(candidates, (num_rows, 2))
  ends = [[a, b] for a in (0, LARGEST_WORD) for b in (0, LARGEST_WORD)]
  uniforms = np.concatenate([uniforms, ends]).astype(np.uint32)
  rows = np.tile(weights, (len(uniforms), 1))
  with jax.debug_nans(True):
    found = np.asarray(draw(jnp.asarray(rows), jnp.asarray(uniforms)))
  assert np.all((found >= 0) & (found < weights.size))
  assert np.all(weights[found] > 0)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of all rules, alone and as a setting of every way to decode.

`distribution_test.py` has them in the step.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import testing
from speculative_t5x.jobs import evaluation
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import greedy
from speculative_t5x.rules import block
from speculative_t5x.rules import coupled
from speculative_t5x.rules import exact_match
from speculative_t5x.rules import lenience
from speculative_t5x.rules import rejection_sampling
from speculative_t5x.rules import typical_acceptance
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import noise
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from speculative_t5x.testing import table_pairs
from tests import exhaustive
from tests import repeat_last
from tests import tiny
from tests import workloads

EXACT = (
    verification.TOKENWISE,
    block.BlockVerification(),
    exact_match.ExactMatch(),
    rejection_sampling.RejectionSampling(),
)
LOSSY = lenience.make_rule(0.5), typical_acceptance.make_rule()
by_name = lambda rule: rule.name


class TestEveryRule:

  @pytest.mark.parametrize(
      ('gamma', 'vocab_size'),
      exhaustive.all_but(
          [(0, 3), (2, 3)],
          [(0, 3), (1, 3), (2, 3), (3, 3), (4, 3), (3, 5), (2, 9)],
      ),
  )
  @pytest.mark.parametrize('rule', EXACT, ids=by_name)
  def test_keeps_the_target_s_distribution(self, rule, gamma, vocab_size):
    assert rule.is_lossless
    testing.check_rule(
        rule, gamma=gamma, vocab_size=vocab_size, tolerance=1e-12
    )

  @pytest.mark.parametrize('kind', table_pairs.KINDS)
  @pytest.mark.parametrize('rule', LOSSY, ids=by_name)
  def test_changes_it_if_it_is_not_lossless(self, rule, kind):
    assert not rule.is_lossless
    tables = tables_of(range(6), 2, kind=kind)
    assert max(testing.distances(rule, tables)) > 0.01

  @pytest.mark.parametrize('rule', [*EXACT, *LOSSY], ids=by_name)
  def test_ignores_what_follows_a_draft(self, rule):
    """Narrower arrays and other values past the drafts decide the same."""
    widest, rows = 4, 64
    scores, draft, uniforms = random_arguments(rows, widest)
    decide = jax.jit(lambda *args: rule(*args))
    whole = decide(scores, draft, uniforms)
    draft, uniforms = jax.device_get((draft, uniforms))
    every = jax.device_get(scores)
    for width in range(widest + 1):
      some = np.flatnonzero(draft.lengths <= width)
      past = np.arange(width)[None] >= draft.lengths[some, None]
      cut = draft.replace(
          tokens=np.where(past, np.int32(3), draft.tokens[some, :width]),
          lengths=draft.lengths[some],
          probs=np.where(
              past[..., None], np.float32(np.nan), draft.probs[some, :width]
          ),
          is_point_mass=past ^ draft.is_point_mass[some, :width],
      )
      narrow = jax.tree.map(lambda x, some=some: x[some], every)
      narrow = narrow._replace(
          logits=narrow.logits[:, : width + 1],
          probs=narrow.probs[:, : width + 1],
      )
      found = decide(narrow, cut, uniforms[some, :width])
      np.testing.assert_array_equal(
          found.num_accepted, whole.num_accepted[some]
      )
      np.testing.assert_allclose(
          found.next_weights, whole.next_weights[some], rtol=1e-5, atol=1e-7
      )

  @pytest.mark.parametrize('rule', [*EXACT, *LOSSY], ids=by_name)
  def test_tiny_probabilities(self, rule):
    """In float32, with products that underflow and ratios that overflow."""
    rng = np.random.default_rng(0)
    tiny = lambda *shape: jnp.asarray(
        10.0 ** -rng.uniform(0, 44, shape), jnp.float32
    )
    scores, draft, uniforms = random_arguments(256, 3)
    scores = scores._replace(probs=tiny(*scores.probs.shape))
    draft = draft.replace(probs=tiny(*draft.probs.shape))
    found = rule(scores, draft, uniforms)
    assert np.all(found.num_accepted <= draft.lengths)
    assert np.all(np.isfinite(found.next_weights))
    assert np.all(np.sum(found.next_weights, axis=-1) > 0)

  @pytest.mark.parametrize(
      'rule', [x for x in EXACT if x.name != 'exact_match'], ids=by_name
  )
  def test_a_draft_ends_before_nan(self, rule):
    """A token of a q that is NaN was not drawn from it."""
    scores, draft, uniforms = random_arguments(256, 3)
    draft = draft.replace(is_point_mass=jnp.zeros((256, 3), bool))
    cut = draft.replace(lengths=jnp.minimum(draft.lengths, 1))
    nan = draft.replace(probs=draft.probs.at[:, 1].set(jnp.nan))
    found, expected = (rule(scores, each, uniforms) for each in (nan, cut))
    np.testing.assert_array_equal(found.num_accepted, expected.num_accepted)
    normalized = lambda x: x / jnp.sum(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(
        normalized(found.next_weights),
        normalized(expected.next_weights),
        rtol=1e-5,
    )

  @pytest.mark.parametrize('rule', [*EXACT, *LOSSY], ids=by_name)
  def test_never_accepts_an_impossible_token(self, rule):
    scores, draft, _ = random_arguments(64, 2)
    first = draft.tokens[:, :1, None] == jnp.arange(4)
    probs = scores.probs.at[:, :1].set(jnp.where(first, 0, scores.probs[:, :1]))
    scores = scores._replace(probs=probs, logits=jnp.log(probs))
    found = rule(scores, draft, jnp.zeros((64, 2)))
    assert not np.any(found.num_accepted)

  @pytest.mark.parametrize('rule', EXACT[:2], ids=by_name)
  def test_equal_distributions_accept_everything(self, rule):
    """With the largest uniform, whatever the rounding."""
    scores, draft, _ = random_arguments(200, 3)
    draft = draft.replace(probs=scores.probs[:, :-1], is_point_mass=None)
    largest = jnp.full((200, 3), 1 - 2.0**-24, jnp.float32)
    found = rule(scores, draft, largest)
    np.testing.assert_array_equal(found.num_accepted, draft.lengths)

  @pytest.mark.parametrize('rule', [*EXACT, *LOSSY], ids=by_name)
  def test_greedy_drafts_are_kept_up_to_the_first_other_token(self, rule):
    """At temperature 0, with equal rules for every uniform."""
    scores, draft, uniforms = random_arguments(64, 3, temperature=0.0)
    draft = contracts.Draft(draft.tokens, draft.lengths)
    best = jnp.argmax(scores.probs, axis=-1)
    expected = verification.count_prefix(draft, draft.tokens == best[:, :-1])
    if isinstance(rule, lenience.Lenience):
      rule = lenience.make_rule(1.0)
    found = rule(scores, draft, uniforms)
    np.testing.assert_array_equal(found.num_accepted, expected)
    at = jnp.take_along_axis(best, expected[:, None], axis=1)[:, 0]
    np.testing.assert_array_equal(jnp.argmax(found.next_weights, axis=-1), at)


def tables_of(seeds, gamma, vocab_size=3, **settings):
  return [
      testing.random_tables(
          seed, gamma=gamma, vocab_size=vocab_size, **settings
      )
      for seed in seeds
  ]


def random_arguments(rows, gamma, temperature=1.0):
  """Return arguments of a rule, with 4 tokens and drafts of any length."""
  rng = np.random.default_rng(1)
  drawn_from = sampling.Sampling(temperature)
  logits = jnp.asarray(rng.normal(size=(rows, gamma + 1, 4)), jnp.float32)
  probs = sampling.standardize(logits, drawn_from)
  draft = contracts.Draft(
      jnp.asarray(rng.integers(0, 4, (rows, gamma)), jnp.int32),
      jnp.asarray(rng.integers(0, gamma + 1, rows), jnp.int32),
      jax.nn.softmax(
          logits[:, :-1] + rng.normal(size=(rows, gamma, 4)).astype(np.float32)
      ),
      jnp.asarray(rng.random((rows, gamma)) < 0.3),
  )
  if not temperature:
    near = jnp.argmax(logits[:, :-1], axis=-1).astype(jnp.int32)
    is_near = rng.random((rows, gamma)) < 0.7
    draft = draft.replace(tokens=jnp.where(is_near, near, draft.tokens))
  uniforms = jnp.asarray(rng.random((rows, gamma)), jnp.float32)
  drawn_from = drawn_from.of_rows(len(logits))
  return contracts.Scores(logits, probs, drawn_from), draft, uniforms


TEXTS = ['The train from Bonn is late.', 'It will rain in Turin today.']
LENIENCE = 'lenience(lenience=0.0)'

REPEAT_LAST = drafting.Drafting(repeat_last.RepeatLast, 'repeat_last')


def run_eval(folder, rule):
  """Run the eval job at two temperatures; return its records."""
  checkpoints.save(folder / 'target', 1, tiny.params(workloads.CONFIG))
  evaluation.evaluate(
      workloads.eval_setup(
          drafter=REPEAT_LAST,
          checkpoint_path=str(folder / 'target'),
          output_dir=str(folder / 'output'),
          num_examples=4,
          batch_size=2,
          gamma=2,
          rule=rule,
          temperature=(0.0, 1.0),
      )
  )
  return workloads.read(folder / 'output/results.jsonl')


def test_eval_with_lenience(tmp_path, capsys):
  """Its greedy outputs differ, and need not equal those of plain decoding."""
  for record in run_eval(tmp_path, lenience.make_rule(0.0)):
    assert record['verification'] == {'rule': LENIENCE, 'lenience': 0.0}
    assert record['lossless'] is False
    assert record['greedy'] is None
    assert record['accepted_per_tested'] == 1
  shown = ' '.join(capsys.readouterr().out.split())
  assert f'rule {LENIENCE}, not lossless' in shown


def test_eval_compares_coupled_samples(tmp_path):
  rule = coupled.CoupledGumbel()
  for record in run_eval(tmp_path, rule):
    assert record['verification']['rule'] == rule.name
    assert run_record.Greedy(**record['greedy']) == run_record.Greedy(4, 0, 0)
  for row in workloads.read(tmp_path / 'output/predictions.jsonl'):
    assert row['speculative_tokens'] == row['baseline_tokens']


def test_eval_finds_other_samples(tmp_path, monkeypatch):
  """As of a coupled rule where plain decoding draws by another."""
  monkeypatch.setattr(noise, 'plain_rule', lambda _: verification.TOKENWISE)
  with pytest.raises(greedy.MismatchError, match='4 outputs differ'):
    run_eval(tmp_path, coupled.CoupledGumbel())


def test_option_of_decode():
  decoder = workloads.text_decoder(
      REPEAT_LAST.load(), gamma=2, matmul_precision='highest'
  )
  found = decoder.decode(TEXTS, rule=lenience.make_rule(0.0))
  assert found.statistics['accepted'] == found.statistics['tested'] > 0
  found = decoder.decode(TEXTS, rule=block.BlockVerification())
  assert found.tokens == decoder.decode_plain(TEXTS).tokens

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Beam search beside a search by hand, on tables of exact probabilities."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.testing import table_model
from tests import beams_by_hand
from tests import exhaustive
from tests import tiny_cases

EXAMPLES, LENGTH = 6, 5
PENALTIES = 0.0, 0.6, 1.0
END = table_model.SPECIAL_IDS.end


def brevity(penalty, min_log_prob=-np.inf):
  return beam_scores.BrevityPenalty(
      np.float32(penalty), np.float32(min_log_prob)
  )


class SeveralEnds(table_model.Model):
  """A table whose hypotheses end in two ways."""

  special_ids = dataclasses.replace(table_model.SPECIAL_IDS, other_ends=(3,))


@functools.cache
def program(vocab_size, beams, kind):
  model = kind(vocab_size)

  def run(params, places, limits, scoring):
    setup = beams_lib.SearchSetup(model, params, scoring)
    state = beam_loop.search(
        setup, places, limits, beams=beams, length=LENGTH
    ).state
    return beams_lib.outputs(state), beams_lib.hypotheses(
        state, scoring, kind.special_ids
    )

  return jax.jit(run)


def found_in(tables, limits, scoring, beams, kind=table_model.Model):
  """Return tokens and scores of each example: T5X's outputs, and ours."""
  params = jnp.asarray(tables, jnp.float32)
  run = program(tables.shape[-1], beams, kind)
  places = np.arange(len(tables), dtype=np.int32)
  both = jax.device_get(run(params, places, np.int32(limits), scoring))
  return [
      [
          [(tuple(row[:count]), score) for row, count, score in zip(*example)]
          for example in zip(found.tokens, found.counts, found.scores)
      ]
      for found in both
  ]


def expected_in(tables, limits, rules, beams, ends=(END,)):
  """Return the same by hand."""
  log_probs = np.asarray(jax.nn.log_softmax(jnp.asarray(tables, jnp.float32)))
  t5xs, ours = [], []
  for table, limit in zip(log_probs, limits):
    of = lambda tokens, table=table: table[table_model.place(tokens)]
    found = beams_by_hand.search(of, beams, limit, rules, ends)
    t5xs.append([each[:2] for each in beams_by_hand.t5xs(*found)])
    ours.append([each[:2] for each in beams_by_hand.filled(*found, rules)])
  return [t5xs, ours]


def check(
    tables,
    limits,
    penalty,
    beams,
    is_t5xs=True,
    kind=table_model.Model,
    min_log_prob=-np.inf,
):
  scoring = brevity(penalty, min_log_prob)
  rules = beams_by_hand.T5X(penalty, min_log_prob)
  if not is_t5xs:
    scoring = beam_scores.LengthPenalty(np.float32(penalty))
    rules = beams_by_hand.HuggingFace(penalty)
  found = found_in(tables, limits, scoring, beams, kind)
  ends = kind.special_ids.ends
  expected = expected_in(tables, limits, rules, beams, ends)
  for one, other in zip(sum(found, []), sum(expected, []), strict=True):
    assert [tokens for tokens, _ in one] == [tokens for tokens, _ in other]
    np.testing.assert_allclose(
        [score for _, score in one], [score for _, score in other], rtol=2e-6
    )


@pytest.mark.parametrize(
    ('vocab_size', 'beams'),
    exhaustive.all_but(
        [(4, 2), (5, 4)],
        [(vocab, beams) for vocab in (4, 5, 6) for beams in (1, 2, 3, 4)],
    ),
)
@pytest.mark.parametrize('penalty', PENALTIES)
def test_random_tables(vocab_size, beams, penalty):
  """Rows of unequal limits, of which some end early and some never."""
  tables = table_model.random_logits(3, EXAMPLES, vocab_size)
  tables[0, ..., END] += 3  # ends at once, at all ranks
  tables[1, ..., END] -= 30  # never: live hypotheses are returned
  check(tables, [5, 5, 4, 5, 3, 1], penalty, beams)
  check(tables[::-1], [5, 5, 2, 5, 4, 5], penalty, beams)


def test_bound():
  """T5X's is of a token more than there may be, so that it stops later."""
  bound = brevity(1.0).bound(np.float32([-14]), np.int32([2]), np.int32([8]))
  assert bound == pytest.approx(-14 / ((5 + 9) / 6))


@pytest.mark.parametrize('penalty', [0.0, 1.0, 2.0])
def test_scores_of_hugging_face(penalty):
  tables = table_model.random_logits(3, EXAMPLES, 5)
  tables[0, ..., END] += 3
  tables[1, ..., END] -= 30
  # Nearly flat: an early end of rank 4, which does not count, would win.
  tables[3] *= 0.1
  check(tables, [5, 5, 4, 5, 3, 1], penalty, 3, is_t5xs=False)


@pytest.mark.parametrize('is_t5xs', (True, False))
def test_several_ends(is_t5xs):
  """All beams live on though every one could end in two ways."""
  tables = table_model.random_logits(3, EXAMPLES, 5)
  tables[..., [END, 3]] += 2
  # Of the second tokens the likeliest four all end, and others do it better.
  tables[0] *= 0.01
  tables[0, 0, 0] += [-4, -5, 0, -5, 0]
  tables[0, 0, 1:] += np.log([0.04, 0.28, 0.2, 0.28, 0.2])
  tables[0, 1:, :, 4] += 9
  tables[0, 1:, 4, END] += 18
  check(tables, [5, 5, 4, 5, 3, 2], 1.0, 2, is_t5xs, SeveralEnds)


@pytest.mark.parametrize('beams', [2, 4])
@pytest.mark.parametrize('penalty', PENALTIES)
def test_equal_scores(beams, penalty):
  """Of tokens, hypotheses and ends: probabilities of 1/2, 1/4 and 1/8."""
  rng = np.random.default_rng(4)
  shares = [[2, 2, 4, 8, 8], [4, 4, 4, 8, 8], [2, 4, 8, 16, 16]]
  tables = rng.permuted(
      rng.choice(-np.log(shares), (EXAMPLES, 6, 6)), axis=-1
  )
  check(tables, [5, 4, 5, 3, 5, 2], penalty, beams)


def test_one_beam_is_not_greedy():
  """An end of rank two joins the ended hypotheses, as in T5X."""
  tables = np.full((1, 4, 4, 3), -20.0)
  tables[..., 2], tables[..., END] = np.log(0.6), np.log(0.4)
  ((best, _),) = found_in(tables, [5], brevity(0.6), 1)[0][0]
  assert best == (END,)


def test_no_place_past_a_limit():
  """A row that fills a batch decodes nothing, and others are as they were."""
  tables = table_model.random_logits(3, 3, 5)
  alone = found_in(tables[1:2], [5], brevity(0.6), 3)
  found = found_in(tables, [0, 5, 4], brevity(0.6), 3)
  assert [ways[1] for ways in found] == [ways[0] for ways in alone]


def test_live_hypotheses_take_the_places_left():
  """Behind what has ended, by score and with the scores of an end there."""
  tables = np.full((1, 5, 5, 6), -20.0)
  tables[..., 2:], tables[..., END] = np.log([0.4, 0.3, 0.1, 0.1]), np.log(0.1)
  t5xs, ours = (ways[0] for ways in found_in(tables, [1], brevity(1.0), 3))
  assert [tokens for tokens, _ in t5xs] == [(), (), (END,)]
  assert [tokens for tokens, _ in ours] == [(3,), (2,), (END,)]
  tables[..., END], tables[..., 3, 2:] = -20, 0
  _, ours = (ways[0] for ways in found_in(tables, [2], brevity(1.0), 2))
  assert [tokens for tokens, _ in ours] == [(2, 3), (2, 2)]
  expected = np.log([4 / 27, 16 / 81]) / (7 / 6)
  np.testing.assert_allclose([score for _, score in ours], expected, rtol=1e-6)


def test_no_hypothesis_takes_a_place_left():
  """With fewer hypotheses than beams, of the limit's ends too."""
  tables = np.full((1, 5, 5, 6), -np.inf)
  tables[..., 2:4] = 0
  for scoring in brevity(0.6), beam_scores.LengthPenalty(np.float32(2)):
    _, ours = found_in(tables, [1], scoring, 3)
    assert ours[0][0] == ((), beams_lib.NONE)
    assert [tokens for tokens, _ in ours[0][1:]] == [(3,), (2,)]


def test_min_log_prob():
  """A search ends where no live hypothesis is as likely."""
  tables = table_model.random_logits(3, EXAMPLES, 5)
  check(tables, [5] * EXAMPLES, 0.6, 3, min_log_prob=-1.0)


def check_network(case, target, scoring, rules):
  """Compare with a search that has no cache, over the whole of hypotheses."""

  @jax.jit
  def run(params, inputs, limits, scoring):
    setup = beams_lib.SearchSetup(target, params, scoring)
    return beam_loop.search(setup, inputs, limits, beams=3, length=LENGTH).state

  limits = np.full(len(case.inputs), LENGTH, np.int32)
  with jax.default_matmul_precision('highest'):
    state = run(case.params, case.inputs, limits, scoring)
  found = beams_lib.hypotheses(state, scoring, target.special_ids)
  ids = case.model.special_ids

  for index in range(len(case.inputs)):

    @functools.cache
    def log_probs(tokens, index=index):
      own = np.array(jax.nn.log_softmax(case.alone(index, [*tokens])))
      own[list(ids.forbidden)] = -np.inf
      return own

    expected = beams_by_hand.search(log_probs, 3, LENGTH, rules, ids.ends)
    for number, each in enumerate(beams_by_hand.filled(*expected, rules)):
      count = found.counts[index, number]
      assert tuple(found.tokens[index, number, :count].tolist()) == each.tokens
      np.testing.assert_allclose(
          found.scores[index, number], each.score, atol=1e-5
      )


@pytest.mark.parametrize(
    'name', exhaustive.all_but(['t5', 'gemma3'], tiny_cases.CASES)
)
def test_caches_follow_their_hypotheses(name):
  case = tiny_cases.CASES[name]()
  check_network(case, case.model, brevity(0.6), beams_by_hand.T5X(0.6))


@pytest.mark.parametrize(('name', 'num_forced'), [('bart', 1), ('marian', 0)])
def test_length_penalty_of_a_network(name, num_forced):
  """A forced token counts, and an id that is never written keeps its share."""
  case = tiny_cases.case(name)
  likeliest = int(np.argmax(case.alone(0, [])))
  ids = dataclasses.replace(case.model.special_ids, forbidden=(likeliest,))
  case = case._replace(model=dataclasses.replace(case.model, special_ids=ids))
  search = beam_search.BeamSearch(beams=3, length_penalty=1.5)
  rules = beams_by_hand.HuggingFace(1.5, num_forced)
  check_network(case, *search.bind(case.model), rules)

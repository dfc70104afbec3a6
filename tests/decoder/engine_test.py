# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Each request has the result that it has alone, whatever else is decoded."""

import collections
import copy
import dataclasses
import functools
import itertools

import hypothesis
from hypothesis import strategies as st
import jax
import numpy as np
import pytest

from speculative_t5x import policies
from speculative_t5x import rules
from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import row_programs
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.policies import by_load
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import verification
from tests import compilation
from tests import exhaustive
from tests import tiny
from tests.decoder import text_decoder_test

pytestmark = pytest.mark.long

CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
LENGTH, INPUTS, ROWS, MOST_DECODES = 12, 10, 4, 5
SAMPLINGS = (
    sampling.GREEDY,
    sampling.Sampling(1.0),
    sampling.Sampling(0.7, top_k=5),
    sampling.Sampling(1.0, top_p=0.8),
    sampling.Sampling(1.2, min_p=0.1, typical_p=0.9),
)


@functools.cache
def decoder(kind='draft model', num_decodes=1) -> token_decoder.TokenDecoder:
  found = tiny.decoder(
      CONFIG,
      gamma=3,
      length=LENGTH,
      inputs_length=INPUTS,
      num_decodes=num_decodes,
  )
  if kind == 'lookup':
    return found.with_drafter(drafters.Lookup(), gamma=3)
  if kind == 'tree':
    draft = tiny.model(CONFIG, noise=0.15)
    return found.with_drafter(drafters.CandidateTree(draft, (2, 2)), gamma=2)
  if kind == 'by load':
    policy = policies.ByLoad()
    return found.with_drafter(found.loaded_drafter, 3, policy)
  return found.alone if kind == 'plain' else found


@functools.cache
def engine(kind='draft model') -> engine_lib.Engine:
  return engine_lib.Engine(decoder(kind), ROWS)


def random_requests(seed, count, **options):
  """Return requests that share nothing but, sometimes, their input."""
  rng = np.random.default_rng(seed)
  for _ in range(count):
    size = int(rng.integers(1, INPUTS))
    yield request_lib.Request(
        [*rng.integers(2, 64, size).tolist(), 1],
        int(rng.integers(2**31)),
        seed=int(rng.integers(-(2**31), 2**31)),
        sampling=SAMPLINGS[rng.integers(len(SAMPLINGS))],
        draft_sampling=rng.choice([None, *SAMPLINGS]),
        max_tokens=int(rng.integers(1, LENGTH + 1)),
        num_decodes=int(rng.choice([1, 1, 1, 2, MOST_DECODES])),
        **options,
    )


def alone(request, kind='draft model'):
  """Yield tokens, log-probabilities and counts without any refilling.

  Decodes of one request are rows of one batch, as many for each, so that it is
  compiled once.
  """
  own = decoder(kind, MOST_DECODES)
  shape = input_batch.Shape(1, INPUTS, 32 if own.reads_hints else 0)
  request = own.tokenized(request, 0).request
  batch = input_batch.stack([request], shape, verification.TOKENWISE)
  found = tiny.decoded(own, batch)
  for row in range(request.num_decodes):
    tokens = found.sequences[row, : found.num_tokens[row]].tolist()
    counts = jax.tree.map(lambda x, i=row: x[i], found.statistics)
    yield tokens, found.log_probs[row], None if kind == 'plain' else counts


def check_result(result, request, kind='draft model'):
  expected = sorted(enumerate(alone(request, kind)), key=lambda x: x[1][1])
  assert len(result.decodes) == request.num_decodes
  for decode, (number, (tokens, score, counts)) in zip(
      result.decodes, expected, strict=True
  ):
    assert decode.tokens == tokens
    assert request.sampling.temperature or decode.number == number
    np.testing.assert_allclose(decode.score, score, rtol=1e-5, atol=1e-5)
    jax.tree.map(np.testing.assert_array_equal, decode.statistics, counts)
    np.testing.assert_allclose(
        np.sum(decode.log_probs), decode.score, rtol=1e-5, atol=1e-5
    )
    assert kind != 'plain' or {*decode.origins.tolist()} == {outcome.DRAWN}
    assert decode.has_end == (tokens[-1] == 1)
    assert decode.text_tokens == [x for x in tokens if x != 1]


@pytest.mark.parametrize(
    ('kind', 'rows'), [('draft model', ROWS), ('lookup', 1), ('plain', ROWS)]
)
def test_each_request_has_its_result_alone(kind, rows):
  """A single row becomes what is read, and others are written to."""
  options = {'hints': [[5, 6, 7, 1]]} if kind == 'lookup' else {}
  requests = list(random_requests(1, 60, **options))
  results = engine_lib.Engine(decoder(kind), rows).stream(iter(requests))
  for request, result in zip(requests, results, strict=True):
    check_result(result, request, kind)


@functools.cache
def hypotheses(inputs, search, limit):
  """Return tokens and scores of a plain search of one input, the best last."""
  request = request_lib.Request(inputs, 0, max_tokens=limit)
  batch = input_batch.stack(
      [request], input_batch.Shape(1, INPUTS), verification.TOKENWISE
  )
  found = whole_batches.search_for(decoder().alone, batch, search)
  found = jax.device_get(found)
  rows = [x[:n].tolist() for x, n in zip(found.sequences, found.num_tokens)]
  return rows, found.log_probs


def random_searches(seed, count):
  """Yield requests of which every other one is one of two beam searches."""
  for index, request in enumerate(random_requests(seed, count)):
    if index % 2:
      search = beam_search.BeamSearch(beams=2, brevity_penalty=index % 4 / 4)
      request = request_lib.Request(
          request.inputs, max_tokens=request.max_tokens, search=search
      )
    yield request


def check_search(result, request):
  rows, scores = hypotheses(
      tuple(request.inputs), request.search, request.max_tokens
  )
  assert [x.tokens for x in result.decodes] == rows
  assert [x.number for x in result.decodes] == [1, 0]  # the best one is last
  np.testing.assert_allclose(result.scores, scores, atol=1e-5)


@pytest.mark.parametrize(
    'kind', exhaustive.all_but(['draft model'], ['draft model', 'plain'])
)
def test_searches_beside_samples(kind):
  requests = list(random_searches(1, 12))
  one = engine_lib.Engine(decoder(kind), ROWS)
  for request, result in zip(requests, one.stream(requests), strict=True):
    if request.search is None:
      check_result(result, request, kind)
    else:
      check_search(result, request)


def test_coupled_samples_are_those_of_plain_decoding():
  """Token for token, in company and alone."""
  requests = list(random_requests(9, 40))
  coupled = engine_lib.Engine(decoder(), ROWS, rule=rules.Coupled())
  plain = engine('plain').stream(requests)
  for found, expected in zip(coupled.stream(requests), plain, strict=True):
    assert found.tokens == expected.tokens
  assert coupled.counters.target_calls < coupled.counters.tokens


def test_origins_are_those_of_the_outcomes():
  """Of each token, and which draft token was rejected in its place."""
  own, kinds = decoder(), collections.Counter()
  shape = input_batch.Shape(1, INPUTS)
  requests = [
      dataclasses.replace(x, num_decodes=1) for x in random_requests(12, 24)
  ]
  for request, result in zip(requests, engine().stream(requests), strict=True):
    request = own.tokenized(request, 0).request
    batch = input_batch.stack([request], shape, verification.TOKENWISE)
    trace = jax.device_get(whole_batches.trace(own, batch))
    expected = []
    for step in range(trace.num_steps):
      call = jax.tree.map(lambda x, step=step: x[step, 0], trace.outcomes)
      expected += [outcome.ACCEPTED] * int(call.num_accepted)
      if call.num_accepted < call.num_committed:
        rejected = outcome.DRAWN
        if call.num_accepted < call.num_drafted:
          rejected = int(call.draft_tokens[call.num_accepted])
        expected.append(rejected)
    (decode,) = result.decodes
    assert decode.origins.tolist() == expected
    kinds.update('rejected' if x >= 0 else x for x in expected)
  assert kinds[outcome.DRAWN] and len(kinds) == 3


def test_hints_are_drafted_from():
  """Of ids as of texts: an output that is its own hint needs few calls."""
  first = request_lib.Request([5, 9, 20, 1], max_tokens=LENGTH)
  (found,) = engine('lookup').stream([first])
  hinted = dataclasses.replace(first, hints=[found.decodes[0].tokens])
  (again,) = engine('lookup').stream([hinted])
  assert again.tokens == found.tokens
  calls = [x.statistics['target_calls'] for x in (again, found)]
  assert calls[0] == -(-len(found.decodes[0].tokens) // 4) < calls[1]
  with pytest.raises(ValueError, match='hints'):
    list(engine().stream([hinted]))


def test_no_mixture_compiles_anew():
  list(engine().stream(random_requests(2, 20)))
  before = compilation.count()
  list(engine().stream(random_requests(3, 30)))
  assert compilation.count() == before


@hypothesis.settings(max_examples=10, deadline=None)
@hypothesis.given(st.permutations(range(12)), st.integers(1, 12))
def test_order_and_company_change_nothing(order, count):
  requests = list(random_requests(4, 12))
  expected = results_of_all()
  order = order[:count]
  for number, result in zip(
      order, engine().stream(requests[i] for i in order), strict=True
  ):
    assert result.tokens == expected[number].tokens
    np.testing.assert_array_equal(result.scores, expected[number].scores)


@functools.cache
def results_of_all():
  return list(engine().stream(random_requests(4, 12)))


def test_reads_ahead_within_its_window_only():
  num_read = itertools.count()
  requests = (
      request_lib.Request([2 + next(num_read) % 50, 1]) for _ in range(10**9)
  )
  stream = engine().stream(requests)
  assert len(list(itertools.islice(stream, 300))) == 300
  stream.close()
  assert next(num_read) <= 301 + engine_lib.WINDOW * ROWS


class _UnreadableError(Exception):
  pass


def test_an_error_of_the_source_loses_nothing():
  """What was read before it is decoded and handed out first."""
  requests = list(random_requests(8, 21))
  expected = [x.tokens for x in engine().stream(requests)]

  def source():
    yield from requests
    raise _UnreadableError

  found = []
  with pytest.raises(_UnreadableError):
    for result in engine().stream(source()):
      found.append(result.tokens)
  assert found == expected
  found.clear()
  with pytest.raises(ValueError, match='Request 21'):
    for result in engine().stream([*requests, request_lib.Request([70])]):
      found.append(result.tokens)
  assert found == expected


def test_samples_of_requests_fill_rows():
  """A row that ends is refilled at once though no request waits."""
  engine = engine_lib.Engine(decoder('plain'), ROWS)
  results = engine.stream(
      request_lib.Request([5, 9, 1], max_tokens=count, num_decodes=40)
      for count in (1, LENGTH)
  )
  calls = [each.num_calls for result in results for each in result.decodes]
  assert min(calls) == 1 < row_programs.MAX_STEPS // 2 < max(calls)
  # All rows are live until the last decode begins.
  assert engine.counters.loop_steps <= sum(calls) / ROWS + max(calls)


def test_rows_are_full():
  """With more requests than rows, only the ends of the stream are idle."""
  engine = engine_lib.Engine(decoder(), ROWS)
  list(engine.stream(random_requests(5, 200)))
  assert engine.counters.idle_share < 0.05


def test_calls_of_cancelled_requests_are_counted():
  engine = engine_lib.Engine(decoder('plain'), 1)
  rows = engine.new_rows()
  work = engine.pending(request_lib.Request([5, 9, 20, 1], 0), 0)
  rows.fill([work])
  rows.advance(returns_early=True, limit=3)
  assert not list(rows.ended())
  work.is_cancelled = True
  rows.advance(returns_early=True)
  assert not list(rows.ended()) and rows.is_idle
  counters = engine.counters
  assert counters.tokens == counters.target_calls == counters.row_steps == 3
  assert counters.idle_share == 0


def _model_log_probs(inputs, tokens):
  """Return the target's own log-probabilities, [tokens, vocab]."""
  logits = tiny.teacher_forced(
      CONFIG, tiny.params(CONFIG), np.array([inputs]), np.array([tokens])
  )
  return np.asarray(jax.nn.log_softmax(logits))[0]


def test_model_log_probs_are_those_of_temperature_1():
  """Whatever is sampled from, they are the target's own."""
  (result,) = engine().stream([
      request_lib.Request([5, 9, 1], sampling=SAMPLINGS[2], max_tokens=LENGTH)
  ])
  (decode,) = result.decodes
  expected = np.take_along_axis(
      _model_log_probs([5, 9, 1], decode.tokens),
      np.array(decode.tokens)[:, None],
      axis=1,
  )[:, 0]
  np.testing.assert_allclose(decode.model_log_probs, expected, atol=1e-4)


@pytest.mark.parametrize(
    'kind', ['draft model', 'lookup', 'plain', 'by load', 'tree']
)
def test_alternatives_are_the_likeliest_tokens(kind):
  """Of requests that ask for them, in any company, and while they run."""
  requests = [
      dataclasses.replace(request, alternatives=number % 6)
      for number, request in enumerate(random_requests(7, 40))
  ]
  rule = rules.Coupled() if kind == 'by load' else verification.TOKENWISE
  own = engine_lib.Engine(decoder(kind), ROWS, rule=rule)
  for request, result in zip(requests, own.stream(requests), strict=True):
    count = request.alternatives
    for decode in result.decodes:
      if not count:
        assert decode.alternatives is None
        continue
      expected = _model_log_probs(request.inputs, decode.tokens)
      tokens, log_probs = decode.alternatives
      likeliest = -np.sort(-expected)[:, :count]
      np.testing.assert_allclose(log_probs, likeliest, atol=1e-4)
      np.testing.assert_allclose(
          np.take_along_axis(expected, tokens, axis=1), log_probs, atol=1e-4
      )
      is_own = tokens == np.array(decode.tokens)[:, None]
      of_own = np.broadcast_to(decode.model_log_probs[:, None], is_own.shape)
      np.testing.assert_array_equal(log_probs[is_own], of_own[is_own])


def test_inputs_without_settings():
  """They are requests for what is likeliest."""
  ids = [request.inputs for request in random_requests(19, 3)]
  found = [result.tokens for result in engine().stream(ids)]
  expected = map(request_lib.Request, ids)
  assert found == [result.tokens for result in engine().stream(expected)]
  texts = text_decoder_test.TEXTS
  of_texts = engine_lib.Engine(text_decoder_test.pair(), 2)
  assert [x.text for x in of_texts.stream(texts)] == (
      text_decoder_test.pair().decode(texts).best
  )


@pytest.mark.parametrize(
    'requests', ['a bell', {'a': 1}, request_lib.Request('a'), 3]
)
def test_what_is_not_several_requests(requests):
  with pytest.raises(ValueError, match='requests must be a list'):
    next(engine().stream(requests))
  with pytest.raises(TypeError, match='decoder must be a TextDecoder'):
    engine_lib.Engine(requests)


def test_caps_of_drafts_change_no_token(monkeypatch):
  """Drafts come and go with the load, and samples are those of no drafts."""
  own = decoder('by load')
  rng = np.random.default_rng(0)
  chosen = []

  def choose(load):
    chosen.append(int(rng.choice(load.caps)))
    return chosen[-1]

  monkeypatch.setattr(by_load.Load, 'choose', choose)
  engine = engine_lib.Engine(own, ROWS, rule=rules.Coupled())
  plain = engine_lib.Engine(decoder('plain'), ROWS, rule=rules.Coupled())
  requests = list(random_requests(5, 40))
  results = engine.stream(requests), plain.stream(requests)
  drafted = []
  for one, other in zip(*results, strict=True):
    assert one.tokens == other.tokens
    drafted += [each.statistics.num_drafted for each in one.decodes]
  assert set(chosen) == {0, 1, 3} and 0 < np.mean(np.array(drafted) > 0) < 1


def test_what_is_accepted_is_counted_by_return(monkeypatch):
  """Rows that end and are refilled between two returns count once."""
  own = decoder('by load')
  seen, caps = [], itertools.cycle([3, 0, 1])
  monkeypatch.setattr(by_load.Load, 'choose', lambda _: next(caps))
  monkeypatch.setattr(
      by_load.Load,
      'add',
      lambda load, cap, calls, accepted_at, seconds: seen.append(
          (calls, *accepted_at)
      ),
  )
  engine = engine_lib.Engine(own, ROWS, rule=rules.Coupled())
  results = list(engine.stream(random_requests(6, 40)))
  decodes = [each for result in results for each in result.decodes]
  accepted = sum(
      outcome.tokens_per_position(each.statistics.accepted_histogram)
      for each in decodes
  )
  calls = sum(each.num_calls for each in decodes)
  assert accepted[-1] > 0
  np.testing.assert_array_equal(np.sum(seen, axis=0), [calls, *accepted])


def test_drafts_by_load_need_a_coupled_rule():
  own = decoder('by load')
  with pytest.raises(ValueError, match='coupled rule'):
    engine_lib.Engine(own, ROWS)


def test_another_engine_of_a_decoder_compiles_nothing():
  requests = list(random_requests(8, 9))
  first = list(engine_lib.Engine(decoder(), ROWS).stream(requests))
  before = compilation.count()
  again = list(engine_lib.Engine(decoder(), ROWS).stream(requests))
  assert compilation.count() == before
  assert [x.tokens for x in again] == [x.tokens for x in first]


def test_rules_share_no_program():
  """Rarely, JAX runs the program of another rule whose fields are alike."""
  one, other, again = (
      row_programs.RowPrograms.of(decoder(), ROWS, rule)
      for rule in (rules.Coupled(), rules.CoupledGumbel(), rules.Coupled())
  )
  assert one is again and one is not other


@pytest.mark.parametrize(
    ('values', 'name'),
    [
        (dict(num_decodes=0), 'num_decodes'),
        (dict(max_tokens=0), 'max_tokens'),
        (dict(seed=2**31), 'seed'),
        (dict(example_id=0.5), 'example_id'),
        (dict(sampling=0.5), 'sampling'),
        (dict(alternatives=6), 'alternatives'),
        (
            dict(alternatives=1, search=beam_search.BeamSearch(beams=2)),
            'alternatives',
        ),
    ],
)
def test_values_out_of_range(values, name):
  with pytest.raises(ValueError, match=name):
    request_lib.Request('text', **values)


@pytest.mark.parametrize(
    ('inputs', 'values'),
    [([], {}), ([70, 1], {}), ([5] * 11, {}), ([5], {'max_tokens': 13})],
)
def test_requests_that_cannot_be_decoded(inputs, values):
  with pytest.raises(ValueError, match='Request 0|max_tokens'):
    list(engine().stream([request_lib.Request(inputs, **values)]))


def test_an_input_that_the_engine_does_not_take():
  """Though the decoder would: it is not cut, which would lose its end."""
  engine = engine_lib.Engine(decoder(), ROWS, inputs_length=3)
  with pytest.raises(ValueError, match='inputs_length=4'):
    list(engine.stream([request_lib.Request([5, 9, 20, 1])]))


def test_a_search_that_cannot_be_drafted_for():
  """It is refused at once: later it would end all requests beside it."""
  search = beam_search.BeamSearch(beams=2, draft_beams=999)
  with pytest.raises(ValueError, match='draft_beams'):
    engine().pending(request_lib.Request([5, 1], search=search), 0)


@pytest.mark.parametrize('length_penalty', [None, 1.0])
@pytest.mark.parametrize('beams', [1, 2])
def test_lost_logits_name_the_row(beams, length_penalty):
  lost = copy.copy(decoder())
  lost._programs = {}
  params = jax.tree.map(lambda x: x * np.nan, lost.target.params)
  lost.target = dataclasses.replace(lost.target, params=params)
  search = None
  if beams > 1:
    search = beam_search.BeamSearch(
        beams=beams, length_penalty=length_penalty
    )
  requests = [request_lib.Request([5, 1], 17, search=search)]
  with pytest.raises(ValueError, match='17.*not finite'):
    list(engine_lib.Engine(lost, ROWS).stream(requests))


def test_caches_are_not_copied():
  """The run that is advanced or refilled is taken over."""
  programs = row_programs.RowPrograms(decoder(), ROWS)
  shape = input_batch.Shape(2, INPUTS, 0)
  request = decoder().tokenized(request_lib.Request([5, 1]), 0).request
  rule = verification.TOKENWISE
  batch = input_batch.stack([request], shape, rule)
  started = programs.read(batch)
  empty = programs.take(started, np.full(ROWS, -1, np.int32))
  places, decodes = np.array([2, -1], np.int32), np.array([0, 0], np.int32)
  run = programs.admit(empty, started, places, decodes)
  until, limit = np.int32(ROWS), np.int32(row_programs.MAX_STEPS)
  after, _ = programs.advance(run, np.zeros(ROWS, bool), until, limit, rule)
  for old in (empty, run):
    caches = jax.tree.leaves((old.state.target_cache, old.state.draft_state))
    assert all(cache.is_deleted() for cache in caches)
  assert not any(x.is_deleted() for x in jax.tree.leaves((started, after)))

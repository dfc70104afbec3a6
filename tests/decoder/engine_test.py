# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the engine: order, laziness, and that requests do not mix."""

import functools
import types

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import engine as engine_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.speculation import sampling
from tests import compilation
from tests import tiny

CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
LENGTH = 6


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return tiny.decoder(CONFIG, gamma=2, length=LENGTH)


def requests(count=7, batch_size=2, **options):
  ids = [[5 + i, 6, 1] for i in range(count)]
  return tiny.requests(
      ids, batch_size, length=LENGTH, sampling=sampling.Sampling(1.0), **options
  )


def sequences(results):
  return np.concatenate([each.decoded.sequences for each in results])


@pytest.mark.parametrize('is_plain', [False, True])
def test_results_are_those_of_single_requests_in_order(is_plain):
  engine = engine_lib.Engine(decoder(), is_plain=is_plain)
  way = decoder().plain if is_plain else decoder().speculative
  results = list(engine.stream(requests()))
  expected = [jax.device_get(way(each)).sequences for each in requests()]
  np.testing.assert_array_equal(sequences(results), np.concatenate(expected))
  assert (results[0].decoded.statistics is None) == is_plain
  assert all(each.seconds > 0 for each in results)


def test_a_request_is_read_when_its_result_is_wanted():
  read = []

  def reading():
    for number, request in enumerate(requests()):
      read.append(number)
      yield request

  results = engine_lib.Engine(decoder()).stream(reading())
  assert not read
  next(results)
  assert read == [0]
  next(results)
  assert read == [0, 1]


def test_compiles_at_the_first_request_only():
  engine = engine_lib.Engine(tiny.decoder(CONFIG, gamma=1, length=LENGTH))
  assert not engine.is_warm
  before = compilation.count()
  first, *_ = engine.stream(requests())
  assert engine.is_warm and compilation.count() > before
  before = compilation.count()
  np.testing.assert_array_equal(
      sequences([next(engine.stream(requests()))]), sequences([first])
  )
  assert compilation.count() == before


def test_answers_are_in_the_request_of_the_result():
  marked = lambda request: request.replace(hints=np.full((2, 32), 7))
  engine = engine_lib.Engine(decoder(), answers=marked)
  for result in engine.stream(requests(3)):
    np.testing.assert_array_equal(result.request.hints, 7)


def test_answers_of_another_target():
  other = tiny.decoder(CONFIG, gamma=2, length=LENGTH)
  finder = types.SimpleNamespace(decoder=other)
  with pytest.raises(ValueError, match='another target'):
    engine_lib.Engine(decoder(), answers=finder)


def _with(**changes):
  """Return a change of some values of what was decoded, row by row."""
  return lambda found: found.replace(
      **{name: change(getattr(found, name)) for name, change in changes.items()}
  )


_FEWER_CALLS = _with(
    num_calls=lambda x: np.minimum(x, 1),
    num_steps=lambda x: 1,
    calls_by_width=lambda x: np.eye(1, len(x), dtype=np.int32)[0],
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
    _with(num_steps=lambda x: x - 1),
    _with(calls_by_width=lambda x: 2 * x),
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
def test_results_that_cannot_be(monkeypatch, is_plain, changes):
  engine = engine_lib.Engine(decoder(), is_plain=is_plain)
  (request,) = requests(2)
  found = engine.run(request).decoded
  for change in changes:
    monkeypatch.setattr(engine, '_decode', lambda _, x=change: x(found))
    with pytest.raises(ValueError, match='not finite|contradict'):
      engine.run(request)


def test_seconds_of_compilation():
  seconds = iter([9.0, 1.0, 2.0, 3.0])
  compiled = lambda: engine_lib.compile_seconds(lambda: next(seconds))
  assert compiled() == 8.0
  assert compiled() == 0.0

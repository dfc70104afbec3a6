# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of interleaved decoding, and of statistics of its seconds."""

import collections
import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.research.measurement import interleaved
from tests import tiny


def _requests(count, batch_size):
  rows = np.arange(1, count * 3 + 1).reshape(count, 3)
  return tiny.requests(rows, batch_size, length=7)


def _run_of(seconds):
  return interleaved.Run([], np.asarray(seconds, float), 0.0)


class _Decoder:
  """A decoder that returns the batch's number and records its calls."""

  def __init__(self):
    self.calls = []

  def plain(self, batch):
    return self._decode('plain', batch)

  def speculative(self, batch):
    return self._decode('speculative', batch)

  def _decode(self, way, batch):
    self.calls.append((way, int(batch)))
    sequences = jnp.full((2, 3), batch + (10 if way == 'speculative' else 0))
    return {'sequences': sequences, 'log_probs': jnp.zeros((2,))}


class TestOrder:

  @pytest.mark.parametrize('count', range(1, 8))
  def test_places_and_neighbours_are_balanced(self, count):
    num_rounds = count * (1 + count % 2)
    rounds = [interleaved.order(count, i) for i in range(num_rounds)]
    assert all(sorted(ways) == list(range(count)) for ways in rounds)
    for place in range(count):
      found = collections.Counter(ways[place] for ways in rounds)
      assert set(found.values()) == {num_rounds // count}
    pairs = collections.Counter(
        p for r in rounds for p in itertools.pairwise(r)
    )
    assert len(pairs) == count * (count - 1)
    assert len(set(pairs.values())) <= 1


class TestRun:

  def test_alternates_after_a_warm_up(self, capsys):
    decoder = _Decoder()
    plain, speculative = interleaved.run(
        decoder, [jnp.asarray(0), jnp.asarray(1)], repeats=2, name='a test'
    )
    ways = ('plain', 'speculative')
    assert decoder.calls == [
        *((way, 0) for way in ways for _ in range(interleaved.WARMUP)),
        *((way, 0) for way in (*ways, *reversed(ways))),
        *((way, 1) for way in (*reversed(ways), *ways)),
    ]
    for run, start in ((plain, 0), (speculative, 10)):
      values = [int(d['sequences'][0, 0]) for d in run.decoded]
      assert values == [start, start + 1]
      assert all(isinstance(d['sequences'], np.ndarray) for d in run.decoded)
      assert run.seconds.shape == (2,) and (run.seconds > 0).all()
    shown = capsys.readouterr()
    assert shown.out == ''
    assert shown.err.endswith('\na test: 2 of 2 batches, 0 s left\n')

  def test_between_comes_before_each_batch_is_decoded(self):
    decoder = _Decoder()
    interleaved.run(
        decoder,
        [jnp.asarray(0), jnp.asarray(1)],
        repeats=2,
        name='',
        between=lambda number: decoder.calls.append(('between', number)),
    )
    warm_up, timed = decoder.calls[:4], decoder.calls[4:]
    assert 'between' not in dict(warm_up)
    assert [timed.index(('between', number)) for number in (0, 1)] == [0, 5]
    assert len(timed) == 10

  def test_seconds_are_the_median_of_the_repeats(self, monkeypatch):
    seconds = iter([9.0, 1.0, 8.0, 1.0, *(4.0, 1.0), *(2.0, 5.0), *(9.0, 7.0)])
    # The warm-up runs each way in turn; then ways are interleaved.
    monkeypatch.setattr(
        interleaved, '_timed', lambda *_: (np.zeros(()), next(seconds))
    )
    plain, speculative = interleaved.run(
        _Decoder(), [jnp.asarray(0)], repeats=3, name=''
    )
    assert (plain.compile_s, speculative.compile_s) == (8.0, 7.0)
    assert plain.seconds.tolist() == [5.0]  # of 4, 5 and 9
    assert speculative.seconds.tolist() == [2.0]  # of 1, 2 and 7


class TestSpeedup:

  def test_speedup_is_the_ratio_of_sums(self):
    plain, speculative = _run_of([1.0, 9.0]), _run_of([1.0, 3.0])
    assert interleaved.speedup(plain, speculative) == 2.5

  def test_resamples_pairs(self):
    """Unequal batches with equal speedups have a narrow interval."""
    seconds = np.array([1.0, 10.0, 100.0, 3.0, 2.0, 7.0])
    interval = interleaved.speedup_interval(
        _run_of(2 * seconds), _run_of(seconds)
    )
    assert interval == pytest.approx([2.0, 2.0])

  def test_interval_is_known_for_two_kinds_of_batches(self):
    interval = interleaved.speedup_interval(
        _run_of([1.0, 3.0] * 6), _run_of([1.0, 1.0] * 6)
    )
    # Of 12 batches at most one is of the other kind in 0.3 percent of
    # resamples, and at most two in 1.9; the bounds are at 1.04 percent.
    assert interval == pytest.approx([4 / 3, 8 / 3])

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of interleaved decoding, and of statistics of its seconds."""

import collections
import itertools
import json

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import report
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.speculation import loop


def _run_of(seconds):
  return interleaved.Run(None, tuple(seconds), 0.0)


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
    number = batch + (10 if way == 'speculative' else 0)
    return _decoded(jnp.full((2, 3), number))


def _decoded(sequences):
  zeros, count = jnp.zeros((2,), jnp.int32), jnp.int32(1)
  work = loop.Work(count, count, jnp.ones((1,), jnp.int32))
  return report.Report(zeros, sequences, zeros, zeros, zeros, work)


def _time(decoder, numbers, repeats, **options):
  ways = decoder.plain, decoder.speculative
  timer = interleaved.Timer(ways, repeats=repeats)
  return timer.run([jnp.asarray(number) for number in numbers], **options)


@pytest.mark.parametrize('count', range(1, 8))
def test_places_and_neighbours_are_balanced(count):
  num_rounds = count * (1 + count % 2)
  rounds = [interleaved.order(count, i) for i in range(num_rounds)]
  assert all(sorted(ways) == list(range(count)) for ways in rounds)
  for place in range(count):
    found = collections.Counter(ways[place] for ways in rounds)
    assert set(found.values()) == {num_rounds // count}
  pairs = collections.Counter(p for r in rounds for p in itertools.pairwise(r))
  assert len(pairs) == count * (count - 1)
  assert len(set(pairs.values())) <= 1


class TestRun:

  def test_alternates_after_a_warm_up(self):
    decoder = _Decoder()
    runs = _time(decoder, (0, 1), repeats=2)
    ways = ('plain', 'speculative')
    assert decoder.calls == [
        *((way, 0) for way in ways for _ in range(interleaved.WARMUP)),
        *((way, 0) for way in (*ways, *reversed(ways))),
        *((way, 1) for way in (*reversed(ways), *ways)),
    ]
    for run, start in zip(runs, (0, 10), strict=True):
      values = [int(decoded.sequences[0, 0]) for decoded in run.decoded]
      assert values == [start, start + 1]
      assert all(isinstance(x.sequences, np.ndarray) for x in run.decoded)
      assert run.counts.loop_steps == 2
      assert len(run.seconds) == 2 and min(run.seconds) > 0

  def test_before_comes_before_each_batch_is_decoded(self):
    decoder, done = _Decoder(), []
    before = lambda number: decoder.calls.append(('before', number))
    _time(decoder, (0, 1), repeats=2, first=7, before=before, after=done.append)
    warm_up, timed = decoder.calls[:4], decoder.calls[4:]
    assert 'before' not in dict(warm_up)
    assert [timed.index(('before', number)) for number in (7, 8)] == [0, 5]
    assert len(timed) == 10 and done == [8, 9]

  def test_seconds_are_the_median_of_the_repeats(self, monkeypatch):
    seconds = iter([9.0, 1.0, 8.0, 1.0, *(4.0, 1.0), *(2.0, 5.0), *(9.0, 7.0)])
    output = _decoded(jnp.zeros((2, 3)))
    # The warm-up runs each way in turn; then ways are interleaved.
    monkeypatch.setattr(
        interleaved, '_timed', lambda *_: (output, next(seconds))
    )
    plain, speculative = _time(_Decoder(), (0,), repeats=3)
    assert (plain.compile_s, speculative.compile_s) == (8.0, 7.0)
    assert plain.seconds == (5.0,)  # of 4, 5 and 9
    assert speculative.seconds == (2.0,)  # of 1, 2 and 7

  def test_stored_runs_are_joined(self):
    runs = [_time(_Decoder(), (0,) * count, 1)[0] for count in (1, 2)]
    stored = json.loads(json.dumps([run.stored() for run in runs]))
    found = interleaved.join(stored)
    assert found.seconds == runs[0].seconds + runs[1].seconds
    assert found.compile_s == runs[0].compile_s
    assert (found.counts.loop_steps, found.counts.row_steps) == (3, 6)
    assert found.steps == (1, 1, 1)
    del stored[0]['steps']
    assert interleaved.join(stored).steps == ()


class TestSpeedup:

  def test_speedup_is_the_ratio_of_sums(self):
    plain, speculative = _run_of([1.0, 9.0]), _run_of([1.0, 3.0])
    assert interleaved.speedup(plain, speculative) == 2.5

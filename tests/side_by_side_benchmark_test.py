# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/side_by_side`: its statistics, tokens and cases."""

from concurrent import futures
import dataclasses
import functools
import gzip
import json

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.side_by_side import __main__ as side_by_side
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import worker
from speculative_t5x.loading import checkpoints
from speculative_t5x.research.measurement import provenance
from tests import exhaustive
from tests import tiny
from tests import vocabulary_files


def _timings(seconds, written=()):
  """Of one repeat."""
  return measuring.Timings([[x] for x in seconds], list(written))


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
  monkeypatch.setattr(measuring, 'PAUSE_S', 0)


def test_each_way_takes_a_turn_per_repeat():
  """Its times are kept by input and repeat."""
  calls = []
  names = ['plain', 'other', 'third']
  timings = {name: measuring.Timings() for name in names}

  def turn(name):
    calls.append(name)
    repeat = calls.count(name)
    return [repeat, repeat + 0.5]

  turns = {name: functools.partial(turn, name) for name in names}
  rng = np.random.default_rng(0)
  for _ in range(2):
    measuring.time_round(turns, timings, 3, rng)
  orders = [tuple(calls[i : i + 3]) for i in range(0, len(calls), 3)]
  assert len(orders) == 2 * 3 and len(set(orders)) > 1
  assert all(sorted(each) == sorted(names) for each in orders)
  expected = [(1, 2, 3), (1.5, 2.5, 3.5), (4, 5, 6), (4.5, 5.5, 6.5)]
  assert all(each.seconds == expected for each in timings.values())


def test_the_first_of_a_turn_is_not_timed(monkeypatch):
  """It finds the caches as another process left them."""
  clock, last = [0.0], ['another process']

  def decode(name):
    clock[0] += 1.0 if last[0] == 'ours' else 7.0  # cold
    last[0] = 'ours'
    return [name]

  monkeypatch.setattr(measuring.time, 'perf_counter', lambda: clock[0])
  decodes = [functools.partial(decode, number) for number in range(3)]
  assert measuring.take_turn(decodes) == [1.0, 1.0, 1.0]
  assert clock[0] == 7 + 3


def test_ratios_are_of_totals_and_of_pairs():
  plain = [1.0, 2.0, 40.0, 3.0, 5.0, 1.5]
  timings = {
      'plain': _timings(plain),
      'own': _timings(2 * x for x in plain),
      'other': _timings([2.0, 1.0, 1.0, 1.0, 1.0, 1.0]),
  }
  summary = measuring.summarize(timings, ['plain', 'speculative'])
  assert summary['own'].keys() == {'walltime_s', 'over_plain'}
  assert summary['plain'].keys() == {'walltime_s'}
  assert summary['own']['walltime_s'] == 2 * sum(plain)
  assert summary['own']['over_plain']['ratio'] == 2
  assert summary['own']['over_plain']['ci95'] == pytest.approx((2, 2))
  low, high = summary['other']['over_plain']['ci95']
  assert low < summary['other']['over_plain']['ratio'] == 7 / 52.5 < high
  # Repeats of an input are not independent and do not narrow the interval.
  for each in timings.values():
    each.seconds = np.repeat(each.seconds, 50, axis=1)
  again = measuring.summarize(timings, ['plain'])['other']['over_plain']
  assert again['ci95'] == pytest.approx((low, high))


def test_rows_that_differ_from_any_start():
  plain = [(5, 6), (7,), (8,)]
  whole = {
      'plain': _timings([], plain),
      'other': _timings([], [(5, 6, 6), (7,), (8,)]),
      'whole_only': _timings([], [(5, 6), (7,), (9,)]),
  }
  from_encoded = {
      'plain': _timings([], plain),
      'other': _timings([], [(5,), (7,), (9,)]),
  }
  assert measuring.compare_tokens([whole, from_encoded], 'plain') == {
      'plain': {'tokens': 4, 'rows_that_differ': 0},
      'other': {'tokens': 5, 'rows_that_differ': 2},
      'whole_only': {'tokens': 4, 'rows_that_differ': 1},
  }


class _Process:
  """Stands for the process of a system, and runs nothing."""

  # What an input takes, by system and number of threads.
  SECONDS = {('ctranslate2', 1): 1.0, ('ctranslate2', 2): 4.0, ('t5x', 2): 2.0}
  loaded = []  # the systems and threads of all processes, in order

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass

  def submit(self, function, *request):
    future = futures.Future()
    try:
      future.set_result(getattr(self, function.__name__)(*request))
    except ModuleNotFoundError as error:
      future.set_exception(error)
    return future

  def load(self, name, threads, _):
    if name == 'transformers':
      raise ModuleNotFoundError("No module named 'torch'")
    self.loaded.append((name, threads))
    self._seconds = self.SECONDS.get((name, threads), 5.0)
    way = {'speculative_t5x': 'plain'}.get(name, name)
    places = measuring.PLACES if way == 'plain' else measuring.PLACES[:1]
    return {'versions': {name: '1'}, 'ways': {way: places}}

  def ask(self, method, way, place, numbers=None):
    if method == 'prepare':
      self._numbers = numbers
      return [[7, 1, 0] for _ in numbers]
    return [self._seconds] * len(self._numbers)


def test_record(monkeypatch):
  """The better number of threads counts, and missing systems are named."""
  monkeypatch.setattr(_Process, 'loaded', [])
  monkeypatch.setattr(side_by_side.running, 'process', _Process)
  host = dataclasses.replace(provenance.describe_host(), cores=2)
  monkeypatch.setattr(provenance, 'describe_host', lambda: host)
  record = side_by_side.run(6, 3, ['--size=base'])
  json.dumps(record)
  threads = record['threads']
  assert threads['ctranslate2'] == {'used': 1, 'trial_s': {1: 4.0, 2: 16.0}}
  assert threads['t5x'] == {'used': 2, 'trial_s': {1: 20.0, 2: 8.0}}
  assert _Process.loaded.count(('t5x', 2)) == 2  # tried, and measured
  assert _Process.loaded.count(('t5x', 1)) == 1
  assert record['whole']['ctranslate2']['walltime_s'] == 6 * 3 * 1.0
  assert record['whole']['t5x']['over_plain']['ratio'] == 2.0 / 5.0
  assert record['from_encoded']['plain']['walltime_s'] == 6 * 3 * 5.0
  assert record['from_encoded']['t5x'] is None
  tokens = {'tokens': 6, 'rows_that_differ': 0}
  assert record['outputs'] == dict.fromkeys(threads, tokens)
  assert record['not_installed'] == {'transformers': "No module named 'torch'"}


def test_a_process_keeps_to_its_cores(monkeypatch):
  """Its systems take their threads from them."""
  kept = []
  monkeypatch.setattr(worker.os, 'sched_getaffinity', lambda _: {5, 2, 9})
  monkeypatch.setattr(
      worker.os, 'sched_setaffinity', lambda _, cores: kept.append(cores)
  )
  for count in (1, 2, 4):
    worker.use_cores(count)
  assert kept == [[2], [2, 5], [2, 5, 9]]


@pytest.fixture(scope='module')
def multi30k(tmp_path_factory):
  """Return the case of a tiny target with given drafts."""
  folder = tmp_path_factory.mktemp('multi30k')
  vocabulary_files.train(folder / 'ende4k.model')
  for name in ('en', 'de'):
    lines = b'ein Mann\nein Mann geht\na man walks\n'
    (folder / f'val.{name}.gz').write_bytes(gzip.compress(lines))
  save = lambda name, config, noise: checkpoints.save(
      folder / name, 1, tiny.params(config, noise=noise)
  )
  one = functools.partial(tiny.config, num_decoder_layers=1)
  save('target', tiny.config(), 0.0)
  save('draft', one(num_encoder_layers=1, head_dim=8), 0.1)
  save('decoder', one(num_encoder_layers=0), 0.1)
  flags = f'--multi30k={folder} --target={folder}/target --inputs=2 --gamma=2'
  return lambda *drafts: cases.read(
      cases.parse(
          flags.split() + [f'--{key}={folder}/{name}' for key, name in drafts]
      )
  )


def test_inputs_and_drafts(multi30k):
  case = multi30k(('draft', 'draft'))
  assert case.inputs.shape == (2, 64) and case.assistant is case.draft
  lengths = (case.inputs > 0).sum(axis=1)
  assert lengths[0] < lengths[1]
  ends = case.inputs[np.arange(2), lengths - 1]
  np.testing.assert_array_equal(ends, 1)
  # A draft without an encoder is no assistant.
  assert multi30k(('draft', 'decoder')).assistant is None
  case = multi30k(('draft', 'decoder'), ('assistant', 'draft'))
  assert case.draft.config.num_encoder_layers == 0
  assert case.assistant.config.num_encoder_layers == 1


@pytest.mark.parametrize(
    'draft', exhaustive.all_but(['decoder'], ['draft', 'decoder'])
)
def test_this_package_decodes(multi30k, draft):
  system = worker.System('speculative_t5x', multi30k(('draft', draft)))
  places = ['whole'] if draft == 'decoder' else ['whole', 'from_encoded']
  assert system.describe()['ways']['speculative'] == places
  prepare = lambda *way: [
      measuring.until_end(ids) for ids in system.prepare(*way, [0, 1])
  ]
  expected = prepare('plain', 'whole')
  assert expected[0] != expected[1]
  for place in places:
    assert prepare('speculative', place) == expected
  seconds = system.time('speculative', 'whole')
  assert len(seconds) == 2 and min(seconds) > 0


def test_random_weights_never_end_and_attend_to_several_tokens():
  kernel = jnp.arange(1.0, 13).reshape(2, 6)
  changed = cases.without_end(kernel)
  np.testing.assert_array_equal(changed[:, :2], 0)
  np.testing.assert_array_equal(changed[:, 2:], kernel[:, 2:])
  params = {name: {'kernel': jnp.full((2,), 8.0)} for name in ('query', 'key')}
  scaled = cases.with_small_queries({'layer': params}, head_dim=16)['layer']
  np.testing.assert_array_equal(scaled['query']['kernel'], 2.0)
  np.testing.assert_array_equal(scaled['key']['kernel'], 8.0)

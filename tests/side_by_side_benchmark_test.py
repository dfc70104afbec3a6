# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/side_by_side`: its statistics, tokens and options."""

import dataclasses
import functools
import gzip
import importlib
import json
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.side_by_side import __main__ as side_by_side
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from benchmarks.side_by_side import options
from benchmarks.side_by_side import worker
from speculative_t5x.loading import checkpoints
from speculative_t5x.research.measurement import provenance
from tests import tiny
from tests import vocabulary_files


def _timings(seconds, written=()):
  """Of one repeat."""
  return measuring.Timings([[x] for x in seconds], list(written))


class TestUntilEnd:

  @pytest.mark.parametrize(
      'ids, expected',
      [
          ([5, 0, 7], (5, 0, 7)),
          ([5, 7, 1], (5, 7)),
          ([5, 7, 1, 0, 0], (5, 7)),
          ([5, 1, 9, 1], (5,)),
          ([1], ()),
          ([], ()),
      ],
  )
  def test_tokens(self, ids, expected):
    assert measuring.until_end(ids) == expected
    assert measuring.until_end(np.array(ids, np.int32)) == expected


@pytest.fixture
def no_pause(monkeypatch):
  monkeypatch.setattr(measuring, 'PAUSE_S', 0)


@pytest.mark.usefixtures('no_pause')
class TestTimeRound:

  def test_each_way_takes_a_turn_per_repeat(self):
    """Its times are kept by input and repeat."""
    calls = []
    names = ['plain', 'other', 'third']
    timings = {name: measuring.Timings() for name in names}
    rng = np.random.default_rng(0)

    def turn(name):
      calls.append(name)
      repeat = calls.count(name)
      return [repeat, repeat + 0.5]

    turns = {name: functools.partial(turn, name) for name in names}
    for _ in range(2):
      measuring.time_round(turns, timings, 5, rng)
    orders = [tuple(calls[i : i + 3]) for i in range(0, len(calls), 3)]
    assert len(orders) == 2 * 5 and len(set(orders)) > 1
    assert all(sorted(each) == sorted(names) for each in orders)
    first = [(1, 2, 3, 4, 5), (1.5, 2.5, 3.5, 4.5, 5.5)]
    second = [(6, 7, 8, 9, 10), (6.5, 7.5, 8.5, 9.5, 10.5)]
    for each in timings.values():
      assert each.seconds == first + second

  def test_the_first_of_a_turn_is_not_timed(self, monkeypatch):
    """It finds the caches as another process left them."""
    clock = [0.0]
    last = [None]

    def decode(name):
      clock[0] += 1.0 if last[0] == 'ours' else 7.0  # cold
      last[0] = 'ours'
      return [name]

    monkeypatch.setattr(measuring.time, 'perf_counter', lambda: clock[0])
    decodes = [functools.partial(decode, number) for number in range(3)]
    for _ in range(2):
      last[0] = 'another process'
      assert measuring.take_turn(decodes) == [1.0, 1.0, 1.0]
    assert clock[0] == 2 * (7 + 3)


class TestSummarize:

  def test_ratios_are_of_totals(self):
    timings = {
        'plain': _timings([1.0, 3.0]),
        'speculative': _timings([1.0, 1.0]),
        'slow': _timings([4.0, 12.0]),
    }
    summary = measuring.summarize(timings, ['plain', 'speculative'])
    assert summary['slow']['walltime_s'] == 16
    assert summary['slow']['over_plain']['ratio'] == 4
    assert summary['slow']['over_speculative']['ratio'] == 8
    assert summary['speculative']['over_plain']['ratio'] == 0.5
    assert summary['plain'].keys() == {'walltime_s', 'over_speculative'}

  def test_resamples_pairs(self):
    """The seconds vary a lot, and their ratio does not."""
    plain = [1.0, 2.0, 40.0, 3.0, 5.0, 1.5]
    timings = {'plain': _timings(plain), 'own': _timings(2 * x for x in plain)}
    low, high = measuring.summarize(timings, ['plain'])['own']['over_plain'][
        'ci95'
    ]
    assert low == pytest.approx(2) and high == pytest.approx(2)

  def test_interval_contains_the_ratio(self):
    rng = np.random.default_rng(1)
    timings = {
        name: _timings(rng.uniform(1, 2, 30)) for name in ('plain', 'own')
    }
    over = measuring.summarize(timings, ['plain'])['own']['over_plain']
    low, high = over['ci95']
    assert low < over['ratio'] < high

  def test_repeats_do_not_narrow_the_interval(self):
    seconds = np.random.default_rng(2).uniform(1, 2, (2, 8))
    intervals = []
    for repeats in (1, 50):
      timings = {
          name: measuring.Timings(np.repeat(own[:, None], repeats, axis=1))
          for name, own in zip(('plain', 'own'), seconds, strict=True)
      }
      over = measuring.summarize(timings, ['plain'])['own']['over_plain']
      intervals.append(over['ci95'])
    assert intervals[0] == pytest.approx(intervals[1])

  def test_one_pair_has_no_interval(self):
    timings = {'plain': _timings([1.0]), 'own': _timings([2.0])}
    over = measuring.summarize(timings, ['plain'])['own']['over_plain']
    assert over == {'ratio': 2.0, 'ci95': None}

  def test_missing_reference_is_left_out(self):
    summary = measuring.summarize(
        {'plain': _timings([1.0]), 'own': _timings([2.0])},
        ['plain', 'speculative'],
    )
    assert summary['own'].keys() == {'walltime_s', 'over_plain'}

  def test_result_is_json(self):
    timings = {name: _timings(np.arange(1.0, 4.0)) for name in ('plain', 'own')}
    json.dumps(measuring.summarize(timings, ['plain']))


class TestCompareTokens:

  def test_differing_rows_of_any_start(self):
    plain = [(5, 6), (7,), (8,)]
    whole = {
        'plain': _timings([], plain),
        'same': _timings([], plain),
        'other': _timings([], [(5, 6, 6), (7,), (8,)]),
        'whole_only': _timings([], [(5, 6), (7,), (9,)]),
    }
    from_encoded = {
        'plain': _timings([], plain),
        'same': _timings([], plain),
        'other': _timings([], [(5,), (7,), (9,)]),
    }
    compared = measuring.compare_tokens([whole, from_encoded], 'plain')
    assert compared == {
        'plain': {'tokens': 4, 'rows_that_differ': 0},
        'same': {'tokens': 4, 'rows_that_differ': 0},
        'other': {'tokens': 5, 'rows_that_differ': 2},
        'whole_only': {'tokens': 4, 'rows_that_differ': 1},
    }


class _Process:
  """Stands for the process of a system, and keeps what it was asked.

  Attributes:
    SECONDS: that a turn takes, by system and number of threads.
    started: all processes, by system and number of threads.
  """

  SECONDS = {'ctranslate2': {'1': 1.0, '2': 4.0}, 't5x': {'1': 3.0, '2': 2.0}}
  started = {}

  def __init__(self, name, module, system, threads, *_):
    assert name == system and module == worker.__name__
    self._name = name
    self._seconds = self.SECONDS.get(name, {}).get(threads, 5.0)
    self.requests = []
    self.is_open = False
    self.started.setdefault((name, threads), []).append(self)

  def __enter__(self):
    self.is_open = True
    return self

  def __exit__(self, *_):
    self.is_open = False

  def ask(self, *request):
    assert self.is_open
    self.requests.append(request)
    match request:
      case ['describe']:
        if self._name == 'transformers':
          return {'missing': "No module named 'torch'"}
        places = ['whole']
        if self._name == 'speculative_t5x':
          places += ['from_encoded']
        way = {'speculative_t5x': 'plain'}.get(self._name, self._name)
        return {'versions': {self._name: '1'}, 'ways': {way: places}}
      case ['prepare', _, _, numbers]:
        self._numbers = numbers
        return [[7, 1, 0] for _ in numbers]
      case ['time', _, _]:
        return [self._seconds] * len(self._numbers)


@pytest.mark.usefixtures('no_pause')
class TestRun:

  @pytest.fixture
  def record(self, monkeypatch):
    monkeypatch.setattr(_Process, 'started', {})
    monkeypatch.setattr(side_by_side.processes, 'Process', _Process)
    host = provenance.describe_host()
    monkeypatch.setattr(
        side_by_side.provenance,
        'describe_host',
        lambda: dataclasses.replace(host, cores=2),
    )
    return side_by_side.run(6, 3, ['--size=base'])

  def test_the_better_number_of_threads_counts(self, record):
    threads = record['threads']
    assert threads['ctranslate2'] == {'used': 1, 'trial_s': {1: 4.0, 2: 16.0}}
    assert threads['t5x'] == {'used': 2, 'trial_s': {1: 12.0, 2: 8.0}}
    assert threads['plain']['used'] == 1  # as fast
    whole = record['whole']
    assert whole['ctranslate2']['walltime_s'] == 6 * 3 * 1.0
    assert whole['t5x']['walltime_s'] == 6 * 3 * 2.0
    assert whole['t5x']['over_plain']['ratio'] == 2.0 / 5.0
    json.dumps(record)
    # The other number was tried and not measured.
    number = {key: len(each) for key, each in _Process.started.items()}
    assert number['ctranslate2', '1'] == number['t5x', '2'] == 2
    assert number['ctranslate2', '2'] == number['t5x', '1'] == 1
    everyone = [x for each in _Process.started.values() for x in each]
    assert not any(process.is_open for process in everyone)

  def test_rounds_of_several_inputs(self, record):
    assert record['round_inputs'] == measuring.ROUND_INPUTS == 4
    process = _Process.started['t5x', '2'][-1]
    of_round = lambda numbers: [
        ('prepare', 't5x', 'whole', numbers), *[('time', 't5x', 'whole')] * 3
    ]  # fmt: skip
    assert process.requests == [*of_round([0, 1, 2, 3]), *of_round([4, 5])]
    tokens = {'tokens': 6, 'rows_that_differ': 0}
    assert record['outputs'] == dict.fromkeys(record['threads'], tokens)

  def test_missing_systems_are_named(self, record):
    assert record['not_installed'] == {
        'transformers': "No module named 'torch'"
    }
    systems = {'speculative_t5x', 'ctranslate2', 't5x'}
    assert record['versions'].keys() == systems
    assert record['whole'].keys() == {'plain', 'ctranslate2', 't5x'}
    places = record['from_encoded']
    assert places['plain']['walltime_s'] == 6 * 3 * 5.0
    assert places['ctranslate2'] is places['t5x'] is None

  def test_a_process_keeps_to_its_cores(self, monkeypatch):
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
  """Returns options of a tiny pair, and of a draft without an encoder."""
  folder = tmp_path_factory.mktemp('multi30k')
  vocabulary_files.train(folder / 'ende4k.model')
  for name in ('en', 'de'):
    lines = b'ein Mann\nein Mann geht\na man walks\n'
    (folder / f'val.{name}.gz').write_bytes(gzip.compress(lines))
  save = lambda name, config, noise: checkpoints.save(
      folder / name, 1, tiny.params(config, noise=noise)
  )
  save('target', tiny.config(), 0.0)
  save('draft', tiny.config(), 0.1)
  save('decoder', tiny.config(num_encoder_layers=0), 0.1)
  return lambda *drafts: options.parse(
      [
          f'--multi30k={folder}',
          f'--target={folder}/target',
          *(f'--{option}={folder}/{name}' for option, name in drafts),
          '--inputs=2',
          '--gamma=2',
      ]
  )


class TestMulti30k:

  def test_inputs(self, multi30k):
    case = options.read_case(multi30k(('draft', 'draft')))
    assert case.inputs.shape == (2, 64)
    lengths = (case.inputs > 0).sum(axis=1)
    assert lengths[0] < lengths[1]
    for row, length in zip(case.inputs, lengths, strict=True):
      assert row[length - 1] == 1  # the end of sequence
    assert case.assistant is case.draft

  def test_draft_without_an_encoder_is_no_assistant(self, multi30k):
    case = options.read_case(multi30k(('draft', 'decoder')))
    assert case.assistant is None
    drafts = ('draft', 'decoder'), ('assistant', 'draft')
    case = options.read_case(multi30k(*drafts))
    assert case.draft.config.num_encoder_layers == 0
    assert case.assistant.config.num_encoder_layers == 2

  @pytest.mark.parametrize('draft', ['draft', 'decoder'])
  def test_this_package_decodes(self, multi30k, draft):
    case = options.read_case(multi30k(('draft', draft)))
    system = worker.System('speculative_t5x', case)
    described = system.describe()
    json.dumps(described)
    places = ['whole'] if draft == 'decoder' else ['whole', 'from_encoded']
    assert described['ways']['speculative'] == places
    prepare = lambda *way: [
        measuring.until_end(ids) for ids in system.prepare(*way, [0, 1])
    ]
    expected = prepare('plain', 'whole')
    assert expected[0] != expected[1]
    for place in places:
      assert prepare('speculative', place) == expected
      seconds = system.time('speculative', place)
      assert len(seconds) == 2 and min(seconds) > 0


class TestSystems:

  def test_every_system_has_a_module(self):
    folder = pathlib.Path(side_by_side.__file__).parent
    for module in worker.SYSTEMS.values():
      assert (folder / f'{module}.py').is_file()

  def test_system_that_is_not_installed(self, monkeypatch, multi30k):
    def import_module(name):
      raise ModuleNotFoundError(f'No module named {name!r}')

    monkeypatch.setattr(importlib, 'import_module', import_module)
    case = options.read_case(multi30k(('draft', 'draft')))
    with pytest.raises(ModuleNotFoundError, match='t5x_ways'):
      worker.System('t5x', case)


class TestArguments:

  def test_defaults(self):
    parsed = options.parse(['--size=base'])
    assert (parsed.size, parsed.oracle) == ('base', None)
    assert (parsed.gamma, parsed.repeats) == (4, 5)
    assert parsed.inputs == 8
    parsed = options.parse(['--oracle=a/b'])
    assert parsed.oracle == pathlib.Path('a/b')
    assert parsed.inputs == 64

  def test_inputs(self):
    arguments = ['--oracle=a', '--inputs=2']
    assert options.parse(arguments).inputs == 2

  @pytest.mark.parametrize(
      'arguments, message',
      [
          ([], 'one of the arguments --size --oracle --multi30k is required'),
          (['--multi30k=a', '--target=b'], 'needs --target and --draft'),
          (['--size=base', '--draft=b'], 'need --multi30k'),
          (['--size=base', '--oracle=a'], 'not allowed with'),
          (['--size=huge'], 'invalid choice'),
          (['--size=base', '--repeats=0'], 'must be at least 1, got 0'),
          (['--size=base', '--inputs=0'], 'must be at least 1, got 0'),
      ],
  )
  def test_errors(self, arguments, message, capsys):
    with pytest.raises(SystemExit):
      options.parse(arguments)
    assert message in capsys.readouterr().err


class TestCases:

  def test_no_output_ends_by_the_head(self):
    kernel = jnp.arange(1.0, 13).reshape(2, 6)
    changed = cases.without_end(kernel)
    np.testing.assert_array_equal(changed[:, :2], 0)
    np.testing.assert_array_equal(changed[:, 2:], kernel[:, 2:])

  def test_only_queries_are_scaled(self):
    kernels = lambda *names: {
        name: {'kernel': jnp.full((2,), 8.0)} for name in names
    }
    params = {
        'encoder': {'layers_0': {'attention': kernels('query', 'key')}},
        'decoder': {'layers_0': {'self_attention': kernels('query', 'out')}},
    }
    scaled = cases.with_small_queries(params, head_dim=16)
    encoder = scaled['encoder']['layers_0']['attention']
    decoder = scaled['decoder']['layers_0']['self_attention']
    np.testing.assert_array_equal(encoder['query']['kernel'], 2.0)
    np.testing.assert_array_equal(decoder['query']['kernel'], 2.0)
    np.testing.assert_array_equal(encoder['key']['kernel'], 8.0)
    np.testing.assert_array_equal(decoder['out']['kernel'], 8.0)

  def test_too_few_inputs(self, tmp_path):
    (tmp_path / 'target').mkdir()
    np.savez(
        tmp_path / 'target/oracle.npz',
        encoder_input_tokens=np.ones((3, 4), np.int32),
    )
    with pytest.raises(ValueError, match='has 3 inputs, got --inputs=4'):
      cases.read_oracle(tmp_path, 4, gamma=4)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/side_by_side`: its statistics, tokens and options."""

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
from speculative_t5x import checkpoints
from tests import tiny
from tests import vocabulary_files


def _timings(seconds, written=None):
  seconds = list(seconds)
  # One input per entry, unless outputs are given.
  written = [()] * len(seconds) if written is None else written
  return measuring.Timings(seconds, list(written))


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


class TestTimeInterleaved:

  @pytest.fixture(autouse=True)
  def no_pause(self, monkeypatch):
    monkeypatch.setattr(measuring, 'PAUSE_S', 0)

  def _decode_two_inputs(self, repeats):
    calls = []
    names = ['plain', 'other', 'third']
    timings = {name: measuring.Timings() for name in names}
    rng = np.random.default_rng(0)
    for number in (10, 11):
      interleaved = {
          name: measuring.Interleaved(
              lambda name=name, number=number: (
                  calls.append(name) or [number, 1, 0]
              ),
              lambda name=name: calls.append(name) or 0.5,
          )
          for name in names
      }
      measuring.time_interleaved(interleaved, timings, repeats, rng)
    return calls, timings

  def test_each_way_runs_once_per_repeat_after_a_warm_up(self):
    calls, timings = self._decode_two_inputs(repeats=5)
    rounds = [tuple(calls[i : i + 3]) for i in range(0, len(calls), 3)]
    assert len(rounds) == 2 * (1 + 5)
    assert all(sorted(each) == ['other', 'plain', 'third'] for each in rounds)
    assert len(set(rounds)) > 1
    for each in timings.values():
      assert each.seconds == [0.5] * 10

  def test_tokens_of_each_input_are_stored_once(self):
    _, timings = self._decode_two_inputs(repeats=3)
    assert [each.written for each in timings.values()] == 3 * [[(10,), (11,)]]


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
          name: measuring.Timings(np.repeat(own, repeats).tolist(), [()] * 8)
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
  """Stands for a process, and keeps what it was asked."""

  def __init__(self):
    self.requests = []

  def ask(self, *request):
    self.requests.append(request)
    return [7, 1, 0] if request[0] == 'prepare' else 0.25


class TestTimeWays:

  def test_each_system_is_asked_for_its_ways(self, monkeypatch):
    monkeypatch.setattr(measuring, 'PAUSE_S', 0)
    systems = {'ours': _Process(), 'other': _Process()}
    ways = {
        'ours': {'plain': ['whole', 'from_encoded']},
        'other': {'whole_only': ['whole']},
    }
    timings = side_by_side.time_ways(systems, ways, num_inputs=2, repeats=3)
    assert timings['whole'].keys() == {'plain', 'whole_only'}
    assert timings['from_encoded'].keys() == {'plain'}
    assert timings['whole']['whole_only'].written == [(7,), (7,)]
    assert timings['from_encoded']['plain'].seconds == [0.25] * 6
    per_input = lambda number: [
        ('prepare', 'whole_only', 'whole', number),
        *[('time', 'whole_only', 'whole')] * 3,
    ]
    assert systems['other'].requests == [*per_input(0), *per_input(1)]


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
    expected = [
        measuring.until_end(system.prepare('plain', 'whole', number))
        for number in range(2)
    ]
    assert expected[0] != expected[1]
    for place in places:
      for number in range(2):
        found = system.prepare('speculative', place, number)
        assert measuring.until_end(found) == expected[number]
      assert system.time('speculative', place) > 0


class TestSystems:

  def test_missing_systems_are_named(self, monkeypatch):
    class Missing(_Process):

      def __init__(self, name, *_):
        super().__init__()
        self._name = name

      def __enter__(self):
        return self

      def __exit__(self, *_):
        pass

      def ask(self, *request):
        if request != ('describe',):
          return super().ask(*request)
        if self._name == 'transformers':
          return {'missing': "No module named 'torch'"}
        way = 'plain' if self._name == 'speculative_t5x' else self._name
        versions = {self._name: '1'}
        return {'versions': versions, 'ways': {way: ['whole']}}

    monkeypatch.setattr(measuring, 'PAUSE_S', 0)
    monkeypatch.setattr(side_by_side.processes, 'Process', Missing)
    found = side_by_side.run(1, 1, ['--size=base'])
    assert found['not_installed'] == {
        'transformers': "No module named 'torch'"
    }
    systems = {'speculative_t5x', 'ctranslate2', 't5x'}
    assert found['versions'].keys() == systems
    assert found['whole'].keys() == {'plain', 'ctranslate2', 't5x'}
    assert set(found['from_encoded'].values()) == {None}

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

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/side_by_side`: its statistics, tokens and options."""

import importlib
import json
import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.side_by_side import __main__ as side_by_side
from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring


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


class TestTakeTurns:

  @pytest.fixture(autouse=True)
  def no_pause(self, monkeypatch):
    monkeypatch.setattr(measuring, 'PAUSE_S', 0)

  def _decode_two_inputs(self, repeats):
    calls = []
    names = ['plain', 'other', 'third']
    timings = {name: measuring.Timings() for name in names}
    rng = np.random.default_rng(0)
    for number in (10, 11):
      decodes = {
          name: lambda name=name, number=number: (
              calls.append(name) or [number, 1, 0]
          )
          for name in names
      }
      measuring.take_turns(decodes, timings, repeats, rng)
    return calls, timings

  def test_each_way_runs_once_per_repeat_after_a_warm_up(self):
    calls, timings = self._decode_two_inputs(repeats=5)
    rounds = [tuple(calls[i : i + 3]) for i in range(0, len(calls), 3)]
    assert len(rounds) == 2 * (1 + 5)
    assert all(sorted(each) == ['other', 'plain', 'third'] for each in rounds)
    assert len(set(rounds)) > 1
    assert [len(each.seconds) for each in timings.values()] == [10, 10, 10]

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


class TestTimeWays:

  def test_way_without_encoded_inputs(self, monkeypatch):
    monkeypatch.setattr(measuring, 'PAUSE_S', 0)
    start = lambda tokens: lambda: tokens
    ways = {
        'plain': measuring.Way(start, start),
        'whole_only': measuring.Way(start, None),
    }
    inputs = np.array([[4, 5], [6, 1]])
    timings = side_by_side.time_ways(ways, inputs, repeats=3)
    assert timings['whole'].keys() == {'plain', 'whole_only'}
    assert timings['from_encoded'].keys() == {'plain'}
    assert timings['whole']['whole_only'].written == [(4, 5), (6,)]
    assert len(timings['from_encoded']['plain'].seconds) == 6


class TestSystems:

  def test_missing_systems_are_named(self, monkeypatch):
    def import_module(name):
      if 't5x_ways' in name:
        raise ModuleNotFoundError("No module named 't5x'")
      return name

    monkeypatch.setattr(importlib, 'import_module', import_module)
    found, missing = side_by_side.import_systems()
    assert missing == {'t5x': "No module named 't5x'"}
    assert list(found) == ['speculative_t5x', 'ctranslate2', 'transformers']

  def test_every_system_has_a_module(self):
    folder = pathlib.Path(side_by_side.__file__).parent
    for module in side_by_side.SYSTEMS.values():
      assert (folder / f'{module}.py').is_file()

  def test_this_package_comes_first_and_ctranslate2_before_torch(self):
    """CTranslate2 is several times slower if loaded after torch's OpenMP."""
    names = list(side_by_side.SYSTEMS)
    assert names[0] == 'speculative_t5x'
    assert names.index('ctranslate2') < names.index('transformers')


class TestArguments:

  def test_defaults(self):
    parsed = side_by_side.parse_arguments(['--size=base'])
    assert (parsed.size, parsed.oracle) == ('base', None)
    assert (parsed.gamma, parsed.repeats) == (4, 5)
    assert parsed.inputs == 8
    parsed = side_by_side.parse_arguments(['--oracle=a/b'])
    assert parsed.oracle == pathlib.Path('a/b')
    assert parsed.inputs == 64

  def test_inputs(self):
    arguments = ['--oracle=a', '--inputs=2']
    assert side_by_side.parse_arguments(arguments).inputs == 2

  @pytest.mark.parametrize(
      'arguments, message',
      [
          ([], 'one of the arguments --size --oracle is required'),
          (['--size=base', '--oracle=a'], 'not allowed with'),
          (['--size=huge'], 'invalid choice'),
          (['--size=base', '--repeats=0'], 'must be at least 1, got 0'),
          (['--size=base', '--inputs=0'], 'must be at least 1, got 0'),
      ],
  )
  def test_errors(self, arguments, message, capsys):
    with pytest.raises(SystemExit):
      side_by_side.parse_arguments(arguments)
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

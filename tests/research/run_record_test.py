# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the run record: its keys, its JSON, and other versions of it."""

import json
import pathlib

import pytest

from speculative_t5x.loading import descriptions
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import runs

_ROOT = pathlib.Path(__file__).parents[2]
_RESULTS = [*(_ROOT / 'results').rglob('*.jsonl')]

# The keys of the contract, in order. Readers of old records need each.
KEYS = """
    schema_version created package_version commit
    job
    task split num_examples truncated_inputs unknown_inputs
    target
    drafter
    verification
    gamma gamma_policy
    temperature topk topp minp typicalp num_decodes seed batch_size
    inputs_length targets_length num_valid_tokens
    device
    host
    mesh matmul_precision
    lossless
    simulated_acceptance
    baseline
    speculative
    draft_acceptance_rate
    accepted_per_tested
    mean_acceptance_length
    tokens_per_target_call
    padded_share
    encoder_s
    t1_ms t_verify_ms t_draft_ms t_draft2_ms t_call_ms t_width_ms
    c
    verify_cost_ratio
    floor_ms floor_ratio
    alpha
    predicted_speedup
    bound_speedup oracle_speedup
    speedup speedup_ci95
    decode_speedup
    loop_efficiency
    reference
    compile_s
    repeats rounds warmup
    peak_memory_bytes
    ops_coefficient operations_factor
    warnings
    quality
    greedy
""".split()


def _lines():
  """The lines of all files of records in `results`."""
  return [line for x in _RESULTS for line in x.read_text()[:-1].split('\n')]


class TestKeys:

  def test_are_those_of_the_contract(self):
    assert sorted(run_record.KEYS) == sorted(KEYS)
    assert list(json.loads(run_record.to_json(run_record.RunRecord()))) == list(
        run_record.KEYS
    )

  def test_are_explained(self):
    page = (_ROOT / 'docs/run_record.md').read_text()
    assert not [key for key in run_record.KEYS if f'`{key}`' not in page]


class TestToJson:

  def test_one_line_that_reads_back(self):
    record = run_record.RunRecord(
        task='Übersetzung\nzwei',
        target=descriptions.ModelDescription('a', None, 5, 'float32'),
        verification=run_record.Verification('tokenwise'),
        mesh={'data': 2, 'model': 1},
        speedup_ci95=(1.0, 1.5),
        compile_s=run_record.BothRuns(0.5, None),
        quality=run_record.BothRuns({'bleu': 1.0}, {'bleu': 2.0}),
    )
    line = run_record.to_json(record)
    assert '\n' not in line and 'Ü' in line
    assert run_record.from_dict(json.loads(line)) == record

  @pytest.mark.parametrize('value', [float('nan'), float('inf')])
  def test_not_finite(self, value):
    with pytest.raises(ValueError, match='not JSON compliant'):
      run_record.to_json(run_record.RunRecord(speedup=value))

  def test_reproduces_the_records_of_results(self):
    """Nearly all have today's keys but the latest; the others are left out.

    Parts of a record may have got keys since.
    """
    latest = {
        'minp', 'typicalp', 't_width_ms', 'oracle_speedup', 'unknown_inputs',
        'num_valid_tokens',
    }  # fmt: skip

    def is_todays(line):
      found = [*json.loads(line)]
      return latest.issuperset(set(KEYS) - {*found}) and found == [
          key for key in KEYS if key in found
      ]

    today = [*filter(is_todays, _lines())]
    assert len(today) > 50
    text = lambda line: json.dumps(_without_nulls(json.loads(line)))
    for line in today:
      values = json.loads(line)
      written = json.loads(run_record.to_json(run_record.from_dict(values)))
      for key in latest - values.keys():
        assert written.pop(key) is None
      assert text(json.dumps(written)) == text(line)


class TestFromDict:

  @pytest.mark.parametrize('path', _RESULTS, ids=lambda path: path.stem)
  def test_holds_all_values_of_results(self, path):
    """Also of records that lack keys of today."""
    for line, record in zip(
        path.read_text()[:-1].split('\n'), runs.read(path), strict=True
    ):
      written = json.loads(run_record.to_json(record))
      assert _without_nulls(written) == _without_nulls(json.loads(line))

  def test_missing_keys_are_none_and_unknown_keys_ignored(self):
    values = {'gamma': 3, 'other': 1, 'host': {'cpu': 'x', 'sockets': 2}}
    assert run_record.from_dict(values) == run_record.RunRecord(
        schema_version=None, gamma=3, host=run_record.Host('x', None)
    )


def _without_nulls(values):
  if not isinstance(values, dict):
    return values
  return {k: _without_nulls(v) for k, v in values.items() if v is not None}

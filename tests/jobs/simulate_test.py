# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the simulate job, with tiny sizes of T5 1.1."""

import dataclasses
import itertools
import json

import pytest

from speculative_t5x.jobs import simulate
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.research.simulation import t5_published
from tests import compilation
from tests import workloads

_SHAPES = simulated_walltimes.Shapes(
    num_examples=8,
    batch_size=4,
    inputs_length=5,
    targets_length=30,
    repeats=1,
    rounds=2,
)
_ARGUMENTS = dict(
    target_size='base', draft_size='small', alpha=0.5, gamma=2, shapes=_SHAPES
)


@pytest.fixture(scope='module', autouse=True)
def tiny_sizes():
  """Replace the sizes by tiny ones, each wider than the one before."""
  sizes = {
      name: dict(
          emb_dim=16 * n, num_heads=2, num_layers=1, mlp_dim=16, head_dim=8
      )
      for n, name in enumerate(t5_published.SIZES, start=1)
  }
  with (
      pytest.MonkeyPatch.context() as patch,
      compilation.unchecked_types(),
  ):
    patch.setattr(t5_published, 'SIZES', sizes)
    patch.setattr(t5_published, 'VOCAB_SIZE', 64)
    yield


@pytest.fixture
def measured(monkeypatch):
  """Replace the measurement; return a list of the arguments of each."""
  calls = []

  def measure(programs, batches, settings, name):
    calls.append((programs.decoder, batches, settings, name))
    return dataclasses.replace(settings, c=0.25), None, None

  monkeypatch.setattr(walltimes, 'measure', measure)
  return calls


def _simulate(folder, **changes):
  return simulate.simulate(**{**_ARGUMENTS, **changes}, output_dir=str(folder))


def test_record(tmp_path):
  folder = tmp_path / 'new'
  with workloads.instant_parts():
    (record,) = _simulate(folder, alpha=0.6, temperature=1.0)
  # About 200 draft tokens are tested.
  assert abs(record.accepted_per_tested - 0.6) < 0.12
  for side in ('baseline', 'speculative'):  # no output ends before its length
    assert getattr(record, side).tokens == 8 * 30
  expected = {
      'job': 'walltime', 'task': None, 'split': None, 'num_examples': 8,
      'gamma': 2, 'temperature': 1.0, 'topk': 0, 'topp': 0.0,
      'minp': 0.0, 'typicalp': 0.0,
      'num_decodes': 1, 'seed': 0, 'batch_size': 4, 'inputs_length': 5,
      'targets_length': 30, 'mesh': {}, 'matmul_precision': 'highest',
      'repeats': 1, 'truncated_inputs': 0, 'alpha': None, 'quality': None,
  }  # fmt: skip
  assert {key: getattr(record, key) for key in expected} == expected
  (line,) = (folder / 'results.jsonl').read_text().splitlines()
  assert tuple(json.loads(line)) == run_record.KEYS


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ('name', 'kind'),
    [
        ('shared_encoder_1_small', 'shared_encoder'),
        ('feature_head_1_small', 'feature_head'),
        ('block_head_1_small', 'block_head'),
        ('early_exit_1', 'early_exit'),
    ],
)
def test_other_drafts(tmp_path, name, kind):
  (record,) = _simulate(tmp_path, draft_size=name)
  assert (record.drafter.kind, record.drafter.name) == (kind, name)
  assert record.c >= 0
  assert record.speculative.tokens == 8 * 30


def test_combinations(measured, tmp_path):
  """Each is measured, and its measurement matches its record."""
  several = dict(
      draft_size=('small', 'base'),
      alpha=(0.5, 0.75),
      gamma=(3, 2),
      temperature=(0.0, 1.0),
  )
  records = _simulate(tmp_path, **several)
  settings = lambda record: (
      record.drafter.name.removeprefix('t5_1_1_'),
      record.simulated_acceptance,
      record.gamma,
      record.temperature,
  )
  assert [*map(settings, records)] == list(itertools.product(*several.values()))
  assert len(measured) == len(records)
  for decoder, batches, record, _ in measured:
    assert (record.repeats, record.rounds, len(batches)) == (1, 2, 2)
    for request in batches:
      assert request.inputs.shape == (4, 5)
      temperature = float(request.sampling.temperature)
      assert float(request.draft_sampling.temperature) == temperature
      assert settings(record)[1:] == (
          float(request.rule.alpha), decoder.options.gamma, temperature
      )  # fmt: skip
      (draft,) = decoder.loaded_drafter.models
      assert draft.num_params == record.drafter.num_params


def test_too_little_memory(monkeypatch, tmp_path):
  """The size is refused by name, before anything is made or written."""
  monkeypatch.setattr(memory, 'available_bytes', lambda: 1000)
  monkeypatch.setattr(simulated_walltimes, 'make_model', None)
  (tmp_path / 'results.jsonl').write_text('mine')
  with pytest.raises(ValueError, match='T5 1.1 xxl'):
    _simulate(tmp_path, target_size='xxl', draft_size=('small', 'large'))
  assert [path.name for path in tmp_path.iterdir()] == ['results.jsonl']

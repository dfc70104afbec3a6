# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the simulate job, with tiny sizes of T5 1.1."""

import dataclasses
import itertools
import json
import types

import jax
import numpy as np
import pytest

from speculative_t5x.jobs import simulate
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.reports import runs
from speculative_t5x.research.simulation import random_models
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.research.simulation import t5_published
from tests import compilation

pytestmark = pytest.mark.long

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
_SEVERAL = dict(
    draft_size=('small', 'base'),
    alpha=(0.5, 0.75),
    gamma=(3, 2),
    temperature=(0.0, 1.0),
)


@pytest.fixture(scope='module', autouse=True)
def tiny_sizes():
  """Replaces the sizes by tiny ones, each wider than the one before."""
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


@pytest.fixture(scope='module')
def ran(tmp_path_factory):
  """Returns the record and the folder of a job that measured times."""
  folder = tmp_path_factory.mktemp('simulate') / 'new'
  (record,) = _simulate(folder, alpha=0.6, gamma=3, temperature=1.0)
  return types.SimpleNamespace(record=record, folder=folder)


@pytest.fixture
def measured(monkeypatch):
  """Replaces the measurement; returns a list of the arguments of each."""
  calls = []

  def measure(programs, batches, settings, name):
    calls.append((programs.decoder, batches, settings, name))
    return types.SimpleNamespace(record=dataclasses.replace(settings, c=0.25))

  monkeypatch.setattr(walltimes, 'measure', measure)
  return calls


@pytest.fixture
def refused(monkeypatch, tmp_path):
  """Returns a runner of jobs that must not begin; returns the error."""

  def make_model(*_):
    pytest.fail('a model was made')

  monkeypatch.setattr(random_models, 'make_model', make_model)
  (tmp_path / 'results.jsonl').write_text('mine')

  def run(**changes):
    with pytest.raises(ValueError) as error:
      _simulate(tmp_path, **changes)
    assert [path.name for path in tmp_path.iterdir()] == ['results.jsonl']
    assert (tmp_path / 'results.jsonl').read_text() == 'mine'
    return str(error.value)

  return run


def _simulate(folder, **changes):
  return simulate.simulate(**{**_ARGUMENTS, **changes}, output_dir=str(folder))


def _workload(shapes, gamma):
  return memory.Workload(
      batch_size=shapes.batch_size,
      num_decodes=1,
      inputs_length=shapes.inputs_length,
      targets_length=shapes.targets_length,
      gamma=gamma,
  )


def _needed(target, drafts, gamma, **changes):
  """Returns the bytes of a target, its largest draft and the measurement."""
  shapes = dataclasses.replace(_SHAPES, **changes)
  workload = _workload(shapes, gamma)
  config = lambda size: t5_published.make_config(size, shapes.dtype)
  drafts = [
      memory.draft_bytes(config(size), workload, t5_published.VOCAB_SIZE)
      for size in drafts
  ]
  target = memory.target_bytes(config(target), workload)
  models = target.total + sum(draft.total for draft in drafts)
  largest = drafts[-1]
  parts = 2 * target.cache + target.cross + largest.cache + largest.cross
  return models + parts + walltimes.OWN_BYTES


class TestRecord:

  def test_draft_tokens_are_accepted_at_the_rate(self, ran):
    # About 200 draft tokens are tested.
    assert abs(ran.record.accepted_per_tested - 0.6) < 0.12

  def test_no_output_ends_before_its_length(self, ran):
    for side in ('baseline', 'speculative'):
      assert getattr(ran.record, side).tokens == 8 * 30

  def test_settings(self, ran):
    expected = {
        'job': 'walltime', 'task': None, 'split': None, 'num_examples': 8,
        'gamma': 3, 'temperature': 1.0, 'topk': 0, 'topp': 0.0,
        'minp': 0.0, 'typicalp': 0.0,
        'num_decodes': 1, 'seed': 0, 'batch_size': 4, 'inputs_length': 5,
        'targets_length': 30, 'mesh': {}, 'matmul_precision': 'highest',
        'repeats': 1, 'truncated_inputs': 0, 'alpha': None, 'quality': None,
    }  # fmt: skip
    assert {key: getattr(ran.record, key) for key in expected} == expected
    (line,) = (ran.folder / 'results.jsonl').read_text().splitlines()
    assert tuple(json.loads(line)) == run_record.KEYS


class TestDraftsThatShareTheTarget:

  @pytest.mark.parametrize(
      ('name', 'kind'),
      [
          ('early_exit_1', 'early_exit'),
          ('shared_encoder_1_small_short_9', 'shared_encoder'),
      ],
  )
  def test_measured(self, tmp_path, name, kind):
    (record,) = _simulate(tmp_path, draft_size=name)
    assert (record.drafter.kind, record.drafter.name) == (kind, name)
    base = models_lib.count_params(t5_published.make_config('base'))
    assert 0 < record.drafter.num_params < base
    assert min(record.encoder_s.draft, record.encoder_s.target) > 0
    assert record.c >= 0 and record.ops_coefficient > 0


class TestTables:

  def test_measured(self, tmp_path):
    (record,) = _simulate(tmp_path, draft_size='bigram')
    assert record.drafter.name == 'bigram'
    assert record.c is not None and 0 < record.ops_coefficient < 1
    assert record.speculative.tokens == 8 * 30


class TestCombinations:

  def test_measurement_matches_the_record(self, measured, tmp_path):
    records = _simulate(tmp_path, **_SEVERAL)
    assert [
        (
            record.drafter.name.removeprefix('t5_1_1_'),
            record.simulated_acceptance,
            record.gamma,
            record.temperature,
        )
        for record in records
    ] == list(itertools.product(*_SEVERAL.values()))
    assert len(measured) == len(records) == 16
    wanted = {
        (
            record.drafter.num_params,
            record.gamma,
            record.simulated_acceptance,
            record.temperature,
        )
        for record in records
    }
    found = set()
    for decoder, batches, settings, _ in measured:
      assert (settings.repeats, settings.rounds) == (1, 2)
      for request in batches:
        assert request.inputs.shape == (4, 5)
        temperature = float(request.sampling.temperature)
        assert float(request.draft_sampling.temperature) == temperature
        alpha = float(request.rule.alpha)
        found.add(
            (
                decoder.loaded_drafter.models[0].num_params,
                decoder.gamma,
                alpha,
                temperature,
            )
        )
      assert len(batches) == 2
    assert found == wanted


class TestResume:

  def test_resumes(self, measured, tmp_path, monkeypatch):
    working = walltimes.measure

    def interrupted(*arguments, **options):
      if measured:
        raise RuntimeError('interrupted')
      return working(*arguments, **options)

    with monkeypatch.context() as patch:
      patch.setattr(walltimes, 'measure', interrupted)
      with pytest.raises(RuntimeError, match='interrupted'):
        _simulate(tmp_path, alpha=(0.5, 0.75))
    assert [path.name for path in tmp_path.iterdir()] == ['records']
    (record_file,) = (tmp_path / 'records').iterdir()
    before = record_file.read_text()
    measured.clear()
    records = _simulate(tmp_path, alpha=(0.5, 0.75))
    ((_, batches, *_),) = measured
    assert float(batches[0].rule.alpha) == 0.75
    assert [r.simulated_acceptance for r in records] == [0.5, 0.75]
    assert record_file.read_text() == before
    assert runs.read(tmp_path / 'results.jsonl') == records


class TestRefused:

  @pytest.mark.parametrize(
      ('changes', 'named'),
      [
          ({'alpha': (0.5, 1.01)}, 'alpha must lie in'),
          ({'gamma': (2, 31)}, 'gamma 31 is longer'),
          ({'gamma': 0}, 'gamma must be a whole number'),
          ({'temperature': -1.0}, 'temperature must be'),
          ({'target_size': '3b'}, "There is no T5 1.1 '3b'"),
          ({'draft_size': ('small', 'tiny')}, "There is no draft 'tiny'"),
          ({'draft_size': 'early_exit_99'}, 'exit_layer must be'),
          ({'draft_size': ()}, 'No draft_size was given'),
          (
              {'shapes': dataclasses.replace(_SHAPES, dtype='float23')},
              'dtype must be float32 or bfloat16',
          ),
      ],
  )
  def test_values(self, refused, changes, named):
    assert refused(**changes).startswith(named)


class TestMemory:

  @pytest.mark.parametrize('target_size', ['small', 'xxl'])
  def test_too_little_memory(self, refused, monkeypatch, target_size):
    """The error has both numbers of bytes, before anything is allocated."""
    needed = _needed(target_size, ['small', 'large'], gamma=3)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed - 1)
    error = refused(
        target_size=target_size, draft_size=('small', 'large'), gamma=(3, 2)
    )
    assert f'T5 1.1 {target_size} with' in error
    gib = f'({needed / 2**30:.1f} GiB)'
    assert (
        f' needs {needed:,} bytes {gib}, and {needed - 1:,} bytes {gib} are'
        ' free on this device. Give '
    ) in error

  def test_a_cpu_keeps_copies_in_float32(self, monkeypatch):
    """A program on a CPU holds float32 copies of narrower weights."""
    shapes = dataclasses.replace(_SHAPES, dtype='bfloat16')
    needed = lambda: simulated_walltimes._needed_bytes(
        'xxl', ['small'], 2, shapes
    )
    sizes = [t5_published.make_config(size) for size in ('xxl', 'small')]
    params = sum(
        x.nbytes
        for size in sizes
        for x in jax.tree.leaves(random_models.make_model(size).params)
    )
    on_cpu = needed()
    monkeypatch.setattr(simulated_walltimes, '_copy_bytes', lambda *_: 0)
    assert on_cpu - needed() == params
    monkeypatch.undo()
    assert simulated_walltimes._copy_bytes(100, 'float32') == 0

  @pytest.mark.parametrize(
      ('free_for', 'asked', 'remedy'),
      [
          (('large', 'bfloat16'), ('xxl', 'bfloat16'), 'TARGET_SIZE=large'),
          (('xl', 'bfloat16'), ('xl', 'float32'), 'DTYPE=bfloat16'),
      ],
  )
  def test_error_names_sizes_that_fit(
      self, refused, monkeypatch, free_for, asked, remedy
  ):
    monkeypatch.setattr(simulated_walltimes, '_copy_bytes', lambda *_: 0)
    needed = lambda size, dtype: _needed(size, ['small'], 2, dtype=dtype)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed(*free_for))
    size, dtype = asked
    shapes = dataclasses.replace(_SHAPES, dtype=dtype)
    error = refused(target_size=size, shapes=shapes)
    assert f'needs {needed(*asked):,} bytes' in error and remedy in error

  def test_caches_of_the_timed_parts_count(self, measured, tmp_path):
    """The parts have caches, keys and values of their own."""
    _simulate(tmp_path, gamma=3)
    ((decoder, batches, *_),) = measured
    bound = part_programs.PartPrograms(decoder).bind(batches[0])
    leaves = jax.tree.leaves([part.args for part in bound.values()])
    # Of what has four dimensions, only uniforms are of another type.
    held = {
        id(x): x.nbytes
        for x in leaves
        if np.ndim(x) == 4 and x.dtype == np.float32
    }
    workload = _workload(_SHAPES, decoder.gamma)
    target, draft = (
        memory.target_bytes(model.config, workload)
        for model in (decoder.target, *decoder.loaded_drafter.models)
    )
    counted = 2 * target.cache + target.cross + draft.cache + draft.cross
    assert 0.9 * counted < sum(held.values()) <= counted

  @pytest.mark.parametrize('size', ['small', 'large', 'xxl'])
  def test_largest_target_that_fits(
      self, measured, tmp_path, monkeypatch, size
  ):
    needed = _needed(size, ['small'], gamma=2)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed)
    (record,) = _simulate(tmp_path, target_size=None)
    assert record.target.name == f't5_1_1_{size}'

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the simulate job, with tiny sizes of T5 1.1."""

import dataclasses
import itertools
import json
import re
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
from speculative_t5x.speculation import theory
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


def _needed(target, drafts, gamma, **changes):
  """Returns the bytes of a target, its largest draft and the measurement."""
  shapes = dataclasses.replace(_SHAPES, **changes)
  workload = memory.Workload(
      batch_size=shapes.batch_size,
      num_decodes=1,
      inputs_length=shapes.inputs_length,
      targets_length=shapes.targets_length,
      gamma=gamma,
  )
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

  def test_is_marked_as_simulated(self, ran):
    assert ran.record.simulated_acceptance == 0.6
    assert ran.record.lossless is False
    assert ran.record.gamma_policy == 'fixed'

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

  @pytest.mark.parametrize(
      ('role', 'size'), [('target', 'base'), ('drafter', 'small')]
  )
  def test_models(self, ran, role, size):
    config = t5_published.make_config(size)
    expected = {
        'name': f't5_1_1_{size}',
        'checkpoint': None,
        'num_params': models_lib.count_params(config),
        'dtype': 'float32',
    }
    assert vars(getattr(ran.record, role)).items() >= expected.items()

  def test_times(self, ran):
    for name in ('t1_ms', 't_verify_ms', 'speedup', 'bound_speedup'):
      assert getattr(ran.record, name) > 0
    assert ran.record.c >= 0  # a difference of times, at least 0
    predicted = theory.walltime_factor(0.6, 3, ran.record.c)
    assert ran.record.predicted_speedup == pytest.approx(predicted)

  def test_files(self, ran):
    assert runs.read(ran.folder / 'results.jsonl') == [ran.record]
    table = (ran.folder / 'walltime.md').read_text()
    assert len(re.findall(r'^\| t5_1_1_small .*simulated', table, re.M)) == 1


class TestDraftsThatShareTheTarget:

  @pytest.mark.parametrize(
      ('name', 'kind'),
      [
          ('early_exit_1', 'early_exit'),
          pytest.param(
              'shared_encoder_1_small',
              'shared_encoder',
              marks=pytest.mark.exhaustive,
          ),
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

  # Two numbers per token, and two per continuation, of which all are kept.
  SIZES = {'unigram': 2 * 64, 'bigram': 2 * 64 + 2 * 64 * 64}

  @pytest.mark.parametrize(
      'name', ['bigram', pytest.param('unigram', marks=pytest.mark.exhaustive)]
  )
  def test_measured(self, tmp_path, name):
    (record,) = _simulate(tmp_path, draft_size=name)
    assert record.drafter.name == name
    assert record.c is not None and 0 < record.ops_coefficient < 1
    assert record.speculative.tokens == 8 * 30

  def test_sizes(self, measured, tmp_path):
    records = _simulate(tmp_path, draft_size=tuple(self.SIZES))
    found = {r.drafter.kind: r.drafter.num_params for r in records}
    assert found == self.SIZES
    assert [r.drafter.name for r in records] == list(self.SIZES)

  def test_bytes_of_the_table_count(self):
    needed = lambda name: simulated_walltimes._needed_bytes(
        'base', [name], 2, _SHAPES
    )
    assert needed('bigram') - needed('unigram') == 4 * 2 * 64 * 64


class TestProgress:

  def test_line_before_each_measurement(self, measured, tmp_path, capsys):
    _simulate(tmp_path, alpha=0.75)
    capsys.readouterr()
    _simulate(tmp_path, alpha=(0.5, 0.75))
    lines = [
        line
        for line in capsys.readouterr().err.splitlines()
        if not line.startswith('making ')
    ]
    name = 'base and small, gamma 2, alpha {}, temperature 0'
    assert lines[0] == (
        f'configuration 1 of 2: {name.format(0.5)}: compiling and measuring'
    )
    start = f'configuration 2 of 2: {name.format(0.75)}: taken from {tmp_path}'
    assert lines[1].startswith(start) and len(lines) == 2
    assert measured[-1][3] == name.format(0.5)


class TestCombinations:

  def test_all_combinations_in_order(self, measured, tmp_path):
    records = _simulate(tmp_path, **_SEVERAL)
    found = [
        (
            record.drafter.name.removeprefix('t5_1_1_'),
            record.simulated_acceptance,
            record.gamma,
            record.temperature,
        )
        for record in records
    ]
    assert found == list(itertools.product(*_SEVERAL.values()))
    text = (tmp_path / 'results.jsonl').read_text()
    assert len(text.splitlines()) == len(measured) == 16

  def test_measurement_matches_the_record(self, measured, tmp_path):
    records = _simulate(tmp_path, **_SEVERAL)
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
        assert request.encoder_input_tokens.shape == (4, 5)
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

  def test_each_model_is_made_once(self, measured, tmp_path, monkeypatch):
    made, make = [], random_models.make_model
    monkeypatch.setattr(
        random_models, 'make_model', lambda *a: made.append(a) or make(*a)
    )
    _simulate(tmp_path, **_SEVERAL)
    assert len(made) == 3
    assert len({id(decoder.target) for decoder, *_ in measured}) == 1

  def test_inputs_depend_on_the_seed(self, measured, tmp_path):
    for seed in (0, 0, 1):
      shapes = dataclasses.replace(_SHAPES, seed=seed)
      _simulate(tmp_path / f'{len(measured)}', shapes=shapes)
    texts = [
        [request.encoder_input_tokens.tolist() for request in batches]
        for _, batches, *_ in measured
    ]
    assert texts[0] == texts[1] != texts[2]


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

  @pytest.mark.parametrize(
      ('changes', 'num_measured'),
      [
          ({}, 0),
          ({'alpha': 0.75}, 1),
          ({'temperature': 1.0}, 1),
          ({'target_size': 'large'}, 1),
          ({'shapes': dataclasses.replace(_SHAPES, inputs_length=6)}, 1),
          ({'shapes': dataclasses.replace(_SHAPES, dtype='bfloat16')}, 1),
      ],
  )
  def test_finished_configurations(
      self, measured, tmp_path, monkeypatch, changes, num_measured
  ):
    """They remain, and no model is made if nothing else is measured."""
    _simulate(tmp_path)
    measured.clear()
    if not num_measured:
      monkeypatch.setattr(random_models, 'make_model', None)
    (record,) = _simulate(tmp_path, **changes)
    assert len(measured) == num_measured
    assert len(list((tmp_path / 'records').iterdir())) == 1 + num_measured
    assert runs.read(tmp_path / 'results.jsonl') == [record]


class TestRefused:

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          ({'alpha': 1.01}, 'alpha must lie in [0, 1], got 1.01.'),
          ({'alpha': (0.5, -0.1)}, 'alpha must lie in [0, 1], got -0.1.'),
          ({'gamma': 31}, 'gamma 31 is longer than the outputs of 30 tokens'),
          ({'gamma': (2, 31)}, 'gamma 31 is longer'),
          ({'gamma': 0}, 'gamma must be a whole number and at least 1, got 0'),
          ({'temperature': -1.0}, 'temperature must be'),
          ({'target_size': '3b'}, "There is no T5 1.1 '3b'. Choose one of"),
          ({'draft_size': ('small', 'tiny')}, "There is no draft 'tiny'."),
          (
              {'draft_size': 'bigram_short_9'},
              "There is no draft 'bigram_short_",
          ),
          (
              {'draft_size': 'early_exit_99'},
              'exit_layer must be a whole number from 1 to ',
          ),
          (
              {'draft_size': 'shared_encoder_0_small'},
              'A draft that shares the encoder needs at least 1 decoder layer.',
          ),
          ({'draft_size': ()}, 'No draft_size was given.'),
          (
              {'shapes': dataclasses.replace(_SHAPES, dtype='float23')},
              'dtype must be float32 or bfloat16, got float23.',
          ),
      ],
  )
  def test_values(self, refused, changes, message):
    pattern = message if '.*' in message else re.escape(message)
    assert re.match(pattern, refused(**changes))

  @pytest.mark.parametrize(
      ('changes', 'message'),
      [
          ({'num_examples': 0}, 'num_examples must be'),
          ({'batch_size': 1.5}, 'batch_size must be .* got 1.5'),
          ({'rounds': 0}, 'rounds must be'),
          ({'seed': 2**31}, 'seed'),
      ],
  )
  def test_shapes(self, changes, message):
    with pytest.raises(ValueError, match=message):
      dataclasses.replace(_SHAPES, **changes)


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
      ('free_for', 'asked', 'remedies'),
      [
          (('large', 'float32'), ('xxl', 'float32'), ['TARGET_SIZE=large']),
          (('large', 'bfloat16'), ('xxl', 'bfloat16'), ['TARGET_SIZE=large']),
          (
              ('large', 'float32'),
              ('xl', 'float32'),
              ['TARGET_SIZE=large', 'DTYPE=bfloat16'],
          ),
          (('xl', 'bfloat16'), ('xl', 'float32'), ['DTYPE=bfloat16']),
      ],
  )
  def test_error_names_sizes_that_fit(
      self, refused, monkeypatch, free_for, asked, remedies
  ):
    monkeypatch.setattr(simulated_walltimes, '_copy_bytes', lambda *_: 0)
    # Half of its bytes are more than those of all others.
    monkeypatch.setattr(simulated_walltimes, '_copy_bytes', lambda *_: 0)
    wide = t5_published.SIZES['xxl'] | {'emb_dim': 1024}
    monkeypatch.setitem(t5_published.SIZES, 'xxl', wide)
    needed = lambda size, dtype: _needed(size, ['small'], 2, dtype=dtype)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed(*free_for))
    size, dtype = asked
    shapes = dataclasses.replace(_SHAPES, dtype=dtype)
    error = refused(target_size=size, shapes=shapes)
    assert f'needs {needed(*asked):,} bytes' in error
    text = ', or '.join(remedies)
    text = text.replace('=large', '=large, the largest that fits')
    assert error.endswith(f' Give {text}.')

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
    workload = simulated_walltimes._workload(decoder.gamma, _SHAPES)
    target, draft = (
        memory.target_bytes(model.config, workload)
        for model in (decoder.target, *decoder.loaded_drafter.models)
    )
    counted = 2 * target.cache + target.cross + draft.cache + draft.cross
    assert 0.9 * counted < sum(held.values()) <= counted

  def test_exact_fit(self, measured, tmp_path, monkeypatch):
    needed = _needed('large', ['small'], gamma=2)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed)
    assert len(_simulate(tmp_path, target_size='large')) == 1

  @pytest.mark.parametrize('size', ['small', 'large', 'xxl'])
  def test_largest_target_that_fits(
      self, measured, tmp_path, monkeypatch, size
  ):
    needed = _needed(size, ['small'], gamma=2)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed)
    (record,) = _simulate(tmp_path, target_size=None)
    assert record.target.name == f't5_1_1_{size}'

  def test_bfloat16_fits_more(self, measured, tmp_path, monkeypatch):
    monkeypatch.setattr(simulated_walltimes, '_copy_bytes', lambda *_: 0)
    needed = _needed('large', ['small'], gamma=2, dtype='bfloat16')
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed)
    assert needed < _needed('large', ['small'], gamma=2)
    shapes = dataclasses.replace(_SHAPES, dtype='bfloat16')
    (record,) = _simulate(tmp_path, target_size=None, shapes=shapes)
    assert record.target.name == 't5_1_1_large'
    assert record.target.dtype == 'bfloat16'

  def test_no_target_fits(self, refused, monkeypatch):
    needed = _needed('small', ['small'], gamma=2)
    monkeypatch.setattr(memory, 'available_bytes', lambda: needed - 1)
    error = refused(target_size=None)
    assert error.startswith('T5 1.1 small with small in float32 needs')
    assert f'{needed - 1:,} bytes (' in error
    # Half of the bytes would suffice.
    assert error.endswith(' Give DTYPE=bfloat16.')

  @pytest.mark.parametrize('target_size', [None, 'base'])
  def test_no_target_fits_in_any_dtype(self, refused, monkeypatch, target_size):
    monkeypatch.setattr(memory, 'available_bytes', lambda: 1)
    error = refused(target_size=target_size)
    assert error.endswith(' Give smaller drafts.')

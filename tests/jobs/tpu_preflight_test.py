# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the tpu-preflight job, with tiny sizes of T5 1.1."""

import copy
import functools
import json
import re
import types

import jax
import pytest

from speculative_t5x.jobs import tpu_preflight
from speculative_t5x.loading import models
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.research.tpu_aot import bench
from speculative_t5x.research.tpu_aot import chips
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.research.tpu_aot import report
from speculative_t5x.research.tpu_aot import row_writes
from speculative_t5x.research.tpu_aot import t5x_step
from speculative_t5x.research.tpu_aot import topology
from tests import compilation
from tests.research.tpu_aot import libtpu

GAMMA = 3
SHAPES = dict(inputs_length=16, targets_length=32)
# No other width is equal, so that sizes identify arrays.
VOCAB_SIZE = 1536


@pytest.fixture(scope='module', autouse=True)
def tiny_sizes():
  """Replaces the sizes by tiny ones, each wider than the one before."""
  sizes = {
      name: dict(
          emb_dim=128 * n, num_heads=2 * n, num_layers=1, mlp_dim=320 * n
      )
      for n, name in enumerate(t5_published.SIZES, start=1)
  }
  with (
      pytest.MonkeyPatch.context() as patch,
      libtpu.environment(),
      compilation.unchecked_types(),
  ):
    patch.setattr(t5_published, 'SIZES', sizes)
    patch.setattr(t5_published, 'VOCAB_SIZE', VOCAB_SIZE)
    # Programs of all rows of Table 2, the same each time.
    shapes = functools.cache(models.abstract_params)
    patch.setattr(models, 'abstract_params', shapes)
    yield


@pytest.fixture(scope='module')
def ran(tmp_path_factory):
  """Returns the record and the folder of a job that compiled."""
  folder = tmp_path_factory.mktemp('preflight') / 'new'
  return types.SimpleNamespace(record=_run(folder), folder=folder)


@pytest.fixture
def described(monkeypatch):
  """Makes this machine's one device stand for any topology, without libtpu."""

  def describe(name):
    chip = chips.CHIPS[name.split(':')[0]]
    return topology.Topology(name, chip, jax.devices()[:1])

  monkeypatch.setattr(topology, 'describe', describe)
  monkeypatch.setattr(topology, 'check_libtpu', lambda: '6.5.4')


@pytest.fixture
def refused(monkeypatch, tmp_path, described):
  """Returns a runner of jobs that must not begin; returns the error."""
  for name in ('compile_plain', 'compile_verify', 'compile_speculative'):
    monkeypatch.setattr(
        programs, name, lambda *_: pytest.fail('something was compiled')
    )

  def run(**changes):
    with pytest.raises(ValueError) as error:
      _run(tmp_path / 'new', **changes)
    assert not (tmp_path / 'new').exists()
    return str(error.value)

  return run


@pytest.fixture
def compiled(monkeypatch, described):
  """Replaces the compilation; returns the decoder or form of each program."""
  calls = []

  def compile_program(decoder, *_, **options):
    calls.append((decoder, options))
    step = reading.Reading(cycles=1000 * len(calls))
    return programs.Program(1.0, step, step, programs.Memory(1, 2, 3, 4))

  for name in ('compile_plain', 'compile_verify', 'compile_speculative'):
    monkeypatch.setattr(programs, name, compile_program)
  monkeypatch.setattr(row_writes, 'compile_form', compile_program)
  monkeypatch.setattr(t5x_step, 'compile_plain', compile_program)
  monkeypatch.setattr(t5x_step, 'IS_IMPORTABLE', False)
  return calls


def _run(folder=None, batch_size=1, mesh_shape=None, **changes):
  arguments = dict(
      target='t5_1_1_base',
      draft='t5_1_1_small',
      topology='v4:1x1x1',
      gamma=GAMMA,
      shapes=bench.Shapes(
          batch_size=batch_size, mesh_shape=mesh_shape, **SHAPES
      ),
      output_dir=folder and str(folder),
  )
  return tpu_preflight.tpu_preflight(**{**arguments, **changes})


@libtpu.needed
class TestRun:

  def test_keys(self, ran):
    assert set(ran.record) == {
        'job', 'created', 'package_version', 'commit', 'device', 'host',
        'libtpu', 'topology', 'chip', 'mesh', 'batch_size', 'inputs_length',
        'targets_length', 'dtype', 'draft_model_parallel', 'target', 'drafts',
        'verify', 'pairs', 't5x_step', 'row_writes', 'table_2',
    }  # fmt: skip

  def test_settings(self, ran):
    expected = {
        'job': 'tpu_preflight', 'topology': 'v4:1x1x1', 'mesh': {},
        'batch_size': 1, 'inputs_length': 16, 'targets_length': 32,
        'dtype': 'bfloat16', 'row_writes': [],
        'libtpu': topology.check_libtpu(),
    }  # fmt: skip
    assert {key: ran.record[key] for key in expected} == expected
    assert ran.record['chip']['name'] == 'v4'

  @pytest.mark.parametrize(
      ('size', 'find'),
      [('base', lambda record: record['target']),
       ('small', lambda record: record['drafts'][0])],
      ids=['target', 'draft'],
  )  # fmt: skip
  def test_models(self, ran, size, find):
    model = find(ran.record)
    assert model['name'] == f't5_1_1_{size}'
    config = t5_published.make_config(size)
    assert model['num_params'] == models.count_params(config)
    assert [call['block'] for call in model['calls']] == [1, 8]
    assert set(model['steps']) == {'one_row', 'padded'}
    for call in model['calls']:
      least = (call['weight_bytes'] + call['cache_bytes']) / 1.228e12
      assert call['seconds'] == pytest.approx(least)
    vectors = {
        form: program['step']['vector_products']
        for form, program in model['steps'].items()
    }
    assert vectors['padded'] == 0 < vectors['one_row']

  def test_pair(self, ran):
    (pair,) = ran.record['pairs']
    assert (pair['draft'], pair['gamma']) == ('t5_1_1_small', GAMMA)
    # 4 positions of the target, and 4 of the draft with half the heads.
    position = 2 * 2 * 64 * 2
    written = pair['loop']['step']['cache_bytes_written']
    assert written == 4 * 2 * position + 4 * position

  def test_verify(self, ran):
    (verify,) = ran.record['verify']
    position = 2 * 2 * 64 * 2
    step = verify['program']['step']
    assert step['cache_bytes_written'] == (GAMMA + 1) * 2 * position
    assert (verify['gamma'], verify['call']['block']) == (GAMMA, GAMMA + 1)

  def test_times_follow_from_the_clock(self, ran):
    loop = ran.record['pairs'][0]['loop']
    assert loop['step_s'] == loop['step']['cycles'] / 1.05e9

  def test_table_2(self, ran):
    assert len(ran.record['table_2']) == 12
    for row, printed in zip(ran.record['table_2'], published.TABLES_2_AND_4):
      assert (row['task'], row['draft']) == (printed.task, printed.draft)
      assert 0 < row['speedup'] < printed.gamma + 1

  def test_files(self, ran):
    assert {path.name for path in ran.folder.iterdir()} == {
        'tpu_preflight.json', 'tpu_preflight.md'
    }  # fmt: skip
    text = (ran.folder / 'tpu_preflight.json').read_text()
    assert json.loads(text) == ran.record
    text = (ran.folder / 'tpu_preflight.md').read_text()
    assert text == report.render(ran.record) + '\n'
    for title in ('Memory', 'Steps', 'What the loop does', 'Table 2'):
      assert f'\n## {title}' in text
    assert text.count('| EnDe |') + text.count('| CNNDM |') == 12

  def test_report_has_the_numbers_of_the_record(self, ran):
    """Each number of the record changes its own number of the report."""
    record = copy.deepcopy(ran.record)
    step = record['pairs'][0]['loop']['step']
    cycles = f'{step["cycles"]:,}'
    step['cycles'] = 123_456_789
    before, after = report.render(ran.record), report.render(record)
    assert cycles in before and cycles not in after
    assert '123,456,789' in after
    assert len(after.splitlines()) == len(before.splitlines())


class TestArguments:

  @pytest.mark.parametrize(
      'name', ['t5_1_1_huge', 'small', 'base', 't5_small', '', 't5_1_1_', 3]
  )
  @pytest.mark.parametrize('role', ['target', 'draft'])
  def test_unknown_network(self, refused, role, name):
    message = refused(**{role: name})
    assert re.search('no (network|draft) ', message) and str(name) in message
    assert re.search(r'small, (t5_1_1_)?base, (t5_1_1_)?large', message)

  def test_one_unknown_draft_of_several(self, refused):
    message = refused(draft='t5_1_1_small, t5_1_1_huge')
    assert "no network 't5_1_1_huge'" in message

  def test_unknown_topology(self):
    with pytest.raises(topology.TopologyError, match="no topology 'v3:2x2'"):
      _run(topology='v3:2x2')

  @pytest.mark.parametrize('gamma', [0, 1.5, 33])
  def test_gamma(self, refused, gamma):
    assert 'gamma' in refused(gamma=gamma)

  def test_mesh_with_another_number_of_devices(self, refused):
    message = refused(mesh_shape=(2, 2))
    assert '2 x 2 (data x model)' in message and '4 devices' in message

  @libtpu.needed
  def test_batch_that_cannot_be_partitioned(self):
    with pytest.raises(ValueError, match='batch_size 3 cannot be split evenly'):
      _run(topology='v4:2x2x1', mesh_shape=(2, 2), batch_size=3)

  @pytest.mark.parametrize('name', ['bigram_short_9', 'early_exit_1_short_9'])
  def test_drafts_without_a_head(self, refused, name):
    assert f'There is no draft {name!r}: a table' in refused(draft=name)

  def test_pair_that_does_not_fit(self, refused, monkeypatch):
    """11e9 parameters of 2 bytes do not fit the 16 GiB of a v5e."""
    xxl = dict(emb_dim=4096, num_heads=64, num_layers=24, mlp_dim=10240)
    monkeypatch.setitem(t5_published.SIZES, 'xxl', xxl)
    monkeypatch.setattr(t5_published, 'VOCAB_SIZE', 32128)
    message = refused(target='t5_1_1_xxl', topology='v5e:1x1')
    assert message.startswith('t5_1_1_xxl with t5_1_1_small needs 20.')
    assert ' GiB on each chip of v5e:1x1, and a v5e has 16 GiB.' in message

  @pytest.mark.parametrize('path', ['file', 'file/within'])
  def test_unwritable_folder(self, compiled, tmp_path, path):
    """The error comes before anything is compiled."""
    (tmp_path / 'file').write_text('mine')
    with pytest.raises(OSError) as error:
      _run(tmp_path / path)
    assert f'{tmp_path / path} cannot be written to' in str(error.value)
    assert not compiled
    assert (tmp_path / 'file').read_text() == 'mine'


class TestSeveral:

  def test_drafts_and_gammas(self, compiled, capsys):
    record = _run(draft='t5_1_1_small, t5_1_1_base', gamma=(3, 7))
    names = [draft['name'] for draft in record['drafts']]
    assert names == ['t5_1_1_small', 't5_1_1_base']
    pairs = [(pair['draft'], pair['gamma']) for pair in record['pairs']]
    assert pairs == [(name, gamma) for name in names for gamma in (3, 7)]
    found = [
        (decoder.loaded_drafter.models[0].config.emb_dim, decoder.gamma)
        for decoder, _ in compiled[-4:]
    ]
    assert found == [(128, 3), (128, 7), (256, 3), (256, 7)]
    assert [each['gamma'] for each in record['verify']] == [3, 7]
    printed = capsys.readouterr()
    assert printed.out == report.render(record) + '\n'
    assert len(printed.err.splitlines()) == len(compiled) == 12

  @pytest.mark.parametrize(
      'names',
      [['t5_1_1_small', 't5_1_1_large'],
       't5_1_1_small,t5_1_1_large,t5_1_1_small'],
      ids=['a list', 'one twice'],
  )  # fmt: skip
  def test_repeated_drafts_count_once(self, compiled, names):
    record = _run(draft=names)
    assert [d['name'] for d in record['drafts']] == [
        't5_1_1_small', 't5_1_1_large'
    ]  # fmt: skip

  def test_a_table(self, compiled):
    """A table is compiled in the loop alone."""
    record = _run(draft='bigram')
    (draft,) = record['drafts']
    assert (draft['name'], draft['calls'], draft['steps']) == ('bigram', [], {})
    assert draft['num_params'] == 2 * VOCAB_SIZE * (1 + 64)
    decoder, _ = compiled[-1]
    for array in jax.tree.leaves(decoder.loaded_drafter.params):
      assert isinstance(array, jax.ShapeDtypeStruct)
    ((_, row),) = (
        line.split(' | ', 1)
        for line in report.render(record).splitlines()
        if line.startswith('| bigram | ')
    )
    _, _, roofline, compiled_cost, one_row = row.strip(' |').split(' | ')
    assert (roofline, one_row) == ('-', '-') and float(compiled_cost) > 0

  @libtpu.needed
  def test_a_table_compiles(self):
    (pair,) = _run(target='t5_1_1_small', draft='bigram')['pairs']
    assert pair['loop']['draft_step']['cycles'] > 0

  def test_forms_of_a_step(self, compiled):
    _run()
    blocks = [decoder.target.config.min_block for decoder, _ in compiled]
    assert blocks == [1, 4, 1, 4, 4, 4]

  def test_table_2_rows(self, compiled):
    record = _run(batch_size=8, gamma=(3, 5))
    found = [(each['form'], each['block']) for each in record['row_writes']]
    assert found == [
        ('a scatter', 1), ('a selection', 1),
        ('a scatter', 6), ('a selection', 6),
    ]  # fmt: skip
    options = [options for _, options in compiled if options]
    assert [each['rows'] for each in options] == [8] * 4
    assert [each['slots'] for each in options] == [32 + 5 + 1] * 4

  def test_t5x_step_if_t5x_is_installed(self, compiled, monkeypatch):
    assert _run()['t5x_step'] is None
    monkeypatch.setattr(t5x_step, 'IS_IMPORTABLE', True)
    assert _run()['t5x_step']['step']['cycles'] > 0
    (options,) = [options for _, options in compiled if options]
    assert options['examples'] == 1 and options['length'] == 32

  def test_nothing_is_written_by_default(self, compiled, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _run()
    assert not list(tmp_path.iterdir())

  def test_written_files(self, compiled, tmp_path):
    record = _run(tmp_path / 'new', batch_size=8)
    names = {path.name for path in (tmp_path / 'new').iterdir()}
    assert names == {'tpu_preflight.json', 'tpu_preflight.md'}
    text = (tmp_path / 'new' / 'tpu_preflight.json').read_text()
    assert json.loads(text) == record

  def test_cycles_at_the_clock(self, compiled):
    loop = _run()['pairs'][0]['loop']
    assert loop['step_s'] == loop['step']['cycles'] / 1.05e9 > 0

  def test_chip_of_unknown_clock(self, compiled):
    record = _run(topology='v6e:1x1')
    assert record['pairs'][0]['loop']['step_s'] is None
    assert 'clock unknown' in report.render(record)

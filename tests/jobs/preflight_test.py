# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the preflight job, with tiny sizes of T5 1.1."""

import json

import jax
import pytest

from speculative_t5x.jobs import preflight
from speculative_t5x.networks import chips
from speculative_t5x.research.ahead_of_time import bench
from speculative_t5x.research.ahead_of_time import preflight_report
from speculative_t5x.research.ahead_of_time import program_reading
from speculative_t5x.research.ahead_of_time import programs
from speculative_t5x.research.ahead_of_time import t5x_step
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import theory
from tests import compilation
from tests.research.ahead_of_time import libtpu

GAMMA = 3
SHAPES = dict(inputs_length=16, targets_length=32)
_MEMORY = 'arguments', 'temporaries', 'outputs', 'code'
# No other width is equal, so that sizes identify arrays.
VOCAB_SIZE = 1536


@pytest.fixture(scope='module', autouse=True)
def tiny_sizes():
  """Replace the sizes by tiny ones, each wider than the one before."""
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
    yield


@pytest.fixture
def described(monkeypatch):
  """Make this machine's one device stand for any topology, without libtpu."""

  def describe(name):
    chip = chips.CHIPS[name.split(':')[0]]
    return topology.Topology(
        name, 'tpu', chip, 'libtpu 6.5.4', jax.devices()[:1]
    )

  monkeypatch.setattr(topology, 'describe', describe)


@pytest.fixture
def refused(monkeypatch, tmp_path, described):
  """Return a runner of jobs that must not begin, and their error."""
  monkeypatch.setattr(
      programs, 'compile_loop', lambda *_, **__: pytest.fail('compiled')
  )

  def run(**changes):
    with pytest.raises(ValueError) as error:
      _run(tmp_path / 'new', **changes)
    assert not (tmp_path / 'new').exists()
    return str(error.value)

  return run


@pytest.fixture
def compiled(monkeypatch, described):
  """Replace the compilation; return the decoder of each program."""
  calls = []

  def compile_program(place, make, decoder, batch, gamma):
    calls.append(decoder)
    step = program_reading.Reading(cycles=1000 * len(calls))
    return programs.Program(1.0, step, step, dict.fromkeys(_MEMORY, 1))

  monkeypatch.setattr(programs, 'compile_loop', compile_program)
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
  return preflight.preflight(**{**arguments, **changes})


@pytest.mark.parametrize(
    'compiles',
    [
        False,
        pytest.param(True, marks=[pytest.mark.exhaustive, libtpu.needed]),
    ],
)
def test_record_and_files(tmp_path, request, compiles):
  if not compiles:
    request.getfixturevalue('compiled')
  record = _run(tmp_path / 'new')
  assert len(record['table_2']) == 12
  for row, printed in zip(record['table_2'], published.TABLES_2_AND_4):
    assert (row['task'], row['draft']) == (printed.task, printed.draft)
    assert 0 < row['speedup'] < printed.gamma + 1
    if printed.gamma == GAMMA:  # whose verification was compiled
      plain_s = record['target']['calls'][0]['seconds']
      verify_s = record['verify'][0]['call']['seconds']
      tokens = theory.expected_tokens(printed.alpha, GAMMA)
      cost = GAMMA * row['c'] + verify_s / plain_s
      assert row['speedup'] == pytest.approx(float(tokens) / cost)
  written = {x.name: x.read_text() for x in (tmp_path / 'new').iterdir()}
  text = written.pop('preflight.md')
  assert text == f'{preflight_report.render(record)}\n'
  for title in ('Memory', 'Steps', 'What the loop does', 'Table 2'):
    assert f'\n## {title}' in text
  assert text.count('| EnDe |') + text.count('| CNNDM |') == 12
  assert json.loads(written.pop('preflight.json')) == record
  assert not written


class TestArguments:

  @pytest.mark.parametrize(
      ('changes', 'named'),
      [
          ({'target': 't5_1_1_huge'}, "no T5 1.1 'huge'"),
          ({'draft': 't5_1_1_small, t5_small'}, "no draft 't5_small'"),
          ({'gamma': 1.5}, 'gamma must be a whole number'),
          ({'gamma': 33}, 'gamma 33 is longer'),
          ({'mesh_shape': (2, 2)}, 'got (2, 2): their product must be 1'),
      ],
  )
  def test_values(self, refused, changes, named):
    assert named in refused(**changes)

  def test_pair_that_does_not_fit(self, refused, monkeypatch):
    """11e9 parameters of 2 bytes do not fit the 16 GiB of a v5e.

    Of two layers as large as its 24, which are traced one by one; 872e6 of them
    are one kernel, which is read in 4 bytes each.
    """
    xxl = dict(emb_dim=4096, num_heads=64, num_layers=2, mlp_dim=212_992)
    monkeypatch.setitem(t5_published.SIZES, 'xxl', xxl)
    monkeypatch.setattr(t5_published, 'VOCAB_SIZE', 32128)
    message = refused(target='t5_1_1_xxl', topology='v5e:1x1')
    assert message.startswith('t5_1_1_xxl with t5_1_1_small needs 24.0 GiB')
    assert ' on each chip of v5e:1x1, and a v5e has 16 GiB.' in message


class TestSeveral:

  def test_drafts_and_gammas(self, compiled, capsys):
    record = _run(draft='t5_1_1_small, t5_1_1_base', gamma=(3, 7))
    assert record['t5x_step'] is None  # T5X is not installed
    names = [draft['name'] for draft in record['drafts']]
    assert names == ['t5_1_1_small', 't5_1_1_base']
    pairs = [(pair['draft'], pair['gamma']) for pair in record['pairs']]
    assert pairs == [(name, gamma) for name in names for gamma in (3, 7)]
    found = [
        (decoder.loaded_drafter.models[0].config.emb_dim, decoder.options.gamma)
        for decoder in compiled[-4:]
    ]
    assert found == [(128, 3), (128, 7), (256, 3), (256, 7)]
    assert [each['gamma'] for each in record['verify']] == [3, 7]
    printed = capsys.readouterr()
    assert printed.out == f'{preflight_report.render(record)}\n'
    assert len(printed.err.splitlines()) == len(compiled) == 12

  def test_a_head(self, compiled):
    """It is compiled in the loop alone, with the features that it reads."""
    record = _run(draft='feature_head_1_small')
    (draft,) = record['drafts']
    assert (draft['calls'], draft['steps']) == ([], {})
    (model,) = compiled[-1].loaded_drafter.models
    assert model.config.feature_dim == 256  # the width of the target
    assert draft['num_params'] == model.num_params

  def test_a_table(self, compiled):
    """A table is compiled in the loop alone."""
    record = _run(draft='bigram')
    (draft,) = record['drafts']
    assert (draft['name'], draft['calls'], draft['steps']) == ('bigram', [], {})
    assert draft['num_params'] == 2 * VOCAB_SIZE * (1 + 64)
    decoder = compiled[-1]
    for array in jax.tree.leaves(decoder.loaded_drafter.params):
      assert isinstance(array, jax.ShapeDtypeStruct)
    ((_, row),) = (
        line.split(' | ', 1)
        for line in str(preflight_report.render(record)).splitlines()
        if line.startswith('| bigram | ')
    )
    _, _, roofline, compiled_cost, one_row = row.strip(' |').split(' | ')
    assert (roofline, one_row) == ('-', '-') and float(compiled_cost) > 0

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
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import t5_published
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
      program_reading, 'compile_loop', lambda *_, **__: pytest.fail('compiled')
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
    return program_reading.Program(1.0, step, step, dict.fromkeys(_MEMORY, 1))

  monkeypatch.setattr(program_reading, 'compile_loop', compile_program)
  return calls


def _run(folder=None, batch_size=1, mesh_shape=None, **changes):
  arguments = dict(
      target='t5_1_1_base',
      draft='t5_1_1_small',
      topology='v4:1x1x1',
      gamma=GAMMA,
      shapes=bench.Sizes(
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
  written = {x.name: x.read_text() for x in (tmp_path / 'new').iterdir()}
  text = written.pop('preflight.md')
  assert text == f'{preflight_report.render(record)}\n'
  for title in ('Memory', 'Steps', 'What the loop does'):
    assert f'\n## {title}' in text
  assert json.loads(written.pop('preflight.json')) == record
  assert not written


class TestArguments:

  @pytest.mark.parametrize(
      ('changes', 'named'),
      [
          ({'target': 't5_1_1_huge'}, 't5_1_1_small'),
          ({'draft': 't5_1_1_small, t5_small'}, "no draft 't5_small'"),
          ({'gamma': 1.5}, 'gamma must be a whole number'),
          ({'gamma': 33}, 'gamma 33 is longer'),
          ({'mesh_shape': (2, 2)}, 'got (2, 2): their product must be 1'),
      ],
  )
  def test_values(self, refused, changes, named):
    assert named in refused(**changes)


class TestSeveral:

  def test_drafts_and_gammas(self, compiled, capsys):
    record = _run(draft='t5_1_1_small, t5_1_1_base', gamma=(3, 7))
    names = ['t5_1_1_small', 't5_1_1_base']
    pairs = [(pair['draft'], pair['gamma']) for pair in record['pairs']]
    assert pairs == [(name, gamma) for name in names for gamma in (3, 7)]
    found = [
        (decoder.loaded_drafter.models[0].config.emb_dim, decoder.options.gamma)
        for decoder in compiled[-4:]
    ]
    assert found == [(128, 3), (128, 7), (256, 3), (256, 7)]
    printed = capsys.readouterr()
    assert printed.out == f'{preflight_report.render(record)}\n'
    assert len(printed.err.splitlines()) == len(compiled) == 5

  def test_a_head(self, compiled):
    """It reads the features of the target."""
    _run(draft='feature_head_1_small')
    (model,) = compiled[-1].loaded_drafter.models
    assert model.config.feature_dim == 256  # the width of the target

  @pytest.mark.parametrize('gamma', [3, 7])
  def test_table_2(self, compiled, gamma):
    """Rows stand where a pair was compiled at their gamma, in its cycles."""
    text = str(preflight_report.render(_run(gamma=gamma)))
    rows = [x.split(' | ') for x in text.splitlines() if ' | small | ' in x]
    # Cycles are 1000 per program: plain, loop.
    for row in rows:
      alpha, speedup = float(row[4]), float(row[-1].strip(' |'))
      tokens = (1 - alpha ** (gamma + 1)) / (1 - alpha)
      assert speedup == pytest.approx(tokens / 2, abs=0.01)
    assert len(rows) == (2 if gamma == 7 else 0)

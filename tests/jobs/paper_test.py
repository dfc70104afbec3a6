# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The paper job: what each table and figure writes, and from what."""

import dataclasses
import json
import pathlib

import pytest

from speculative_t5x.jobs import paper
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.paper import figures
from speculative_t5x.research.paper import loop_trace
from speculative_t5x.research.paper import measured_pairs
from speculative_t5x.research.paper import published
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import token_trace
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import theory
from tests import workloads
from tests.research.paper import records

_SHAPES = simulated_walltimes.Shapes(
    num_examples=2, inputs_length=5, targets_length=8, repeats=1, rounds=1
)
_PAIR = 'bulletins_ende: draft/checkpoint_4 for target/checkpoint_2, bfloat16'
_TEXT = 'On Friday, the IC 182 arrives at platform 11.'


@pytest.fixture(scope='module', autouse=True)
def tiny_sizes():
  size = dict(emb_dim=16, num_heads=2, num_layers=1, mlp_dim=16, head_dim=8)
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(
        t5_published, 'SIZES', dict.fromkeys(t5_published.SIZES, size)
    )
    patch.setattr(t5_published, 'VOCAB_SIZE', 64)
    patch.setattr(memory, 'available_bytes', lambda: 2 * 2**30)
    yield


@pytest.fixture
def measured(monkeypatch):
  """Nothing is timed; the names of what would have been."""
  names = []

  def measure(programs, batches, settings, name, reference=None):
    names.append(name)
    gamma = programs.decoder.options.gamma
    return records.with_times(settings, gamma), None, None

  monkeypatch.setattr(walltimes, 'measure', measure)
  return names


@pytest.fixture
def points(monkeypatch):
  """Return the points of every figure that is drawn, by its function."""
  seen = {}

  def note(name):
    draw = getattr(figures, name)

    def drawn(points):
      seen[name] = list(points)
      return draw(points)

    monkeypatch.setattr(figures, name, drawn)

  for number in (2, 3, 4):
    note(f'figure_{number}')
  return seen


@pytest.fixture(scope='module')
def pair():
  return workloads.text_decoder(gamma=1, max_tokens=24)


def _details(path):
  """Return the rows of the last table of speedups, by column."""
  return records.table_with(path.read_text(), 'efficiency')


def _results(path, *found):
  """Write a file of results, as a walltime job does."""
  path.parent.mkdir(parents=True, exist_ok=True)
  path.write_text(''.join(run_record.to_json(each) + '\n' for each in found))
  return path


def _names(folder):
  return sorted(path.name for path in folder.iterdir())


def _check_pictures(folder, name):
  assert (folder / f'{name}.pdf').read_bytes().startswith(b'%PDF-')
  assert (folder / f'{name}.png').read_bytes().startswith(b'\x89PNG')


def _speeds(make, folder, **changes):
  make(folder, **{'target_size': 'xl', 'shapes': _SHAPES, **changes})


def _measured(folder, task, draft, *found):
  """Write what `task_pairs` would have measured of a pair."""
  path = measured_pairs.folder(folder, task, draft) / 'results.jsonl'
  return _results(pathlib.Path(path), *found)


def test_tables_2_and_4(measured, tmp_path, monkeypatch):
  """They are of the same runs, each row at the paper's alpha."""
  _speeds(paper.table2, tmp_path)
  assert len(measured) == len(set(measured)) == 12
  monkeypatch.setattr(simulated_walltimes, 'make_model', None)
  _speeds(paper.table2, tmp_path)
  assert len(measured) == 12
  assert _names(tmp_path) == ['simulated', 'table2.md']
  results = (tmp_path / 'simulated' / 'results.jsonl').read_text()
  assert len(results.splitlines()) == 12
  for row, cells in zip(
      published.TABLES_2_AND_4, _details(tmp_path / 'table2.md'), strict=True
  ):
    assert cells['task'] == row.task and cells['draft'].startswith(row.draft)
    assert cells['alpha'] == cells["paper's alpha"] == f'{row.alpha:.2f}'
    assert cells["paper's EMP"] == f'{row.measured:.1f}'
    assert (
        f't5_1_1_xl and {row.draft}, gamma {row.gamma}, alpha {row.alpha:g},'
        f' temperature {row.temperature}'
    ) in measured


def test_no_row_is_simulated(measured, tmp_path):
  _speeds(paper.table2, tmp_path, shapes=None)
  assert not measured and _names(tmp_path) == ['table2.md']


def test_measured_rows_are_not_simulated(measured, tmp_path):
  """They are separated from the others, and may have two gammas."""
  _measured(
      tmp_path,
      'EnDe',
      'small',
      dataclasses.replace(records.measured(), gamma=None, speedup=None),
      records.measured(7, 0.0, alpha=0.33),
      records.measured(9, 0.0, alpha=0.33),
      records.measured(7, 1.0, alpha=0.22),
  )
  _measured(tmp_path, 'mine', 'copy', records.measured(5, 0.0, alpha=0.11))
  _speeds(paper.table2, tmp_path)
  assert len(measured) == 10
  assert not [name for name in measured if 'alpha 0.75' in name]
  page = (tmp_path / 'table2.md').read_text()
  _, _, details, _, simulated = records.tables(page)
  assert [row[:4] for row in details[1]] == [
      ['EnDe', 'small ★', '0', '7, paper'],
      ['EnDe', 'small ★', '0', '9, Theorem 3.8'],
      ['EnDe', 'small ★', '1', '7, paper'],
      ['mine', 'copy', '0', '5, given'],
  ]
  assert len(simulated[1]) == 10


class TestTable3:

  def test_pairs_stand_beside_the_papers(self, tmp_path):
    alone = {'gamma': None, 'speedup': None}
    for task, draft in (
        ('Alone', 'x'), ('EnDe', 'copy'), ('EnDe', 'small'), ('EnDe', 'bigram')
    ):  # fmt: skip
      scored = dataclasses.replace(records.measured(), **alone)
      _measured(tmp_path, task, draft, scored, records.measured(7, 0.0))
    paper.table3(tmp_path)
    _, (_, rows) = records.tables((tmp_path / 'table3.md').read_text())
    own = ['0', '0.700', '[0.690, 0.710]', '10000']
    # The paper's come first, whatever their names.
    assert rows == [
        ['EnDe: bigram', *own, '0.20'],
        ['EnDe: small', *own, '0.75'],
        ['EnDe: copy', *own, '-'],
        ['Alone: x', *own, '-'],
    ]


def test_table5(tmp_path):
  """Each alpha is in the column of its lenience."""
  found = [
      records.measured(
          7,
          1.0,
          verification={'rule': f'lenience(lenience={x})', 'lenience': x},
          rule_alpha={
              'value': 1 - x / 4, 'ci95': [0.5, 1.0], 'num_tokens': 9
          },
          accepted_per_tested=1 - x / 2,
          accepted_per_tested_ci95=[0.25, 1.0],
      )
      for x in (0.1, 1.0, 0.5)
  ]  # fmt: skip
  _measured(tmp_path, 'EnDe', 'small', *found, records.measured(7, 1.0))
  paper.table5(tmp_path)
  page = (tmp_path / 'table5.md').read_text()
  expected, counted, factors = records.table_with(page, 'tokens')
  assert (expected['alpha'], expected['tokens']) == ('expected', '9')
  assert counted['alpha'] == 'accepted / tested'
  for name, value, count in (
      ('l = 1', '0.750', '0.500'),
      ('l = 0.5', '0.875', '0.750'),
      ('l = 0.1', '0.975', '0.950'),
  ):
    assert expected[name] == f'{value} [0.500, 1.000]'
    assert counted[name] == f'{count} [0.250, 1.000]'
    factor = theory.walltime_factor(float(value), 7, records.COST)
    assert factors[name] == f'{factor:.2f}'
  papers = records.table_with(page, 'l = 0.3')
  shown = {(x['draft'], x['T'], x['alpha']): x['l = 0.3'] for x in papers}
  assert len(papers) == 9
  assert shown['small', '0', 'alpha'] == '0.80'
  # The paper's factors at temperature 0 are those of its alpha, c and gamma.
  assert shown['small', '0', 'factor, A.5'] == '3.9'
  assert shown['small', '0', 'Thm 3.8, gamma 8, c = 0.015'] == '3.87'


class TestFigures2To4:

  def test_what_was_measured(self, measured, points, tmp_path):
    """Records with simulated acceptance are not used for sweeps of gamma."""
    _speeds(paper.table2, tmp_path)
    swept = [records.measured(gamma) for gamma in (1, 3)]
    _measured(tmp_path, 'mine', 'x', *swept)
    for make in (paper.figure2, paper.figure3, paper.figure4):
      make(tmp_path)
      _check_pictures(tmp_path, make.__name__)
    found = {name: len(each) for name, each in points.items()}
    assert found == {'figure_2': 14, 'figure_3': 2, 'figure_4': 14}
    assert {point.label for point in points['figure_2']} == {
        'T5 1.1 small for T5 1.1 XL, simulated',
        'T5 1.1 base for T5 1.1 XL, simulated',
        'T5 1.1 large for T5 1.1 XL, simulated',
        _PAIR,
    }

  def test_records_without_a_point(self, tmp_path):
    """An eval job measures no alpha. Others' points do not hide that."""
    good = _results(tmp_path / 'good.jsonl', records.measured())
    path = _results(
        tmp_path / 'eval.jsonl',
        dataclasses.replace(records.measured(), alpha=None),
    )
    with pytest.raises(ValueError, match=f'{path} holds no record with alpha'):
      paper.figure2(tmp_path / 'output', [good, path])
    assert not (tmp_path / 'output').exists()


def test_figure1(pair, tmp_path, capsys):
  paper.figure1(tmp_path, pair, _TEXT)
  assert _names(tmp_path) == ['figure1.svg']
  picture = (tmp_path / 'figure1.svg').read_text()
  assert picture.startswith('<svg') and 'http' not in picture.split('>', 1)[1]
  shown = capsys.readouterr().out
  assert 'accepted draft token' in shown and '<svg' not in shown
  batch, _ = whole_batches.make_batch(pair, [_TEXT])
  blocks = token_trace.blocks_of(pair.tokens, batch)
  pieces = pair.vocabulary.id_to_piece
  lines = console.to_text(token_trace.TokenTrace(blocks, pieces)).splitlines()
  assert all(line in shown for line in lines)
  assert 'gamma 1; temperature 0; float32, 1 x cpu' in ' '.join(shown.split())
  assert len(blocks) > 1


def test_figure5(pair, tmp_path, monkeypatch):
  """Below plain decoding, which is there once; in every file."""
  drawn, draw = [], loop_trace.draw
  monkeypatch.setattr(
      loop_trace, 'draw', lambda rows, *x: drawn.append(rows) or draw(rows, *x)
  )
  with workloads.instant_parts():
    paper.figure5(tmp_path, pair, _TEXT, gammas=(1, 2), rounds=2)
  assert _names(tmp_path) == ['figure5.json', 'figure5.pdf', 'figure5.png']
  _check_pictures(tmp_path, 'figure5')
  trace = json.loads((tmp_path / 'figure5.json').read_text())
  assert [*trace] == ['plain', 'γ = 1', 'γ = 2']
  ((plain, *speculative),) = drawn
  batch, _ = whole_batches.make_batch(pair, [_TEXT])
  tokens = pair.tokens
  assert plain.label == 'plain'
  num_steps = [way(batch).work.num_steps for way in whole_batches.ways(tokens)]
  assert [plain.num_target_calls, speculative[0].num_target_calls] == num_steps
  for gamma, row in zip((1, 2), speculative, strict=True):
    assert row.label == f'γ = {gamma}'
    drafts = [s for s in row.spans if s.kind == 'draft']
    assert len(drafts) == gamma * row.num_target_calls

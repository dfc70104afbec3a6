# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark of recipes for drafts."""

import json
import pathlib

import pytest

from benchmarks import draft_recipes
from speculative_t5x.cli import main
from speculative_t5x.training import history


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        (['--work=x', '--recipes=luck'], 'no recipe luck'),
        (['--work=x', '--seeds=-1'], 'seeds'),
        ([], '--work'),
    ],
)
def test_bad_options(given, message, capsys):
  with pytest.raises(SystemExit, match='2'):
    draft_recipes.parse_arguments(given)
  assert message in capsys.readouterr().err


@pytest.mark.parametrize('name', draft_recipes.RECIPES)
def test_jobs_take_the_options(name, tmp_path, capsys):
  """Gin accepts all files and macros: the only error is a missing folder."""
  missing = tmp_path / 'missing'
  made = draft_recipes.command(
      name,
      1,
      tmp_path / 'work',
      [
          f'--gin.MULTI30K_DIR="{missing}"',
          f'--gin.CHECKPOINT_PATH="{missing}"',
      ],
  )
  assert made[2] == 'speculative_t5x.cli.main'
  assert main.main(made[3:]) != 0
  assert str(missing) in capsys.readouterr().err


def _points(**scores):
  make = lambda x: history.Point(
      10, {}, {'acceptance_t0': x, 'acceptance_t1': x / 2}, x
  )
  return {int(seed[1:]): make(x) for seed, x in scores.items()}


class TestDifferences:

  def test_by_hand(self):
    """Seed by seed 0.1, 0.2 and 0.3: the interval is 0.2 +- 4.303 * 0.0577."""
    found = _points(s0=0.5, s1=0.9, s2=0.7)
    baseline = _points(s0=0.4, s1=0.7, s2=0.4, s3=0.0)
    result = draft_recipes.differences(found, baseline)
    half = 4.302653 * 0.1 / 3**0.5
    expected = [0.2, 0.2 - half, 0.2 + half]
    assert result['acceptance_t0'] == pytest.approx(expected)
    assert result['acceptance_t1'][0] == pytest.approx(0.1)

  def test_one_seed_has_no_interval(self):
    result = draft_recipes.differences(_points(s0=0.5), _points(s0=0.4))
    assert result['acceptance_t0'] == pytest.approx([0.1])


def test_a_line_per_recipe(tmp_path, monkeypatch, capsys):
  """The best checkpoint of each seed counts, not the last one."""

  def train(command, check):
    assert check
    (folder,) = (x for x in command if x.startswith('--gin.MODEL_DIR='))
    folder = pathlib.Path(folder.split('"')[1])
    folder.mkdir(parents=True)
    base = 0.5 if 'references' in str(folder) else 0.75
    base += 0.01 * int(folder.name[-1])
    rows = [
        {
            'step': step,
            'training': {},
            'validation': {'acceptance_t0': base + x, 'acceptance_t1': base},
            'score': base + x,
        }
        for step, x in ((1, 0.0), (2, 0.1), (3, 0.05))
    ]
    (folder / 'history.json').write_text(json.dumps(rows))

  monkeypatch.setattr(draft_recipes.subprocess, 'run', train)
  output = tmp_path / 'lines.ndjson'
  draft_recipes.main(
      [
          f'--work={tmp_path}',
          '--recipes=references,forward_kl',
          '--seeds=0,1',
          f'--output={output}',
      ]
  )
  assert capsys.readouterr().out == output.read_text()
  first, second = map(json.loads, output.read_text().splitlines())
  assert first['steps'] == {'0': 2, '1': 2}
  assert first['mean']['acceptance_t0'] == pytest.approx(0.605)
  assert 'over_references' not in first
  assert second['over_references']['acceptance_t1'][0] == pytest.approx(0.25)

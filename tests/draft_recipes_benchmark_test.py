# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark of recipes for drafts."""

import json
import pathlib
import types

import pytest

from benchmarks.draft_recipes import __main__ as draft_recipes
from benchmarks.draft_recipes import jobs
from benchmarks.draft_recipes import recipes
from speculative_t5x.jobs.command_line import main
from speculative_t5x.research import run_record
from speculative_t5x.training import history

_FOLDERS = ['--multi30k=a', '--target=b', '--work=c']


@pytest.mark.parametrize(
    ('given', 'message'),
    [
        ([*_FOLDERS, '--recipes=luck'], 'no recipe luck'),
        ([*_FOLDERS, '--seeds=-1'], 'seeds'),
        (_FOLDERS[:1], '--target'),
    ],
)
def test_bad_options(given, message, capsys):
  with pytest.raises(SystemExit, match='2'):
    draft_recipes.parse_arguments(given)
  assert message in capsys.readouterr().err


def _trained_draft(name, tmp_path):
  """Returns a draft whose files are missing, but for its history."""
  folder = tmp_path / 'trained'
  _write_history(folder, 0.5)
  missing = tmp_path / 'missing'
  return jobs.Draft(
      recipes.RECIPES[name], 1, folder, tmp_path, missing, missing
  )


def _write_history(folder, acceptance):
  """The second of three points is the best one."""
  folder.mkdir(parents=True)
  rows = [
      {
          'step': step,
          'training': {},
          'validation': {
              'acceptance_t0': acceptance + x,
              'acceptance_t1': acceptance,
          },
          'score': acceptance + x,
      }
      for step, x in ((1, 0.0), (2, 0.1), (3, 0.05))
  ]
  (folder / history.FILE_NAME).write_text(json.dumps(rows))


@pytest.mark.parametrize('name', recipes.RECIPES)
@pytest.mark.parametrize('job', ['training', 'walltime', 'quality'])
def test_jobs_take_the_options(name, job, tmp_path, capsys):
  """Gin accepts all files and macros: the only error is a missing folder."""
  draft = _trained_draft(name, tmp_path)
  command = getattr(draft, f'{job}_command')()
  assert command[2] == 'speculative_t5x.jobs.command_line.main'
  assert main.main(command[3:]) != 0
  assert str(tmp_path / 'missing') in capsys.readouterr().err


def test_options_of_all_trainings(tmp_path):
  option = '--gin.TRAIN_STEPS=7'
  draft = _trained_draft('cut', tmp_path)
  assert option in draft.training_command([option])


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


def _run_nothing(command, check):
  """Writes what the jobs would, with numbers that tell the drafts apart."""
  assert check
  job = command[3]
  macros = dict(x[6:].split('=', 1) for x in command if x.startswith('--gin.'))
  if job == 'distill':
    folder = pathlib.Path(json.loads(macros['MODEL_DIR']))
    base = 0.5 if 'references' in str(folder) else 0.75
    _write_history(folder, base + 0.01 * int(folder.name[-1]))
  elif job == 'eval':
    assert json.loads(macros['CHECKPOINT_PATH']).endswith('/checkpoint_2')
  else:
    path = json.loads(macros['DRAFT_CHECKPOINT_PATH'])
    assert path.endswith('seed_0/checkpoint_2')


def _records(path):
  is_quality = pathlib.Path(path).parent.name == 'quality'
  quality = run_record.BothRuns({'bleu': 31.0}, {'bleu': 30.0})
  return [
      types.SimpleNamespace(
          temperature=0.0,
          gamma=3,
          speedup=1.5,
          speedup_ci95=(1.4, 1.6),
          tokens_per_target_call=2.5,
          quality=quality if is_quality else None,
      )
  ]


def test_a_line_per_recipe(tmp_path, monkeypatch, capsys):
  """The best checkpoint of each seed counts, not the last one."""
  monkeypatch.setattr(jobs.subprocess, 'run', _run_nothing)
  monkeypatch.setattr(jobs.runs, 'read', _records)
  output = tmp_path / 'lines.ndjson'
  draft_recipes.main(
      [
          '--multi30k=a',
          '--target=b',
          f'--work={tmp_path}',
          '--recipes=forward_kl,references,exit_head',
          '--seeds=0,1',
          f'--output={output}',
      ]
  )
  assert capsys.readouterr().out == output.read_text()
  first, second, third = map(json.loads, output.read_text().splitlines())
  assert first['steps'] == {'0': 2, '1': 2}
  assert first['mean']['acceptance_t0'] == pytest.approx(0.605)
  assert first['bleu'] == 31.0
  assert first['speed'] == [
      {
          'temperature': 0.0,
          'gamma': 3,
          'speedup': 1.5,
          'speedup_ci95': [1.4, 1.6],
          'tokens_per_target_call': 2.5,
      }
  ]
  assert 'over_references' not in first
  assert second['over_references']['acceptance_t1'][0] == pytest.approx(0.25)
  assert third['bleu'] is None  # it decodes nothing without the target

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the benchmark of recipes for drafts."""

import json
import pathlib
import types

import pytest

from benchmarks.draft_recipes import __main__ as draft_recipes
from benchmarks.draft_recipes import jobs
from speculative_t5x.jobs.command_line import main
from speculative_t5x.research import run_record
from speculative_t5x.training import history


def _write_history(folder, acceptance):
  """The second of three points is the best one."""
  folder.mkdir(parents=True)
  rows = [
      {
          'step': step,
          'training': {},
          'validation': {'acceptance_t0': x, 'acceptance_t1': acceptance},
          'score': x,
      }
      for step, x in enumerate(
          (acceptance, acceptance + 0.1, acceptance + 0.05), start=1
      )
  ]
  (folder / history.FILE_NAME).write_text(json.dumps(rows))


@pytest.mark.parametrize('name', jobs.RECIPES)
def test_jobs_take_the_options(name, tmp_path, capsys):
  """Gin accepts all files and macros: the only error is a missing folder."""
  _write_history(tmp_path / 'trained', 0.5)
  missing = tmp_path / 'missing'
  draft = jobs.Draft(
      jobs.RECIPES[name], 1, tmp_path / 'trained', tmp_path, missing, missing
  )
  option = '--gin.TRAIN_STEPS=7'
  training = draft.training_command([option])
  assert option in training
  for command in (training, draft.walltime_command(), draft.quality_command()):
    assert command[2] == 'speculative_t5x.jobs.command_line.main'
    assert main.main(command[3:]) != 0
    assert str(missing) in capsys.readouterr().err


def _points(*scores):
  return {
      seed: history.Point(10, {}, {'acceptance_t0': x, 'acceptance_t1': 0}, x)
      for seed, x in enumerate(scores)
  }


def test_differences_by_hand():
  """Seed by seed 0.1, 0.2 and 0.3: the interval is 0.2 +- 4.303 * 0.0577."""
  found, baseline = _points(0.5, 0.9, 0.7), _points(0.4, 0.7, 0.4, 0.0)
  half = 4.302653 * 0.1 / 3**0.5
  result = draft_recipes.differences(found, baseline)['acceptance_t0']
  assert result == pytest.approx([0.2, 0.2 - half, 0.2 + half])
  result = draft_recipes.differences(_points(0.5), baseline)['acceptance_t0']
  assert result == pytest.approx([0.1])  # one seed has no interval


def _run_nothing(command, check):
  """Writes what the jobs would, with numbers that tell the drafts apart."""
  assert check
  job = command[3]
  macros = dict(x[6:].split('=', 1) for x in command if x.startswith('--gin.'))
  if job == 'distill':
    folder = pathlib.Path(json.loads(macros['MODEL_DIR']))
    base = 0.5 if 'references' in str(folder) else 0.75
    _write_history(folder, base + 0.01 * int(folder.name[-1]))
  else:
    key = {'eval': 'CHECKPOINT_PATH', 'walltime': 'DRAFT_CHECKPOINT_PATH'}[job]
    assert json.loads(macros[key]).endswith('seed_0/checkpoint_2')


def _records(path):
  return [
      types.SimpleNamespace(
          temperature=0.0,
          gamma=3,
          speedup=1.5,
          speedup_ci95=(1.4, 1.6),
          tokens_per_target_call=2.5,
          quality=run_record.BothRuns({'bleu': 31.0}, {'bleu': 30.0}),
      )
  ]


def test_a_line_per_recipe(tmp_path, monkeypatch, capsys):
  """The best checkpoint of each seed counts, not the last one."""
  monkeypatch.setattr(jobs.subprocess, 'run', _run_nothing)
  monkeypatch.setattr(jobs.runs, 'read', _records)
  output = tmp_path / 'lines.ndjson'
  flags = (
      f'--multi30k=a --target=b --work={tmp_path} --output={output}'
      ' --recipes=forward_kl,references,exit_head --seeds=0,1'
  )
  draft_recipes.main(flags.split())
  assert capsys.readouterr().out == output.read_text()
  first, second, third = map(json.loads, output.read_text().splitlines())
  assert first['recipe'] == 'references' and 'over_references' not in first
  assert first['steps'] == {'0': 2, '1': 2}
  assert first['mean']['acceptance_t0'] == pytest.approx(0.605)
  assert first['bleu'] == 31.0
  (speed,) = first['speed']
  assert speed['gamma'] == 3 and speed['speedup_ci95'] == [1.4, 1.6]
  assert second['over_references']['acceptance_t1'][0] == pytest.approx(0.25)
  assert third['bleu'] is None  # it decodes nothing without the target

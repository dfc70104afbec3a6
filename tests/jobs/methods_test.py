# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the methods job on a tiny target and a few embedded examples."""

import dataclasses
import functools
import importlib.util

import pytest

from speculative_t5x.jobs import methods
from speculative_t5x.jobs import walltime
from speculative_t5x.jobs.outputs import speedup_picture
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.policies import expected_speed
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import runs
from speculative_t5x.speculation import draft_length
from tests import workloads
from tests.research.paper import records

pytestmark = pytest.mark.usefixtures('unchecked_types')


@pytest.fixture(scope='module', autouse=True)
def instant_parts():
  with workloads.instant_parts():
    yield


@pytest.fixture(scope='module')
def job(tmp_path_factory):
  """Return the setup of a walltime job that lacks its output folder."""
  pair = workloads.save_pair(tmp_path_factory.mktemp('pair'))
  return walltime.WalltimeSetup(
      output_dir='',
      **workloads.job_arguments(
          checkpoint_path=pair.target,
          drafters=[lookup_drafting.Lookup()],
          policies=[
              draft_length.Fixed(),
              expected_speed.ExpectedSpeed(0.1, 1.5),
          ],
          gamma=1,
          num_examples=3,
          temperature=1.0,
          repeats=1,
          alpha_tokens=30,
      ),
  )


def test_figure(tmp_path, monkeypatch, capsys):
  """There is none without matplotlib, nor where no time can be read."""
  tasks = {'one': [records.measured()], 'two': [records.measured(3, 1.0)]}
  speedup_picture.write(tmp_path, 'a.png', tasks)
  assert (tmp_path / 'a.png').read_bytes().startswith(b'\x89PNG')
  unread = dataclasses.replace(records.measured(), speedup=None)
  speedup_picture.write(tmp_path, 'b.png', {'one': [unread]})
  monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
  speedup_picture.write(tmp_path, 'c.png', tasks)
  assert 'speculative_t5x[figures]' in capsys.readouterr().err
  assert [path.name for path in tmp_path.iterdir()] == ['a.png']


def test_resumes_and_writes_one_table(job, tmp_path, capsys, monkeypatch):
  measure_walltime = walltime.measure_walltime

  def interrupt(own):
    if own.output_dir.endswith('two'):
      raise KeyboardInterrupt
    return measure_walltime(own)

  run = functools.partial(
      methods.measure_methods,
      output_dir=str(tmp_path),
      tasks=[('one', job), ('two', job)],
  )
  monkeypatch.setattr(walltime, 'measure_walltime', interrupt)
  with pytest.raises(KeyboardInterrupt):
    run()
  first = runs.read(tmp_path / 'one' / 'results.jsonl')
  assert not (tmp_path / 'methods.md').exists()

  capsys.readouterr()
  monkeypatch.setattr(
      walltime,
      'measure_walltime',
      lambda own: first[:1]
      if own.output_dir.endswith('two')
      else measure_walltime(own),
  )
  found = run()
  assert found['one'] == first  # and with the same times
  policies = ['fixed', 'expected_speed(0.1, 1.5)']
  assert [record.gamma_policy for record in first] == policies
  assert found['two'] == first[:1]
  # What a policy that adapts or a short draft leaves unknown is not stated.
  fixed, adaptive = first
  assert fixed.predicted_speedup and adaptive.predicted_speedup is None
  text = (tmp_path / 'methods.md').read_text()
  assert text == f'{methods_table.render(found)}\n'
  path = tmp_path / 'methods.md'
  shown = capsys.readouterr().out
  assert shown.endswith(f'Written: {path}\n') and '| --- |' not in shown
  assert text.count('\n| lookup | tokenwise | fixed | 1 |') == 1


@pytest.mark.parametrize(
    ('names', 'message'),
    [
        ((), 'tasks must be one or several'),
        (('a', 'b', 'a'), "A task has the name 'a'"),
        (('methods.md',), "'methods.md'"),
    ],
)
def test_names_of_tasks(job, tmp_path, names, message):
  """They are checked before anything is measured."""
  tasks = [(name, job) for name in names]
  with pytest.raises(ValueError, match=message):
    methods.measure_methods(output_dir=str(tmp_path), tasks=tasks)
  assert not list(tmp_path.iterdir())



# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that pages, reports and pictures show the records of `results`."""

import json
import pathlib
import re
import shutil

import pytest

from scripts.pages import records
from scripts.pages import reports
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import walltime_summary

_ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture
def copied(tmp_path, monkeypatch):
  """Return a copy of the results, which the tables are made from."""
  monkeypatch.setattr(records, 'RESULTS', tmp_path / 'results')
  return pathlib.Path(shutil.copytree(_ROOT / 'results', records.RESULTS))


def test_reports_show_the_records():
  for path, text in reports.render():
    assert text == path.read_text(), f'{path}: run `make pages`'


@pytest.mark.parametrize(
    ('record', 'number', 'report'),
    [
        ('walltime_multi30k.jsonl', r'"speedup": [\d.]+', 'walltime_multi30k'),
        (
            'tpu_preflight/v4_xl/tpu_preflight.json',
            r'"cycles": \d+',
            'tpu_preflight/v4_xl/tpu_preflight',
        ),
    ],
)
def test_changed_record_is_seen(copied, record, number, report):
  path = copied / record
  text = path.read_text()
  other = re.sub(number, lambda x: re.sub(r'[\d.]+$', '7', x[0]), text)
  assert other != text
  path.write_text(other)
  stale = [path for path, text in reports.render() if text != path.read_text()]
  assert copied / f'{report}.md' in stale


@pytest.mark.parametrize(
    ('page', 'name'),
    [
        ('README.md', 'eval_bulletins.jsonl'),
        ('speculative_t5x/embedded/MODEL_CARD.md', 'eval_summary.jsonl'),
    ],
)
def test_page_shows_what_the_eval_job_prints(page, name):
  report = console.to_text(walltime_summary.render_eval(records.runs(name)))
  assert report in (_ROOT / page).read_text()


def test_readme_shows_the_best_speedup_of_each_pair():
  text = (_ROOT / 'README.md').read_text()
  found = re.findall(r'\*\*(\d\.\d\d \[.*?\])\*\*', text)
  assert found
  measured = set()
  for path in records.RESULTS.rglob('*.jsonl'):
    if any(path.match(x) for x in ('walltime*', 'simulate*', 'table2*')):
      runs = records.runs(str(path), temperature=0)
      measured.add(markdown.speedup(max(runs, key=lambda x: x.speedup)))
  assert {*found} <= measured


def test_page_shows_what_the_gpu_measured():
  folder = records.RESULTS / 'gpu_h100'
  runs = [json.loads(x.read_text()) for x in folder.glob('records/*.json')]
  found = [(x['speedup'], *x['speedup_ci95']) for x in runs]
  assert len(found) == 8
  for value, low, high in found:
    shown = f'{value:.2f} [{low:.2f}, {high:.2f}]'
    assert shown in (folder / 'README.md').read_text()


def test_pictures_show_the_records():
  found = {each.path: each for each in reports.pictures()}
  stale = [path for path, each in found.items() if not each.is_current()]
  assert not stale, 'run `make pages`'
  for path in {*records.RESULTS.glob('**/*.png')} - {*found}:
    record = json.loads(path.with_suffix('.json').read_text())
    assert reports.is_made_from(path, [record]), path


def test_greedy_outputs_are_identical():
  """The pages say so of the three trained pairs."""
  for name in reports.MEASURED:
    for record in records.runs(name, temperature=0):
      assert record.greedy.identical == record.num_examples, name

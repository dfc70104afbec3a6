# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that pages, reports and pictures show the records of `results`."""

import json
import pathlib
import re
import shutil
import sys

import markdown_it
import pytest

from scripts.pages import __main__ as command
from scripts.pages import records
from scripts.pages import reports

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = [
    path
    for pattern in command._PATTERNS
    for path in sorted(_ROOT.glob(pattern))
]


@pytest.fixture(autouse=True)
def _without_cogs_modules():
  yield
  for name in [x for x in sys.modules if re.match('cog(_|$)', x)]:
    del sys.modules[name]


@pytest.fixture
def copied(tmp_path, monkeypatch):
  """Return a copy of the results, which the tables are made from."""
  monkeypatch.setattr(records, 'RESULTS', tmp_path / 'results')
  return pathlib.Path(shutil.copytree(_ROOT / 'results', records.RESULTS))


def test_pages_show_the_records(capsys):
  assert command.run_cog('--check') == 0, capsys.readouterr().out


@pytest.mark.parametrize(
    ('record', 'number', 'page'),
    [
        ('walltime_multi30k.jsonl', r'"speedup": [\d.]+', 'docs/results.md'),
        ('row_products.json', r'"1": [\d.]+', 'docs/results.md'),
        ('draft_lengths.ndjson', r'"speedup": [\d.]+', 'docs/choosing.md'),
        ('multi30k/losses.ndjson', r'"bleu": [\d.]+', 'multi30k/README.md'),
        (
            'tpu_preflight/v4_xl/tpu_preflight.json',
            r'"cycles": \d+',
            'docs/tpu.md',
        ),
    ],
)
def test_changed_record_is_seen(copied, capsys, record, number, page):
  path = copied / record
  text = path.read_text()
  other = re.sub(number, lambda x: re.sub(r'[\d.]+$', '7', x[0]), text)
  assert other != text
  path.write_text(other)
  assert command.run_cog('--check') != 0
  assert page in capsys.readouterr().out


@pytest.mark.parametrize('page', _PAGES, ids=lambda path: path.name)
def test_only_the_tables_are_seen(page):
  """Rendered, a page has no trace of the comments that write its tables."""
  render = markdown_it.MarkdownIt().enable('table').render
  text = page.read_text()
  plain = re.sub(r'<!-- \[\[\[(cog .*?|end)\]\]\] -->', '', text)
  seen = re.sub(r'<!--.*?-->', '', render(text), flags=re.DOTALL)
  assert seen.split() == render(plain).split()
  assert '[[[' not in plain and '<!--=' not in plain


def test_reports_show_the_records():
  for path, text in reports.render():
    assert text == path.read_text(), f'{path}: run `make pages`'


def test_pictures_show_the_records():
  found = {each.path: each for each in reports.pictures()}
  stale = [path for path, each in found.items() if not each.is_current()]
  assert not stale, 'run `make pages`'
  # notebooks_test decodes the text of figure 1.
  others = {*records.RESULTS.glob('**/*.png')} - {*found}
  for path in others - {records.RESULTS / 'paper/figure1.png'}:
    record = json.loads(path.with_suffix('.json').read_text())
    assert reports.is_made_from(path, [record]), path


def test_picture_of_another_record_is_stale(copied):
  record = copied / 'training/bulletins_draft/history.json'
  text = record.read_text()
  record.write_text(text.replace('"step": 250,', '"step": 251,'))
  stale = [each.path for each in reports.pictures() if not each.is_current()]
  assert stale == [record.with_name('curves.png')]


def test_greedy_outputs_are_identical():
  """The pages say so of the three trained pairs."""
  for name in reports.MEASURED:
    for record in records.runs(name, temperature=0):
      assert record.greedy.identical == record.num_examples, name

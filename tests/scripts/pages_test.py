# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that every measured number of README and docs is that of its record."""

import json
import pathlib
import re
import shutil

import markdown_it
import pytest

from scripts.pages import __main__ as command
from scripts.pages import checkout
from scripts.pages import reports
from scripts.pages import spans

_ROOT = pathlib.Path(__file__).parents[2]
_PAGES = [str(path.relative_to(_ROOT)) for path in checkout.pages(_ROOT)]
_MARKDOWN = markdown_it.MarkdownIt().enable('table')

# Numbers that look measured and are not, or that no record has: of each page
# all of them. A measured number belongs into a generated span instead.
_NOT_GENERATED = {
    'CHANGELOG.md': {
        'settings': {'32,128'},
    },
    'docs/correctness.md': {
        'settings': {'1,000', '32,128', '250,112', '1.0'},
        'measured by resolution_test': {'1.0', '1.5', '2,113'},
        'measured once, of the draw before': {'1.3', '24,282'},
    },
    'docs/choosing.md': {
        'the paper': {'0.2'},
    },
    'README.md': {
        'settings': {'95 percent'},
        'versions': {'3.11', '3.12'},
    },
    'docs/checkpoints.md': {
        'sizes': {'1 GB', '64 MiB'},
    },
    'docs/gpu.md': {
        'goals, and the paper': {'1.25', '3.4x', '0.75', '0.0084'},
    },
    'docs/jobs.md': {
        'settings': {'10,000', '0.5', '1,024', '2,048'},
        'sizes': {'4 GB'},
    },
    'docs/own.md': {
        'settings': {'0.9'},
    },
    'docs/paper.md': {
        'the paper': {'0.05', '0.11'},
    },
    'docs/results.md': {
        'settings': {
            '95 percent', '4 percent', '3 percent', '0.75', '0.95', '1.03'
        },
        'sizes': {
            '10.6M', '0.9M', '9.2M', '1.6M', '2 MB', '16 MB', '18 MB', '24 GB',
            '24 MB', '29 MB', '32 MB', '64 MB',
        },
        'the paper': {'3.4x', '2.2x', '0.02', '0.04'},
        'by hand': {'5 percent', '9 percent'},
    },
    'docs/run_record.md': {
        'definitions': {'95 percent', '0.5', '3 percent', '1.02', '1 GiB'},
    },
    'docs/tpu.md': {
        'settings': {'1,024'},
        'the paper': {'0.75', '3.2', '3.4', '0.11'},
        'by hand': {'13,829,544', '27,676,045', '1,280'},
    },
    'docs/t5x.md': {
        'settings': {'0.01', '0.001', '10,000'},
    },
    'docs/training.md': {
        'settings': {'1,000'},
        'sizes': {'1,024'},
    },
    'results/multi30k/README.md': {
        'settings': {'0.01', '1,000', '10,000', '29,000', '95 percent'},
        'sizes': {'55.9', '8.7', '6.3', '1,024', '1,606,912', '4,000'},
    },
    'speculative_t5x/embedded/MODEL_CARD.md': {
        'settings': {
            '2,048', '3,000', '10,000', '16,000', '80,000', '0.01',
            '0.1',
        },
        'sizes': {'29 MB', '32 MB'},
        'printed by training': {
            '48 minutes', '16 minutes', '29 minutes', '43 minutes',
        },
    },
}  # fmt: skip

# Decimals, thousands in groups, and numbers with a unit; no versions.
_UNITS = (
    r'%|times|percent|ms|us|s|seconds?|min|minutes?|h|hours?|[MGT]i?B'
    r'|cycles|BLEU|nats'
)
_LOOKS_MEASURED = re.compile(
    r'(?<![\w.,])(?:'
    r'\d+\.\d+(?!\d*\.\d)[MBx]?'
    r'|\d{1,3}(?:,\d{3})+'
    rf'|\d+(?:x|\s?(?:{_UNITS}))(?!\w)'
    r')'
)
_NAMES = re.compile(
    r'(?:T5|JAX|Python|Sections?|Theorems?|Corollary|Definition|Appendix|arXiv)'
    r'[\s:][A-Z]?[\d.]+(?:(?:,|,? to|,? and|,? or)\s[\d.]+)*'
)

# A number of a record, and a page that has it.
_FAULTS = [
    ('eval_bulletins.jsonl', 'speedup', 'README.md'),
    ('eval_bulletins.jsonl', 'quality.speculative.bleu', 'README.md'),
    (
        'quality_bulletins.jsonl', 'quality.baseline.bleu',
        'speculative_t5x/embedded/MODEL_CARD.md',
    ),
    ('walltime_bulletins.jsonl', 'loop_efficiency', 'docs/results.md'),
    ('walltime_bulletins.jsonl', 'alpha.value', 'results/paper/table3.md'),
    ('earlier/walltime_multi30k.jsonl', 'speedup', 'docs/results.md'),
    ('simulate_base.jsonl', 't_call_ms', 'docs/results.md'),
    ('paper/table2.jsonl', 'c', 'results/paper/table2.md'),
    ('side_by_side_base.json', 'whole.t5x.over_plain.ratio', 'docs/results.md'),
    ('row_products.json', 'over_read.panels.8', 'docs/results.md'),
    ('shared_caches_gamma_5.json', 'read_gb_per_s.64', 'docs/results.md'),
    (
        'tpu_preflight/v4_xxl/tpu_preflight.json',
        'target.steps.padded.step.cycles', 'docs/tpu.md',
    ),
    (
        'tpu_preflight/v6e_xxl/tpu_preflight.json', 'chip.memory_bytes',
        'results/tpu_preflight/v6e_xxl/tpu_preflight.md',
    ),
]  # fmt: skip


def _differing(root):
  return {
      str(path.relative_to(root))
      for path, text in checkout.rendered(root)
      if text != path.read_text()
  }


@pytest.fixture
def copied(tmp_path):
  """Returns a copy of the pages and the records."""
  for name in _PAGES:
    copy = tmp_path / name
    copy.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(_ROOT / name, copy)
  shutil.copytree(
      _ROOT / 'results', tmp_path / 'results', dirs_exist_ok=True
  )
  return tmp_path


def _falsify(path, key):
  """Multiplies a number in each record of a file."""
  *parents, last = key.split('.')
  lines = []
  for line in path.read_text().splitlines():
    record = entry = json.loads(line)
    for parent in parents:
      entry = entry[parent]
    entry[last] *= 2
    lines.append(json.dumps(record))
  path.write_text('\n'.join(lines))


class TestPages:

  def test_pages_agree_with_the_records(self):
    assert not _differing(_ROOT), 'run `make pages`'

  def test_pages_have_generated_numbers(self):
    texts = {name: (_ROOT / name).read_text() for name in _PAGES}
    assert spans.count(texts['README.md']) and spans.count(
        texts['docs/results.md']
    )

  @pytest.mark.parametrize(('record', 'key', 'page'), _FAULTS)
  def test_changed_number_is_detected(self, copied, record, key, page):
    _falsify(copied / 'results' / record, key)
    assert page in _differing(copied)

  def test_pages_are_written(self, copied, capsys):
    _falsify(copied / 'results/eval_bulletins.jsonl', 'speedup')
    command.main(copied)
    assert 'README.md' in capsys.readouterr().out
    assert not _differing(copied)

  def test_no_page_is_written_if_one_fails(self, copied):
    _falsify(copied / 'results/eval_bulletins.jsonl', 'speedup')
    readme, broken = copied / 'README.md', copied / 'docs/t5x.md'
    before = readme.read_text()
    broken.write_text(broken.read_text() + 'It is <!--= fast -->1<!--/-->.')
    with pytest.raises(SystemExit) as error:
      command.main(copied)
    assert re.fullmatch(r"docs/t5x\.md: 'fast' fails: .*", error.value.code)
    assert readme.read_text() == before

  def test_pictures_are_of_the_records(self):
    stale = [
        str(each.path.relative_to(_ROOT))
        for each in reports.pictures(_ROOT / 'results')
        if not each.is_current()
    ]
    assert not stale, 'run `make pages`'

  def test_other_pictures_stand_beside_their_records(self):
    results = _ROOT / 'results'
    drawn = {each.path for each in reports.pictures(results)}
    drawn.add(results / 'paper/figure1.png')  # notebooks_test decodes its text
    for path in {*results.glob('**/*.png')} - drawn:
      record = json.loads(path.with_suffix('.json').read_text())
      assert reports.is_made_from(path, [record]), path

  def test_picture_of_another_record_is_drawn(self, copied):
    """Alone: the others are as they were."""
    record = copied / 'results/training/bulletins_draft/history.json'
    text = record.read_text().replace('"step": 250,', '"step": 251,')
    record.write_text(text)
    before = {
        path: path.read_bytes() for path in copied.glob('results/**/*.png')
    }
    command.main(copied)
    changed = {path for path, was in before.items() if path.read_bytes() != was}
    assert changed == {record.with_name('curves.png')}
    assert all(x.is_current() for x in reports.pictures(copied / 'results'))

  def test_unreadable_record_is_named(self, copied):
    (copied / 'results/simulate_xl.jsonl').write_text('{"gamma": ')
    with pytest.raises(SystemExit, match=r'simulate_xl\.jsonl cannot be read'):
      command.main(copied)

  @pytest.mark.parametrize('name', _PAGES)
  def test_markers_are_invisible(self, name):
    text = (_ROOT / name).read_text()
    plain = re.sub(r'<!--(= .+? |/)-->', '', text, flags=re.DOTALL)
    seen = re.sub(r'<!--.*?-->', '', _MARKDOWN.render(text), flags=re.DOTALL)
    assert seen.split() == _MARKDOWN.render(plain).split()

  @pytest.mark.parametrize('name', _PAGES)
  def test_other_numbers_are_listed(self, name):
    kinds = _NOT_GENERATED.get(name, {}).values()
    assert _measured_numbers((_ROOT / name).read_text()) == set().union(*kinds)


def _measured_numbers(page):
  """Returns numbers that look measured, outside of generated spans."""
  tokens = _MARKDOWN.parse(spans.without(page))
  words = ' '.join(
      child.content if child.type == 'text' else ' '
      for token in tokens
      if token.type == 'inline'
      for child in token.children
  )
  return {*_LOOKS_MEASURED.findall(_NAMES.sub('', words))}


class TestMeasuredNumbers:

  @pytest.mark.parametrize(
      'number',
      [
          '1.62x', '61.9', '23 min', '39.4M', '40 ms', '0.84', '11,772,791',
          '6 percent', '5 times', '3 GB', '12%',
      ],
  )  # fmt: skip
  def test_measured_numbers_are_found(self, number):
    assert _measured_numbers(f'It is ({number}, here).') == {number}
    table = f'| a | b |\n|---|---|\n| {number} | **{number}** |\n'
    assert _measured_numbers(table) == {number}

  @pytest.mark.parametrize(
      'text',
      [
          'JAX 0.10.2', 'T5 1.1 base', 'Python 3.11 or 3.12', 'gamma 7',
          'Theorems 3.8 and 3.11', '`--alpha=0.75`', '[here](docs/1.5x)',
          'It is <!--= speed -->1.62x<!--/--> here.', '```\n1.62x\n```',
          '    1.62x',
      ],
  )  # fmt: skip
  def test_other_numbers_are_not_found(self, text):
    assert not _measured_numbers(text)


class TestSpans:

  def test_single_line(self):
    page = 'It gains <!--= 1 + x -->2<!--/-->, or <!--= x -->9<!--/-->.\n'
    assert spans.render(page, {'x': 2}) == (
        'It gains <!--= 1 + x -->3<!--/-->, or <!--= x -->2<!--/-->.\n'
    )

  def test_several_lines(self):
    page = '<!--= table(\n  1) -->\nold\n<!--/-->\n'
    text = spans.render(page, {'table': lambda x: f'| {x} |\n| - |'})
    assert text == '<!--= table(\n  1) -->\n| 1 |\n| - |\n<!--/-->\n'

  def test_names_within_expressions(self):
    page = 'a <!--= [x for x in y if x > z] --><!--/-->'
    assert '[3]' in spans.render(page, {'y': [1, 3], 'z': 2})

  @pytest.mark.parametrize(
      'page',
      [
          'a <!--= 1 -->2',
          'a 2<!--/-->',
          'a <!--= 1 -->2 <!--= 1 -->2<!--/-->',
          'a <!--= 1 -->2<!--/--> 3<!--/-->',
          'a <!--=1-->2<!--/-->',
      ],
  )
  def test_unpaired_markers(self, page):
    with pytest.raises(ValueError, match='is unmatched'):
      spans.render(page, {})

  @pytest.mark.parametrize('before', ['', '  ', 'a\n', '- ', '> ', '1. '])
  def test_line_that_begins_with_a_marker(self, before):
    with pytest.raises(ValueError, match='begins a line'):
      spans.render(f'{before}<!--= 1 -->2<!--/--> b', {})

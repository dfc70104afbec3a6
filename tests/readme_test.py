# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The Python of README, pages and examples runs, and named files exist."""

import ast
import io
import json
import pathlib
import re
import runpy
import shutil
import sys

import numpy as np
import pytest
import seqio

from speculative_t5x import embedded
from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from speculative_t5x.training import task_examples
from tests import exhaustive
from tests import tiny
from tests import vocabulary_files
from tests import workloads

pytestmark = pytest.mark.long

_ROOT = pathlib.Path(__file__).parent.parent
_README = (_ROOT / 'README.md').read_text()


# Words of blocks whose programs are those of other tests, and take long.
_COMPILED_ANEW = 'beams=4', 'st.rules.'


class TestReadme:

  def test_python_runs(self, capsys, tmp_path):
    """The embedded models stand for the reader's own pair."""
    shutil.copytree(embedded.target_checkpoint(), tmp_path / 'target')
    shutil.copy(embedded.VOCABULARY_FILE, tmp_path / 'target/spiece.model')
    own, pair = re.findall(r'```python\n(.*?)```', _README, re.DOTALL)
    own = own.replace('<target>', str(tmp_path / 'target'))
    own = own.replace('<draft>', embedded.draft_checkpoint())
    names = {}
    exec(compile(own, 'README.md', 'exec'), names)
    exec(compile(pair, 'README.md', 'exec'), names)
    assert 'speculatively' in capsys.readouterr().out

  @pytest.mark.parametrize(
      'is_whole', exhaustive.all_but([False], [False, True])
  )
  def test_page_of_python_runs(self, tmp_path, monkeypatch, is_whole):
    """With tiny models; what is measured is left to the notebooks' tests."""
    monkeypatch.chdir(tmp_path)
    saved = workloads.save_pair(tmp_path / 'checkpoints')
    shutil.copy(embedded.VOCABULARY_FILE, f'{saved.target}/spiece.model')
    page = (_ROOT / 'docs/python.md').read_text()
    # Long drafts and inputs take long to compile.
    page = re.sub(r'gamma=\d+|max_tokens=16', 'gamma=1, inputs_length=16', page)
    blocks = re.findall(r'```python\n(.*?)```', page, re.DOTALL)
    names = {}
    left_out = 'walltime', *(() if is_whole else _COMPILED_ANEW)
    assert len(blocks) > 6
    for block in blocks:
      if not any(word in block for word in left_out):
        exec(compile(block, 'python.md', 'exec'), names)

  def test_files_exist(self):
    links = re.findall(r'\]\((?!http)([^)#]+)', _README)
    assert len(links) > 12
    for name in links:
      assert (_ROOT / name).exists(), name

  def test_is_short(self):
    assert len(_README.splitlines()) <= 150


@pytest.mark.parametrize('page', sorted((_ROOT / 'docs').glob('*.md')), ids=str)
def test_files_that_a_page_names(page):
  text = page.read_text()
  names = re.findall(
      r'`((?:configs|speculative_t5x|scripts|tests)/[^`<*{ ]+)`', text
  )
  links = re.findall(r'\]\((?!http|#)([^)#]+)', text)
  found = [_ROOT / name for name in names] + [page.parent / x for x in links]
  assert [str(path) for path in found if not path.exists()] == []


_TRAINING = _ROOT / 'docs/training.md'


@pytest.fixture
def task(tmp_path, monkeypatch):
  """Register the task of the page, and return its name."""
  (tmp_path / 'data').mkdir()
  vocabulary_files.train(tmp_path / 'data' / 'sentencepiece.model')
  for split in ('train', 'validation', 'test'):
    lines = 'ein Mann\ta man\nein Mann geht\ta man walks\n'
    (tmp_path / 'data' / f'{split}.tsv').write_text(lines)
  monkeypatch.chdir(tmp_path)
  (code,) = re.findall(r'```python\n(.*?)```', _TRAINING.read_text(), re.DOTALL)
  exec(compile(code, str(_TRAINING), 'exec'), {})
  yield 'my_task'
  seqio.TaskRegistry.remove('my_task')


def test_task(task):
  examples = task_examples.References(
      task, 'validation', {'inputs': 16, 'targets': 16}
  ).read(tiny.config())
  assert examples.num_examples == 2
  for tokens in (examples.inputs, examples.targets):
    lengths = (tokens > 0).sum(axis=1)
    assert lengths[0] < lengths[1]
    np.testing.assert_array_equal(tokens[np.arange(2), lengths - 1], 1)


_FOLDER = _ROOT / 'examples'
_NAMES = sorted(path.stem for path in _FOLDER.glob('*.py'))


def _main(name):
  return runpy.run_path(str(_FOLDER / f'{name}.py'))['main']


def test_decode_your_pair(capsys, monkeypatch):
  lines = io.StringIO('The train from Bonn is late.\n\nIt rains in Bonn.\n')
  monkeypatch.setattr('sys.stdin', lines)
  paths = [embedded.target_checkpoint(), embedded.draft_checkpoint()]
  _main('decode_your_pair')(
      [*paths, f'--vocabulary={embedded.VOCABULARY_FILE}', '--gamma=3']
  )
  found = capsys.readouterr()
  assert len(found.out.splitlines()) == 2
  assert 'gamma 3' in found.err and 'tokens per target call' in found.err


@pytest.mark.exhaustive
def test_your_own_drafter(capsys):
  _main('your_own_drafter')()
  *_, counts = capsys.readouterr().out.splitlines()
  plain, own = map(int, re.findall(r'\d+', counts))
  assert own < plain


@pytest.mark.exhaustive
def test_your_own_network(capsys):
  _main('your_own_network')()
  proof, outputs = capsys.readouterr().out.splitlines()
  assert 'follow the distribution' in proof
  first, second = ast.literal_eval(outputs)
  assert 0 < len(first) <= 8 and 0 < len(second) <= 8


def test_all_are_tested():
  assert _NAMES == [
      'decode_your_pair', 'your_own_drafter', 'your_own_network',
  ]  # fmt: skip


_OWN = _ROOT / 'docs/own.md'
_MODULES = 'my_rules', 'my_policies', 'my_drafters'
_GIN_FILES = 'my_rule.gin', 'my_policy.gin', 'my_drafter.gin'
_JOB = """
from __gin__ import dynamic_registration
from speculative_t5x.loading import drafters
from speculative_t5x.tasks import ende

include 'configs/runs/eval.gin'

DRAFTER = @drafters.Lookup()
MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TASK_FEATURE_LENGTHS = {'inputs': 24, 'targets': 12}
NUM_EXAMPLES = 4
BATCH_SIZE = 2
GAMMA = 3
TEMPERATURE = 1.0
"""


def _blocks() -> tuple[list[str], list[str]]:
  """Return the blocks of Python and of gin."""
  page = _OWN.read_text()
  find = lambda kind: re.findall(rf'^```{kind}\n(.*?)^```', page, re.M | re.S)
  others = re.findall(r'^```(\w*)\n(.*?)^```', page, re.M | re.S)
  return find('python'), [text for kind, text in others if not kind]


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """Return a folder with the files of the page, in which modules are found."""
  python, gin_files = _blocks()
  for name, text in zip(_MODULES, python[::2], strict=True):
    (tmp_path / f'{name}.py').write_text(text)
  for name, text in zip(_GIN_FILES, gin_files, strict=True):
    assert f'`{name}`' in _OWN.read_text()
    (tmp_path / name).write_text(text)
  monkeypatch.syspath_prepend(tmp_path)
  yield tmp_path
  for name in _MODULES:
    sys.modules.pop(name, None)


@pytest.mark.parametrize('number', range(len(_MODULES)), ids=_MODULES)
def test_check(number, folder):
  check = _blocks()[0][1::2][number]
  assert f'import {_MODULES[number]}' in check
  exec(compile(check, str(_OWN), 'exec'), {})


def test_job(folder, capsys):
  """One job has all three."""
  checkpoints.save(
      folder / 'target',
      1,
      tiny.params(
          tiny.config(
              vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
          )
      ),
  )
  (folder / 'job.gin').write_text(_JOB)
  status = main.main(
      [
          'eval',
          *(f'--gin_file={folder / name}' for name in ('job.gin', *_GIN_FILES)),
          f'--gin.CHECKPOINT_PATH={folder / "target"}',
          f'--output_dir={folder / "output"}',
      ]
  )
  assert status == 0, capsys.readouterr().err
  (line,) = (folder / 'output/results.jsonl').read_text().splitlines()
  record = json.loads(line)
  assert record['drafter']['kind'] == 'repeat'
  assert record['verification']['rule'].startswith('hesitant')
  assert record['gamma_policy'] == 'growing(3)'
  assert record['speculative']['drafted'] > 0

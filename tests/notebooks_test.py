# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that every notebook runs, and is stored with what its cells show."""

import ast
import base64
import importlib.util
import inspect
import json
import operator
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import Any

import jax
from matplotlib import pyplot as plt
import numpy as np
import pytest

from scripts.pages import notebooks
from speculative_t5x import embedded
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.research.reports import console
from speculative_t5x.research.reports import token_trace
from speculative_t5x.tasks import bulletins
from tests import checkpoints_by_hand

_ROOT = pathlib.Path(__file__).parent.parent
_FOLDER = _ROOT / 'notebooks'
_NOTEBOOKS = sorted(_FOLDER.glob('*.ipynb'))
_FEW = {'GAMMAS': (5,), 'NUM_TEXTS': 2, 'REPEATS': 1, 'ROUNDS': 1}


def _cells(path: pathlib.Path) -> list[dict[str, Any]]:
  return json.loads(path.read_text())['cells']


def _run(
    name: str, settings: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
  """Run a notebook with settings in place of those of its cell `settings`.

  Its first cell, which changes the process, is left out: see `TestFirstCell`.
  Returns its variables, and the value that it would show by cell.
  """
  variables, shown = {}, {}
  for cell in _cells(_FOLDER / f'{name}.ipynb'):
    if cell['cell_type'] != 'code' or cell['id'] == 'setup':
      continue
    tree = ast.parse(''.join(cell['source']))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, 'exec'), variables)
    if last is not None:
      expression = compile(ast.Expression(last.value), name, 'eval')
      shown[cell['id']] = eval(expression, variables)
    if cell['id'] == 'settings':
      assert settings.keys() <= variables.keys()
      variables.update(settings)
  plt.close('all')
  return variables, shown


def _is_picture(shown: Any) -> bool:
  data = base64.b64decode(shown._repr_mimebundle_()['image/png'])
  return data.startswith(b'\x89PNG')


def _check_trace(shown: token_trace.TokenTrace) -> None:
  """Check that accepted, rejected and resampled tokens are to be seen."""
  _, _, calls = console.to_text(shown).partition('one line per call')
  assert '[-' in calls and '{+' in calls
  assert 'line-through' in shown._repr_html_()


@pytest.mark.exhaustive
@pytest.mark.usefixtures('unchecked_types')
def test_quickstart():
  variables, shown = _run('quickstart', _FEW)
  _check_trace(shown['tokens'])
  assert len(variables['output'].best) == len(variables['TEXTS'])
  table = shown['measure']._repr_markdown_()
  assert table.count('| draft/') == 1 and 'Details:' not in table
  assert ' verdict |' in table  # speeds are left out if a busy machine erred
  (axes,) = variables['axes'].figure.axes
  assert len(axes.lines) == 4 and 'γ' in axes.get_xlabel()


@pytest.mark.exhaustive
@pytest.mark.usefixtures('unchecked_types')
def test_paper():
  variables, shown = _run('paper_walltime', _FEW)
  assert len(variables['simulated']) == 12
  table = shown['table2']._repr_markdown_()
  assert 'over T5X' in table and 'not run' not in table
  for name in ('table1', 'table3', 'table5', 'live'):
    assert '| --- |' in shown[name]._repr_markdown_()
  figures = [name for name in shown if 'figure' in name and name != 'figure1']
  assert len(figures) == 6
  assert all(_is_picture(shown[name]) for name in figures)
  _check_trace(shown['figure1'])
  # The same text and gamma as in configs/paper/figure1.gin.
  picture = (_ROOT / 'results/paper/figure1.svg').read_text()
  trace = shown['figure1']
  tokens = [x for block in trace.blocks for x in block.accepted]
  assert all(trace.id_to_piece(x) in picture for x in tokens)


@pytest.fixture
def hugging_face(tmp_path_factory):
  """Return settings of the embedded pair as two Hugging Face folders."""
  found = {}
  for name, path in (
      ('TARGET', embedded.target_checkpoint()),
      ('DRAFT', embedded.draft_checkpoint()),
  ):
    checkpoint = checkpoints.open(path)
    config = checkpoint.network()
    params = checkpoint.restore_params(models.abstract_params(config))
    folder = checkpoints_by_hand.write_hugging_face(
        tmp_path_factory.mktemp(name),
        checkpoints_by_hand.hugging_face_config(config),
        checkpoints_by_hand.hugging_face_tensors(
            config, jax.device_get(params)
        ),
    )
    shutil.copy(bulletins.VOCABULARY_FILE, folder / 'spiece.model')
    found[name] = str(folder)
  return found | {'VOCABULARY': found['TARGET']}


@pytest.mark.exhaustive
@pytest.mark.parametrize('kind', ['T5X', 'hugging_face'])
def test_your_own_checkpoint(kind, request, capsys):
  settings = {} if kind == 'T5X' else request.getfixturevalue(kind)
  variables, shown = _run('your_own_checkpoint', {'GAMMA': 2, **settings})
  assert variables['output'].best == [
      'Jede fünfte Wohnung in Graz steht leer, deshalb plant die Stadt'
      ' zehn neue Schulen.',
      'Am Freitag kommt der IC 182 aus Bonn um 21:25 Uhr auf Gleis 11 an.',
  ]
  assert variables['plain'].best == variables['output'].best
  _check_trace(shown['tokens'])
  assert 'gamma 2' in capsys.readouterr().out


@pytest.mark.exhaustive
def test_t5x_and_tpu(tmp_path, capsys):
  """Without T5X, what needs it is skipped by a line that says so."""
  settings = {'NUM_EXAMPLES': 2, 'GAMMA': 2, 'FOLDER': tmp_path}
  variables, _ = _run('t5x_and_tpu', settings)
  printed = capsys.readouterr().out
  assert ('Skipped: T5X is not' in printed) != variables['HAS_T5X']
  rows = [
      line.split()[-2:]
      for line in printed.splitlines()
      if line.startswith(('speculative-t5x eval ', 't5x.eval '))
  ]
  assert len(rows) == 1 + variables['HAS_T5X']
  # Both jobs have the same quality and the same target calls.
  assert len({*map(tuple, rows)}) == 1
  assert len(re.findall('^(?:EnDe|CNNDM) ', printed, re.M)) == 12


_SHORT = {'TARGET_STEPS': 2, 'DRAFT_STEPS': 2, 'BATCH': 4}


@pytest.mark.exhaustive
def test_digits(capsys):
  pytest.importorskip('sklearn')
  variables, _ = _run('digits', {**_SHORT, 'GAMMA': 2, 'NUM_SAMPLES': 30})
  for name in ('plain', 'speculative', 'coupled'):
    pictures = variables[name]
    assert pictures.shape == (30, 64)
    assert 0 <= pictures.min() and pictures.max() <= 16
  np.testing.assert_array_equal(variables['coupled'], variables['plain'])
  assert (variables['plain'] != variables['speculative']).any()
  assert 0 < variables['share'].mean() < 1
  assert 'coupled samples that are the plain ones: 30 of 30' in (
      capsys.readouterr().out
  )


@pytest.mark.exhaustive
def test_time_series():
  sizes = {'CONTEXT': 8, 'HORIZON': 4, 'NUM_SERIES': 3, 'NUM_SAMPLES': 5}
  sizes |= {'PERIOD': 4}
  variables, _ = _run('time_series', {**_SHORT, 'GAMMA': 2, **sizes})
  for name in ('plain', 'speculative'):
    assert variables[name].shape == (3, 5, 4)
    assert np.isfinite(variables[name]).all()
  assert variables['plain_rate'] == 1 <= variables['rate'] <= 3
  np.testing.assert_array_equal(variables['coupled'], variables['plain'])
  # A bin is as wide as values are read apart.
  values, scale = variables['series'][:1], variables['scales'][0]
  tokens = variables['to_tokens'](values, scale)
  found = variables['to_values'](tokens, scale)
  assert np.abs(found - values).max() < 0.51 * scale * 30 / 4093


@pytest.mark.parametrize('path', _NOTEBOOKS, ids=lambda path: path.stem)
class TestFile:

  def test_has_links(self, path):
    text = ''.join(''.join(cell['source']) for cell in _cells(path))
    for part in text.split('](')[1:]:
      link = part.split(')')[0]
      assert link.startswith('https://') or (_FOLDER / link).exists(), link

  def test_has_the_outputs_of_its_cells(self, path):
    """They were run from the top, as they are, and fit a screen."""
    notebook = json.loads(path.read_text())
    assert notebook['metadata']['ran'] == notebooks.digest(notebook), (
        f'run `python -m scripts.pages.notebooks {path.stem}`'
    )
    cells = [x for x in notebook['cells'] if x['cell_type'] == 'code']
    assert [x['execution_count'] for x in cells] == [*range(1, len(cells) + 1)]
    for cell in cells:
      for output in cell['outputs']:
        assert output['output_type'] != 'error'
        assert output.get('name') != 'stderr', output['text']
        table = ''.join(output.get('data', {}).get('text/markdown', ''))
        assert all(row.count('|') <= 12 for row in table.splitlines())

  def test_calls_what_exists(self, path):
    """Functions of this package have these names and these arguments."""
    scope = {}
    for cell in _cells(path):
      if cell['cell_type'] != 'code':
        continue
      for node in ast.walk(ast.parse(''.join(cell['source']))):
        if isinstance(node, ast.Import | ast.ImportFrom):
          if 'speculative_t5x' in (line := ast.unparse(node)):
            exec(line, scope)
        if not isinstance(node, ast.Call):
          continue
        module, _, name = ast.unparse(node.func).partition('.')
        if 'speculative_t5x' not in str(scope.get(module)) or '(' in name:
          continue  # the latter is a method of what another call returns
        function = operator.attrgetter(name)(scope[module])
        if function.__module__:  # not a method of Python's own classes
          inspect.signature(function).bind_partial(
              *node.args, **{each.arg: each for each in node.keywords}
          )


@pytest.fixture
def set_up():
  """Return the module that the first cells call."""
  path = _FOLDER / 'set_up.py'
  spec = importlib.util.spec_from_file_location('set_up', path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


class TestSource:
  """`set_up.py` finds the repository, wherever it was put."""

  @pytest.fixture(autouse=True)
  def alone(self, set_up, tmp_path, monkeypatch):
    """Have `set_up.py` lie alone in the current folder."""
    (tmp_path / 'content').mkdir()
    monkeypatch.chdir(tmp_path / 'content')
    monkeypatch.setattr(set_up, '_OWN', tmp_path)

  @pytest.fixture
  def archived(self, tmp_path):
    """Return a folder above a checkout."""
    folder = tmp_path / 'archived/speculative_t5x-main'
    (folder / 'notebooks').mkdir(parents=True)
    (folder / 'requirements.txt').touch()
    return folder.parent

  def test_in_an_archive(self, set_up, archived):
    shutil.make_archive('speculative_t5x', 'zip', archived)
    for _ in range(2):  # called again, it takes what it has unpacked
      found = set_up.find_source(None)
      assert found == pathlib.Path(
          'speculative_t5x_source/speculative_t5x-main'
      ).resolve()

  def test_around_it(self, set_up, archived, monkeypatch):
    own = archived / 'speculative_t5x-main'
    monkeypatch.setattr(set_up, '_OWN', own)
    assert set_up.find_source(None) == own


class TestSetUp:

  @pytest.fixture(autouse=True)
  def machine(self, monkeypatch):
    """Have the package missing, and note what would be run."""
    self.commands = []
    run = subprocess.CompletedProcess
    monkeypatch.setattr(
        subprocess,
        'run',
        lambda command, **_: (
            self.commands.append([*map(str, command)])
            or run(command, 0, '', '')
        ),
    )
    monkeypatch.setattr(importlib.util, 'find_spec', lambda name: None)
    monkeypatch.setattr(sys, 'path', list(sys.path))
    monkeypatch.setattr(shutil, 'which', lambda name: None)
    monkeypatch.setattr(pathlib.Path, 'glob', lambda self, pattern: [])
    monkeypatch.setenv('JAX_PLATFORMS', 'cpu')  # so that it is restored
    monkeypatch.delenv('JAX_PLATFORMS')

  def test_without_an_accelerator(self, set_up, capsys):
    set_up.set_up('figures')
    (install,) = self.commands
    assert install[:4] == [sys.executable, *'-m pip install'.split()]
    lock = pathlib.Path(install[install.index('-c') + 1])
    name = f'requirements-py3{sys.version_info.minor}.txt'
    assert lock.exists() and lock.name in (name, 'requirements.txt')
    assert install[install.index('-e') + 1 :] == [f'{_ROOT}[figures]']
    assert sys.path[0] == str(_ROOT)
    assert os.environ['JAX_PLATFORMS'] == 'cpu'
    assert f'JAX {jax.__version__} on ' in capsys.readouterr().out


def test_notebooks_name_the_repository_of_the_project():
  for path, text in notebooks.render(notebooks.repository()):
    assert text == path.read_text(), f'{path}: run `make pages`'

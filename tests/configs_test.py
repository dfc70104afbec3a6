# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that gin files parse, and that headers name what is required."""

import dataclasses
import importlib
import inspect
import json
import pathlib
import re

import gin
import pytest

from speculative_t5x.jobs import paper
from speculative_t5x.jobs import walltime
from speculative_t5x.jobs.command_line import commands
from speculative_t5x.jobs.command_line import flags
from speculative_t5x.jobs.command_line import main
from speculative_t5x.jobs.command_line import settings
from speculative_t5x.loading import models
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import t5_published

_ROOT = pathlib.Path(__file__).parents[1]
_FILES = sorted(
    str(p.relative_to(_ROOT)) for p in (_ROOT / 'configs').rglob('*.gin')
)
# T5X's commands read the files of configs/t5x; tests/t5x_guest runs them.
_PARSED = [name for name in _FILES if not name.startswith('configs/t5x/')]
_RUNS = [name for name in _FILES if name.startswith('configs/runs/')]
_PAPER = [
    name
    for name in _FILES
    if re.fullmatch(r'configs/paper/(table|figure)\d\.gin', name)
]
_EVAL = 'configs/runs/eval.gin'


@pytest.fixture(autouse=True)
def _from_the_root(monkeypatch):
  monkeypatch.chdir(_ROOT)


def _parse(*names):
  """Return the configuration as gin writes it, one binding per line."""
  jobs = 'infer', 'compare', 'serve'
  own = (x for x in jobs for name in names if f'/{x}' in name)
  job = next(own, 'eval')
  for macro in commands.JOBS[job].optional:  # as the command does
    gin.parse_config(f'{macro} = None')
  for name in names:
    gin.parse_config_file(name)
  return gin.config_str(max_line_length=10**4)


def _unset_macros(config):
  """Return macros that are marked as required, or used and never set."""
  marked = re.findall(r'^(\w+) = %gin\.REQUIRED$', config, re.MULTILINE)
  names = {*re.findall(r'^(\w+) = ', config, re.MULTILINE)}
  used = {*re.findall(r' = .*?%([A-Z]\w*)', config)}
  return {*marked, *(used - names)}


def _header(name, title):
  """Return the names at the start of each item under a title of the header."""
  text = pathlib.Path(name).read_text()
  match = re.search(rf'^# {title}:.*\n((?:# .*\n)*)', text, re.MULTILINE)
  text = match[1] if match else ''
  text = text.replace('\n#   ', ' ')  # an item may take several lines
  items = re.findall(r'^# - ([A-Z][A-Z0-9_, ]+)', text, re.MULTILINE)
  return {macro for item in items for macro in item.rstrip(', ').split(', ')}


def _check_sets_up(name, module, function):
  """Check that a file binds all required arguments; return its configuration.
  """
  config = _parse(name)
  settings.check_kinds()  # defaults are of their arguments' kinds
  named, used = settings.set_and_used()
  assert named - {'TARGET_CONFIG', 'DRAFT_CONFIG', 'DRAFTER'} <= used
  given = {
      argument
      for argument in inspect.signature(function).parameters
      if f'{module}.{function.__name__}.{argument} = ' in f'\n{config}'
  }
  needed = {
      argument.name
      for argument in inspect.signature(function).parameters.values()
      if argument.default is argument.empty
  }
  assert needed and needed <= given
  assert callable(gin.get_configurable(function))
  return config


@pytest.mark.parametrize('name', sorted({*_PARSED} - {*_RUNS, *_PAPER}))
def test_parses(name):
  """Files of tasks, models and choices configure no job themselves."""
  assert '# Macros:' in _parse(_EVAL, name)


@pytest.mark.parametrize('name', _RUNS)
def test_run(name):
  """It sets up a job, and its header names macros and the command."""
  text = pathlib.Path(name).read_text()
  command = re.search(r'speculative-t5x ([\w-]+)', text)
  job = commands.JOBS[command[1]]
  module, function = job.function.split('.')
  imported = importlib.import_module(f'speculative_t5x.jobs.{module}')
  config = _check_sets_up(name, module, getattr(imported, function))
  assert _header(name, 'Required') == _unset_macros(config)
  named = _header(name, 'Commonly overridden')
  assert named <= {*re.findall(r'^(\w+) = ', config, re.MULTILINE)}
  # The command names the file, unless the job reads it by default.
  assert job.gin_file == name or f'--gin_file={name}' in text


@pytest.mark.parametrize('name', _PAPER)
def test_table_or_figure(name):
  """It sets up its function, and its header names macros and the command."""
  stem = pathlib.Path(name).stem
  config = _check_sets_up(name, 'paper', getattr(paper, stem))
  assert re.findall(r'^paper\.(\w+)\.output_dir', config, re.MULTILINE)
  assert not _unset_macros(config)
  *_, command = flags.parse(['paper', stem])
  assert command.gin_files == (name,)
  text = pathlib.Path(name).read_text()
  match = re.search(r'Commonly overridden:((?:.*\n#)*.*)\n[^#]', text)
  named = {*re.findall(r'\b[A-Z][A-Z_]{3,}\b', match[1])} if match else set()
  assert named <= {*re.findall(r'^(\w+) = ', config, re.MULTILINE)}
  assert f'#   speculative-t5x paper {stem} --output_dir=<folder>\n' in text


def test_the_paper_has_no_other_function():
  """Each of its functions has a file of its name."""
  parts = r'(table|figure)\d'
  functions = {name for name in vars(paper) if re.fullmatch(parts, name)}
  assert functions == {pathlib.Path(name).stem for name in _PAPER}


class TestEval:

  @pytest.mark.parametrize('role', ['target', 'draft'])
  def test_multi30k_sizes_are_those_of_the_checkpoints(self, shared, role):
    path = shared / 't5x_oracle' / role / 'oracle.json'
    expected = json.loads(path.read_text())['config']
    assert expected.pop('logits_via_embedding') is False
    _parse('configs/runs/eval_multi30k.gin')
    with gin.config_scope(role):
      found = dataclasses.asdict(gin.get_configurable(t5.T5Config)())
    found['mlp_activations'] = list(found['mlp_activations'])
    assert {key: found[key] for key in expected} == expected
    defaults = {f.name: f.default for f in dataclasses.fields(t5.T5Config)}
    for key in found.keys() - expected.keys():
      assert found[key] == defaults[key], key


class TestMethods:

  def _settings(self, scope):
    """Return the arguments of the walltime job in a scope."""
    _parse('configs/runs/methods.gin')
    with gin.config_scope(scope):
      return gin.get_bindings(walltime.WalltimeSetup)

  def test_every_policy_is_there(self):
    names = [policy.name for policy in self._settings('summaries')['policies']]
    assert len(set(names)) == len(names) and names[0] == 'fixed'
    files = pathlib.Path('configs/policies').glob('*.gin')
    kinds = {name.partition('(')[0] for name in names}
    # Load is that of an engine, and this job has none.
    assert kinds == {path.stem for path in files} - {'by_load'}


@pytest.mark.parametrize(
    ('size', 'role', 'count'), [('97m', 'target', 97e6), ('6m', 'draft', 6e6)]
)
def test_sizes_of_the_papers_decoders_alone(size, role, count):
  _parse(_EVAL, f'configs/models/gpt_like_{size}.gin')
  with gin.config_scope(role):
    network = gin.get_configurable(decoder_only.DecoderOnly)()
  assert round(models.count_params(network) / 1e6) == count / 1e6


@pytest.mark.parametrize('size', ['small', 'base', 'large'])
def test_sizes_of_the_papers_drafts(size):
  expected = t5_published.make_config(size)
  _parse(_EVAL, f'configs/models/t5_1_1_{size}_draft.gin')
  with gin.config_scope('draft'):
    assert gin.get_configurable(t5.T5Config)() == expected


@pytest.mark.parametrize('name', ('captions', 'checkpoints', 'lm1b'))
def test_pairs_make_tables(name, tmp_path, capsys):
  """A file of pairs is read again for the table, without what measures them."""
  file = f'configs/paper/{name}.gin'
  text = (_ROOT / file).read_text()
  needed = re.findall(r'^(\w+) = %gin.REQUIRED', text, re.M)
  status = main.main([
      'paper',
      'table3',
      f'--gin_file={file}',
      f'--output_dir={tmp_path}',
      '--gin.TASKS=[]',
      *(f'--gin.{x}=a_path' for x in needed),
  ])  # fmt: skip
  assert status == 0, capsys.readouterr().err
  assert (tmp_path / 'table3.md').exists()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the classes, checks and gin files of docs/own.md work."""

import json
import pathlib
import re
import sys

import pytest

from speculative_t5x.jobs.command_line import main
from speculative_t5x.loading import checkpoints
from tests import tiny

_PAGE = pathlib.Path(__file__).parents[1] / 'docs/own.md'
_MODULES = 'my_rules', 'my_policies', 'my_drafters'
_GIN_FILES = 'my_rule.gin', 'my_policy.gin', 'my_drafter.gin'
_JOB = """
from __gin__ import dynamic_registration
from speculative_t5x.loading.drafters import lookup_source
from speculative_t5x.tasks import ende

include 'configs/runs/eval.gin'

DRAFTER = @lookup_source.FromContext()
MIXTURE_OR_TASK_NAME = 'bulletins_ende'
TASK_FEATURE_LENGTHS = {'inputs': 24, 'targets': 12}
NUM_EXAMPLES = 4
BATCH_SIZE = 2
GAMMA = 3
TEMPERATURE = 1.0
"""


def _blocks() -> tuple[list[str], list[str]]:
  """Returns the blocks of Python and of gin."""
  page = _PAGE.read_text()
  find = lambda kind: re.findall(rf'^```{kind}\n(.*?)^```', page, re.M | re.S)
  others = re.findall(r'^```(\w*)\n(.*?)^```', page, re.M | re.S)
  return find('python'), [text for kind, text in others if not kind]


@pytest.fixture
def folder(tmp_path, monkeypatch):
  """Returns a folder with the files of the page, in which modules are found."""
  python, gin_files = _blocks()
  for name, text in zip(_MODULES, python[::2], strict=True):
    (tmp_path / f'{name}.py').write_text(text)
  for name, text in zip(_GIN_FILES, gin_files, strict=True):
    assert f'`{name}`' in _PAGE.read_text()
    (tmp_path / name).write_text(text)
  monkeypatch.syspath_prepend(tmp_path)
  yield tmp_path
  for name in _MODULES:
    sys.modules.pop(name, None)


@pytest.mark.parametrize('number', range(len(_MODULES)), ids=_MODULES)
def test_check(number, folder):
  check = _blocks()[0][1::2][number]
  assert f'import {_MODULES[number]}' in check
  exec(compile(check, str(_PAGE), 'exec'), {})


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

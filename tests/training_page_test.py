# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs the Python of docs/training.md."""

import pathlib
import re

import numpy as np
import pytest
import seqio

from speculative_t5x.training import task_examples
from tests import tiny
from tests import vocabulary_files

_PAGE = pathlib.Path(__file__).parents[1] / 'docs' / 'training.md'


@pytest.fixture
def task(tmp_path, monkeypatch):
  """Registers the task of the page, and returns its name."""
  (tmp_path / 'data').mkdir()
  vocabulary_files.train(tmp_path / 'data' / 'sentencepiece.model')
  for split in ('train', 'validation', 'test'):
    lines = 'ein Mann\ta man\nein Mann geht\ta man walks\n'
    (tmp_path / 'data' / f'{split}.tsv').write_text(lines)
  monkeypatch.chdir(tmp_path)
  (code,) = re.findall(r'```python\n(.*?)```', _PAGE.read_text(), re.DOTALL)
  exec(compile(code, str(_PAGE), 'exec'), {})
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

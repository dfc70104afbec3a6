# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for what a record says of its time, its code and its machine."""

import re
import subprocess

import pytest

import speculative_t5x
from speculative_t5x.research.measurement import provenance


@pytest.fixture
def git(tmp_path):
  """Return a function that runs git in a folder and returns its output."""

  def run(*command):
    name = ('-c', 'user.name=n', '-c', 'user.email=e')
    done = subprocess.run(
        ['git', '-C', tmp_path, *name, *command],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout.strip()

  return run


class TestNewRecord:

  def test_what_was_not_measured_is_null(self):
    record = provenance.new_record('eval', gamma=5)
    filled = {key for key, value in vars(record).items() if value is not None}
    always = {'schema_version', 'created', 'package_version', 'job', 'device',
              'host', 'gamma'}  # fmt: skip
    assert always <= filled <= always | {'commit'}
    assert (record.schema_version, record.job, record.gamma) == (1, 'eval', 5)
    assert record.package_version == speculative_t5x.__version__

  def test_no_commit_outside_a_checkout(self, tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, '__file__', str(tmp_path / 'module.py'))
    assert provenance.new_record('eval').commit is None

  def test_a_commit_is_of_the_code_itself(self, tmp_path, git):
    """And not of a checkout that an environment with the code lies in."""
    own, installed = tmp_path / 'own', tmp_path / '.venv' / 'package'
    for folder in (own, installed):
      folder.mkdir(parents=True)
      (folder / 'module.py').touch()
    git('init', '--quiet')
    git('add', 'own')
    git('commit', '--quiet', '--message', 'own code')
    assert provenance.commit_of(own) == git('rev-parse', 'HEAD')
    assert provenance.commit_of(installed) is None

  def test_a_changed_file_makes_another_commit(
      self, tmp_path, git, monkeypatch
  ):
    """Every edit one of its own; files elsewhere do not count."""
    own = tmp_path / 'own'
    own.mkdir()
    monkeypatch.setattr(provenance, '__file__', str(own / 'a' / 'b' / 'c.py'))
    for path in (own / 'module.py', tmp_path / 'README.md'):
      path.write_text('before')
    git('init', '--quiet')
    git('add', '.')
    git('commit', '--quiet', '--message', 'own code')
    head = git('rev-parse', 'HEAD')
    assert provenance.new_record('eval').commit == head
    found = []
    for text in (b'before', b'after', b'later\xff', b'after'):
      (own / 'module.py').write_bytes(text)
      (tmp_path / 'README.md').write_bytes(text)
      (own / 'new.py').write_bytes(text)
      found.append(provenance.commit_of(own))
    assert found[0] == head
    assert re.fullmatch(f'{head}[+][0-9a-f]{{8}}', found[1])
    assert found[1] == found[3] and len(set(found)) == 3
    git('add', 'own/module.py')
    assert provenance.commit_of(own) == found[1]
    # A process that goes on runs the code that it read before.
    assert provenance.new_record('eval').commit == head

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of where the compilation cache is, and of loading programs from it."""

import os
import subprocess
import sys

import jax
from jax.experimental.compilation_cache import compilation_cache as jax_cache
import jax.numpy as jnp
import pytest

from speculative_t5x.decoder import compilation_cache

_NAMES = (
    'jax_compilation_cache_dir',
    'jax_enable_compilation_cache',
    'jax_persistent_cache_enable_xla_caches',
    'jax_persistent_cache_min_compile_time_secs',
)


@pytest.fixture(autouse=True)
def unset(monkeypatch, tmp_path):
  """Makes a process without a chosen cache; returns the user's cache folder."""
  before = {name: jax.config.values[name] for name in _NAMES}
  jax.config.update('jax_compilation_cache_dir', None)
  jax_cache.reset_cache()
  folder = tmp_path / 'xdg'
  monkeypatch.setenv('XDG_CACHE_HOME', str(folder))
  yield folder
  for name, value in before.items():
    jax.config.update(name, value)
  jax_cache.reset_cache()


def _folder():
  return jax.config.jax_compilation_cache_dir


class TestWhere:

  @pytest.mark.parametrize(
      'output_dir, bucket',
      [('gs://bucket/runs/a', 'gs://bucket'), ('s3://b-1', 's3://b-1')],
  )
  def test_in_the_bucket(self, unset, output_dir, bucket):
    compilation_cache.enable(output_dir)
    assert _folder() == f'{bucket}/jax_compilation_cache'
    # XLA would use the folder as a local one and fail.
    assert jax.config.jax_persistent_cache_enable_xla_caches == 'none'
    assert not unset.exists()

  @pytest.mark.parametrize('output_dir', ['a/b', '', 'None', '/gs:/a'])
  def test_in_the_users_folder(self, unset, output_dir):
    others = jax.config.jax_persistent_cache_enable_xla_caches
    compilation_cache.enable(output_dir)
    assert _folder() == str(unset / 'speculative_t5x' / 'jax')
    assert os.path.isdir(_folder())
    assert jax.config.jax_persistent_cache_enable_xla_caches == others

  @pytest.mark.parametrize('value', ['', None])
  def test_in_the_home(self, monkeypatch, tmp_path, value):
    monkeypatch.setenv('HOME', str(tmp_path))
    if value is None:
      monkeypatch.delenv('XDG_CACHE_HOME')
    else:
      monkeypatch.setenv('XDG_CACHE_HOME', value)
    compilation_cache.enable('runs')
    assert _folder() == str(tmp_path / '.cache' / 'speculative_t5x' / 'jax')

  def test_the_first_job_of_a_process_chooses(self, unset):
    compilation_cache.enable('gs://bucket/a')
    compilation_cache.enable('gs://other/a')
    compilation_cache.enable('a')
    assert _folder() == 'gs://bucket/jax_compilation_cache'
    assert not unset.exists()


class TestUsersChoice:

  @pytest.mark.parametrize('chosen', ['/my/cache', ''])
  def test_a_folder_or_none(self, unset, chosen):
    jax.config.update('jax_compilation_cache_dir', chosen)
    compilation_cache.enable('gs://bucket/a')
    compilation_cache.enable('a')
    assert _folder() == chosen and not unset.exists()

  def test_turned_off(self, unset):
    jax.config.update('jax_enable_compilation_cache', False)
    compilation_cache.enable('a')
    assert _folder() is None and not unset.exists()

  @pytest.mark.parametrize(
      'name, value, folder',
      [
          ('JAX_COMPILATION_CACHE_DIR', '', ''),
          ('JAX_ENABLE_COMPILATION_CACHE', 'false', None),
      ],
  )
  def test_in_the_environment(self, name, value, folder):
    """JAX reads the variable when it is imported."""
    code = (
        'import jax; from speculative_t5x.decoder import compilation_cache;'
        'compilation_cache.enable("gs://bucket/a");'
        'print(repr(jax.config.jax_compilation_cache_dir))'
    )
    variables = dict(os.environ)
    variables.pop('JAX_COMPILATION_CACHE_DIR', None)
    done = subprocess.run(
        [sys.executable, '-c', code],
        env=variables | {name: value},
        capture_output=True,
        text=True,
    )
    assert done.stdout == f'{folder!r}\n', done.stderr


class TestNotWritable:

  def test_no_folder_can_be_made(self, unset, capsys):
    unset.write_text('a file')
    compilation_cache.enable('a')
    assert _folder() is None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('Compiling without a cache, because its folder')
    assert f"Not a directory: '{unset / 'speculative_t5x' / 'jax'}'" in line

  def test_work_continues(self, unset):
    unset.write_text('a file')
    compilation_cache.enable('a')
    with compilation_cache.watch() as loaded:
      assert _program()(jnp.arange(4.0)) == 14
    assert loaded == []


class TestRejected:
  """XLA does not read back what it compiled for some processors."""

  def test_without_a_cache(self, unset, capsys, monkeypatch):
    def reject(*_):
      raise RuntimeError('Target machine feature is not supported')

    # As JAX finds it: each entry is there and cannot be loaded.
    name = 'jax._src.compilation_cache.get_executable_and_time'
    monkeypatch.setattr(name, reject)
    before = jax.config.jax_persistent_cache_min_compile_time_secs
    compilation_cache.enable('a')
    assert _folder() is None
    assert jax.config.jax_persistent_cache_min_compile_time_secs == before
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith('Compiling without a cache') and '38445' in line

  def test_read_back(self, unset, capsys):
    compilation_cache.enable('a')
    assert _folder() is not None and not capsys.readouterr().err
    assert list(unset.rglob('*-cache'))


def _program():
  """Returns a new function each time, with the same program."""
  return jax.jit(lambda x: jnp.sum(x * x))


class TestWatch:

  @pytest.fixture(autouse=True)
  def of_any_program(self):
    jax.config.update('jax_persistent_cache_min_compile_time_secs', 0)
    self.x = jnp.arange(4.0)

  def test_loaded_by_another_process(self, unset):
    """The other process shares only the folder."""
    compilation_cache.enable('a')
    with compilation_cache.watch() as loaded:
      _program()(self.x)
    assert not loaded
    assert list(unset.rglob('*-cache'))
    jax_cache.reset_cache()
    jax.clear_caches()
    with compilation_cache.watch() as loaded:
      assert _program()(self.x) == 14
    assert len(loaded) == 1

  def test_ends_with_the_context(self):
    compilation_cache.enable('a')
    with compilation_cache.watch() as loaded:
      pass
    for _ in range(2):
      _program()(self.x)
    assert loaded == []

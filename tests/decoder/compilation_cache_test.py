# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of where the compilation cache is, and of loading programs from it."""

import errno
import os
import pathlib

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
  """Make a process without a chosen cache; return the user's cache folder."""
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


@pytest.mark.parametrize(
    'output_dir, bucket',
    [('gs://bucket/runs/a', 'gs://bucket'), ('s3://b-1', 's3://b-1')],
)
def test_in_the_bucket(unset, output_dir, bucket):
  """The first job of a process chooses."""
  compilation_cache.enable(output_dir)
  compilation_cache.enable('gs://other/a')
  compilation_cache.enable('a')
  assert _folder() == f'{bucket}/jax_compilation_cache'
  # XLA would use the folder as a local one and fail.
  assert jax.config.jax_persistent_cache_enable_xla_caches == 'none'
  assert not unset.exists()


@pytest.mark.parametrize('output_dir', ['a/b', '', 'None', '/gs:/a'])
def test_in_the_users_folder(unset, output_dir, capsys):
  others = jax.config.jax_persistent_cache_enable_xla_caches
  compilation_cache.enable(output_dir)
  assert _folder() == str(unset / 'speculative_t5x' / 'jax')
  assert os.path.isdir(_folder()) and not os.listdir(_folder())
  assert jax.config.jax_persistent_cache_enable_xla_caches == others
  assert not capsys.readouterr().err


@pytest.mark.parametrize(
    ('name', 'value', 'folder'),
    [
        ('jax_compilation_cache_dir', '/my/cache', '/my/cache'),
        ('jax_compilation_cache_dir', '', ''),
        ('jax_enable_compilation_cache', False, None),
    ],
)
def test_choice_of_the_user(unset, name, value, folder):
  jax.config.update(name, value)
  compilation_cache.enable('gs://bucket/a')
  compilation_cache.enable('a')
  assert _folder() == folder and not unset.exists()


def _program():
  """Return a new function each time, with the same program."""
  return jax.jit(lambda x: jnp.sum(x * x))


def test_folder_that_cannot_be_made(unset, capsys):
  """Work continues without a cache."""
  unset.write_text('a file')
  compilation_cache.enable('a')
  assert _folder() is None
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith('Compiling without a cache, because its folder')
  assert f"Not a directory: '{unset / 'speculative_t5x' / 'jax'}'" in line
  with compilation_cache.watch() as loaded:
    assert _program()(jnp.arange(4.0)) == 14
  assert loaded == []


def test_full_disk(unset, capsys, monkeypatch):
  """The cache is on again as soon as there is space."""

  def refuse(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

  with monkeypatch.context() as patch:
    patch.setattr(pathlib.Path, 'write_bytes', refuse)
    compilation_cache.enable('a')
  assert _folder() is None
  assert 'No space left on device' in capsys.readouterr().err
  compilation_cache.enable('a')
  assert _folder() and not capsys.readouterr().err


def test_watch_sees_what_another_process_compiled(unset):
  """The other process shares only the folder."""
  x = jnp.arange(4.0)
  compilation_cache.enable('a')
  with compilation_cache.watch() as before:
    _program()(x)
  assert not before and list(unset.rglob('*-cache'))
  jax_cache.reset_cache()
  jax.clear_caches()
  with compilation_cache.watch() as loaded:
    assert _program()(x) == 14
  assert len(loaded) == 1
  jax_cache.reset_cache()
  jax.clear_caches()
  _program()(x)
  assert len(loaded) == 1 and not before  # each ends with its context


def test_seconds_of_compilation():
  seconds = iter([9.0, 1.0, 2.0, 3.0])
  compiled = lambda: compilation_cache.compile_seconds(lambda: next(seconds))
  assert compiled() == 8.0
  assert compiled() == 0.0

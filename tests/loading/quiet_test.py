# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of restricting what other libraries do."""

import glob
import os

import jax
from jax.extend import backend
import pytest

from speculative_t5x.loading import models
from speculative_t5x.loading import quiet
from tests import tiny


class TestKeepLibtpuFromSearching:

  @pytest.fixture
  def factories(self, monkeypatch):
    """Return JAX's factories of platforms, as on a machine without a TPU."""
    found = {}
    for name in list(os.environ):
      if name.startswith('TPU_') or name == 'JAX_FORCE_TPU_INIT':
        monkeypatch.delenv(name)
    monkeypatch.setattr(glob, 'glob', lambda _: [])
    monkeypatch.setattr(backend, 'register_backend_factory', found.__setitem__)
    before = jax.config.jax_platforms
    jax.config.update('jax_platforms', None)
    yield found
    jax.config.update('jax_platforms', before)

  # JAX and libtpu set these on import.
  @pytest.mark.parametrize('name', ['TPU_SKIP_MDS_QUERY', 'TPU_LIBRARY_PATH'])
  def test_no_tpu(self, factories, monkeypatch, name):
    monkeypatch.setenv(name, '1')
    quiet.keep_libtpu_from_searching()
    assert factories.keys() == {'tpu'}
    with pytest.raises(RuntimeError, match='no TPU on this machine'):
      factories['tpu']()

  def test_a_model_in_python(self, factories):
    models.make_model(tiny.config(), tiny.params(tiny.config()))
    assert factories.keys() == {'tpu'}

  @pytest.mark.parametrize('pattern', ['/dev/accel*', '/dev/vfio/[0-9]*'])
  def test_a_device(self, factories, monkeypatch, pattern):
    monkeypatch.setattr(glob, 'glob', lambda x: ['0'] if x == pattern else [])
    quiet.keep_libtpu_from_searching()
    assert not factories

  @pytest.mark.parametrize('name', ['TPU_NAME', 'JAX_FORCE_TPU_INIT'])
  def test_a_variable(self, factories, monkeypatch, name):
    monkeypatch.setenv(name, '1')
    quiet.keep_libtpu_from_searching()
    assert not factories

  def test_platforms_that_were_chosen(self, factories):
    """JAX itself chooses platforms if it finds a chip."""
    jax.config.update('jax_platforms', 'tpu,cpu')
    quiet.keep_libtpu_from_searching()
    assert not factories

  def test_a_platform_in_use(self, factories, monkeypatch):
    def refuse(*_):
      raise RuntimeError('Backend tpu already initialized')

    monkeypatch.setattr(backend, 'register_backend_factory', refuse)
    quiet.keep_libtpu_from_searching()

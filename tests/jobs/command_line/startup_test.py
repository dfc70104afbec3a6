# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of opening a TPU."""

import os
import threading

import jax
import pytest

from speculative_t5x.jobs.command_line import main
from speculative_t5x.jobs.command_line import startup

_NOT_FOUND = (
    "Unable to initialize backend 'tpu': NOT_FOUND: No device. (set"
    " JAX_PLATFORMS='' to automatically choose an available backend)"
)


@pytest.fixture
def platforms(monkeypatch):
  """Sets JAX_PLATFORMS on a machine that has no TPU."""

  def devices():
    raise RuntimeError(_NOT_FOUND)

  before = jax.config.jax_platforms
  monkeypatch.setattr(jax, 'devices', devices)
  yield lambda value: jax.config.update('jax_platforms', value)
  jax.config.update('jax_platforms', before)


def test_job_ends_in_one_line(platforms, capsys, tmp_path):
  platforms('tpu,cpu')
  flags = '--gin.ALPHA=0.5', f'--output_dir={tmp_path / "x"}'
  assert main.main(['simulate', *flags]) == 1
  (line,) = capsys.readouterr().err.splitlines()
  assert line.startswith('error: JAX_PLATFORMS=tpu,cpu asks for a TPU')
  assert 'NOT_FOUND: No device)' in line and 'choose' not in line
  assert not list(tmp_path.iterdir())


@pytest.mark.parametrize('value', [None, '', 'cpu', 'cuda,cpu'])
def test_no_tpu_is_asked_for(platforms, value):
  platforms(value)
  startup.open_tpu()


def test_tpu_that_waits_for_other_hosts(platforms, monkeypatch, capsys):
  ended = threading.Event()
  monkeypatch.setattr(startup, '_WAIT_S', 0)
  monkeypatch.setattr(os, '_exit', lambda status: status == 1 and ended.set())
  monkeypatch.setattr(jax, 'devices', lambda: ended.wait(60))
  platforms('tpu')
  startup.open_tpu()
  assert ended.is_set()
  (line,) = capsys.readouterr().err.splitlines()
  assert 'several hosts' in line

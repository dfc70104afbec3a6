# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of benchmarks: what they measure, need and refuse."""

from concurrent import futures
import functools
import gzip
import json
import os
import pathlib
import subprocess
import types

import numpy as np

from benchmarks import cases
from benchmarks import throughput
from speculative_t5x.loading import checkpoints
from speculative_t5x.research.measurement import provenance
from tests import tiny
from tests import vocabulary_files

_ROOT = pathlib.Path(__file__).parents[1]

class _Process:
  """Stands for the process of a system, whose ways end at once."""

  def __enter__(self):
    return self

  def __exit__(self, *_):
    pass

  def submit(self, function, *request):
    future = futures.Future()
    try:
      future.set_result(function(*request))
    except ModuleNotFoundError as error:
      future.set_exception(error)
    return future


def test_systems_take_turns(monkeypatch):
  """Each way once per repeat, after one that is not timed."""
  calls, now = [], [0.0]
  clock = types.SimpleNamespace(
      sleep=lambda _: None, perf_counter=lambda: now[0]
  )
  monkeypatch.setattr(throughput, 'time', clock)
  monkeypatch.setattr(throughput.running, 'process', _Process)
  monkeypatch.setattr(throughput, '_ways', {})

  def way(name, seconds, *tokens):
    def decode():
      calls.append(name)
      now[0] += seconds if calls.count(name) > 1 else 1e6  # compiles
      return throughput.Turn(list(tokens))

    return {name: decode}

  systems = {
      'own': way(throughput.REFERENCE, 4.0, (5, 6), (7,)),
      'other': way('other', 2.0, (5, 6), (8,)),
  }

  def load(name, batch, given):
    assert (batch, given) == (8, ['--x'])
    if name == 'absent':
      raise ModuleNotFoundError("No module named 'torch'")
    return throughput.hold(systems[name])

  names = ['own', 'absent', 'other']
  options = types.SimpleNamespace(repeats=6)
  record = throughput.measure(load, names, 8, options, ['--x'])
  json.dumps(record)
  assert sorted(calls) == 7 * ['other'] + 7 * [throughput.REFERENCE]
  pairs = {tuple(calls[i : i + 2]) for i in range(2, 14, 2)}
  assert len(pairs) == 2  # in a random order, and no way twice in a repeat
  assert record['not_installed'] == {'absent': "No module named 'torch'"}
  other = record['other']
  assert (other['seconds'], other['over_plain_whole']) == (2.0, 2.0)
  assert other['tokens_per_s'] == 5 / 2.0  # with two ends
  assert other['different_outputs'] == 1


def test_inputs_and_assistants(tmp_path):
  """Inputs end and are padded; a draft without an encoder is no assistant."""
  vocabulary_files.train(tmp_path / 'ende4k.model')
  for name in ('en', 'de'):
    lines = b'ein Mann\nein Mann geht\na man walks\n'
    (tmp_path / f'val.{name}.gz').write_bytes(gzip.compress(lines))
  one = functools.partial(tiny.config, num_decoder_layers=1)
  for name, config in (
      ('target', tiny.config()),
      ('draft', one(num_encoder_layers=1, head_dim=8)),
      ('decoder', one(num_encoder_layers=0)),
  ):
    checkpoints.save(tmp_path / name, 1, tiny.params(config))
  read = lambda draft: cases.read(
      throughput.parse([
          f'--multi30k={tmp_path}', f'--target={tmp_path}/target',
          f'--draft={tmp_path}/{draft}', '--inputs=2',
      ])
  )  # fmt: skip
  case = read('draft')
  assert case.inputs.shape == (2, 64)
  assert case.assistant.config.num_encoder_layers == 1
  lengths = (case.inputs > 0).sum(axis=1)
  assert lengths[0] < lengths[1]
  np.testing.assert_array_equal(case.inputs[[0, 1], lengths - 1], 1)
  assert read('decoder').assistant is None


def test_commit_is_named_by_hand_where_there_is_no_git(monkeypatch):
  monkeypatch.setattr(provenance, '_commit_at_first', lambda folder: None)
  assert provenance.origin()['commit'] is None
  monkeypatch.setenv('SPECULATIVE_T5X_COMMIT', 'abc')
  assert provenance.origin()['commit'] == 'abc'


def test_gpu_script_goes_on_where_a_part_fails(tmp_path):
  """One without transformers, say; its status tells."""
  fake = tmp_path / 'bin/python3'
  fake.parent.mkdir()
  fake.write_text(
      '#!/bin/sh\necho "$*"\ncase "$*" in *transformers_plain*) exit 1 ;; esac'
  )
  fake.chmod(0o755)
  done = subprocess.run(
      ['bash', _ROOT / 'scripts/gpu_measurement.sh', tmp_path / 'out'],
      env={
          **os.environ,
          'PATH': f'{fake.parent}:{os.environ["PATH"]}',
          'SECONDS_IN_ALL': '100',
      },
      capture_output=True,
      text=True,
  )
  assert done.returncode == 1
  calls = [x for x in done.stdout.splitlines() if x.startswith('-m ')]
  names = [*3 * ['speculative_t5x'], 'benchmarks.transformers_plain',
           'benchmarks.device_exactness']  # fmt: skip
  assert [x.split()[1] for x in calls if '-m pip' not in x] == names
  assert '--gin.BATCH_SIZE=32 ' in calls[2]
  assert done.stdout.count(' failed\n') == 1

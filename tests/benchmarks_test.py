# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of benchmarks: what they measure, need and refuse."""

from concurrent import futures
import functools
import gzip
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest

from benchmarks import candidate_trees
from benchmarks import cases
from benchmarks import simulated_pairs
from benchmarks import throughput
from speculative_t5x.loading import checkpoints
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.research.simulation import t5_published
from tests import tiny
from tests import vocabulary_files

_ROOT = pathlib.Path(__file__).parents[1]
# Two targets made tiny, a row of the paper, twice, and none of what jobs need
# besides the core.
_CODE = """
import sys
absent = 'tensorflow', 'tensorflow_datasets', 'seqio', 'gin', 'matplotlib'
sys.modules.update(dict.fromkeys(absent))
from benchmarks import simulated_pairs
from benchmarks import tpu_candidates
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.paper import published
sizes = dict(emb_dim=16, num_heads=2, num_layers=1, mlp_dim=16, head_dim=8)
t5_published.SIZES |= dict.fromkeys(('small', 'base', 'large'), sizes)
t5_published.VOCAB_SIZE = 64
published.TABLES_2_AND_4 = published.TABLES_2_AND_4[:1]
for _ in range(2):
  assert simulated_pairs.main(sys.argv[1:]) == 0
"""


def test_best_tree():
  """Nodes are taken in the order of how often their ranks follow each other."""
  # 0 is met 6 times, 0 0 3 times, and 0 1, 1 and 1 0 twice each.
  ranks = [np.array([0, 0, 0, 1, 0, 0, 1, 0])]
  best = lambda nodes: candidate_trees.best_tree(ranks, nodes, 2)
  assert best(3) == ((1,), (1,))
  assert best(4) == ((1,), (2,))
  assert best(6) == ((2,), (2, 1))


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


def test_bytes_of_the_largest_target(monkeypatch):
  """Nothing is allocated, or this would take 22 GB.

  Its 24 layers, which are traced one by one, are two as large here.
  """
  own = t5_published.SIZES['xxl'] | {'num_layers': 2, 'mlp_dim': 212_992}
  monkeypatch.setitem(t5_published.SIZES, 'xxl', own)
  shapes = simulated_walltimes.Shapes(dtype='bfloat16')
  assert 11e9 < simulated_pairs.count_step_bytes('xxl', shapes) < 11.5e9


_FLAGS = (
    '--target base large --draft small shared_encoder_1_small --batch_size 1'
    ' --batches 2 --inputs_length 5 --targets_length 8 --rounds 1'
)


def _run(folder, *flags, code=_CODE):
  return subprocess.run(
      [sys.executable, '-c', code, *_FLAGS.split(), *flags,
       f'--output_dir={folder}'],
      cwd=_ROOT,
      env={
          **os.environ,
          'JAX_PLATFORMS': 'cpu',
          'SPECULATIVE_T5X_COMMIT': 'by hand',
      },
      capture_output=True,
      text=True,
  )  # fmt: skip


def _records(folder):
  lines = (folder / 'results.jsonl').read_text().splitlines()
  return [json.loads(line) for line in lines]


@pytest.mark.exhaustive
def test_with_the_core_alone(tmp_path):
  """The benchmark runs to its end, and measures nothing twice."""
  done = _run(tmp_path)
  assert done.returncode == 0, done.stderr
  records = _records(tmp_path)
  names = [(r['target']['name'], r['drafter']['name']) for r in records]
  assert names == [
      (f't5_1_1_{target}', draft)
      for target in ('base', 'large')
      for draft in ('shared_encoder_1_small', 't5_1_1_small')
  ]
  for record in records:
    assert record['simulated_acceptance'] == 0.75 and record['gamma'] == 7
    assert record['target']['dtype'] == 'bfloat16'
    assert record['floor_ms'] > 0 and record['speedup'] > 0
  # Runs of all rows of a target come before the parts of any.
  first = [line.split(',')[0] for line in done.stdout.splitlines()[:4]]
  assert first == 2 * [
      f'- t5_1_1_base and {draft}'
      for draft in ('shared_encoder_1_small', 't5_1_1_small')
  ]
  text = (tmp_path / 'walltime.md').read_text()
  assert done.stdout.count(text) == 2
  assert done.stderr.count(': compiling and measuring\n') == 8
  assert done.stderr.count(f': taken from {tmp_path}') == 8


def test_time_limit_keeps_what_was_measured(tmp_path):
  """No second row is begun, whose end would be too late."""
  slow = _CODE.replace('range(2)', 'range(1)')
  done = _run(tmp_path, '--time_limit=1', code=slow)
  assert done.returncode == 0, done.stderr
  (record,) = _records(tmp_path)
  assert record['speedup'] > 0 and record['rounds'] == 0
  assert record['t1_ms'] is None
  assert 'speedup' in (tmp_path / 'walltime.md').read_text()


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
  names = 'simulated_pairs', 'transformers_plain', 'device_exactness'
  calls = [x for x in done.stdout.splitlines() if x.startswith('-m benchmarks')]
  assert [x.split()[1] for x in calls] == [f'benchmarks.{n}' for n in names]
  assert '--batch_size 1 8 32 ' in calls[0]
  # 70 percent of what is left of the 100 seconds.
  assert re.search('--time_limit [67]', calls[0])
  assert done.stdout.count(' failed\n') == 1

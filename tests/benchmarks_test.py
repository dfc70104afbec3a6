# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of benchmarks: what they measure, need and refuse."""

import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import types

import numpy as np
import pytest

from benchmarks import earlier_answers
from benchmarks import simulated_pairs
from benchmarks.draft_recipes import __main__ as draft_recipes
from benchmarks.draft_recipes import jobs
from benchmarks.side_by_side import measuring
from benchmarks.training_throughput import __main__ as throughput
from benchmarks.training_throughput import worker
from speculative_t5x.jobs.command_line import main
from speculative_t5x.research import run_record
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.tasks import paraphrases
from speculative_t5x.training import history

_ROOT = pathlib.Path(__file__).parents[1]
# Two targets made tiny, a row of the paper, twice, and none of what jobs need
# besides the core.
_CODE = """
import sys
absent = 'tensorflow', 'tensorflow_datasets', 'seqio', 'gin', 'matplotlib'
sys.modules.update(dict.fromkeys(absent))
from benchmarks import simulated_pairs
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.research.paper import published
sizes = dict(emb_dim=16, num_heads=2, num_layers=1, mlp_dim=16, head_dim=8)
t5_published.SIZES |= dict.fromkeys(('small', 'base', 'large'), sizes)
t5_published.VOCAB_SIZE = 64
published.TABLES_2_AND_4 = published.TABLES_2_AND_4[:1]
for _ in range(2):
  assert simulated_pairs.main(sys.argv[1:]) == 0
"""


def test_shapes():
  parse = lambda text: simulated_pairs.make_shapes(
      simulated_pairs.parse_arguments(text.split())
  )
  one, eight = parse('--batch_size 1 8 --batches=6 --output_dir=x')
  assert (one.batch_size, one.num_examples) == (1, 6)
  assert (eight.batch_size, eight.num_examples) == (8, 48)
  assert (one.dtype, one.matmul_precision) == ('bfloat16', None)
  exact, _ = parse('--dtype=float32 --output_dir=x')
  assert exact.matmul_precision == 'highest'


def test_bytes_of_the_largest_target():
  """Nothing is allocated, or this would take 22 GB."""
  shapes = simulated_walltimes.Shapes(dtype='bfloat16')
  assert 11e9 < simulated_pairs.count_step_bytes('xxl', shapes) < 11.5e9


def test_plain_decoding_over_the_floor():
  """The encoder takes 3 ms, a step 6 ms, and the floor is 5 ms."""
  values = {
      'target': {'name': 't5_1_1_xl'},
      'batch_size': 1,
      'baseline': {'walltime_s': 0.015, 'loop_steps': 2},
      'encoder_s': {'target': 0.003, 'draft': 0.5},
      'floor_ms': 5.0,
      'speedup': 3.21,
  }
  record = run_record.from_dict(values)
  row, *_ = published.TABLES_2_AND_4
  assert simulated_pairs.describe(record, row, 4_000_000_000) == (
      '- t5_1_1_xl and small, batch 1, T=0, gamma 7, alpha 0.75: plain 6 ms'
      ' per step, 1.20 x the floor of 5 ms (4 GB at 800 GB/s); speedup 3.21,'
      ' the paper 3.4'
  )


@pytest.mark.exhaustive
def test_with_the_core_alone(tmp_path):
  """The benchmark runs to its end, and measures nothing twice."""
  flags = (
      '--target base large --draft small --batch_size 1 --batches 1'
      ' --inputs_length 5 --targets_length 8 --rounds 1'
  )
  done = subprocess.run(
      [sys.executable, '-c', _CODE, *flags.split(), f'--output_dir={tmp_path}'],
      cwd=_ROOT,
      env={**os.environ, 'JAX_PLATFORMS': 'cpu'},
      capture_output=True,
      text=True,
  )
  assert done.returncode == 0, done.stderr
  lines = (tmp_path / 'results.jsonl').read_text().splitlines()
  records = [json.loads(line) for line in lines]
  names = [(r['target']['name'], r['drafter']['name']) for r in records]
  assert names == [(f't5_1_1_{x}', 't5_1_1_small') for x in ('base', 'large')]
  for record in records:
    assert record['simulated_acceptance'] == 0.75 and record['gamma'] == 7
    assert record['target']['dtype'] == 'bfloat16'
    assert record['floor_ms'] > 0 and record['speedup'] > 0
  text = (tmp_path / 'walltime.md').read_text()
  assert done.stdout.count(text) == 2
  assert len(re.findall('^- .* x the floor of ', text, re.MULTILINE)) == 2
  assert done.stderr.count(': compiling and measuring\n') == 2
  assert done.stderr.count(f': taken from {tmp_path}') == 2


_RECIPES = '--multi30k=a --target=b --work=c'


@pytest.mark.parametrize(
    ('name', 'options'),
    [
        ('draft_lengths', '--gammas=0,3'),
        ('draft_lengths', '--gammas=3,x'),
        ('draft_recipes.__main__', f'{_RECIPES} --recipes=luck'),
        ('draft_recipes.__main__', f'{_RECIPES} --seeds=-1'),
        ('earlier_answers', '--requests=0'),
        ('earlier_answers', '--only'),  # cut short
        ('simulated_pairs', '--output_dir=x --target xl huge'),
        ('simulated_pairs', '--output_dir=x --batch_size 1 0'),
        ('side_by_side.cases', ''),
        ('side_by_side.cases', '--multi30k=a --target=b'),
        ('side_by_side.cases', '--size=base --draft=b'),
        ('side_by_side.cases', '--size=base --oracle=a'),
    ],
)
def test_refused(name, options):
  module = importlib.import_module(f'benchmarks.{name}')
  parse = getattr(module, 'parse_arguments', None) or module.parse
  with pytest.raises(SystemExit, match='2'):
    parse(options.split())


def _write_history(folder, acceptance):
  """Write three points, of which the second is the best."""
  folder.mkdir(parents=True)
  rows = [
      {
          'step': step,
          'training': {},
          'validation': {'acceptance_t0': x, 'acceptance_t1': acceptance},
          'score': x,
      }
      for step, x in enumerate(
          (acceptance, acceptance + 0.1, acceptance + 0.05), start=1
      )
  ]
  (folder / history.FILE_NAME).write_text(json.dumps(rows))


@pytest.mark.parametrize('name', jobs.RECIPES)
def test_jobs_take_the_options(name, tmp_path, capsys):
  """Gin accepts all files and macros: the only error is a missing folder."""
  _write_history(tmp_path / 'trained', 0.5)
  missing = tmp_path / 'missing'
  draft = jobs.Draft(
      jobs.RECIPES[name], 1, tmp_path / 'trained', tmp_path, missing, missing
  )
  option = '--gin.TRAIN_STEPS=7'
  training = draft.training_command([option])
  assert option in training
  for command in (training, draft.walltime_command(), draft.quality_command()):
    assert command[2] == 'speculative_t5x.jobs.command_line.main'
    assert main.main(command[3:]) != 0
    assert str(missing) in capsys.readouterr().err


def _points(*scores):
  return {
      seed: history.Point(10, {}, {'acceptance_t0': x, 'acceptance_t1': 0}, x)
      for seed, x in enumerate(scores)
  }


def test_differences_by_hand():
  """Seed by seed 0.1, 0.2 and 0.3: the interval is 0.2 +- 4.303 * 0.0577."""
  found, baseline = _points(0.5, 0.9, 0.7), _points(0.4, 0.7, 0.4, 0.0)
  half = 4.302653 * 0.1 / 3**0.5
  result = draft_recipes.differences(found, baseline)['acceptance_t0']
  assert result == pytest.approx([0.2, 0.2 - half, 0.2 + half])
  result = draft_recipes.differences(_points(0.5), baseline)['acceptance_t0']
  assert result == pytest.approx([0.1])  # one seed has no interval


def _run_nothing(command, check):
  """Write what the jobs would, with numbers that tell the drafts apart."""
  assert check
  job = command[3]
  macros = dict(x[6:].split('=', 1) for x in command if x.startswith('--gin.'))
  if job == 'distill':
    folder = pathlib.Path(json.loads(macros['MODEL_DIR']))
    base = 0.5 if 'references' in str(folder) else 0.75
    _write_history(folder, base + 0.01 * int(folder.name[-1]))
  else:
    key = {'eval': 'CHECKPOINT_PATH', 'walltime': 'DRAFT_CHECKPOINT_PATH'}[job]
    assert json.loads(macros[key]).endswith('seed_0/checkpoint_2')


def _records(path):
  return [
      types.SimpleNamespace(
          temperature=0.0,
          gamma=3,
          speedup=1.5,
          speedup_ci95=(1.4, 1.6),
          tokens_per_target_call=2.5,
          quality=run_record.BothRuns({'bleu': 31.0}, {'bleu': 30.0}),
      )
  ]


def test_a_line_per_recipe(tmp_path, monkeypatch, capsys):
  """The best checkpoint of each seed counts, not the last one."""
  monkeypatch.setattr(jobs.subprocess, 'run', _run_nothing)
  monkeypatch.setattr(jobs.runs, 'read', _records)
  output = tmp_path / 'lines.ndjson'
  flags = (
      f'--multi30k=a --target=b --work={tmp_path} --output={output}'
      ' --recipes=forward_kl,references,exit_head --seeds=0,1'
  )
  draft_recipes.main(flags.split())
  assert capsys.readouterr().out == output.read_text()
  first, second, third = map(json.loads, output.read_text().splitlines())
  assert first['recipe'] == 'references' and 'over_references' not in first
  assert first['steps'] == {'0': 2, '1': 2}
  assert first['mean']['acceptance_t0'] == pytest.approx(0.605)
  assert first['bleu'] == 31.0
  (speed,) = first['speed']
  assert speed['gamma'] == 3 and speed['speedup_ci95'] == [1.4, 1.6]
  assert second['over_references']['acceptance_t1'][0] == pytest.approx(0.25)
  assert third['bleu'] is None  # it decodes nothing without the target


@pytest.mark.exhaustive
def test_earlier_answers(tmp_path, capsys, monkeypatch):
  pytest.importorskip('usearch')
  tasks = {'paraphrases': lambda split: paraphrases.read_pairs(split)[:7]}
  monkeypatch.setattr(earlier_answers, '_TASKS', tasks)
  path = tmp_path / 'line.json'
  earlier_answers.main(
      ['--gamma=2', '--requests=6', '--repeats=1', f'--output={path}']
  )
  (line,) = capsys.readouterr().out.splitlines()
  assert path.read_text() == f'{line}\n'
  record = json.loads(line)
  assert record['gamma'] == 2 and record['host']['cores'] >= 1
  found = record['paraphrases']
  assert found['requests'] == 6 and found['answers_in_store'] == 7
  assert found['share_with_answer'] > 0.5
  for way in ('plain', 'searched'):
    assert found[way]['tokens_per_target_call'] == 1
  rates = [
      found[way]['tokens_per_target_call'] for way in ('lookup', 'answers')
  ]
  assert 1 < rates[0] < rates[1]
  for way in ('plain', 'searched', 'lookup', 'answers'):
    assert found[way]['different_outputs'] == 0
    low, high = found[way]['speedup_ci95']
    assert low <= found[way]['speedup'] <= high


def test_network_and_batches():
  flags = (
      '--layers=2 --batch_size=3 --inputs_length=5 --targets_length=7 --steps=6'
      ' --dtype=bfloat16 --dropout_rate=0.1'
  )
  found = throughput.read_case(throughput.parse_arguments(flags.split()))
  config = found.config
  assert (config.num_encoder_layers, config.num_decoder_layers) == (2, 2)
  assert (config.emb_dim, config.dtype, config.dropout_rate) == (
      512, 'bfloat16', 0.1
  )  # fmt: skip
  assert found.num_target_tokens == 6 * 3 * 7
  examples = found.examples()
  assert examples.inputs.shape == (12, 5)
  assert examples.targets.shape == (12, 7)
  assert examples.targets.min() >= 3  # neither padding nor an end
  # Four batches in a circle.
  rows = found.indices()
  np.testing.assert_array_equal(rows[1], [3, 4, 5])
  np.testing.assert_array_equal(rows[4], rows[0])


def test_ratio_is_of_speeds():
  timings = {
      worker.OURS: measuring.Timings([[1.0, 3.0]] * 7),
      worker.T5X: measuring.Timings([[2.0, 4.0]] * 7),
  }
  found = throughput.summarize(timings, num_target_tokens=100)
  tokens = found['target_tokens_per_second']
  assert tokens[worker.OURS] == pytest.approx(50)
  assert tokens[worker.T5X] == pytest.approx(100 / 3)
  over = found['speculative_t5x_over_t5x']
  assert over['ratio'] == pytest.approx(1.5)
  assert over['ci95'] == pytest.approx((1.5, 1.5))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for the run record: its keys, its counts and its JSON."""

import datetime
import json
import re
import subprocess

import jax
import numpy as np
import pytest

from speculative_t5x import loading
from speculative_t5x import token_decoder
from speculative_t5x.measurement import run_record
from speculative_t5x.speculation import outcome as outcome_lib
from tests import tiny

# The keys of the contract, in order. Readers of old records need each.
KEYS = """
    schema_version created package_version commit
    job
    task split num_examples truncated_inputs
    target
    drafter
    verification
    gamma gamma_policy
    temperature topk topp num_decodes seed batch_size inputs_length
    targets_length
    device
    host
    mesh matmul_precision
    lossless
    simulated_acceptance
    baseline
    speculative
    draft_acceptance_rate
    accepted_per_tested
    mean_acceptance_length
    tokens_per_target_call
    padded_share
    encoder_s
    t1_ms t_verify_ms t_draft_ms t_draft2_ms t_call_ms
    c
    verify_cost_ratio
    floor_ms floor_ratio
    alpha
    predicted_speedup
    bound_speedup
    speedup speedup_ci95
    decode_speedup
    loop_efficiency
    reference
    compile_s
    repeats rounds warmup
    peak_memory_bytes
    ops_coefficient operations_factor
    warnings
    quality
    greedy
""".split()


def decoded(accepted, drafted, **counts) -> token_decoder.Decoded:
  """Rows of counts, as a run gives them."""
  num_rows = len(accepted)
  column = lambda name: np.array(counts.get(name, [0] * num_rows), np.int32)
  return token_decoder.Decoded(
      sequences=np.zeros((num_rows, 9), np.int32),
      num_tokens=column('num_tokens'),
      log_probs=np.zeros(num_rows, np.float32),
      num_calls=column('num_calls'),
      num_steps=np.int32(counts['num_steps']),
      statistics=outcome_lib.Statistics(
          accepted_histogram=np.array(accepted, np.int32),
          drafted_histogram=np.array(drafted, np.int32),
          num_rejections=column('num_rejections'),
          num_computed=column('num_computed'),
          num_cut_short=column('num_cut_short'),
      ),
  )


def batches():
  """Two batches, gamma 2.

  The calls of the first row have 2, 0 and 1 accepted tokens; the last is cut
  short after its only draft token. The second row has 1 of 2, and the third is
  padding. The fourth, in a batch of its own, has 2 of 2.
  """
  first = decoded(
      accepted=[[1, 1, 1], [0, 1, 0], [0, 0, 0]],
      drafted=[[0, 1, 2], [0, 0, 1], [0, 0, 0]],
      num_tokens=[5, 2, 0],
      num_calls=[3, 1, 0],
      num_rejections=[1, 1, 0],
      num_computed=[6, 2, 0],
      num_cut_short=[1, 0, 0],
      num_steps=3,
  )
  second = decoded(
      accepted=[[0, 0, 1]],
      drafted=[[0, 0, 1]],
      num_tokens=[3],
      num_calls=[1],
      num_rejections=[0],
      num_computed=[2],
      num_cut_short=[0],
      num_steps=1,
  )
  return [first, second]


@pytest.fixture
def git(tmp_path):
  """Runs git in a folder, and gives what it says."""

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


class TestMake:

  def test_has_every_key_of_the_contract(self):
    assert sorted(run_record.KEYS) == sorted(KEYS)
    assert list(run_record.make('eval')) == list(run_record.KEYS)

  def test_what_was_not_measured_is_null(self):
    record = run_record.make('eval', gamma=5)
    filled = {key for key, value in record.items() if value is not None}
    always = {
        'schema_version',
        'created',
        'package_version',
        'job',
        'device',
        'host',
        'gamma',
    }
    assert always <= filled <= always | {'commit'}
    assert record['gamma'] == 5
    assert record['job'] == 'eval'
    assert record['schema_version'] == 1

  def test_created_now(self):
    record = run_record.make('eval')
    created = datetime.datetime.fromisoformat(record['created'])
    age = datetime.datetime.now(datetime.UTC) - created
    assert datetime.timedelta(seconds=-1) < age < datetime.timedelta(minutes=1)

  def test_unknown_key(self):
    with pytest.raises(KeyError, match='gama'):
      run_record.make('eval', gama=5)

  def test_no_commit_outside_a_checkout(self, tmp_path, monkeypatch):
    monkeypatch.setattr(run_record, '__file__', str(tmp_path / 'module.py'))
    assert run_record.make('eval')['commit'] is None

  def test_a_commit_is_of_the_code_itself(self, tmp_path, git):
    """And not of a checkout that an environment with the code lies in."""
    own, installed = tmp_path / 'own', tmp_path / '.venv' / 'package'
    for folder in (own, installed):
      folder.mkdir(parents=True)
      (folder / 'module.py').touch()
    git('init', '--quiet')
    git('add', 'own')
    git('commit', '--quiet', '--message', 'own code')
    assert run_record.commit_of(own) == git('rev-parse', 'HEAD')
    assert run_record.commit_of(installed) is None

  def test_a_changed_file_makes_another_commit(self, tmp_path, git):
    """Every edit one of its own; files elsewhere do not count."""
    own = tmp_path / 'own'
    own.mkdir()
    for path in (own / 'module.py', tmp_path / 'README.md'):
      path.write_text('before')
    git('init', '--quiet')
    git('add', '.')
    git('commit', '--quiet', '--message', 'own code')
    head = git('rev-parse', 'HEAD')
    found = []
    for text in (b'before', b'after', b'later\xff', b'after'):
      (own / 'module.py').write_bytes(text)
      (tmp_path / 'README.md').write_bytes(text)
      (own / 'new.py').write_bytes(text)
      found.append(run_record.commit_of(own))
    assert found[0] == head
    assert re.fullmatch(f'{head}[+][0-9a-f]{{8}}', found[1])
    assert found[1] == found[3] and len(set(found)) == 3
    git('add', 'own/module.py')
    assert run_record.commit_of(own) == found[1]

  def test_describes_where_it_ran(self):
    device = run_record.describe_device()
    assert device['platform'] == jax.devices()[0].platform
    assert device['jax'] == jax.__version__
    assert device['count'] >= 1
    host = run_record.describe_host()
    assert host['cpu'] and host['cores'] >= 1


class TestDescribeModel:

  def test_without_a_checkpoint(self):
    config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
    params = tiny.params(config)
    assert tiny.model(config).describe() == {
        'name': None,
        'checkpoint': None,
        'num_params': sum(x.size for x in jax.tree.leaves(params)),
        'dtype': 'float32',
    }

  def test_name_is_the_end_of_the_path(self):
    config = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
    model = loading.make_model(
        config, tiny.params(config), 'gs://bucket/t5_base/checkpoint_1000'
    )
    described = model.describe()
    assert described['name'] == 't5_base/checkpoint_1000'
    assert described['checkpoint'] == 'gs://bucket/t5_base/checkpoint_1000'


class TestCounts:

  def test_run(self):
    assert run_record.count_run(batches()) == {
        'tokens': 10,
        'target_calls': 5,
        'loop_steps': 4,
    }

  def test_speculation(self):
    assert run_record.count_speculation(batches()) == {
        'drafted': 9,
        'drafted_computed': 10,
        'tested': 8,
        'accepted': 6,
        'cut_short': 1,
        'acceptance_histogram': [1, 2, 2],
        'per_position_acceptance': [4 / 5, 2 / 4],
    }

  def test_tokens_add_up(self):
    counts = run_record.count_speculation(batches())
    run = run_record.count_run(batches())
    assert run['tokens'] == (
        counts['accepted'] + run['target_calls'] - counts['cut_short']
    )

  def test_rates(self):
    counts = run_record.count_speculation(batches())
    rates = run_record.acceptance_rates(
        run_record.count_run(batches()) | counts
    )
    assert rates == {
        'draft_acceptance_rate': 6 / 9,
        'accepted_per_tested': 6 / 8,
        'mean_acceptance_length': 1 + 6 / 5,
        'tokens_per_target_call': 10 / 5,
    }

  def test_padded_share(self):
    """Of 3 rows times 3 steps and 1 times 1, five were used."""
    assert run_record.padded_share(batches()) == pytest.approx(1 - 5 / 10)

  def test_nothing_decoded(self):
    nothing = decoded([[0, 0, 0]], [[0, 0, 0]], num_steps=0)
    counts = run_record.count_speculation([nothing])
    assert counts['per_position_acceptance'] == [None, None]
    rates = run_record.acceptance_rates(
        run_record.count_run([nothing]) | counts
    )
    assert set(rates.values()) == {None}
    assert run_record.padded_share([nothing]) is None


class TestToJson:

  def test_one_line_that_reads_back(self):
    record = run_record.make(
        'eval',
        task='Übersetzung\nzwei',
        speculative=run_record.count_speculation(batches()),
        baseline=run_record.count_run(batches()),
        padded_share=run_record.padded_share(batches()),
    )
    line = run_record.to_json(record)
    assert '\n' not in line
    assert json.loads(line) == record

  @pytest.mark.parametrize('value', [float('nan'), float('inf')])
  def test_not_finite(self, value):
    with pytest.raises(ValueError, match='not JSON compliant'):
      run_record.to_json(run_record.make('eval', speedup=value))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/training_throughput`: its cases and its statistics."""

import numpy as np
import pytest

from benchmarks.side_by_side import measuring
from benchmarks.training_throughput import __main__ as throughput
from benchmarks.training_throughput import cases
from benchmarks.training_throughput import worker


def case(*arguments):
  return throughput.read_case(throughput.parse_arguments([*arguments]))


class TestCase:

  def test_network_and_batches(self):
    found = case(
        '--layers=2', '--batch_size=3', '--inputs_length=5',
        '--targets_length=7', '--steps=6', '--dtype=bfloat16',
    )  # fmt: skip
    config = found.config
    assert (config.num_encoder_layers, config.num_decoder_layers) == (2, 2)
    assert (config.emb_dim, config.dtype) == (512, 'bfloat16')
    assert found.num_target_tokens == 6 * 3 * 7
    examples = found.examples()
    assert examples.inputs.shape == (12, 5)
    assert examples.targets.shape == (12, 7)
    assert examples.targets.min() >= 3  # neither padding nor an end
    # Four batches in a circle.
    rows = found.indices()
    assert rows.shape == (6, 3)
    np.testing.assert_array_equal(rows[1], [3, 4, 5])
    np.testing.assert_array_equal(rows[4], rows[0])

  def test_another_process_reads_the_same(self):
    found = case('--size=base', '--dropout_rate=0.1')
    assert cases.from_json(found.to_json()) == found
    assert found.config.num_decoder_layers == 12
    assert found.config.dropout_rate == 0.1

  def test_number_out_of_range(self, capsys):
    with pytest.raises(SystemExit):
      case('--steps=0')
    assert 'must be at least 1, got 0' in capsys.readouterr().err


def test_ratio_is_of_speeds():
  rounds = 7
  timings = {
      worker.OURS: measuring.Timings([[1.0, 3.0]] * rounds),
      worker.T5X: measuring.Timings([[2.0, 4.0]] * rounds),
  }
  found = throughput.summarize(timings, num_target_tokens=100)
  assert found['target_tokens_per_second'] == {
      worker.OURS: pytest.approx(50),
      worker.T5X: pytest.approx(100 / 3),
  }
  over = found['speculative_t5x_over_t5x']
  assert over['ratio'] == pytest.approx(1.5)
  assert over['ci95'] == pytest.approx((1.5, 1.5))


def test_process_that_ends_is_reported(monkeypatch, capfd):
  broken = case('--layers=1')
  monkeypatch.setattr(
      cases.Case, 'to_json', lambda self: '{"no_such_field": 1}'
  )
  with pytest.raises(RuntimeError, match='process of .* has ended'):
    throughput.run(broken, rounds=1, repeats=1)
  assert 'no_such_field' in capfd.readouterr().err

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of `benchmarks/training_throughput`: its case and its statistics."""

import numpy as np
import pytest

from benchmarks.side_by_side import measuring
from benchmarks.training_throughput import __main__ as throughput
from benchmarks.training_throughput import worker


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

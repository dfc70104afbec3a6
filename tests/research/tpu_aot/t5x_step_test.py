# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of T5X's own step on a TPU, if T5X is installed."""

import importlib.util

import pytest

from speculative_t5x.networks import t5
from speculative_t5x.research.tpu_aot import t5x_step
from tests.research.tpu_aot import libtpu


def test_t5x_is_found_if_installed():
  is_there = importlib.util.find_spec('t5x') is not None
  assert t5x_step.IS_IMPORTABLE == is_there


@libtpu.needed
@pytest.mark.skipif(not t5x_step.IS_IMPORTABLE, reason='T5X cannot be imported')
class TestCompilePlain:

  def test_step_multiplies_by_vectors(self):
    config = t5.T5Config(
        vocab_size=3072, emb_dim=512, num_heads=8, head_dim=64,
        num_encoder_layers=1, num_decoder_layers=2, mlp_dim=640,
        dtype='bfloat16',
    )  # fmt: skip
    place = libtpu.describe('v4:1x1x1')
    found = t5x_step.compile_plain(
        config, place, examples=1, inputs_length=16, length=32
    )
    assert found.step.cycles > 0
    assert found.step.vector_products > 0
    assert found.step.host_transfers == 0

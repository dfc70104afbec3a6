# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's own step on a TPU, where T5X is."""

import importlib
import sys

import pytest

from speculative_t5x.networks import t5
from speculative_t5x.tpu_aot import abstract_pair
from speculative_t5x.tpu_aot import t5x_step
from tests.tpu_aot import libtpu


class TestIsImportable:

  def test_without_t5x(self, monkeypatch):
    monkeypatch.setitem(sys.modules, 't5x.models', None)
    assert not t5x_step.is_importable()

  def test_with_t5x(self, monkeypatch):
    monkeypatch.setattr(importlib, 'import_module', lambda name: name)
    assert t5x_step.is_importable()


@libtpu.needed
class TestCompilePlain:

  def test_it_multiplies_by_vectors(self):
    pytest.importorskip('t5x.models')
    config = t5.T5Config(
        vocab_size=3072, emb_dim=512, num_heads=8, head_dim=64,
        num_encoder_layers=1, num_decoder_layers=2, mlp_dim=640,
        dtype='bfloat16',
    )  # fmt: skip
    place = abstract_pair.make_place(libtpu.describe('v4:1x1x1'), None)
    found = t5x_step.compile_plain(
        config, place, examples=1, inputs_length=16, length=32
    )
    assert found.step.cycles > 0
    assert found.step.vector_products > 0
    assert found.step.host_transfers == 0

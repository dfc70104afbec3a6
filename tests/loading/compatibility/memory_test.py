# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of memory estimates, against counts by hand and allocated arrays."""

import dataclasses
import math
import types

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import state as state_lib
from tests import tiny

_WORKLOAD = memory.Workload(
    memory.Lengths(inputs=7, targets=11, gamma=4, num_decodes=2), batch_size=3
)


def _num_bytes(tree) -> int:
  return sum(x.nbytes for x in jax.tree.leaves(tree))


class TestByHand:
  """Width 32, 2 heads of 16, 2 layers per stack, mlp 48, 64 ids."""

  # A layer: two norms and 4 * 32 * 32 + 3 * 32 * 48 in the encoder; three norms
  # and twice the attention in the decoder.
  encoder = 2 * (2 * 32 + 4096 + 4608) + 32 + 2 * 32
  decoder = 2 * (3 * 32 + 2 * 4096 + 4608) + 32 + 2 * 32
  embedding = 64 * 32
  params = encoder + decoder + 2 * embedding
  # Keys and values of 2 layers, of inputs and of outputs.
  cache = 2 * 2 * 32 * 6 * (7 + state_lib.cache_slots(11, 4))

  def test_one_device(self):
    found = memory.of_model(tiny.config(), _WORKLOAD)
    assert found == 4 * (self.params + self.cache)
    assert _WORKLOAD.logits_bytes(64) == 4 * 6 * (5 + 4) * 64

  def test_mesh(self):
    """Each of two rows of devices holds half of the target per device."""
    workload = dataclasses.replace(_WORKLOAD, batch_size=6, mesh_shape=(2, 2))
    found = memory.of_model(tiny.config(), workload)
    norms = 2 * 2 * 32 + 32 + 2 * 3 * 32 + 32
    cut = self.params - norms + self.cache
    assert found == 4 * (norms + cut // 2)
    whole = memory.of_model(tiny.config(), workload, sharding.REPLICATED)
    assert whole == memory.of_model(tiny.config(), _WORKLOAD)

  def test_indivisible_heads(self):
    """Embedding, head and feed-forward blocks are still partitioned."""
    workload = dataclasses.replace(_WORKLOAD, mesh_shape=(1, 4))
    found = memory.of_model(tiny.config(), workload)
    cut = 2 * self.embedding + 4 * 4608
    one = memory.of_model(tiny.config(), _WORKLOAD)
    assert one - found == 4 * cut * 3 // 4


@pytest.mark.parametrize(
    'overrides',
    [
        {'dtype': jnp.bfloat16},
        {'logits_via_embedding': True},
        {'mlp_activations': ('relu',), 'num_decoder_layers': 3},
    ],
)
def test_allocated(overrides):
  config = tiny.config(**overrides)
  # `load_model` reads them in this form.
  params = jax.tree.map(lambda x: x.astype(config.dtype), tiny.params(config))
  model = models.make_model(config, params)
  slots = state_lib.cache_slots(11, 4)
  inputs = tiny.encoder_tokens(6, 7)
  started = model.config.start(model.params, inputs, 6, slots)
  held = (model.params, started.cache, started.memory.cross)
  lengths = dataclasses.replace(_WORKLOAD.lengths, num_decodes=1)
  found = memory.of_model(config, memory.Workload(lengths, 6))
  assert found == sum(map(_num_bytes, held))


@pytest.mark.parametrize(
    ('stats', 'platform', 'kind', 'expected'),
    [
        ({'bytes_limit': 1000, 'bytes_in_use': 300}, 'gpu', 'a kind', 700),
        ({}, 'gpu', 'a kind', math.inf),
        (None, 'tpu', 'TPU v5 lite', 16 * 2**30),
        (None, 'cpu', 'a kind', 12 * 1024),
    ],
)
def test_available(stats, platform, kind, expected, monkeypatch, tmp_path):
  device = types.SimpleNamespace(
      memory_stats=lambda: stats, platform=platform, device_kind=kind
  )
  monkeypatch.setattr(jax, 'local_devices', lambda: [device])
  monkeypatch.setattr(memory, '_MEMINFO', tmp_path / 'meminfo')
  (tmp_path / 'meminfo').write_text('MemFree:  3 kB\nMemAvailable:  12 kB\n')
  assert memory.available_bytes() == expected

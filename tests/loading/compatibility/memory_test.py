# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of memory estimates, against counts by hand and allocated arrays."""

import dataclasses
import math
import os
import types

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.networks import transformer
from speculative_t5x.speculation import state as state_lib
from tests import recurrent_network
from tests import tiny

_WORKLOAD = memory.Workload(
    batch_size=3, num_decodes=2, inputs_length=7, targets_length=11, gamma=4
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

  def test_draft_model(self):
    """Scores are of gamma tokens, with as many logits as the target."""
    target = memory.target_bytes(tiny.config(), _WORKLOAD)
    assert target.logits == 4 * 6 * 5 * 64
    found = memory.draft_bytes(tiny.config(), _WORKLOAD, 100)
    assert found.logits == 4 * 6 * 4 * 100
    assert dataclasses.replace(found, logits=target.logits) == target

  def test_mesh(self):
    """Each of two rows of devices holds half of the target per device."""
    workload = dataclasses.replace(_WORKLOAD, batch_size=6, mesh_shape=(2, 2))
    found = memory.target_bytes(tiny.config(), workload)
    norms = 2 * 2 * 32 + 32 + 2 * 3 * 32 + 32
    params = self.encoder + self.decoder + 2 * self.embedding
    assert found.params == 4 * (norms + (params - norms) // 2)
    one = memory.target_bytes(tiny.config(), _WORKLOAD)
    assert 2 * found.cache == one.cache
    assert 2 * (found.cross - 21) == one.cross - 21
    assert found.logits == one.logits
    # Kernels are merged on one device only.
    assert (found.loading, one.loading) == (0, 4 * 3 * 32 * 32)
    draft = memory.draft_bytes(tiny.config(), workload, 64)
    one = memory.draft_bytes(tiny.config(), _WORKLOAD, 64)
    assert draft == dataclasses.replace(one, loading=0)
    parallel = dataclasses.replace(workload, draft_model_parallel=True)
    draft = memory.draft_bytes(tiny.config(), parallel, 64)
    assert (draft.params, draft.cache) == (found.params, found.cache)

  def test_indivisible_heads(self):
    workload = dataclasses.replace(_WORKLOAD, mesh_shape=(1, 4))
    found = memory.target_bytes(tiny.config(), workload)
    one = memory.target_bytes(tiny.config(), _WORKLOAD)
    assert (found.cache, found.cross) == (one.cache, one.cross)
    # Embedding, head and feed-forward blocks are still partitioned.
    cut = 2 * self.embedding + 4 * 4608
    assert one.params - found.params == 4 * cut * 3 // 4


def test_any_network():
  found = memory.draft_bytes(recurrent_network.Recurrent(50), _WORKLOAD, 64)
  assert found.params == 4 * (2 * 50 * 16 + 16 * 16)
  assert (found.cache, found.cross) == (4 * 6 * 16 * 16, 4 * 3 * 16)
  assert found.loading == 0


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
  found = memory.target_bytes(config, _WORKLOAD)
  # `load_model` reads them in this form.
  params = jax.tree.map(lambda x: x.astype(config.dtype), tiny.params(config))
  model = models.make_model(config, params)
  assert found.params == _num_bytes(model.params)
  slots = state_lib.cache_slots(11, 4)
  cache = transformer.init_cache(config.decoder, (6,), slots)
  assert found.cache == _num_bytes(cache)
  model = tiny.model(config)
  _, context = tiny.encode(
      model.config, model.params, tiny.encoder_tokens(3, 7)
  )
  assert found.cross == _num_bytes(context)


class TestAvailable:

  @pytest.fixture
  def machine(self, monkeypatch, tmp_path):
    """Return a function that fakes memory sizes and returns those found."""

    def found(stats, text=None, platform='cpu', kind='a kind'):
      device = types.SimpleNamespace(
          memory_stats=lambda: stats, platform=platform, device_kind=kind
      )
      monkeypatch.setattr(jax, 'local_devices', lambda: [device])
      monkeypatch.setattr(memory, '_MEMINFO', tmp_path / 'meminfo')
      if text is not None:
        (tmp_path / 'meminfo').write_text(text)
      return memory.available_bytes()

    return found

  def test_memory_of_a_device(self, machine):
    stats = {'bytes_limit': 1000, 'bytes_in_use': 300, 'num_allocs': 7}
    assert machine(stats, 'MemAvailable: 5 kB\n') == 700
    assert machine({}, 'MemAvailable: 12 kB\n', platform='gpu') == math.inf

  def test_memory_of_a_known_chip(self, machine):
    assert machine(None, platform='tpu', kind='TPU v5 lite') == 16 * 2**30

  def test_memory_of_the_host(self, machine):
    """The total memory is used where the available one is not known."""
    assert machine(None, 'MemFree:  3 kB\nMemAvailable:  12 kB\n') == 12 * 1024
    total = os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE')
    assert machine(None, 'MemTotal: 99 kB\n') == total

  def test_this_machine(self):
    assert memory.available_bytes() > 0

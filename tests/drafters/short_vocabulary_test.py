# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of draft models whose head has logits for some tokens only.

Greedy outputs: see `tests/greedy_combinations_test.py`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from tests import tiny

IDS = np.array([1, 2, 5, 17, 40, 63])
TIED = {'mlp_activations': ('relu',), 'logits_via_embedding': True}


def decode_block(model, rows, at):
  """Returns the logits of a block of three tokens."""
  network = network_lib.NetworkModel(model.config, t5.SPECIAL_IDS)
  inputs = tiny.encoder_tokens(rows, 7)

  @jax.jit
  def run(params):
    started = network.start(params, inputs, rows, 8)
    tokens = jnp.arange(3 * rows, dtype=jnp.int32).reshape(rows, 3) + 2
    zeros = jnp.zeros((rows,), jnp.int32)
    return network.decode(
        params, started.memory, started.cache, tokens, zeros, at
    )[0]

  with jax.default_matmul_precision('highest'):
    return np.asarray(run(model.params))


class TestLogits:

  @pytest.mark.parametrize(
      ('overrides', 'rows', 'at'),
      [({}, 3, None), (TIED, 1, 1), ({'dtype': jnp.bfloat16}, 3, 1)],
      ids=str,
  )
  def test_are_those_of_the_whole_head(self, overrides, rows, at):
    whole = tiny.model(tiny.config(**overrides))
    short = models.shorten_head(whole, IDS)
    at = None if at is None else jnp.full((rows,), at, jnp.int32)
    expected = decode_block(whole, rows, at)
    found = decode_block(short, rows, at)
    assert found.shape == expected.shape
    np.testing.assert_allclose(
        found[..., IDS], expected[..., IDS], rtol=1e-6, atol=1e-6
    )
    others = np.setdiff1d(np.arange(64), IDS)
    assert np.all(np.isneginf(found[..., others]))

  def test_head_is_as_small(self):
    whole = tiny.model(tiny.config())
    short = models.shorten_head(whole, IDS)
    kernel = short.params['decoder']['logits_dense']['kernel']
    assert kernel.shape == (32, len(IDS)) and short.config.head_size == 6
    shapes = lambda tree: jax.tree.map(lambda x: x.shape, tree)
    assert shapes(short.params) == shapes(models.abstract_params(short.config))


@pytest.mark.parametrize(
    ('ids', 'message'),
    [
        ([1, 2, 2], 'got 3 tokens, of which 2'),
        ([1, 64], 'from 0 to 63; got 2 tokens, of which 1'),
        ([-1, 1], 'from 0 to 63; got 2 tokens, of which 1'),
    ],
)
def test_bad_ids(ids, message):
  with pytest.raises(ValueError, match=message):
    models.shorten_head(tiny.model(tiny.config()), ids)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of simulated acceptance, and of random models."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import report
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import simulated_walltimes
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import simulated_acceptance
from tests import compilation
from tests import tiny

# The length is no multiple of a block, so the last block is cut short.
ROWS, LENGTH, GAMMA = 16, 14, 3
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(
      simulated_walltimes.make_model(CONFIG, seed=1),
      model_drafting.of_model(simulated_walltimes.make_model(CONFIG, seed=2)),
      gamma=GAMMA,
      max_tokens=LENGTH,
      may_end=False,
  )


def decode(alpha, seed=0, temperature=1.0) -> report.Report:
  (request,) = tiny.batches(
      tiny.encoder_tokens(ROWS, 9), length=LENGTH, seed=seed,
      sampling=sampling_lib.Sampling(temperature),
      rule=simulated_acceptance.make_rule(alpha),
  )  # fmt: skip
  return tiny.decoded(decoder(), request)


class TestSimulatedAcceptance:

  @pytest.mark.parametrize('temperature', [0.0, 1.0])
  @pytest.mark.parametrize('alpha', [0.2, 0.75])
  def test_rate(self, alpha, temperature):
    runs = [decode(alpha, seed, temperature) for seed in range(20)]
    accepted = sum(int(run.statistics.num_accepted.sum()) for run in runs)
    tested = sum(int(run.statistics.num_tested.sum()) for run in runs)
    assert tested > 1000
    deviation = math.sqrt(alpha * (1 - alpha) / tested)
    assert abs(accepted / tested - alpha) < 5 * deviation

  def test_no_value_recompiles(self):
    """And every output has the full length."""
    decode(0.5, 0, 0.0), decode(0.5, 0, 1.0)
    before = compilation.count()
    found = [
        decode(alpha, seed, temperature)
        for alpha in (0.0, 0.3, 1.0)
        for seed in (1, 2)
        for temperature in (0.7, 1.0)
    ]
    assert compilation.count() == before
    assert len({each.sequences.tobytes() for each in found}) == 12
    for each in found:
      assert each.num_tokens.tolist() == [LENGTH] * ROWS
      assert not np.any(each.sequences == t5.SPECIAL_IDS.end)


@pytest.mark.parametrize(
    'changes',
    [
        {},
        {'dtype': jnp.bfloat16},
        {'logits_via_embedding': True, 'mlp_activations': ('relu',)},
        {'num_encoder_layers': 3},
    ],
)
def test_resembles_a_loaded_model(changes):
  config = tiny.config(**changes)
  # Checkpoints are read in the dtype of the network.
  params = jax.tree.map(lambda x: x.astype(config.dtype), tiny.params(config))
  expected = models.make_model(config, params)
  found = simulated_walltimes.make_model(config)
  assert found.config == expected.config
  assert found.num_params == expected.num_params
  assert found.mesh is None and found.checkpoint is None
  describe = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
  assert describe(found.params) == describe(expected.params)


@pytest.mark.parametrize(
    ('size', 'millions'),
    [('small', '77.0'), ('base', '247.6'), ('large', '783'), ('xl', '2850'),
     ('xxl', '11135')],
)  # fmt: skip
def test_sizes_of_t5_1_1(size, millions):
  found = models.count_params(t5_published.make_config(size)) / 1e6
  decimals = len(millions.partition('.')[2])
  assert f'{found:.{decimals}f}' == millions

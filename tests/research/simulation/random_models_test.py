# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of simulated acceptance, and of models with random weights."""

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.networks import t5
from speculative_t5x.research.simulation import random_models
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import contracts
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
      random_models.make_model(CONFIG, seed=1),
      draft_model_source.from_model(random_models.make_model(CONFIG, seed=2)),
      gamma=GAMMA,
      length=LENGTH,
      may_end=False,
  )


def decode(alpha, seed=0, temperature=1.0) -> token_decoder.Decoded:
  setting = sampling_lib.make_sampling(temperature)
  request = token_decoder.Request(
      tiny.encoder_tokens(ROWS, 9),
      jnp.arange(ROWS, dtype=jnp.int32),
      jnp.full((ROWS,), LENGTH, jnp.int32),
      jnp.int32(seed),
      setting,
      setting,
      simulated_acceptance.make_rule(alpha),
  )
  return jax.device_get(decoder().speculative(request))


class TestSimulatedAcceptance:

  def test_all_are_accepted(self):
    found = decode(1.0)
    calls = math.ceil(LENGTH / (GAMMA + 1))
    assert found.num_calls.tolist() == [calls] * ROWS
    assert not found.statistics.num_rejections.any()

  def test_none_is_accepted(self):
    found = decode(0.0)
    assert found.num_calls.tolist() == [LENGTH] * ROWS
    assert not found.statistics.num_accepted.any()

  @pytest.mark.parametrize('temperature', [0.0, 1.0])
  @pytest.mark.parametrize('alpha', [0.2, 0.75])
  def test_rate(self, alpha, temperature):
    runs = [decode(alpha, seed, temperature).statistics for seed in range(20)]
    accepted = sum(int(run.num_accepted.sum()) for run in runs)
    tested = sum(int(run.num_tested.sum()) for run in runs)
    assert tested > 1000
    deviation = math.sqrt(alpha * (1 - alpha) / tested)
    assert abs(accepted / tested - alpha) < 5 * deviation

  @pytest.mark.parametrize('alpha', [0.0, 0.5, 1.0])
  @pytest.mark.parametrize('temperature', [0.0, 1.0])
  def test_every_output_has_the_full_length(self, alpha, temperature):
    found = decode(alpha, temperature=temperature)
    assert found.num_tokens.tolist() == [LENGTH] * ROWS
    assert not np.any(found.sequences == t5.SPECIAL_IDS.end)

  def test_no_value_recompiles(self):
    decode(0.5, 0, 0.0), decode(0.5, 0, 1.0)
    before = compilation.count()
    outputs = {
        decode(alpha, seed, temperature).sequences.tobytes()
        for alpha in (0.0, 0.3, 1.0)
        for seed in (1, 2)
        for temperature in (0.7, 1.0)
    }
    assert compilation.count() == before
    assert len(outputs) == 12

  def test_distributions_do_not_matter(self):
    """Uniforms alone decide, even if the target rules out every draft token."""
    draft = contracts.Draft(
        jnp.full((2, 2), 1, jnp.int32),
        jnp.array([2, 2], jnp.int32),
        jnp.full((2, 2, 3), 1 / 3),
    )
    target_probs = jnp.broadcast_to(jnp.array([0.0, 0.0, 1.0]), (2, 3, 3))
    coins = jnp.array([[0.59, 0.59], [0.59, 0.6]])
    scores = contracts.Scores(
        jnp.log(target_probs), target_probs, sampling_lib.make_sampling()
    )
    verdict = simulated_acceptance.make_rule(0.6)(scores, draft, coins)
    assert verdict.num_accepted.tolist() == [2, 1]
    assert jnp.argmax(verdict.next_weights, axis=-1).tolist() == [2, 2]

  @pytest.mark.parametrize('alpha', [-0.1, 1.1, float('nan')])
  def test_rate_out_of_range(self, alpha):
    with pytest.raises(ValueError, match=r'alpha must lie in \[0, 1\], got'):
      simulated_acceptance.make_rule(alpha)


TREES = {
    'T5 1.1': tiny.config(),
    'bfloat16': tiny.config(dtype=jnp.bfloat16),
    'T5 1.0': tiny.config(logits_via_embedding=True, mlp_activations=('relu',)),
    'T5 1.0, bfloat16': tiny.config(
        logits_via_embedding=True,
        mlp_activations=('relu',),
        dtype=jnp.bfloat16,
    ),
    'more encoder layers': tiny.config(num_encoder_layers=3),
}


class TestMakeModel:

  @pytest.mark.parametrize('name', TREES)
  def test_resembles_a_loaded_model(self, name):
    config = TREES[name]
    params = jax.tree.map(
        # Checkpoints are read in the dtype of the network.
        lambda x: x.astype(config.dtype),
        tiny.params(config),
    )
    expected = models.make_model(config, params)
    found = random_models.make_model(config)
    assert found.config == expected.config
    assert found.num_params == expected.num_params
    assert found.mesh is None and found.checkpoint is None
    describe = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
    assert describe(found.params) == describe(expected.params)

  def test_values_have_an_initializers_scale(self):
    leaves, _ = jax.tree.flatten_with_path(
        random_models.make_model(CONFIG).params
    )
    for path, leaf in leaves:
      if leaf.ndim == 1:
        assert np.all(leaf == 1)
      else:
        spread = float(jnp.std(leaf)) * math.sqrt(leaf.shape[0])
        assert spread == pytest.approx(1, rel=0.2), path

  def test_parameters_differ(self):
    leaves = [
        leaf.tobytes()
        for seed in (1, 2)
        for leaf in jax.tree.leaves(
            random_models.make_model(CONFIG, seed).params
        )
        if leaf.ndim > 1
    ]
    assert len(set(leaves)) == len(leaves)


class TestSizes:

  # Millions of parameters, from the sizes of T5 1.1.
  @pytest.mark.parametrize(
      ('size', 'millions'),
      [
          ('small', '77.0'), ('base', '247.6'), ('large', '783'),
          ('xl', '2850'), ('xxl', '11135'),
      ],
  )  # fmt: skip
  def test_parameters(self, size, millions):
    found = models.count_params(t5_published.make_config(size)) / 1e6
    decimals = len(millions.partition('.')[2])
    assert f'{found:.{decimals}f}' == millions

  def test_config(self):
    config = t5_published.make_config('xl', 'bfloat16')
    assert config.dtype == 'bfloat16'
    assert (config.vocab_size, config.head_dim) == (32128, 64)
    assert (config.num_encoder_layers, config.num_decoder_layers) == (24, 24)
    assert not config.logits_via_embedding
    assert t5_published.make_config('xl') == dataclasses.replace(
        config, dtype='float32'
    )

  def test_unknown_size(self):
    with pytest.raises(
        ValueError, match="no T5 1.1 'tiny'.* small, base, large, xl, xxl"
    ):
      t5_published.make_config('tiny')

  def test_unknown_dtype(self):
    with pytest.raises(ValueError, match='dtype must be float32 or bfloat16'):
      t5_published.make_config('small', 'float16')

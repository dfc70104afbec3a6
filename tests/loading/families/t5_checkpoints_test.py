# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of reading sizes from names and shapes of parameters."""

import jax
import jax.numpy as jnp
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import families
from speculative_t5x.loading import models
from speculative_t5x.loading.families import t5_checkpoints
from tests import tiny

# All sizes differ, so that none can be mistaken for another.
_SIZES = dict(
    vocab_size=60,
    emb_dim=36,
    num_heads=3,
    num_encoder_layers=4,
    num_decoder_layers=2,
    head_dim=5,
    mlp_dim=28,
)


def _specs(**overrides):
  config = tiny.config(**(_SIZES | overrides))
  return checkpoints.flatten(models.abstract_params(config))


class TestReadConfig:

  @pytest.mark.parametrize(
      'overrides',
      [
          {},
          {'logits_via_embedding': True},
          {'mlp_activations': ('relu',)},
          {'mlp_activations': ('relu',), 'logits_via_embedding': True},
          {'num_decoder_layers': 11},
          {'dtype': jnp.bfloat16},
      ],
  )
  def test_all_sizes(self, overrides):
    config = tiny.config(**(_SIZES | overrides))
    found = t5_checkpoints.of_shapes(_specs(**overrides), config.dtype)
    assert found == config

  @pytest.mark.parametrize(
      'name, shape',
      [
          ('token_embedder/embedding', None),
          ('decoder/relpos_bias/rel_embedding', None),
          ('decoder/layers_0/self_attention/query/kernel', (36, 3, 5)),
          ('decoder/relpos_bias/rel_embedding', (4, 32)),  # of 15 columns
          ('decoder/layers_0/mlp/wi_2/kernel', (36, 28)),
      ],
  )
  def test_parameters_that_t5_does_not_have(self, name, shape):
    specs = _specs()
    specs.pop(name, None)
    if shape:
      specs[name] = jax.ShapeDtypeStruct(shape, jnp.float32)
    named = name.partition('/wi')[0]
    message = f'{named}.* is not a T5'
    with pytest.raises(checkpoints.CheckpointError, match=message):
      t5_checkpoints.of_shapes(specs, jnp.float32)


def test_no_known_family(tmp_path):
  """The error names the families; one of a setting is told as it is."""
  specs = _specs()
  with pytest.raises(ValueError, match='^dtype must be'):
    families.of_shapes(tmp_path, specs, 'float16')
  del specs['token_embedder/embedding']
  with pytest.raises(checkpoints.CheckpointError) as error:
    families.of_shapes(tmp_path, specs, 'float32')
  (line,) = str(error.value).splitlines()
  assert line.startswith(f'{tmp_path} is not of a family that is known here')

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5X's scalable_t5 beside what is loaded of its checkpoints."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from t5x.examples.scalable_t5 import network

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from tests import tiny


@pytest.mark.parametrize(
    'layers',
    [
        {'scan_layers': True},
        {'scan_layers': True, 'param_scan_axis': 0},
        {'scan_layers': False},
    ],
)
def test_logits_are_t5xs(tmp_path, layers):
  sizes = dict(
      vocab_size=64, emb_dim=24, num_heads=4, head_dim=10, mlp_dim=40,
      num_encoder_layers=3, num_decoder_layers=2,
      mlp_activations=('gelu', 'linear'),
  )  # fmt: skip
  module = network.Transformer(network.T5Config(**sizes, **layers))
  inputs, outputs = tiny.t5x_tokens(2, 9), 2 + tiny.t5x_tokens(2, 12) % 50
  fed = jnp.pad(outputs, ((0, 0), (1, 0)))[:, :-1]
  init = functools.partial(module.init, enable_dropout=False)
  variables = jax.jit(init)(jax.random.key(0), inputs, fed, outputs)
  params = jax.tree.map(np.asarray, variables['params'])
  checkpoints.save(tmp_path, 7, params)
  checkpoint = checkpoints.open(tmp_path)
  config = checkpoint.network()
  assert config == tiny.config(**sizes, bias_per_layer=True)
  with jax.default_matmul_precision('highest'):
    expected = module.apply(
        {'params': params}, inputs, fed, outputs, enable_dropout=False
    )
  found = tiny.teacher_forced(
      config,
      checkpoint.restore_params(models.abstract_params(config)),
      inputs,
      outputs,
  )
  np.testing.assert_allclose(found, expected, atol=1e-4)

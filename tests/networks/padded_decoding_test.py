# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that calls padded to four positions give the same tokens."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.speculation import sampling
from tests import tiny

CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
ROWS, LENGTH, GAMMA = 6, 14, 3


def _model(min_block: int, noise: float = 0.0):
  model = tiny.model(CONFIG, noise=noise)
  config = dataclasses.replace(model.config, min_block=min_block)
  return dataclasses.replace(model, config=config)


@pytest.fixture(scope='module')
def decoders():
  """Returns decoders of both models unpadded, and of both padded."""
  return [
      token_decoder.TokenDecoder(
          _model(min_block),
          draft_model_source.from_model(_model(min_block, noise=0.15)),
          gamma=GAMMA,
          length=LENGTH,
          matmul_precision='highest',
      )
      for min_block in (1, 4)
  ]


def _request(rows: int, temperature: float) -> token_decoder.Request:
  setting = sampling.make_sampling(temperature)
  ids = jnp.arange(rows, dtype=jnp.int32)
  return token_decoder.Request(
      tiny.encoder_tokens(rows, 9),
      ids,
      jnp.full((rows,), LENGTH, jnp.int32),
      jnp.int32(3),
      setting,
      setting,
  )


@pytest.mark.parametrize(('way', 'rows'), [('plain', 1), ('speculative', ROWS)])
@pytest.mark.parametrize('temperature', [0.0, 1.0])
def test_tokens_are_the_same(decoders, way, temperature, rows):
  request = _request(rows, temperature)
  usual, padded = (
      jax.device_get(getattr(decoder, way)(request)) for decoder in decoders
  )
  assert usual.num_tokens.sum() > 3 * rows
  np.testing.assert_array_equal(padded.sequences, usual.sequences)
  np.testing.assert_allclose(padded.log_probs, usual.log_probs, atol=1e-3)
  jax.tree.map(
      np.testing.assert_array_equal, padded.statistics, usual.statistics
  )

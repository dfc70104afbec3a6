# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma and T5Gemma 2, compared with NumPy, and decoded by drafts."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.speculation import contracts
from tests import reference_decoder
from tests import tiny_decoders

CONFIGS = tiny_decoders.CONFIGS_OF_T5GEMMA
# Around the window of 8, and of several windows.
LENGTHS = 1, 7, 9, 25
LENGTH = 16


def inputs():
  rows = np.full((len(LENGTHS), max(LENGTHS)), contracts.NO_TOKEN, np.int32)
  generator = np.random.default_rng(0)
  for row, length in zip(rows, LENGTHS):
    row[:length] = generator.integers(0, 96, length)
    row[length // 2] = 0  # a token like others
  return rows


def outputs():
  """Return outputs [rows, LENGTH], longer than the window."""
  return np.random.default_rng(1).integers(
      0, 96, (len(LENGTHS), LENGTH), np.int32
  )


@functools.cache
def model(name):
  config = CONFIGS[name]
  return models.make_model(config, tiny_decoders.params(config))


def encoded(name, row):
  config = CONFIGS[name]
  return reference_decoder.encode(
      config.encoder, tiny_decoders.params(config), row
  )


def logits(name, features, output):
  config = CONFIGS[name]
  fed = [2, *output]
  return reference_decoder.logits(
      config, tiny_decoders.params(config), fed, features
  )


@functools.cache
def expected(name):
  """Return the logits of each output's tokens, [rows, LENGTH, vocab]."""
  return np.stack([
      logits(name, encoded(name, row[row >= 0].tolist()), output[:-1].tolist())
      for row, output in zip(inputs(), outputs())
  ])


@pytest.mark.parametrize(
    ('name', 'block'), [('t5gemma', 1), ('t5gemma', 4), ('t5gemma2', 4)]
)
def test_blocks_equal_numpy(name, block):
  assert np.abs(expected(name)).max() > 1
  found = tiny_decoders.decode(model(name), inputs(), outputs(), block)
  np.testing.assert_allclose(found, expected(name), atol=2e-4)


@pytest.mark.parametrize('name', CONFIGS)
def test_a_row_does_not_depend_on_its_batch(name):
  """Alone, without a batch axis, or twice per example."""
  row = inputs()[2]
  alone = row[row >= 0][None]
  found = tiny_decoders.decode(model(name), alone, outputs()[2:3], 4)
  np.testing.assert_allclose(found[0], expected(name)[2], atol=2e-4)
  twice = np.repeat(outputs(), 2, axis=0)
  found = tiny_decoders.decode(model(name), inputs(), twice, 4)
  np.testing.assert_allclose(
      found, np.repeat(expected(name), 2, axis=0), atol=2e-4
  )


@pytest.mark.parametrize('name', CONFIGS)
def test_scores_are_those_of_decoding(name):
  config = CONFIGS[name]
  params = tiny_decoders.params(config)
  with jax.default_matmul_precision('highest'):
    found = jax.jit(config.score)(params, inputs(), outputs())
    alone = config.on_features(config.width_of_inputs)
    features = jax.jit(config.encode)(params, jnp.asarray(inputs()))
    own = {'decoder': params['decoder']}
    on_features = jax.jit(alone.score)(
        own, inputs(), outputs(), features=features
    )
  np.testing.assert_allclose(found, expected(name), atol=2e-4)
  np.testing.assert_allclose(on_features, expected(name), atol=2e-4)
  assert jax.tree.structure(own) == jax.tree.structure(
      models.abstract_params(alone)
  )


@pytest.mark.parametrize('name', CONFIGS)
def test_drafts_of_the_first_layers(name):
  rows = [row[row >= 0].tolist() for row in inputs()]
  decoder = token_decoder.TokenDecoder(
      model(name), drafters.EarlyExit(1), gamma=3, max_tokens=8,
      inputs_length=max(LENGTHS), matmul_precision='highest',
  )  # fmt: skip
  assert decoder.generate(rows) == [greedy(name, row) for row in rows]


def greedy(name, row):
  features, found = encoded(name, row), []
  while len(found) < 8:
    token = int(np.argmax(logits(name, features, found)[-1]))
    if token == 1:
      break
    found.append(token)
  return found


@pytest.mark.parametrize(
    ('size', 'changes'),
    [('emb_dim', {'emb_dim': 32}), ('vocab_size', {'vocab_size': 97})],
)
def test_stacks_that_share_parts_have_one_size(size, changes):
  config = CONFIGS['t5gemma2']
  encoder = dataclasses.replace(config.encoder, **changes)
  with pytest.raises(ValueError, match=size):
    dataclasses.replace(config, encoder=encoder)

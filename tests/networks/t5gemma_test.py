# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""T5Gemma, compared with NumPy, and decoded by drafts of several kinds."""

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

CONFIG = tiny_decoders.T5GEMMA
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
  return np.random.default_rng(1).integers(
      0, 96, (len(LENGTHS), LENGTH), np.int32
  )


@functools.cache
def model():
  return models.make_model(CONFIG, tiny_decoders.params(CONFIG))


@functools.cache
def expected():
  """Return the logits of each output's tokens, [rows, LENGTH, vocab]."""
  params, found = tiny_decoders.params(CONFIG), []
  for row, output in zip(inputs(), outputs()):
    features = reference_decoder.encode(
        CONFIG.encoder, params, row[row >= 0].tolist()
    )
    fed = [2, *output[:-1].tolist()]
    found.append(reference_decoder.logits(CONFIG, params, fed, features))
  return np.stack(found)


@pytest.mark.parametrize('block', [1, 4])
def test_blocks_equal_numpy(block):
  assert np.abs(expected()).max() > 1
  found = tiny_decoders.decode(model(), inputs(), outputs(), block)
  np.testing.assert_allclose(found, expected(), atol=2e-4)


def test_a_row_does_not_depend_on_its_batch():
  """Alone, without a batch axis, or twice per example."""
  row = inputs()[2]
  alone = row[row >= 0][None]
  found = tiny_decoders.decode(model(), alone, outputs()[2:3], 4)
  np.testing.assert_allclose(found[0], expected()[2], atol=2e-4)
  twice = np.repeat(outputs(), 2, axis=0)
  found = tiny_decoders.decode(model(), inputs(), twice, 4)
  np.testing.assert_allclose(
      found, np.repeat(expected(), 2, axis=0), atol=2e-4
  )


def test_scores_are_those_of_decoding():
  params = tiny_decoders.params(CONFIG)
  with jax.default_matmul_precision('highest'):
    logits = jax.jit(CONFIG.score)(params, inputs(), outputs())
    alone = CONFIG.on_features(32)
    features = jax.jit(CONFIG.encode)(params, jnp.asarray(inputs()))
    own = {'decoder': params['decoder']}
    on_features = jax.jit(alone.score)(
        own, inputs(), outputs(), features=features
    )
  np.testing.assert_allclose(logits, expected(), atol=2e-4)
  np.testing.assert_allclose(on_features, expected(), atol=2e-4)
  assert jax.tree.structure(own) == jax.tree.structure(
      models.abstract_params(alone)
  )


def test_drafts_of_the_first_layers():
  rows = [row[row >= 0].tolist() for row in inputs()]
  decoder = token_decoder.TokenDecoder(
      model(), drafters.EarlyExit(1), gamma=3, max_tokens=8,
      inputs_length=max(LENGTHS), matmul_precision='highest',
  )  # fmt: skip
  assert decoder.generate(rows) == [greedy(row) for row in rows]


def greedy(row):
  params, found = tiny_decoders.params(CONFIG), []
  features = reference_decoder.encode(CONFIG.encoder, params, row)
  while len(found) < 8:
    fed = [2, *found]
    logits = reference_decoder.logits(CONFIG, params, fed, features)[-1]
    if (token := int(np.argmax(logits))) == 1:
      break
    found.append(token)
  return found

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The tiny pair on one device and on meshes, compiled once for all tests."""

import functools

from speculative_t5x.decoder import report
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import sharding
from tests import tiny

BATCH, LENGTH, GAMMA = 8, 14, 3
MESHES = [(8, 1), (4, 2), (1, 8)]
# Eight heads for eight devices; the draft model has two.
TARGET = tiny.config(num_heads=8, num_encoder_layers=1, num_decoder_layers=1)
DRAFT = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def mesh_of(shape):
  return None if shape is None else sharding.make_mesh(*shape)


@functools.cache
def params(config):
  return tiny.params(config)


@functools.cache
def decoder(
    shape=None, rules=sharding.REPLICATED, **options
) -> token_decoder.TokenDecoder:
  """Return the tiny pair on a mesh, or on one device."""
  mesh = mesh_of(shape)
  return token_decoder.TokenDecoder(
      models.make_model(TARGET, params(TARGET), mesh=mesh),
      model_drafting.of_model(
          models.make_model(DRAFT, params(DRAFT), mesh=mesh, rules=rules)
      ),
      gamma=GAMMA,
      max_tokens=LENGTH,
      matmul_precision='highest',
      **options,
  )


def request(temperature=1.0, batch=BATCH, tokens=None, length=LENGTH):
  if tokens is None:
    tokens = tiny.encoder_tokens(batch, 9)
  return tiny.batch(tokens, length, temperature, seed=3)


def decode(decoder, way, *args, **options) -> report.Report:
  decoder = decoder.alone if way == 'plain' else decoder
  asked = request(*args, **options)
  return tiny.decoded(decoder, asked)

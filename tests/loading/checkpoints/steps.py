# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A tiny network, and an optimizer state of its parameters."""

import dataclasses

import jax

from speculative_t5x.loading import models
from tests import tiny

CONFIG = tiny.config(num_encoder_layers=1)


def with_states(params):
  """Returns an optimizer state, one mapping per parameter."""
  return jax.tree.map(lambda x: {'m': 2 * x, 'v': x**2}, params)


def expected(**overrides):
  """Returns names and shapes of CONFIG's network, with overrides."""
  return models.abstract_params(dataclasses.replace(CONFIG, **overrides))

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A tiny network in any layout, and an optimizer state of its parameters."""

import dataclasses
import pathlib

import jax
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from tests import checkpoints_by_hand as by_hand
from tests import tiny

CONFIG = tiny.config(num_encoder_layers=1)


def with_states(params):
  """Return an optimizer state, one mapping per parameter."""
  return jax.tree.map(lambda x: {'m': 2 * x, 'v': x**2}, params)


def expected(**overrides):
  """Return names and shapes of CONFIG's network, with overrides."""
  return models.abstract_params(dataclasses.replace(CONFIG, **overrides))


def assert_holds(path, params, config=CONFIG):
  """Check that a checkpoint has the bits of parameters, read as float32."""
  found = checkpoints.open(path).restore_params(models.abstract_params(config))
  jax.tree.map(
      lambda x, y: np.testing.assert_array_equal(x, np.float32(y)),
      found,
      params,
  )


def refuse(read, path, *named):
  """Check that reading a path ends in one line that names it, and why."""
  with pytest.raises(checkpoints.CheckpointError) as error:
    read(path)
  message = str(error.value)
  assert message.isprintable() and len(message) < 1000
  for name in (str(path), *named):
    assert name in message


def write(layout, path, params, config=CONFIG, shards=1):
  """Write a network in a layout, as step 7 where that is stored."""
  path = pathlib.Path(path)
  match layout:
    case checkpoints.Layout.ORBAX:
      checkpoints.save(path, 7, params)
    case checkpoints.Layout.LEGACY:
      by_hand.write_legacy(path, params)
    case checkpoints.Layout.HUGGING_FACE:
      tensors = by_hand.hugging_face_tensors(config, params)
      fields = by_hand.hugging_face_config(config)
      by_hand.write_hugging_face(path, fields, tensors, shards)

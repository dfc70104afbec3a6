# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of drafting with the target's first layers.

What is drafted, and the distribution of outputs: see `enumeration_test.py`.
"""

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import early_exit_source
from speculative_t5x.networks import t5
from speculative_t5x.training import steps
from tests import tiny

NUM_LAYERS = 3


CONFIG = tiny.config(num_decoder_layers=NUM_LAYERS)


class TestOfConfig:

  def test_has_nothing_of_its_own(self):
    loaded = early_exit_source.of_network(CONFIG, 1)
    assert loaded.params is None and not loaded.models
    assert loaded.description.kind == 'early_exit'
    size = lambda tree: sum(x.size for x in jax.tree.leaves(tree))
    decoder_params = tiny.params(CONFIG)
    other = [decoder_params['decoder'][f'layers_{i}'] for i in (1, 2)]
    expected = size(decoder_params) - size(other)
    expected -= size(decoder_params['encoder'])
    assert loaded.description.num_params == expected


def _other_head(config: t5.T5Config):
  """Returns the head of another random network."""
  params = jax.tree.map(lambda x: 2 * x, steps.init_params(config, 9))
  return config.take_head(params)


class TestHead:
  """The target's layers draft with a head from a checkpoint."""

  @pytest.fixture
  def found(self, tmp_path):
    """Returns the drafter of a saved head."""
    checkpoint = checkpoints.save(tmp_path, 1, _other_head(CONFIG))
    target = tiny.model(CONFIG)
    source = early_exit_source.FromCheckpoint(2, checkpoint)
    return source.find(
        models.ModelSource(None, CONFIG, target.special_ids), None
    )()

  def test_description(self, found, tmp_path):
    assert found.description.kind == 'early_exit'
    assert found.description.checkpoint == str(tmp_path / 'checkpoint_1')
    jax.tree.map(
        np.testing.assert_array_equal, found.params, _other_head(CONFIG)
    )

  def test_head_of_another_width(self, tmp_path):
    other = tiny.config(num_decoder_layers=NUM_LAYERS, emb_dim=24)
    checkpoint = checkpoints.save(tmp_path, 1, _other_head(other))
    source = early_exit_source.FromCheckpoint(2, checkpoint)
    target = models.ModelSource(None, CONFIG)
    with pytest.raises(checkpoints.CheckpointError, match='checkpoint_1'):
      source.find(target, None)()


class TestTruncate:

  @pytest.mark.parametrize('exit_layer', [0, NUM_LAYERS + 1, -1, 1.0, True])
  def test_no_such_layer(self, exit_layer):
    message = 'exit_layer must be a whole number from 1 to 3'
    with pytest.raises(ValueError, match=message):
      early_exit_source.of_network(CONFIG, exit_layer)
    with pytest.raises(ValueError, match=message):
      tiny.truncate(tiny.model(CONFIG), exit_layer)

  def test_target_with_fewer_layers(self):
    drafter = early_exit_source.of_network(CONFIG, NUM_LAYERS)
    with pytest.raises(ValueError, match='exit_layer .* from 1 to 2'):
      token_decoder.TokenDecoder(
          tiny.model(tiny.config(num_decoder_layers=2)),
          drafter,
          gamma=3,
          length=20,
      )

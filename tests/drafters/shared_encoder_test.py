# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of draft decoders on the output of the target's encoder."""

import jax
import numpy as np
import pytest

from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import shared_encoder_source
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from tests import tiny

CONFIG = tiny.config(num_decoder_layers=3)
DRAFTS = {
    'other width': tiny.config(
        num_encoder_layers=0, num_decoder_layers=1, emb_dim=16, num_heads=1,
        encoder_dim=CONFIG.emb_dim,
    ),
}  # fmt: skip


class TestNetwork:

  def test_tree_has_no_encoder(self):
    params = models.abstract_params(DRAFTS['other width'])
    assert params.keys() == {'decoder', 'token_embedder'}
    attention = params['decoder']['layers_0']['encoder_decoder_attention']
    assert attention['key']['kernel'].shape == (32, 16)
    assert attention['query']['kernel'].shape == (16, 16)

  def test_width_of_an_encoder_of_its_own(self):
    with pytest.raises(ValueError, match='encoder_dim is 8, but the network'):
      tiny.config(encoder_dim=8)


def find(path, kind=shared_encoder_source, target_config=CONFIG):
  checkpoint = checkpoints.open(save(path / 'target', target_config))
  return kind.FromCheckpoint(str(path / 'draft')).find(
      models.find_model(checkpoint), None
  )


def save(folder, config):
  return checkpoints.save(folder, 7, tiny.params(config))


class TestFromCheckpoint:

  def test_sizes_and_weights(self, tmp_path):
    name = 'other width'
    save(tmp_path / 'draft', DRAFTS[name])
    loaded = find(tmp_path)()
    description = loaded.description
    assert description.kind == 'shared_encoder'
    assert description.name == 'draft/checkpoint_7'
    assert description.num_params == models.count_params(DRAFTS[name])
    given = shared_encoder_source.from_model(tiny.model(DRAFTS[name]))
    jax.tree.map(np.testing.assert_array_equal, loaded.params, given.params)
    drafters = [
        each.make(network_lib.NetworkModel(CONFIG, t5.SPECIAL_IDS), 3)
        for each in (loaded, given)
    ]
    assert drafters[0].model == drafters[1].model
    assert all(each.reads_features for each in drafters)

  def test_encoder_of_another_width(self, tmp_path):
    save(tmp_path / 'draft', DRAFTS['other width'])
    wide = tiny.config(emb_dim=48)
    with pytest.raises(ValueError, match='reads an encoder of width 32, and'):
      find(tmp_path, target_config=wide)

  def test_whole_network(self, tmp_path):
    save(tmp_path / 'draft', CONFIG)
    with pytest.raises(ValueError, match='has an encoder of its own'):
      find(tmp_path)

  def test_decoder_as_a_draft_model(self, tmp_path):
    save(tmp_path / 'draft', DRAFTS['other width'])
    with pytest.raises(ValueError, match='The network has no encoder'):
      find(tmp_path, draft_model_source)

  def test_decoder_as_the_target(self, tmp_path):
    folder = save(tmp_path, DRAFTS['other width'])
    with pytest.raises(ValueError, match='The network has no encoder'):
      models.load_model(folder)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of drafters as they are chosen, found and loaded.

What they draft, and the distribution of outputs: see `enumeration_test.py`.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.loading.drafters import exit_drafting
from speculative_t5x.loading.drafters import in_order_drafting
from speculative_t5x.loading.drafters import lookup_drafting
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.speculation import ranges
from tests import recurrent_network
from tests import repeat_last
from tests import tiny

CONFIG = tiny.config(num_decoder_layers=3)
# A decoder of another width on the target's encoder.
DECODER = tiny.config(
    num_encoder_layers=0, num_decoder_layers=1, emb_dim=16, num_heads=1,
    encoder_dim=CONFIG.emb_dim,
)  # fmt: skip
# A head on the target's last features.
FEATURE_HEAD = dataclasses.replace(DECODER, feature_dim=CONFIG.emb_dim)
BLOCK_HEAD = dataclasses.replace(DECODER, num_masks=2, recurrence_dim=4)
TARGET = models.Found(CONFIG)
REPEAT_LAST = drafting.Drafting(repeat_last.RepeatLast, 'repeat_last')


def other_head(config: t5.T5Config):
  """Return the head of another random network."""
  return config.take_head(tiny.params(config, noise=1.0))


class TestEarlyExit:

  def test_has_nothing_of_its_own(self):
    loaded = tiny.early_exit(CONFIG, 1)
    assert loaded.params is None and not loaded.models
    assert loaded.description.kind == 'early_exit'
    size = lambda tree: sum(x.size for x in jax.tree.leaves(tree))
    params = tiny.params(CONFIG)
    unread = [params['decoder'][f'layers_{i}'] for i in (1, 2)]
    expected = size(params) - size(unread) - size(params['encoder'])
    assert loaded.description.num_params == expected

  def find_head(self, folder, head):
    checkpoint = checkpoints.save(folder, 1, head)
    found = exit_drafting.EarlyExit(2, checkpoint).find(TARGET)
    own = jax.tree.leaves(other_head(CONFIG))
    assert found.num_bytes == sum(x.nbytes for x in own)
    assert found.params is None
    return found.load()

  def test_head_of_a_checkpoint(self, tmp_path):
    found = self.find_head(tmp_path, other_head(CONFIG))
    assert found.description.kind == 'early_exit'
    assert found.description.checkpoint == str(tmp_path / 'checkpoint_1')
    jax.tree.map(
        np.testing.assert_array_equal, found.params, other_head(CONFIG)
    )

  def test_head_of_another_width(self, tmp_path):
    other = dataclasses.replace(CONFIG, emb_dim=24)
    with pytest.raises(checkpoints.CheckpointError, match='checkpoint_1'):
      self.find_head(tmp_path, other_head(other))

  @pytest.mark.parametrize('exit_layer', [0, 4, 1.0, True])
  def test_no_such_layer(self, exit_layer):
    with pytest.raises(ValueError, match='exit_layer'):
      tiny.early_exit(CONFIG, exit_layer)


class TestSharedEncoder:

  def find(self, folder, draft, target=CONFIG):
    checkpoint = checkpoints.save(folder / 'target', 7, tiny.params(target))
    checkpoints.save(folder / 'draft', 7, tiny.params(draft))
    opened = checkpoints.open(checkpoint)
    found = models.find_model(opened, target)
    return model_drafting.find(folder / 'draft', found)

  def test_sizes_and_weights(self, tmp_path):
    found = self.find(tmp_path, DECODER)
    assert [x.config for x in found.models] == [
        dataclasses.replace(DECODER, dtype=CONFIG.dtype)
    ]
    loaded = found.load()
    assert loaded.description == found.description
    assert loaded.description.kind == 'shared_encoder'
    assert loaded.description.name == 'draft/checkpoint_7'
    assert loaded.description.num_params == models.count_params(DECODER)
    given = model_drafting.of_model(tiny.model(DECODER))
    jax.tree.map(np.testing.assert_array_equal, loaded.params, given.params)
    drafters = [
        each.make(network_lib.NetworkModel(CONFIG, t5.SPECIAL_IDS), 3)
        for each in (loaded, given)
    ]
    assert drafters[0].model == drafters[1].model
    assert all(each.reads_features for each in drafters)

  @pytest.mark.parametrize(
      ('target', 'message'),
      [
          (dataclasses.replace(CONFIG, emb_dim=48), 'an encoder of width 32'),
          (DECODER, 'target has no encoder'),
      ],
  )
  def test_networks_that_do_not_fit(self, tmp_path, target, message):
    with pytest.raises(ValueError, match=message):
      self.find(tmp_path, DECODER, target)


@pytest.fixture(scope='module')
def drafts(tmp_path_factory):
  """Return folders of drafts of every kind, by kind."""
  folder = tmp_path_factory.mktemp('drafts')
  for kind, params in {
      'model': tiny.params(CONFIG, noise=0.1),
      'shared_encoder': tiny.params(DECODER),
      'feature_head': tiny.params(FEATURE_HEAD),
      'block_head': tiny.params(BLOCK_HEAD),
      'head without a layer': other_head(CONFIG),
  }.items():
    checkpoints.save(folder / kind, 3, params)
  checkpoints.save(folder / 'early_exit', 3, other_head(CONFIG), exit_layer=2)
  counts = token_counts.count(
      [[5, 7, 5, 7, 1]], num_pieces=64, eos_id=1, num_kept=2
  )
  (folder / 'bigram').mkdir()
  table = folder / 'bigram' / token_counts.FILE_NAME
  table.write_bytes(counts.to_bytes())
  return folder


INPUTS = [[5, 9, 1], [7, 1]]


def decoder_of(draft):
  return token_decoder.TokenDecoder(
      tiny.model(CONFIG), draft, gamma=2, max_tokens=12, inputs_length=4
  )


@functools.cache
def expected_outputs():
  return decoder_of(drafting.Drafting()).generate(INPUTS)


class TestByPath:
  """The path of a draft is enough, whatever kind of draft lies there."""

  @pytest.mark.parametrize(
      'kind',
      [
          'model', 'shared_encoder', 'feature_head', 'block_head', 'bigram',
          'early_exit',
      ],
  )  # fmt: skip
  def test_drafts_by_what_is_there(self, drafts, kind):
    decoder = decoder_of(str(drafts / kind))
    assert decoder.loaded_drafter.description.kind == kind
    assert decoder.generate(INPUTS) == expected_outputs()

  def test_a_head_in_a_beam_search(self, drafts):
    """Hypotheses of an example share a call's block."""
    draft = str(drafts / 'block_head')
    searched = [
        decoder_of(x).generate(INPUTS, beams=3)
        for x in (drafting.Drafting(), draft)
    ]
    assert searched[0] == searched[1]

  def test_fewer_tokens_than_gamma(self, drafts, capfd):
    """The head has positions for 3, says so once, and drafts those."""
    decoder = token_decoder.TokenDecoder(
        tiny.model(CONFIG), str(drafts / 'block_head'), gamma=5, max_tokens=12,
        inputs_length=4,
    )  # fmt: skip
    assert decoder.generate(INPUTS) == expected_outputs()
    assert capfd.readouterr().err.count('3 draft tokens per block') == 1

  def test_last_features_where_there_are_none(self):
    """Both ways are said that need none."""
    head = tiny.model(dataclasses.replace(BLOCK_HEAD, feature_dim=32))
    target = models.Found(recurrent_network.Recurrent(64))
    with pytest.raises(ValueError, match='block_head.gin that reads none'):
      model_drafting.find(head, target)
    tree = tree_drafting.CandidateTree(head, nodes=4)
    with pytest.raises(ValueError, match='trained without them, or .* chains'):
      model_drafting.find(tree, TARGET)

  def test_head_and_the_layer_that_it_is_for(self, drafts):
    path = drafts / 'early_exit'
    found = model_drafting.find(path, TARGET)
    assert found.description.name == 'early_exit_2'
    with pytest.raises(ValueError, match='exit_layer to 2 instead of 1'):
      exit_drafting.EarlyExit(1, path).find(TARGET)
    path = drafts / 'head without a layer'
    with pytest.raises(ValueError, match=r'head.*EarlyExit\(<layers>'):
      model_drafting.find(path, TARGET)
    assert exit_drafting.EarlyExit(1, path).find(TARGET).num_bytes


class TestInOrder:

  def test_holds_what_its_drafters_hold(self, tmp_path):
    head = checkpoints.save(tmp_path / 'head', 1, other_head(CONFIG))
    model = str(checkpoints.save(tmp_path / 'model', 1, tiny.params(CONFIG)))
    target = models.find_model(checkpoints.open(model), CONFIG)
    exit_head = exit_drafting.EarlyExit(2, head)
    found = in_order_drafting.InOrder(
        [exit_head, model_drafting.DraftModel(model), REPEAT_LAST]
    ).find(target)
    assert found.num_bytes == exit_head.find(target).num_bytes > 0
    assert [x.config for x in found.models] == [CONFIG]

TREE = functools.partial(tree_drafting.CandidateTree, 'model')
SETTINGS = [
    (lookup_drafting.Lookup, 'min_ngram', dict(min_ngram=0)),
    (lookup_drafting.Lookup, 'max_ngram', dict(max_ngram='2')),
    (lookup_drafting.Lookup, 'min_ngram', dict(min_ngram=4)),
    (ngram_drafting.NGrams, 'order', dict(path='table', order=3)),
    (TREE, 'nodes', {}),
    (TREE, 'candidates', dict(candidates=(2,), nodes=4)),
    (TREE, 'nodes', dict(nodes=1)),
    (TREE, 'nodes', dict(nodes=257)),
    (TREE, 'width', dict(nodes=4, width=0)),
    *(
        (TREE, 'candidates', dict(candidates=x))
        for x in [(), 3, (2, (0, 0)), (1.5,), (10**12,)]
    ),
]


@pytest.mark.parametrize(('kind', 'name', 'settings'), SETTINGS)
def test_settings_out_of_range(kind, name, settings):
  with pytest.raises(ranges.ArgumentError) as error:
    kind(**settings)
  assert name in error.value.arguments


IDS = np.array([1, 2, 5, 17, 40, 63])
TIED = {'mlp_activations': ('relu',), 'logits_via_embedding': True}


def decode_block(model, rows, at):
  """Return the logits of a block of three tokens."""
  network = network_lib.NetworkModel(model.config, t5.SPECIAL_IDS)
  inputs = tiny.encoder_tokens(rows, 7)

  @jax.jit
  def run(params):
    started = network.start(params, inputs, rows, 8)
    tokens = jnp.arange(3 * rows, dtype=jnp.int32).reshape(rows, 3) + 2
    zeros = jnp.zeros((rows,), jnp.int32)
    return network.decode(
        params, started.memory, started.cache, tokens, zeros, at
    )[0]

  with jax.default_matmul_precision('highest'):
    return np.asarray(run(model.params))


@pytest.mark.parametrize(
    ('overrides', 'rows', 'at'),
    [({}, 3, None), (TIED, 1, 1)],
    ids=str,
)
def test_logits_of_a_short_head_are_those_of_the_whole(overrides, rows, at):
  whole = tiny.model(tiny.config(**overrides))
  short = models.shorten_head(whole, IDS)
  at = None if at is None else jnp.full((rows,), at, jnp.int32)
  expected = decode_block(whole, rows, at)
  found = decode_block(short, rows, at)
  assert found.shape == expected.shape
  np.testing.assert_allclose(
      found[..., IDS], expected[..., IDS], rtol=1e-6, atol=1e-6
  )
  others = np.setdiff1d(np.arange(64), IDS)
  assert np.all(np.isneginf(found[..., others]))

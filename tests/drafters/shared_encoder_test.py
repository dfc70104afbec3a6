# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of draft decoders on the output of the target's encoder."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import shared_encoder_source
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.speculation import sampling as sampling_lib
from tests import network_enumeration
from tests import tiny

TINIEST = tiny.config(**network_enumeration.SIZES, num_decoder_layers=1)
TOLERANCE = 2e-5

CONFIG = tiny.config(num_decoder_layers=3)
DRAFTS = {
    'other width': tiny.config(
        num_encoder_layers=0, num_decoder_layers=1, emb_dim=16, num_heads=1,
        encoder_dim=CONFIG.emb_dim,
    ),
    "target's width": tiny.config(num_encoder_layers=0),
    'tied head': tiny.config(
        num_encoder_layers=0, num_decoder_layers=1, logits_via_embedding=True,
        mlp_activations=('relu',),
    ),
}  # fmt: skip
GAMMA, LENGTH = 3, 20


@pytest.fixture(autouse=True)
def _exact_products():
  with jax.default_matmul_precision('highest'):
    yield


@functools.cache  # the expected distributions are computed once per case
def make_case(gamma=2, **options) -> network_enumeration.Case:
  config = dataclasses.replace(
      TINIEST, num_encoder_layers=0, emb_dim=6, encoder_dim=TINIEST.emb_dim
  )
  params = tiny.params(config, noise=0.5)
  return network_enumeration.make_case(
      TINIEST,
      shared_encoder_source.from_model(models.make_model(config, params)),
      network_enumeration.teacher_forced(config, params),
      gamma=gamma,
      **options,
  )


class TestEnumeratedDistribution:

  @pytest.mark.parametrize(
      'options',
      [
          dict(),
          dict(gamma=3, limits=(2, 1)),
          dict(temperature=0.6, topk=3),
      ],
      ids=str,
  )
  def test_equals_the_targets(self, options):
    assert network_enumeration.error(make_case(**options)) < TOLERANCE


def _every_position_is_input(context):
  return context._replace(inputs=jnp.maximum(context.inputs, 0))


def _output_of_another_position(context):
  return context._replace(features=jnp.roll(context.features, 1, axis=1))


class TestMutants:

  @pytest.mark.parametrize(
      'change', [_every_position_is_input, _output_of_another_position]
  )
  def test_what_is_read_is_found(self, change, monkeypatch):
    original = draft_model.DraftModel.init
    monkeypatch.setattr(
        draft_model.DraftModel,
        'init',
        lambda self, params, context, rows, slots: original(
            self, params, change(context), rows, slots
        ),
    )
    found = network_enumeration.error(make_case())
    assert found > 100 * TOLERANCE

  def test_cache_that_is_not_rewound_is_found(self, monkeypatch):
    original = draft_model.DraftModel.propose

    def propose(self, params, memory, state, view):
      fed = state.replace(num_fed=view.num_tokens)  # also where it was not
      return original(self, params, memory, fed, view)

    monkeypatch.setattr(draft_model.DraftModel, 'propose', propose)
    found = network_enumeration.error(make_case())
    assert found > 100 * TOLERANCE


def target() -> models.Model:
  return tiny.model(CONFIG)


def decoder(name='other width', **options) -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(
      target(),
      shared_encoder_source.from_model(tiny.model(DRAFTS[name], noise=0.15)),
      gamma=GAMMA,
      length=LENGTH,
      matmul_precision='highest',
      **options,
  )


def request(examples=3, temperature=0.0) -> token_decoder.Request:
  sampling = sampling_lib.make_sampling(temperature)
  ids = jnp.arange(examples, dtype=jnp.int32)
  return token_decoder.Request(
      tiny.encoder_tokens(examples, 9),
      ids,
      jnp.full((examples,), LENGTH, jnp.int32),
      jnp.int32(0),
      sampling,
      sampling,
  )


class TestNetwork:

  @pytest.mark.parametrize('rows', [1, 4])
  def test_logits_are_those_of_a_network_with_the_targets_encoder(self, rows):
    config = DRAFTS["target's width"]
    ours = tiny.params(config)
    theirs = tiny.params(CONFIG)
    # T5 embeds both inputs by one table.
    ours['token_embedder'] = theirs['token_embedder']
    whole = models.make_model(
        dataclasses.replace(config, num_encoder_layers=2),
        {**ours, 'encoder': theirs['encoder']},
    )
    alone = models.make_model(config, ours)
    inputs = tiny.encoder_tokens(rows, 9)
    output, _ = tiny.encode(CONFIG, theirs, inputs)
    fed = tiny.encoder_tokens(rows, 5) + 1
    found = []
    for made, features in ((whole, None), (alone, output)):
      model = network_lib.NetworkModel(made.config, t5.SPECIAL_IDS)
      started = model.start(made.params, inputs, rows, 6, features)
      logits, _ = jax.jit(model.decode)(
          made.params,
          started.memory,
          started.cache,
          fed,
          started.offsets,
          None,
      )
      assert started.first_tokens.tolist() == [0] * rows
      found.append(logits)
    np.testing.assert_allclose(*found, atol=1e-5)

  def test_tree_has_no_encoder(self):
    params = models.abstract_params(DRAFTS['other width'])
    assert params.keys() == {'decoder', 'token_embedder'}
    attention = params['decoder']['layers_0']['encoder_decoder_attention']
    assert attention['key']['kernel'].shape == (32, 16)
    assert attention['query']['kernel'].shape == (16, 16)

  def test_width_of_an_encoder_of_its_own(self):
    with pytest.raises(ValueError, match='encoder_dim is 8, but the network'):
      tiny.config(encoder_dim=8)


class TestDecoding:

  @pytest.mark.parametrize(
      ('name', 'examples', 'num_decodes'),
      [
          *((name, 3, 2) for name in DRAFTS),
          ('other width', 1, 1),
          pytest.param("target's width", 1, 1, marks=pytest.mark.exhaustive),
          pytest.param('tied head', 1, 1, marks=pytest.mark.exhaustive),
      ],
  )
  def test_greedy_outputs_are_those_of_plain_decoding(
      self, name, examples, num_decodes
  ):
    both = decoder(name, num_decodes=num_decodes)
    found = both.speculative(request(examples))
    np.testing.assert_array_equal(
        found.sequences, both.plain(request(examples)).sequences
    )
    assert found.statistics.num_rejections.sum() > 0

  def test_decoder_that_is_the_targets_is_always_accepted(self):
    params = tiny.params(CONFIG)
    del params['encoder']
    config = dataclasses.replace(CONFIG, num_encoder_layers=0)
    own = decoder().with_drafter(
        shared_encoder_source.from_model(models.make_model(config, params)),
        GAMMA,
    )
    found = own.speculative(request(temperature=1.0))
    assert found.statistics.num_rejections.sum() == 0
    assert found.num_calls.sum() < found.num_tokens.sum() / 2


def find(path, kind=shared_encoder_source, target_config=CONFIG):
  checkpoint = checkpoints.open(save(path / 'target', target_config))
  return kind.FromCheckpoint(str(path / 'draft')).find(
      models.find_model(checkpoint), None
  )


def save(folder, config):
  return checkpoints.save(folder, 7, tiny.params(config))


class TestFromCheckpoint:

  @pytest.mark.parametrize('name', ['other width', "target's width"])
  def test_sizes_and_weights(self, tmp_path, name):
    save(tmp_path / 'draft', DRAFTS[name])
    loaded = find(tmp_path)()
    description = loaded.description
    assert description.kind == 'shared_encoder'
    assert description.name == 'draft/checkpoint_7'
    assert description.num_params == models.count_params(DRAFTS[name])
    given = shared_encoder_source.from_model(tiny.model(DRAFTS[name]))
    jax.tree.map(np.testing.assert_array_equal, loaded.params, given.params)
    drafters = [
        each.make(network_lib.NetworkModel(CONFIG, t5.SPECIAL_IDS), GAMMA)
        for each in (loaded, given)
    ]
    assert drafters[0].model == drafters[1].model
    assert drafters[0].reads_features and drafters[1].reads_features

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

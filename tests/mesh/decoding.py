# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that meshes of eight devices decode the outputs of one device."""

import dataclasses
import functools

import jax
import numpy as np
import pytest

from speculative_t5x.decoder import beam_search
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.networks import sharding
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.rules import coupled
from tests import compilation
from tests import exhaustive
from tests import tiny
from tests import tiny_decoders
from tests.mesh import pairs


@functools.cache
def alone(way, temperature, **options):
  """Return the outputs of one device."""
  return pairs.decode(pairs.decoder(**options), way, temperature)


def assert_same_rows(found, expected, most=0):
  """Check sampled rows; rounding may change at most `most` of them."""
  is_other = np.any(found.sequences != expected.sequences, axis=1)
  assert is_other.sum() <= most, np.flatnonzero(is_other)
  np.testing.assert_allclose(
      found.log_probs[~is_other], expected.log_probs[~is_other], atol=1e-3
  )


def table_decoder(shape=None):
  """Return the tiny target with a bigram table of random texts."""
  rng = np.random.default_rng(0)
  counts = token_counts.count(
      rng.integers(1, 64, (50, 20)), num_pieces=64, eos_id=1, num_kept=4
  )
  table = ngram_drafting.smooth(counts, 2, 64, 0)
  loaded = ngram_drafting.of_table(table, 2, mesh=pairs.mesh_of(shape))
  return pairs.decoder(shape).with_drafter(loaded, pairs.GAMMA)


SHARING_TARGET = tiny.config(num_heads=8, num_encoder_layers=1)
SHARING_DRAFT = tiny.config(
    num_encoder_layers=0, num_decoder_layers=1, emb_dim=16, encoder_dim=32
)


def sharing_decoder(drafter, shape=None, config=SHARING_TARGET):
  """Return a decoder whose drafter shares some of the target."""
  mesh = pairs.mesh_of(shape)
  make = tiny.params if config is SHARING_TARGET else tiny_decoders.params
  return token_decoder.TokenDecoder(
      models.make_model(config, make(config), mesh=mesh),
      drafter,
      gamma=pairs.GAMMA,
      max_tokens=pairs.LENGTH,
      matmul_precision='highest',
  )


# Its one head of keys and values is on every device.
ALONE = dataclasses.replace(tiny_decoders.CONFIGS['gemma3'], num_heads=8)


def decoder_alone(shape=None):
  return sharing_decoder(tiny.early_exit(ALONE, 2), shape, ALONE)


def head_decoder(shape=None):
  """Return a target and a head on its last features, partitioned as it is."""
  head = dataclasses.replace(SHARING_DRAFT, feature_dim=32)
  model = models.make_model(
      head, pairs.params(head), mesh=pairs.mesh_of(shape)
  )
  return sharing_decoder(model_drafting.of_model(model), shape)


def test_the_longest_input_of_all_devices_counts():
  """One device has a long input, and all must read at its width."""
  tokens = np.array(tiny.encoder_tokens(pairs.BATCH, 40))
  tokens[:, 7:] = 0
  tokens[-1] = 9

  def read(shape):
    decoder = pairs.decoder(shape)
    inputs = decoder.place(pairs.request(tokens=tokens)).inputs
    start = jax.jit(decoder.target_model.start, static_argnums=(2, 3))
    with decoder.scope():
      started = start(decoder.target.params, inputs, pairs.BATCH, 2)
    return jax.device_get((started.memory, started.features))

  jax.tree.map(
      lambda mesh, one: np.testing.assert_allclose(mesh, one, atol=1e-4),
      read((4, 2)),
      read(None),
  )


@pytest.mark.parametrize(
    'make',
    exhaustive.all_but(
        [decoder_alone],
        [
            table_decoder,
            decoder_alone,
            head_decoder,
        ],
    ),
)
def test_other_drafters(make):
  found, expected = (
      pairs.decode(make(shape), 'speculative', 1.0) for shape in ((4, 2), None)
  )
  assert_same_rows(found, expected, most=1)
  assert len(np.unique(found.sequences, axis=0)) > 4
  assert found.statistics.accepted_histogram[:, 1:].sum() > 0


class TestOutputs:

  @pytest.mark.parametrize(
      ('shape', 'way'),
      exhaustive.all_but(
          [((4, 2), 'speculative')],
          [
              *((shape, 'speculative') for shape in pairs.MESHES),
              ((4, 2), 'plain'),
          ],
      ),
  )
  def test_outputs_equal_one_device(self, shape, way):
    found = pairs.decode(pairs.decoder(shape), way, 0.0)
    expected = alone(way, 0.0)
    compared = near_ties.compare(
        pairs.decoder(shape),
        pairs.request(0.0),
        expected.sequences,
        found.sequences,
    )
    assert all(each.is_near_tie for each in compared)
    assert len(np.unique(found.sequences, axis=0)) > 4
    found = pairs.decode(pairs.decoder(shape), way, 1.0)
    assert_same_rows(found, alone(way, 1.0), most=1)

  def test_samples_of_a_coupled_rule(self):
    """Those of plain decoding on one device."""
    decoder = pairs.decoder((4, 2))
    request = pairs.request(1.0).replace(rule=coupled.Coupled())
    found = tiny.decoded(decoder, request)
    assert_same_rows(found, alone('plain', 1.0), most=1)
    assert found.statistics.accepted_histogram[:, 1:].sum() > 0

  def test_one_row(self):
    """The batch axis is left out for a single row."""
    found = pairs.decode(pairs.decoder((1, 8)), 'plain', 0.0, batch=1)
    expected = pairs.decode(pairs.decoder(), 'plain', 0.0, batch=1)
    np.testing.assert_array_equal(found.sequences, expected.sequences)

  def test_rows_that_cannot_be_partitioned(self):
    with pytest.raises(sharding.MeshError, match='batch_size 6 cannot'):
      whole_batches.decode(pairs.decoder((4, 2)).alone, pairs.request(batch=6))


def searching_decoder(shape=None):
  """Return the tiny target, which drafts for itself."""
  target = models.make_model(
      pairs.TARGET, pairs.params(pairs.TARGET), mesh=pairs.mesh_of(shape)
  )
  drafter = model_drafting.of_model(target)
  return pairs.decoder(shape).with_drafter(drafter, pairs.GAMMA)


@pytest.mark.exhaustive
@pytest.mark.parametrize('shape', [(4, 2), (1, 8)])
def test_beams(shape):
  """Both searches find what a plain one finds on one device."""
  search = beam_search.BeamSearch(beams=3)
  request, decoder = pairs.request(0.0), searching_decoder(shape)
  single = pairs.decoder().alone
  expected = jax.device_get(whole_batches.search_for(single, request, search))
  assert len(np.unique(expected.hypotheses(3)[0][:, -1], axis=0)) > 4
  for way in whole_batches.ways(decoder, search):
    found = jax.device_get(way(request))
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-4)
  assert found.num_calls.sum() < 0.6 * expected.num_calls.sum()


@pytest.mark.parametrize('is_spread', [False, True])
def test_each_encoder_is_sharded_by_its_own_rules(is_spread):
  """A replicated draft model is encoded without communication."""
  rules = sharding.MODEL_PARALLEL if is_spread else sharding.REPLICATED
  decoder = pairs.decoder((4, 2), rules=rules)
  programs = part_programs.PartPrograms(decoder).bind_encoders(
      decoder.place(pairs.request())
  )

  def exchanges(name):
    program = programs[name]
    with decoder.scope(), compilation.unchecked_types():
      compiled = program.func.lower(*program.args).compile()
    return 'all-reduce' in compiled.as_text()

  assert exchanges('encoder_target')
  assert exchanges('encoder_draft') == is_spread

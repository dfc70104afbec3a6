# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of drafting with the target's first layers.

The distribution is enumerated with tiny T5s. Faults of what is shared must be
found by it: they change what is drafted or the target's cache.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import early_exit
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.loading.drafters import early_exit_source
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.training import steps
from tests import network_enumeration
from tests import tiny

NUM_LAYERS = 3
TINIEST = tiny.config(
    **network_enumeration.SIZES, num_decoder_layers=NUM_LAYERS
)
TOLERANCE = 2e-5


def exit_logits(exit_layer: int, config: t5.T5Config = TINIEST):
  """Returns the logits of the first layers, from a network of their own."""
  params = tiny.params(config)
  decoder = {
      name: part
      for name, part in params['decoder'].items()
      if not name.startswith('layers_') or int(name[7:]) < exit_layer
  }
  return network_enumeration.teacher_forced(
      dataclasses.replace(config, num_decoder_layers=exit_layer),
      {**params, 'decoder': decoder},
  )


@functools.cache  # the expected distributions are computed once per case
def make_case(exit_layer=1, gamma=2, **options) -> network_enumeration.Case:
  return network_enumeration.make_case(
      TINIEST,
      early_exit_source.of_network(TINIEST, exit_layer),
      exit_logits(exit_layer),
      gamma=gamma,
      **options,
  )


@pytest.fixture(autouse=True)
def _exact_products():
  with jax.default_matmul_precision('highest'):
    yield


class TestEnumeratedDistribution:

  @pytest.mark.parametrize(
      'options',
      [
          dict(),
          dict(exit_layer=NUM_LAYERS, limits=(2,)),
          dict(gamma=3, limits=(2, 1)),
          dict(temperature=0.6, topk=3),
      ],
      ids=str,
  )
  def test_equals_the_targets(self, options):
    assert network_enumeration.error(make_case(**options)) < TOLERANCE


def _deeper(original):
  """Drafts with one layer more."""

  def propose(self, *args):
    deeper = dataclasses.replace(self, exit_layer=self.exit_layer + 1)
    return original(deeper, *args)

  return propose


def _last_layers(self, params, target):
  cross = target.memory.cross[-self.exit_layer :]
  return contracts.TargetView(
      target.params,
      target.memory.replace(cross=cross),
      target.cache[: self.exit_layer],
  )


def _cache_of_last_layers(self, params, target):
  cross = target.memory.cross[: self.exit_layer]
  return contracts.TargetView(
      target.params,
      target.memory.replace(cross=cross),
      target.cache[-self.exit_layer :],
  )


def _at(ahead):
  """Returns `propose` at a wrong number of tokens."""

  def make(original):
    def propose(self, params, memory, state, view):
      num_tokens = jnp.maximum(view.num_tokens + ahead, 0)
      shifted = view._replace(num_tokens=num_tokens)
      return original(self, params, memory, state, shifted)

    return propose

  return make


def _written_behind(original):
  """Leaves the draft's entries where committed tokens are."""

  def propose(self, params, memory, state, view):
    draft, state, cache = original(self, params, memory, state, view)
    roll = lambda x: jnp.roll(x, -1, axis=-1)
    return draft, state, jax.tree.map(roll, cache)

  return propose


def _replace(name, make):
  original = vars(early_exit.EarlyExit)[name]
  return name, make(original)


MUTANTS = {
    'one layer too many': _replace('propose', _deeper),
    'inputs of the last layers': ('_share', _last_layers),
    'cache of the last layers': ('_share', _cache_of_last_layers),
    'one position too early': _replace('propose', _at(-1)),
    'one position too late': _replace('propose', _at(1)),
    'cache left behind': _replace('propose', _written_behind),
}


class TestMutants:

  @pytest.mark.parametrize('name', MUTANTS)
  def test_is_found(self, name, monkeypatch):
    monkeypatch.setattr(early_exit.EarlyExit, *MUTANTS[name])
    found = network_enumeration.error(make_case())
    assert found > 100 * TOLERANCE


CONFIG = tiny.config(num_decoder_layers=NUM_LAYERS)
GAMMA, LENGTH = 3, 20


def decoder(exit_layer=1, **options) -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(
      tiny.model(CONFIG),
      early_exit_source.of_network(CONFIG, exit_layer),
      gamma=GAMMA,
      length=LENGTH,
      matmul_precision='highest',
      **options,
  )


def request(examples=3, temperature=0.0, seed=0) -> token_decoder.Request:
  sampling = sampling_lib.make_sampling(temperature)
  return token_decoder.Request(
      tiny.encoder_tokens(examples, 9),
      jnp.arange(examples, dtype=jnp.int32),
      jnp.full((examples,), LENGTH, jnp.int32),
      jnp.int32(seed),
      sampling,
      sampling,
  )


class TestDecoding:

  @pytest.mark.parametrize(
      ('examples', 'num_decodes'),
      [
          (1, 1),
          (3, 2),
          pytest.param(1, 2, marks=pytest.mark.exhaustive),
          pytest.param(3, 1, marks=pytest.mark.exhaustive),
      ],
  )
  def test_greedy_outputs_are_those_of_plain_decoding(
      self, examples, num_decodes
  ):
    both = decoder(exit_layer=2, num_decodes=num_decodes)
    found = both.speculative(request(examples))
    np.testing.assert_array_equal(
        found.sequences, both.plain(request(examples)).sequences
    )
    assert found.num_calls.sum() < found.num_tokens.sum()
    assert found.statistics.num_rejections.sum() > 0

  def test_all_layers_are_the_target(self):
    found = decoder(exit_layer=NUM_LAYERS).speculative(request(temperature=1.0))
    assert found.statistics.num_rejections.sum() == 0

  @pytest.mark.parametrize('examples', [1, 3])
  def test_targets_cache_is_that_of_plain_decoding(self, examples):
    """After each step, the cache holds what the target alone would write."""
    made = decoder()
    model, params = made.target_model, made.target.params
    asked = request(examples, temperature=1.0, seed=5)
    setup = state_lib.Setup(
        model, params, asked.sampling, made.drafter, None, asked.draft_sampling
    )
    rows = jnp.arange(examples)
    begin = jax.jit(
        lambda: loop.start(
            setup,
            asked.encoder_input_tokens,
            state_lib.row_keys(jnp.int32(3), rows),
            asked.limits,
            length=LENGTH,
            fold=outcome_lib.COUNTING,
        )
    )
    advance = jax.jit(
        lambda run: loop.advance(setup, run, 1, fold=outcome_lib.COUNTING)[0]
    )

    @jax.jit
    def alone(sequences):
      slots = state_lib.cache_slots(LENGTH, GAMMA)
      started = model.start(params, asked.encoder_input_tokens, examples, slots)
      fed = jnp.pad(sequences, ((0, 0), (1, 0)))
      zeros = jnp.zeros((examples,), jnp.int32)
      return model.decode(
          params, started.memory, started.cache, fed, zeros, None
      )[1]

    run = begin()
    for _ in range(8):
      run = advance(run)
      state = run.state
      is_fed = jnp.arange(state_lib.cache_slots(LENGTH, GAMMA)) < (
          state.num_tokens[:, None, None, None]
      )
      for found, expected in zip(
          jax.tree.leaves(state.target_cache),
          jax.tree.leaves(alone(state.sequences)),
          strict=True,
      ):
        shape = (examples, *found.shape[-3:])  # one row has no batch axis
        np.testing.assert_allclose(
            jnp.where(is_fed, found.reshape(shape), 0),
            jnp.where(is_fed, expected.reshape(shape), 0),
            atol=2e-5,
        )
    assert run.kept.num_rejections.sum() > 0

  def test_has_nothing_of_its_own(self):
    loaded = decoder().loaded_drafter
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
  return CONFIG.take_head(params)


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

  def test_drafts_what_a_model_of_its_own_would(self, found):
    model = tiny.truncate(tiny.model(CONFIG), 2)
    own = dataclasses.replace(
        model,
        config=dataclasses.replace(model.config, separate_head=True),
        params=CONFIG.put_head(model.params, _other_head(CONFIG)),
    )
    made = decoder()
    outputs = [
        made.with_drafter(each, GAMMA).speculative(request(temperature=1.0))
        for each in (found, draft_model_source.from_model(own))
    ]
    jax.tree.map(np.testing.assert_array_equal, *outputs)
    assert outputs[0].statistics.num_rejections.sum() > 0
    without = decoder(exit_layer=2).speculative(request(temperature=1.0))
    assert (without.num_calls != outputs[0].num_calls).any()

  def test_distribution_is_the_targets(self):
    head = _other_head(TINIEST)
    params = CONFIG.put_head(tiny.params(TINIEST), head)
    decoder_params = {
        name: part
        for name, part in params['decoder'].items()
        if name not in ('layers_1', 'layers_2')
    }
    case = network_enumeration.make_case(
        TINIEST,
        dataclasses.replace(
            early_exit_source.of_network(TINIEST, 1), params=head
        ),
        network_enumeration.teacher_forced(
            dataclasses.replace(TINIEST, num_decoder_layers=1),
            {**params, 'decoder': decoder_params},
        ),
        gamma=2,
    )
    assert network_enumeration.error(case) < TOLERANCE

  def test_description(self, found, tmp_path):
    assert found.description.kind == 'early_exit'
    assert found.description.checkpoint == str(tmp_path / 'checkpoint_1')

  def test_head_of_another_width(self, tmp_path):
    other = tiny.config(num_decoder_layers=NUM_LAYERS, emb_dim=24)
    checkpoint = checkpoints.save(tmp_path, 1, _other_head(other))
    source = early_exit_source.FromCheckpoint(2, checkpoint)
    target = models.ModelSource(None, CONFIG)
    with pytest.raises(checkpoints.CheckpointError, match='checkpoint_1'):
      source.find(target, None)()


class TestTruncate:

  def test_logits_are_those_of_the_first_layers(self):
    model = tiny.truncate(tiny.model(CONFIG), 2)
    assert model.config.num_decoder_layers == 2
    assert 'layers_2' not in model.params['decoder']

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
          gamma=GAMMA,
          length=LENGTH,
      )

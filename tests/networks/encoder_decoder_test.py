# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Encoder-decoders beside T5, compared with NumPy and decoded as T5 is."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import speculative_t5x as st
from speculative_t5x import networks
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import drafters
from speculative_t5x.loading import models
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts
from tests import reference_encoder_decoder as reference
from tests import tiny
from tests import tiny_decoders
from tests import tiny_encoder_decoders as tiny_networks

NAMES = list(tiny_networks.CONFIGS)
LENGTHS = 1, 2, 5, 18
WIDTH, LENGTH = 20, 16


def inputs():
  """Return inputs [examples, WIDTH], of which one has padding before it."""
  rows = np.full((len(LENGTHS), WIDTH), contracts.NO_TOKEN, np.int32)
  generator = np.random.default_rng(0)
  for row, length in zip(rows, LENGTHS):
    row[:length] = generator.integers(3, 90, length)
  rows[2] = np.roll(rows[2], 7)
  return rows


def texts():
  return [row[row >= 0].tolist() for row in inputs()]


def outputs():
  return np.random.default_rng(1).integers(
      3, 90, (len(LENGTHS), LENGTH), np.int32
  )


@functools.cache
def expected(name):
  """Return the logits of each output's tokens, [rows, LENGTH, vocab]."""
  config = tiny_networks.CONFIGS[name]
  params = tiny_decoders.params(config)
  return np.stack([
      reference.logits(config, params, text, output[:-1].tolist())
      for text, output in zip(texts(), outputs())
  ])


def allowed(name, logits):
  """Return logits with those of ids that are not forbidden."""
  logits = np.array(logits)
  logits[..., list(tiny_networks.SPECIAL_IDS[name].forbidden)] = -np.inf
  return logits


@pytest.mark.parametrize('name', NAMES)
def test_blocks(name):
  """A decoder's prompt, padding behind inputs and before, ids not written."""
  model = tiny_networks.model(name)
  assert np.abs(expected(name)).max() > 1
  found = tiny_decoders.decode(model, inputs(), outputs(), 4)
  wanted = allowed(name, expected(name))
  np.testing.assert_allclose(found, wanted, atol=2e-4)


def test_one_row():
  """It has no batch axis."""
  name = 'bart'
  model = tiny_networks.model(name)
  found = tiny_decoders.decode(model, inputs()[2:3], outputs()[2:3], 1)
  np.testing.assert_allclose(found[0], expected(name)[2], atol=2e-4)


def test_scores():
  name = 'bart'
  config = tiny_networks.CONFIGS[name]

  def score(params):
    logits = config.score(params, inputs(), outputs())
    return logits.sum(), logits

  with jax.default_matmul_precision('highest'):
    gradient, logits = jax.jit(jax.grad(score, has_aux=True))(
        tiny_decoders.params(config)
    )
  np.testing.assert_allclose(logits, expected(name), atol=2e-4)
  for leaf in jax.tree.leaves(gradient):
    assert np.all(np.isfinite(leaf))
  assert np.any(gradient['encoder']['layers_0']['mlp']['wi']['bias'])


def greedy(name, text, count):
  config = tiny_networks.CONFIGS[name]
  params, found = tiny_decoders.params(config), []
  while len(found) < count:
    logits = reference.logits(config, params, text, found)[-1]
    token = int(np.argmax(allowed(name, logits)))
    if token == tiny_networks.SPECIAL_IDS[name].end:
      break
    found.append(token)
  return found


def decoder(name, drafter):
  return token_decoder.TokenDecoder(
      tiny_networks.model(name),
      drafter,
      gamma=3,
      max_tokens=LENGTH,
      inputs_length=WIDTH,
  )


def test_greedy_outputs():
  """By drafters that share the target, in rows that others have left."""
  name = 'bart'
  drafter = drafters.InOrder([drafters.Lookup(), drafters.EarlyExit(2)])
  engine = st.Engine(decoder(name, drafter), rows=2)
  found = list(engine.stream(st.Request(x) for x in texts()))
  assert [result.tokens[-1] for result in found] == [
      greedy(name, text, LENGTH) for text in texts()
  ]
  assert sum(x.statistics['accepted'] for x in found) > 0


def test_a_draft_begins_as_its_target():
  """A draft whose language is not chosen writes the target's."""
  name = 'marian'
  config = tiny_networks.CONFIGS[name]
  ids = tiny_networks.SPECIAL_IDS[name]
  draft = models.make_model(
      config.with_decoder_prompt(()),
      tiny_decoders.params(config),
      special_ids=dataclasses.replace(ids, forbidden=()),
  )
  (batch,) = tiny.batches(texts(), length=LENGTH)
  found = tiny.decoded(decoder(name, draft), batch)
  # Every draft token is the target's own.
  statistics = found.statistics
  assert (statistics.num_accepted == statistics.num_tested).all()
  for row, text in zip(found.sequences, texts()):
    own = greedy(name, text, LENGTH)
    assert row[: len(own)].tolist() == own


def head_on_bart():
  return networks.T5Config(
      vocab_size=96, emb_dim=16, num_heads=2, num_encoder_layers=0,
      num_decoder_layers=1, head_dim=8, mlp_dim=16,
  ).on_last_features(tiny_networks.CONFIGS['bart'])  # fmt: skip


@pytest.mark.exhaustive
def test_a_head_on_its_last_features():
  """It reads them from the first token of an output on."""
  name, head = 'bart', head_on_bart()
  draft = models.make_model(
      head,
      tiny_decoders.params(head),
      special_ids=tiny_networks.SPECIAL_IDS[name],
  )
  found = decoder(name, draft).generate(texts())
  assert found == [greedy(name, text, LENGTH) for text in texts()]


def test_a_head_is_trained_as_it_drafts():
  """Id 0 is a token of BART, which a T5's decoder reads on its features."""
  head = head_on_bart()
  params, generator = tiny_decoders.params(head), np.random.default_rng(2)
  tokens, written = inputs(), outputs()
  tokens[:, 0], written[:, 2] = 0, 0
  features, fed = (
      generator.normal(size=(len(LENGTHS), length, 24)).astype(np.float32)
      for length in (WIDTH, LENGTH)
  )

  @jax.jit
  def both(params, tokens, written):
    scored = head.score_with_features(
        params, tokens, written, features=features, fed=fed
    )
    started = head.start(params, tokens, len(LENGTHS), LENGTH, features)
    before = jnp.pad(
        written[:, :-1],
        ((0, 0), (1, 0)),
        constant_values=head.special_ids.start,
    )
    logits, _, shown = head.decode_with_features(
        params, started.memory, started.cache, before, started.offsets, None,
        fed,
    )  # fmt: skip
    return (scored.logits, scored.features), (logits, shown)

  jax.tree.map(
      functools.partial(np.testing.assert_allclose, atol=1e-4),
      *both(params, tokens, written),
  )


def test_the_first_token_of_a_head_is_that_of_its_training(tmp_path):
  """T5's start, where the decoder of the target begins with another id."""
  checkpoints.save(tmp_path, 1, tiny_decoders.params(head_on_bart()))
  target = tiny_networks.model('bart')
  model = network.NetworkModel(target.config, target.special_ids)
  found = drafters.find(str(tmp_path), target).drafter(model, 2)
  assert found.model.special_ids == contracts.SpecialIds(2, 1, 0)


def test_last_features():
  """Those of blocks are those of whole outputs."""
  model = tiny_networks.model('bart')
  config = model.config

  @jax.jit
  def both(params, inputs, outputs):
    scored = config.score_with_features(params, inputs, outputs)
    started = config.start_with_features(params, inputs, len(inputs), LENGTH)
    first = started.first_tokens[:, None]
    fed = jnp.concatenate([first, outputs], axis=1)[:, :LENGTH]
    logits, _, features = config.decode_with_features(
        params, started.memory, started.cache, fed, started.offsets, None
    )
    return (logits, features), (scored.logits, scored.features)

  with jax.default_matmul_precision('highest'):
    found, expected = both(model.params, jnp.asarray(inputs()), outputs())
  jax.tree.map(
      functools.partial(np.testing.assert_allclose, atol=1e-5), found, expected
  )


def test_a_decoder_on_the_features_of_another():
  target = tiny_networks.CONFIGS['nllb'].first_layers(1)
  params = tiny_decoders.params(target)
  config = target.on_features(target.emb_dim)
  assert config.reads_features
  assert 'encoder' not in models.abstract_params(config)
  np.testing.assert_allclose(
      config.score(
          tiny_decoders.params(config),
          inputs(),
          outputs(),
          features=target.features(params, inputs()),
      ),
      target.score(params, inputs(), outputs()),
      atol=1e-5,
  )


def test_short_head():
  """Its logits have their bias too."""
  name = 'bart'
  ids = np.array([0, 2, *range(7, 40)])
  model = models.shorten_head(tiny_networks.model(name), ids)
  found = tiny_decoders.decode(model, inputs(), outputs(), 4)
  np.testing.assert_allclose(
      found[..., ids], expected(name)[..., ids], atol=2e-4
  )
  assert np.isneginf(np.delete(found, ids, axis=-1)).all()


def test_positions_beyond_a_table():
  """Its 72 hold an input of as many, and the prompt and output of 71."""
  make = functools.partial(
      token_decoder.TokenDecoder, tiny_networks.model('bart'), drafters.Lookup()
  )
  make(inputs_length=72, max_tokens=71)
  with pytest.raises(ValueError, match='need 73 positions'):
    make(inputs_length=73, max_tokens=71)
  with pytest.raises(ValueError, match='need 73 positions'):
    make(inputs_length=72, max_tokens=72)


def test_a_language_that_is_not_chosen():
  config = dataclasses.replace(tiny_networks.CONFIGS['nllb'], decoder_prompt=())
  model = models.make_model(config, tiny_decoders.params(config))
  with pytest.raises(ValueError, match='languages'):
    token_decoder.TokenDecoder(model)


@pytest.mark.parametrize(
    'changes',
    [{'positions': 'rope'}, {'max_positions': None}, {'num_heads': 5},
     {'dtype': 'float16'}],
)  # fmt: skip
def test_parts_that_there_are_not(changes):
  (name,) = changes
  with pytest.raises(ValueError, match=name):
    dataclasses.replace(tiny_networks.CONFIGS['bart'], **changes)


def test_bfloat16():
  config = tiny_networks.CONFIGS['marian']
  config = dataclasses.replace(config, dtype=jnp.bfloat16)
  params = tiny_decoders.params(config)
  model = models.make_model(config, params)
  found = tiny_decoders.decode(model, inputs(), outputs(), 8)
  assert found.dtype == np.float32
  assert np.abs(found - expected('marian')).max() < 1

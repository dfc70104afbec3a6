# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""All networks: one table of cases, each compared with the oracle in NumPy."""

import dataclasses
import functools
import itertools

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
from speculative_t5x.networks import decoder_only
from speculative_t5x.networks import network as network_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.testing import table_model
from tests import exhaustive
from tests import reference_network
from tests import tiny
from tests import tiny_cases
from tests import tiny_decoders

pytestmark = pytest.mark.usefixtures('chunks_of_eight')

LENGTHS = tiny_decoders.LENGTHS
ROWS, LENGTH = len(LENGTHS), tiny_decoders.LENGTH
ALL = *tiny_cases.NETWORKS, *tiny_cases.VARIANTS


def inputs_of(name):
  """Return inputs, of which one has padding before it."""
  inputs = tiny_cases.inputs_of(name, LENGTHS)
  inputs[2] = np.roll(inputs[2], 11)
  return inputs


def outputs_of(name):
  """Return outputs [ROWS, LENGTH], longer than a window, without padding."""
  return 2 + tiny_decoders.outputs() % (tiny_cases.network(name).vocab_size - 2)


@functools.cache
def logits_of(name):
  """Return the logits of each output's tokens, [ROWS, LENGTH, vocab]."""
  found = np.stack([
      tiny_cases.logits(name, row, output[:-1].tolist())
      for row, output in zip(inputs_of(name), outputs_of(name))
  ])
  assert np.abs(found).max() > 1
  return found


def allowed(name, logits):
  """Return logits with those of ids that are not forbidden."""
  logits = np.array(logits)
  logits[..., list(tiny_cases.model(name).special_ids.forbidden)] = -np.inf
  return logits


class Decoding:
  """Decodes blocks of the last rows of a case."""

  def __init__(self, name: str, rows: int = ROWS, min_block: int | None = None):
    if name == 'table':
      model, params, inputs, outputs, logits = _table()
    else:
      made = tiny_cases.model(name)
      config = made.config
      if min_block is not None:
        config = dataclasses.replace(config, min_block=min_block)
      model = network_lib.NetworkModel(config, made.special_ids)
      params, inputs, outputs = made.params, inputs_of(name), outputs_of(name)
      logits = allowed(name, logits_of(name))
    self.rows, self.params, self.logits = rows, params, logits[-rows:]
    start = jax.jit(model.start, static_argnums=(2, 3))
    # The last block ends with the last slot.
    self.started = start(params, jnp.asarray(inputs[-rows:]), rows, LENGTH)
    self.cache = jax.tree.map(self._without_unwritten, self.started.cache)
    first = np.asarray(self.started.first_tokens)[:, None]
    self.fed = np.concatenate([first, outputs[-rows:]], axis=1)
    self._decode = jax.jit(model.decode)

  def _without_unwritten(self, x: jax.Array) -> jax.Array:
    """Put infinity where no token was read yet, [..., slots]."""
    if not jnp.issubdtype(x.dtype, jnp.floating):
      return x
    offsets = np.asarray(self.started.offsets)
    is_unwritten = np.arange(x.shape[-1]) >= offsets[:, None, None, None]
    return jnp.where(
        is_unwritten[0] if self.rows == 1 else is_unwritten, jnp.inf, x
    )

  def check(self, cache, starts, block, at=None) -> contracts.Cache:
    """Decode a block per row, compare its logits, and return the cache."""
    index = starts[:, None] + np.arange(block)
    tokens = np.take_along_axis(self.fed, index, axis=1)
    logits, cache = self.decode(cache, tokens, starts, at)
    if at is not None:
      index = np.take_along_axis(index, at[:, None], axis=1)
    expected = np.take_along_axis(self.logits, index[..., None], axis=1)
    np.testing.assert_allclose(logits, expected, atol=2e-4)
    return cache

  def decode(self, cache, tokens, starts, at=None):
    return self._decode(
        self.params,
        self.started.memory,
        cache,
        jnp.asarray(tokens),
        self.started.offsets + jnp.asarray(starts, jnp.int32),
        None if at is None else jnp.asarray(at, jnp.int32),
    )


def _table():
  vocab = 5
  tables = np.float32(table_model.random_logits(0, ROWS, vocab))
  outputs = tiny_decoders.outputs() % vocab
  before, last = (np.pad(outputs, ((0, 0), (i, 0)))[:, :LENGTH] for i in (2, 1))
  logits = tables[np.arange(ROWS)[:, None], before, last]
  return table_model.Model(vocab), tables, np.arange(ROWS), outputs, logits


@pytest.mark.parametrize(
    ('name', 'block', 'rows', 'min_block'),
    [
        *((name, 4, ROWS, None) for name in (*ALL, 'table')),
        # With and without windows.
        *exhaustive.all_but(
            [('t5', 1, ROWS, None), ('gemma3', 8, ROWS, None)],
            itertools.product(ALL, (1, 8), (ROWS,), (None,)),
        ),
        # One row has no batch axis, and padding needs no slots.
        ('t5', 1, 1, 1),
        ('t5', 3, 1, 8),
        ('t5', 1, ROWS, 8),
        ('bart', 1, 1, None),
        ('t5gemma2', 4, ROWS, 8),
        ('t5gemma2', 4, 1, None),
        ('gemma3', 3, 1, 8),
    ],
)
def test_blocks_at_unequal_positions(name, block, rows, min_block):
  """Rows advance by up to a block, and each by another number of tokens.

  At first and at the end they are rewound: what other tokens have left there is
  not read.
  """
  with jax.default_matmul_precision('highest'):
    decoding = Decoding(name, rows, min_block)
    wrong = decoding.fed[:, 1 : block + 1]
    starts = np.zeros(rows, np.int32)
    _, cache = decoding.decode(decoding.cache, wrong, starts)
    step, last = 0, LENGTH - block
    while True:
      cache = decoding.check(cache, starts, block)
      if np.all(starts == last):
        break
      step += 1
      quarters = block * step * (1 + np.arange(rows) % 4)
      starts = np.minimum(quarters // 4, last)


@pytest.mark.parametrize(
    ('name', 'rows', 'min_block'),
    [('t5', 1, 8), ('gemma3', ROWS, 1), ('table', ROWS, None)],
)
def test_one_index_of_the_block(name, rows, min_block):
  with jax.default_matmul_precision('highest'):
    decoding = Decoding(name, rows, min_block)
    at = (2 + np.arange(rows)) % 4
    decoding.check(decoding.cache, np.zeros(rows, np.int32), 4, at)


@pytest.mark.parametrize('name', ['gemma3', 'prefix', 'bart', 't5gemma2'])
def test_rows_of_an_example(name):
  """Two rows of each example are decoded as one is."""
  outputs = np.repeat(outputs_of(name), 2, axis=0)
  found = tiny_decoders.decode(
      tiny_cases.model(name), inputs_of(name), outputs, 4
  )
  expected = np.repeat(logits_of(name), 2, axis=0)
  np.testing.assert_allclose(found, allowed(name, expected), atol=2e-4)


@pytest.mark.parametrize('name', ALL)
def test_scores(name):
  """They are those of decoding, with a gradient of each parameter."""
  config, params = tiny_cases.network(name), tiny_cases.params(name)
  inputs, outputs = jnp.asarray(inputs_of(name)), outputs_of(name)

  def score(params):
    logits = config.score(params, inputs, outputs)
    return jnp.sum(jnp.sin(logits)), logits

  with jax.default_matmul_precision('highest'):
    gradient, logits = jax.jit(jax.grad(score, has_aux=True))(params)
  np.testing.assert_allclose(logits, logits_of(name), atol=2e-4)
  for path, leaf in jax.tree.flatten_with_path(gradient)[0]:
    assert np.all(np.isfinite(leaf))
    if path[-1].key != 'unscaled':  # of one id
      assert np.any(leaf), path


@pytest.mark.parametrize('name', ['t5', 'nllb', 't5gemma', 't5gemma2'])
def test_a_decoder_on_the_features_of_another(name):
  network, params = tiny_cases.network(name), tiny_cases.params(name)
  inputs = jnp.asarray(inputs_of(name))
  config = network.on_features(network.width_of_inputs)
  assert config.reads_features and not network_lib.has_encoder(config)
  own = {key: x for key, x in params.items() if key != 'encoder'}
  assert jax.tree.structure(own) == jax.tree.structure(
      models.abstract_params(config)
  )
  with jax.default_matmul_precision('highest'):
    features = jax.jit(network.encode)(params, inputs)
    found = config.score(own, inputs, outputs_of(name), features=features)
  np.testing.assert_allclose(found, logits_of(name), atol=2e-4)


@pytest.mark.parametrize('name', ['t5', 'bart', 'nllb', 'gemma3', 't5gemma2'])
def test_a_head_of_its_own(name):
  """It is all that lies behind the last layer, and equals what it copies."""
  network, params = tiny_cases.network(name), tiny_cases.params(name)
  own, head = network.with_own_head(), network.take_head(params)
  inputs, outputs = jnp.asarray(inputs_of(name)), outputs_of(name)
  with jax.default_matmul_precision('highest'):
    logits = own.score(own.put_head(params, head), inputs, outputs)
  np.testing.assert_allclose(logits, logits_of(name), atol=2e-4)
  nothing = own.put_head(params, jax.tree.map(jnp.zeros_like, head))
  assert not np.any(own.score(nothing, inputs, outputs))


@pytest.mark.parametrize('name', ['bart', 'gemma3'])
def test_short_head(name):
  """Its logits have their bias too."""
  ids = np.array([0, 2, *range(7, 40)])
  model = models.shorten_head(tiny_cases.model(name), ids)
  found = tiny_decoders.decode(model, inputs_of(name), outputs_of(name), 4)
  np.testing.assert_allclose(
      found[..., ids], logits_of(name)[..., ids], atol=2e-4
  )
  assert np.isneginf(np.delete(found, ids, axis=-1)).all()


def greedy(name, text, count):
  """Return the likeliest tokens after a text, with the end if it is reached."""
  end, found = tiny_cases.model(name).special_ids.end, []
  while len(found) < count and found[-1:] != [end]:
    logits = tiny_cases.logits(name, np.asarray(text), found)[-1]
    found.append(int(np.argmax(allowed(name, logits))))
  return found


def decoder(name, drafter, length=10, **options):
  return token_decoder.TokenDecoder(
      tiny_cases.model(name),
      drafter,
      gamma=3,
      max_tokens=length,
      inputs_length=max(LENGTHS),
      matmul_precision='highest',
      **options,
  )


def texts(name):
  return [row[row >= 0].tolist() for row in inputs_of(name)]


@pytest.mark.parametrize('name', ['qwen3', 'bart', 't5gemma', 't5gemma2'])
def test_greedy_outputs(name):
  """By drafters that share the target, in rows that others have left."""
  drafter = drafters.InOrder([drafters.Lookup(), drafters.EarlyExit(2)])
  engine = st.Engine(decoder(name, drafter), rows=2)
  found = list(engine.stream(st.Request(x) for x in texts(name)))
  end = tiny_cases.model(name).special_ids.end
  assert [result.tokens[-1] for result in found] == [
      [x for x in greedy(name, text, 10) if x != end] for text in texts(name)
  ]
  assert sum(x.statistics['accepted'] for x in found) > 0


def test_a_draft_begins_as_its_target():
  """A draft whose language is not chosen writes the target's."""
  name = 'marian'
  config, ids = tiny_cases.network(name), tiny_cases.model(name).special_ids
  draft = models.make_model(
      config.with_decoder_prompt(()),
      tiny_cases.params(name),
      special_ids=dataclasses.replace(ids, forbidden=()),
  )
  (batch,) = tiny.batches(texts(name), length=10)
  found = tiny.decoded(decoder(name, draft), batch)
  # Every draft token is the target's own.
  statistics = found.statistics
  assert (statistics.num_accepted == statistics.num_tested).all()


def head_on_bart():
  return networks.T5Config(
      vocab_size=96, emb_dim=16, num_heads=2, num_encoder_layers=0,
      num_decoder_layers=1, head_dim=8, mlp_dim=16,
  ).on_last_features(tiny_cases.network('bart'))  # fmt: skip


def test_a_head_is_trained_as_it_drafts():
  """Id 0 is a token of BART, which a T5's decoder reads on its features."""
  head = head_on_bart()
  params, generator = tiny_decoders.params(head), np.random.default_rng(2)
  inputs, outputs = inputs_of('bart'), outputs_of('bart')
  outputs[:, 2] = 0
  features, fed = (
      generator.normal(size=(ROWS, length, 24)).astype(np.float32)
      for length in (inputs.shape[1], LENGTH)
  )

  @jax.jit
  def both(params, inputs, outputs):
    scored = head.score_with_features(
        params, inputs, outputs, features=features, fed=fed
    )
    started = head.start(params, inputs, ROWS, LENGTH, features)
    before = jnp.pad(
        outputs[:, :-1],
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
      *both(params, inputs, outputs),
  )


def test_the_first_token_of_a_head_is_that_of_its_training(tmp_path):
  """T5's start, where the decoder of the target begins with another id."""
  checkpoints.save(tmp_path, 1, tiny_decoders.params(head_on_bart()))
  target = tiny_cases.model('bart')
  model = network_lib.NetworkModel(target.config, target.special_ids)
  found = drafters.find(str(tmp_path), target).drafter(model, 2)
  assert found.model.special_ids == contracts.SpecialIds(2, 1, 0)


@pytest.mark.parametrize('name', ['bart', 'gemma3'])
def test_last_features(name):
  """Those of blocks are those of whole outputs."""
  model = tiny_cases.model(name)
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
    found, expected = both(
        model.params, jnp.asarray(inputs_of(name)), outputs_of(name)
    )
  jax.tree.map(
      functools.partial(np.testing.assert_allclose, atol=1e-4), found, expected
  )


@pytest.mark.parametrize(
    ('name', 'inputs_length', 'max_tokens'),
    [('bart', 72, 71), ('gpt2', 113, 16)],
)
def test_positions_beyond_a_table(name, inputs_length, max_tokens):
  """BART's 72 hold the inputs, and a prompt of 2 and 71 tokens but the last.

  GPT-2's 128 hold both.
  """
  make = functools.partial(
      token_decoder.TokenDecoder, tiny_cases.model(name), drafters.Lookup(),
      may_end=False,
  )  # fmt: skip
  fits = make(inputs_length=inputs_length, max_tokens=max_tokens)
  if name == 'gpt2':
    prompt = np.random.default_rng(2).integers(0, 96, inputs_length).tolist()
    found = fits.generate(prompt)
    logits = reference_network.logits(
        tiny_cases.network(name), tiny_cases.params(name), prompt, found[:-1]
    )
    logits[:, fits.target.special_ids.end] = -np.inf
    assert np.argmax(logits, axis=-1).tolist() == found
  for more in ((0, 1), (1, 0)):
    with pytest.raises(ValueError, match='positions'):
      make(
          inputs_length=inputs_length + more[0],
          max_tokens=max_tokens + more[1],
      )


def test_a_language_that_is_not_chosen():
  config = dataclasses.replace(tiny_cases.network('nllb'), decoder_prompt=())
  model = models.make_model(config, tiny_decoders.params(config))
  with pytest.raises(ValueError, match='languages'):
    token_decoder.TokenDecoder(model)


_OTHER_ENCODER = tiny_decoders.T5GEMMA_2.encoder


@pytest.mark.parametrize(
    ('name', 'changes'),
    [
        ('llama', {'positions': 'alibi'}),
        ('llama', {'norm': 'none'}),
        ('llama', {'num_kv_heads': 3}),
        ('llama', {'max_positions': 9}),
        ('llama', {'prefix_bidirectional': True,
                   'kinds': [decoder_only.LayerKind(8)]}),
        ('gpt2', {'dtype': 'float16'}),
        ('bart', {'positions': 'alibi'}),
        ('bart', {'max_positions': None}),
        ('t5', {'dtype': 'float23'}),
        ('t5', {'dropout_rate': 1.0}),
        ('t5', {'feature_dim': 8}),
    ],
)  # fmt: skip
def test_parts_that_there_are_not(name, changes):
  with pytest.raises(ValueError, match=next(iter(changes))):
    dataclasses.replace(tiny_cases.network(name), **changes)


@pytest.mark.parametrize('name', ['emb_dim', 'vocab_size'])
def test_stacks_that_share_parts_have_one_size(name):
  encoder = dataclasses.replace(_OTHER_ENCODER, **{name: 34})
  with pytest.raises(ValueError, match=name):
    dataclasses.replace(tiny_decoders.T5GEMMA_2, encoder=encoder)


@pytest.mark.parametrize('name', ['marian', 'gemma3'])
def test_bfloat16(name):
  config = dataclasses.replace(tiny_cases.network(name), dtype=jnp.bfloat16)
  model = models.make_model(config, tiny_cases.params(name))
  found = tiny_decoders.decode(model, inputs_of(name), outputs_of(name), 4)
  assert found.dtype == np.float32
  assert np.abs(found - logits_of(name)).max() < 1

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Logits of cached blocks are those of recomputation, whatever the network."""

import dataclasses
import functools
import itertools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading import models
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.testing import table_model
from tests import exhaustive
from tests import reference_decoder
from tests import reference_encoder_decoder
from tests import tiny
from tests import tiny_decoders
from tests import tiny_encoder_decoders

pytestmark = pytest.mark.usefixtures('chunks_of_eight')

ROWS, LENGTH = len(tiny_decoders.LENGTHS), tiny_decoders.LENGTH


class Case(NamedTuple):
  """A network, outputs, and their logits, computed without a cache."""

  model: contracts.Model
  params: contracts.Params
  inputs: np.ndarray
  outputs: np.ndarray  # [ROWS, LENGTH]
  logits: np.ndarray  # [ROWS, LENGTH, vocab]


def of_t5(bias_per_layer: bool = False) -> Case:
  config = tiny.config(num_encoder_layers=1, bias_per_layer=bias_per_layer)
  params = tiny.params(config)
  inputs = tiny.encoder_tokens(ROWS + 1, 7)[1:]
  outputs = 2 + tiny_decoders.outputs() % 50  # no padding
  logits = tiny.teacher_forced(config, params, inputs, outputs)
  model = tiny.model(config)
  return Case(
      network_lib.NetworkModel(model.config, t5.SPECIAL_IDS),
      model.params,
      inputs,
      outputs,
      np.asarray(logits),
  )


def of_decoder(name: str) -> Case:
  """With prompts of unequal lengths, some longer than the window."""
  model = tiny_decoders.model(name)
  return Case(
      network_lib.NetworkModel(model.config, model.special_ids),
      model.params,
      tiny_decoders.prompts(),
      tiny_decoders.outputs(),
      tiny_decoders.logits(name),
  )


def of_encoder_decoder(model, find_logits) -> Case:
  """With a prompt of the decoder, or one attention to inputs and outputs."""
  inputs = np.asarray(tiny.encoder_tokens(ROWS + 1, 17)[1:])
  outputs = tiny_decoders.outputs()
  logits = [
      find_logits(row[row >= 0].tolist(), output[:-1].tolist())
      for row, output in zip(inputs, outputs)
  ]
  return Case(
      network_lib.NetworkModel(model.config, model.special_ids),
      model.params,
      inputs,
      outputs,
      np.stack(logits),
  )


def of_bart() -> Case:
  model = tiny_encoder_decoders.model('bart')
  params = tiny_decoders.params(tiny_encoder_decoders.CONFIGS['bart'])
  find_logits = functools.partial(
      reference_encoder_decoder.logits, model.config, params
  )
  return of_encoder_decoder(model, find_logits)


def of_t5gemma2() -> Case:
  config = tiny_decoders.T5GEMMA_2
  params = tiny_decoders.params(config)

  def find_logits(inputs, output):
    features = reference_decoder.encode(config.encoder, params, inputs)
    return reference_decoder.logits(config, params, [2, *output], features)

  return of_encoder_decoder(models.make_model(config, params), find_logits)


def of_table() -> Case:
  vocab = 5
  tables = np.float32(table_model.random_logits(0, ROWS, vocab))
  outputs = tiny_decoders.outputs() % vocab
  before, last = (np.pad(outputs, ((0, 0), (i, 0)))[:, :LENGTH] for i in (2, 1))
  logits = tables[np.arange(ROWS)[:, None], before, last]
  return Case(
      table_model.Model(vocab), tables, np.arange(ROWS), outputs, logits
  )


@functools.cache
def case(kind: str) -> Case:
  if kind in tiny_decoders.CONFIGS:
    return of_decoder(kind)
  umt5 = functools.partial(of_t5, bias_per_layer=True)
  make = {
      't5': of_t5,
      'umt5': umt5,
      'bart': of_bart,
      't5gemma2': of_t5gemma2,
      'table': of_table,
  }
  return make[kind]()


class Decoding:
  """Decodes blocks of the last rows of a case."""

  def __init__(self, kind: str, rows: int, min_block: int | None):
    it = case(kind)
    model = it.model
    if min_block is not None:
      network = dataclasses.replace(model.network, min_block=min_block)
      model = dataclasses.replace(model, network=network)
    self.rows, self.params = rows, it.params
    self.logits = it.logits[-rows:]
    start = jax.jit(model.start, static_argnums=(2, 3))
    # The last block ends with the last slot.
    self.started = start(
        it.params, jnp.asarray(it.inputs[-rows:]), rows, LENGTH
    )
    self.cache = jax.tree.map(self._without_unwritten, self.started.cache)
    first = np.asarray(self.started.first_tokens)[:, None]
    self.fed = np.concatenate([first, it.outputs[-rows:]], axis=1)
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
    memory, offsets = self.started.memory, self.started.offsets
    return self._decode(
        self.params,
        memory,
        cache,
        jnp.asarray(tokens),
        offsets + jnp.asarray(starts, jnp.int32),
        None if at is None else jnp.asarray(at, jnp.int32),
    )


def check_blocks(
    kind: str, block: int, rows: int = ROWS, min_block: int | None = None
):
  """Rows advance by up to a block, and each by another number of tokens.

  At first and at the end they are rewound: what other tokens have left there is
  not read.
  """
  with jax.default_matmul_precision('highest'):
    decoding = Decoding(kind, rows, min_block)
    wrong = decoding.fed[:, 1 : block + 1]
    zeros = np.zeros(rows, np.int32)
    _, cache = decoding.decode(decoding.cache, wrong, zeros)
    step, last = 0, LENGTH - block
    starts = zeros
    while True:
      cache = decoding.check(cache, starts, block)
      if np.all(starts == last):
        break
      step += 1
      quarters = block * step * (1 + np.arange(rows) % 4)
      starts = np.minimum(quarters // 4, last)


KINDS = 't5', *tiny_decoders.CONFIGS, 'table'


@pytest.mark.parametrize(
    ('kind', 'block'),
    exhaustive.all_but(
        [
            *((kind, 4) for kind in KINDS),
            # With and without windows.
            *itertools.product(('t5', 'gemma3'), (1, 8)),
        ],
        itertools.product(KINDS, (1, 4, 8)),
    ),
)
def test_blocks_at_unequal_positions(kind, block):
  assert np.abs(case(kind).logits).max() > 1
  check_blocks(kind, block)


@pytest.mark.parametrize(
    ('kind', 'rows', 'block', 'min_block'),
    [
        ('t5', 1, 1, 1),
        ('t5', 1, 3, 8),
        ('t5', ROWS, 1, 8),
        ('umt5', ROWS, 4, 1),
        ('bart', ROWS, 4, 1),
        ('t5gemma2', ROWS, 4, 8),
        ('gemma3', 1, 3, 8),
    ],
)
def test_one_row_and_padded_blocks(kind, rows, block, min_block):
  """One row has no batch axis, and padding needs no slots."""
  check_blocks(kind, block, rows, min_block)


@pytest.mark.parametrize(
    ('kind', 'rows', 'min_block'),
    [('t5', 1, 8), ('gemma3', ROWS, 1), ('table', ROWS, None)],
)
def test_one_index_of_the_block(kind, rows, min_block):
  with jax.default_matmul_precision('highest'):
    decoding = Decoding(kind, rows, min_block)
    at = (2 + np.arange(rows)) % 4
    starts = np.zeros(rows, np.int32)
    decoding.check(decoding.cache, starts, 4, at)


HEADED = {
    't5': tiny.config(),
    'bart': tiny_encoder_decoders.CONFIGS['bart'],
    'nllb': tiny_encoder_decoders.CONFIGS['nllb'],
    'gemma3': tiny_decoders.CONFIGS['gemma3'],
    **tiny_decoders.CONFIGS_OF_T5GEMMA,
}


@pytest.mark.parametrize('kind', HEADED)
def test_a_head_of_its_own(kind):
  """It is all that lies behind the last layer, and equals what it copies."""
  network, inputs = HEADED[kind], tiny.encoder_tokens(ROWS, 7)
  own, params = network.with_own_head(), tiny_decoders.params(network)
  head = network.take_head(params)
  outputs = 2 + tiny_decoders.outputs() % 50  # no padding
  with jax.default_matmul_precision('highest'):
    expected = network.score(params, inputs, outputs)
    logits = own.score(own.put_head(params, head), inputs, outputs)
  np.testing.assert_allclose(logits, expected, atol=1e-5)
  nothing = own.put_head(params, jax.tree.map(jnp.zeros_like, head))
  assert not np.any(own.score(nothing, inputs, outputs))

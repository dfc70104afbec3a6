# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of draft models whose head has logits for some tokens only."""


import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import embedded
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.tasks import bulletins
from tests import tiny

IDS = np.array([1, 2, 5, 17, 40, 63])
TIED = {'mlp_activations': ('relu',), 'logits_via_embedding': True}


def decode_block(model, rows, at):
  """Returns the logits of a block of three tokens."""
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


class TestLogits:

  @pytest.mark.parametrize(
      ('overrides', 'rows', 'at'),
      [({}, 3, None), (TIED, 1, 1), ({'dtype': jnp.bfloat16}, 3, 1)],
      ids=str,
  )
  def test_are_those_of_the_whole_head(self, overrides, rows, at):
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

  def test_head_is_as_small(self):
    whole = tiny.model(tiny.config())
    short = models.shorten_head(whole, IDS)
    kernel = short.params['decoder']['logits_dense']['kernel']
    assert kernel.shape == (32, len(IDS)) and short.config.head_size == 6
    shapes = lambda tree: jax.tree.map(lambda x: x.shape, tree)
    assert shapes(short.params) == shapes(models.abstract_params(short.config))


class TestBadInput:

  @pytest.mark.parametrize(
      ('ids', 'message'),
      [
          ([2, 3], 'must have the end of sequence, 1'),
          ([], 'must have the end of sequence, 1'),
          ([1, 2, 2], 'none twice; got 3 tokens, 2 of them different'),
          ([1, 64], 'tokens from 1 to 64, but the network has only 64'),
          ([-1, 1], 'tokens from -1 to 1, but the network has only 64'),
      ],
  )
  def test_ids(self, ids, message):
    with pytest.raises(ValueError, match=message):
      models.shorten_head(tiny.model(tiny.config()), ids)


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
  """A table of German bulletins."""
  vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
  pairs = bulletins.read_pairs('train')[:2000]
  counts = token_counts.count(
      ([*vocabulary.encode(text), 1] for _, text in pairs),
      num_pieces=vocabulary.num_pieces,
      eos_id=vocabulary.eos_id,
      num_kept=4,
      vocabulary=vocabularies.fingerprint(vocabulary),
  )
  folder = tmp_path_factory.mktemp('table')
  (folder / token_counts.FILE_NAME).write_bytes(counts.to_bytes())
  return folder


def find(folder, vocabulary=None, **settings):
  path = checkpoints.open(embedded.target_checkpoint())
  return draft_model_source.FromCheckpoint(
      embedded.draft_checkpoint(), short_vocabulary=folder, **settings
  ).find(models.find_model(path), vocabulary)


def test_description(folder):
  """Greedy outputs: see `tests/greedy_combinations_test.py`."""
  vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
  loaded = find(folder, vocabulary, short_vocabulary_size=256)()
  assert loaded.description.short_vocabulary == 256
  assert loaded.description.table == str(folder)
  assert loaded.models[0].config.head_size == 256

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of draft models whose head has logits for some tokens only."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import embedded
from speculative_t5x.drafters import draft_model
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import draft_model_source
from speculative_t5x.networks import layers
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import bulletins
from speculative_t5x.testing import table_model
from tests import enumeration
from tests import tabular
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

  @pytest.mark.parametrize('at', [None, 1])
  @pytest.mark.parametrize('rows', [1, 3])
  @pytest.mark.parametrize(
      'overrides', [{}, TIED, {'dtype': jnp.bfloat16}], ids=str
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

  def test_other_tokens_need_no_compilation(self):
    """Which tokens these are is a value and not part of the program."""
    whole = tiny.model(tiny.config())
    one, two = (models.shorten_head(whole, ids) for ids in (IDS, IDS[::-1]))
    assert one.config == two.config
    at = jnp.zeros((1,), jnp.int32)
    np.testing.assert_array_equal(
        decode_block(one, 1, at), decode_block(two, 1, at)
    )


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


VOCAB, LIMITS, KEPT = 4, (4, 2), np.array([1, 3, 0])


@dataclasses.dataclass(frozen=True)
class ShortTable(table_model.Model):
  """A table model behind a short head; its parameters hold the places too."""

  def look_up(self, params, tables, cache, offsets):
    tables_of_logits, places = params
    logits = super().look_up(tables_of_logits, tables, cache, offsets)
    return layers.ShortVocabulary(self.vocab_size).apply(
        {'params': {'places': places}}, logits
    )


@dataclasses.dataclass(frozen=True)
class ShortCase(enumeration.Case):
  """Paths of a draft model that has logits for the tokens KEPT only."""

  @property
  def probabilities(self):
    """See `enumeration.Case.probabilities`."""
    short, _ = self.draft_tables
    whole = np.full((*short.shape[:-1], VOCAB), -np.inf)
    whole[..., KEPT] = short
    return tuple(
        enumeration.standardized(tables, self.sampling, VOCAB)
        for tables in (self.target_tables, whole)
    )


def distribution_error(places, gamma=2, temperature=1.0):
  """Returns how far outputs of the production step are from the target's."""
  drawn_from = sampling_lib.make_sampling(temperature)
  case = ShortCase(
      table_model.random_logits(1, len(LIMITS), VOCAB),
      (table_model.random_logits(2, len(LIMITS), VOCAB, len(KEPT)), places),
      LIMITS, gamma, drawn_from, drawn_from,
  )  # fmt: skip
  drafter = draft_model.DraftModel(ShortTable(VOCAB), gamma, VOCAB)
  production = enumeration.Production(
      gamma, VOCAB, VOCAB, max(LIMITS), drafter=drafter
  )
  found, *_ = enumeration.joint_distributions(case, production)
  errors = []
  for table, limit, own in zip(case.probabilities[0], LIMITS, found):
    exact = tabular.exact_distribution(table, limit)
    outputs = exact.keys() | own.keys()
    errors += [abs(exact.get(x, 0.0) - own.get(x, 0.0)) for x in outputs]
  return max(errors)


PLACES = np.array([2, 0, 3, 1], np.int32)  # of KEPT in the vocabulary


@pytest.mark.usefixtures('float64')
class TestDistribution:

  @pytest.mark.parametrize('temperature', [1.0, 0.0])
  @pytest.mark.parametrize('gamma', [1, 2])
  def test_outputs_follow_the_target(self, gamma, temperature):
    assert distribution_error(PLACES, gamma, temperature) < 1e-9

  @pytest.mark.parametrize('places', [np.roll(PLACES, 1), np.argsort(PLACES)])
  def test_detects_tokens_in_other_places(self, places):
    assert distribution_error(places.astype(np.int32)) > 1e-3


TEXTS = [text for text, _ in bulletins.read_pairs('test')[:12]]


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


class TestEmbeddedPair:

  def test_greedy_outputs_are_those_of_plain_decoding(self, folder):
    decoder = embedded.load_decoder(gamma=4)
    vocabulary = decoder.vocabulary
    loaded = find(folder, vocabulary, short_vocabulary_size=256)()
    whole = decoder.tokens.loaded_drafter.description
    assert loaded.description == dataclasses.replace(
        whole, short_vocabulary=256, table=str(folder)
    )
    expected = decoder.decode_plain(TEXTS)
    rates = {'whole': decoder.decode(TEXTS).statistics['accepted']}
    decoder.tokens = decoder.tokens.with_drafter(loaded, 4)
    found = decoder.decode(TEXTS)
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    rates['short'] = found.statistics['accepted']
    assert 0 < rates['short'] < rates['whole']

  def test_of_another_vocabulary(self, folder, tmp_path):
    counts = token_counts.load(folder)
    other = dataclasses.replace(
        counts, vocabulary=vocabularies.Fingerprint(2048, 'ab' * 32)
    )
    (tmp_path / token_counts.FILE_NAME).write_bytes(other.to_bytes())
    vocabulary = vocabularies.load(bulletins.VOCABULARY_FILE)
    with pytest.raises(token_counts.TableError, match='another vocabulary'):
      find(tmp_path, vocabulary)

  def test_no_table(self, tmp_path):
    with pytest.raises(token_counts.TableError, match='There is no token_cou'):
      find(tmp_path)

  def test_size(self, folder):
    with pytest.raises(
        ValueError, match='must be a whole number and at least 1, got 0'
    ):
      find(folder, short_vocabulary_size=0)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables as draft models: distribution, smoothing, bad input."""

import collections
import copy
import dataclasses
import fractions

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import embedded
from speculative_t5x.drafters import tables
from speculative_t5x.loading import checkpoints
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.loading.drafters import ngram_drafting
from speculative_t5x.networks import t5
from speculative_t5x.tasks import bulletins
from tests import workloads

VOCAB = 4
SPECIAL_IDS = t5.SPECIAL_IDS
# Tokens of a vocabulary of 4 pieces; 1 ends a text.
TEXTS = [[2, 3, 2, 1], [3, 3, 3, 1], [2, 2, 3, 1], [2], [2, 3, 3, 2, 2, 1], [1]]


def count(texts=TEXTS, num_kept=3, num_pieces=VOCAB):
  return token_counts.count(
      texts, num_pieces=num_pieces, eos_id=1, num_kept=num_kept
  )


def probabilities(table):
  """Return q of the next token after each token, [vocab, vocab]."""
  table = jax.tree.map(jnp.asarray, table)
  width = table.unigram.size
  model = tables.Ngram(width, SPECIAL_IDS)
  tokens = jnp.arange(width, dtype=jnp.int32)[:, None]
  logits, _ = model.decode(table, None, None, tokens, tokens[:, 0], None)
  # Of a block, the position that is asked for counts.
  blocks = jnp.concatenate([0 * tokens, tokens, 0 * tokens], axis=1)
  at = jnp.ones_like(tokens[:, 0])
  one, _ = model.decode(table, None, None, blocks, tokens[:, 0], at)
  np.testing.assert_array_equal(one, logits)
  return np.exp(logits[:, 0])


def witten_bell(texts, num_kept, order, num_pieces):
  """Return q by context, counted in plain Python, with exact fractions."""
  unigrams, bigrams = collections.Counter(), collections.defaultdict(list)
  for text in texts:
    for before, token in zip(['start', *text], text):
      unigrams[token] += 1
      bigrams[before].append(token)
  total, different = sum(unigrams.values()), len(unigrams)
  unigram = [
      (fractions.Fraction(different, num_pieces) + unigrams[y])
      / (total + different)
      for y in range(num_pieces)
  ]
  found = {}
  for before in ['start', *range(num_pieces)]:
    after = collections.Counter(bigrams[before]) if order == 2 else {}
    ranked = sorted(after, key=lambda y: (-after[y], y))[:num_kept]
    weight = (sum(after.values()) + len(after)) if after else 1
    rest = 1 - fractions.Fraction(sum(after[y] for y in ranked), weight)
    found[before] = [
        fractions.Fraction(after[y] if y in ranked else 0, weight)
        + rest * unigram[y]
        for y in range(num_pieces)
    ]
  return found


class TestSmoothing:

  @pytest.mark.parametrize('order', [1, 2])
  @pytest.mark.parametrize('num_kept', [1, 2, 8])
  @pytest.mark.parametrize(('vocab_size', 'start'), [(50, 0), (64, 5)])
  def test_agrees_with_a_plain_count(self, vocab_size, start, num_kept, order):
    """The distribution after any token sums to 1, wherever a text begins."""
    rng = np.random.default_rng(0)
    texts = [(rng.zipf(1.5, n) % 50).tolist() for n in rng.integers(1, 30, 300)]
    counts = count(texts, num_kept, 50)
    found = probabilities(
        ngram_drafting.smooth(counts, order, vocab_size, start)
    )
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=2e-6)
    expected = witten_bell(texts, num_kept, order, 50)
    for token in range(50):
      own = expected['start' if token == start else token]
      np.testing.assert_allclose(
          found[token, :50], np.array(own, float), rtol=1e-5
      )
    assert not found[:, 50:].any()

  def test_many_texts_are_counted_in_parts(self, monkeypatch):
    expected = count(TEXTS * 5)
    monkeypatch.setattr(token_counts, '_CHUNK', 4)
    found = count(iter(TEXTS * 5))
    for field in dataclasses.fields(expected):
      np.testing.assert_array_equal(
          getattr(found, field.name), getattr(expected, field.name)
      )


@pytest.fixture(scope='module')
def vocabulary():
  return vocabularies.load(bulletins.VOCABULARY_FILE)


@pytest.fixture(scope='module')
def german(vocabulary):
  """Return counts of the first German bulletins."""
  pairs = bulletins.read_pairs('train')[:2000]
  return token_counts.count(
      ([*vocabulary.encode(text), vocabulary.eos_id] for _, text in pairs),
      num_pieces=vocabulary.num_pieces,
      eos_id=vocabulary.eos_id,
      num_kept=16,
      vocabulary=vocabularies.fingerprint(vocabulary),
      origin='bulletins',
  )


def save(counts, folder):
  (folder / token_counts.FILE_NAME).write_bytes(counts.to_bytes())
  return folder


def find(folder, vocabulary=None, order=2, **special_ids):
  ids = dataclasses.replace(SPECIAL_IDS, **special_ids)
  target = models.Found(
      workloads.CONFIG, special_ids=ids, vocabulary=vocabulary
  )
  return ngram_drafting.NGrams(folder, order).find(target)


@pytest.mark.parametrize(('order', 'kind'), [(1, 'unigram'), (2, 'bigram')])
def test_description_of_a_file(german, vocabulary, tmp_path, order, kind):
  found = find(save(german, tmp_path), vocabulary, order=order)
  loaded = found.load()
  assert loaded.description == found.description
  held = sum(x.nbytes for x in jax.tree.leaves(loaded.params))
  assert found.num_bytes == held
  description = loaded.description
  assert (description.kind, description.name) == (kind, kind)
  assert description.table == str(tmp_path)


def test_text_after_what_begins_a_prompt(german, vocabulary, tmp_path):
  """A decoder alone has no start; prompts without a text end with theirs."""
  folder = save(german, tmp_path)
  expected = find(folder, vocabulary, start=0).load().params
  begun = copy.copy(vocabulary)
  begun.begin_ids = (5, 0)
  found = find(folder, begun, start=None).load().params
  jax.tree.map(np.testing.assert_array_equal, found, expected)
  other = find(folder, vocabulary, start=None).load().params
  assert np.any(other.next_probs != expected.next_probs)


def test_short_vocabulary_of_a_table(german, vocabulary, tmp_path, monkeypatch):
  """A draft model with logits for the most frequent tokens alone.

  A resumed job compares its counts, which it finds by the path described.
  """
  monkeypatch.setenv('HOME', str(tmp_path))
  folder = save(german, tmp_path)
  found = model_drafting.DraftModel(
      embedded.draft_checkpoint(),
      short_vocabulary='~',
      short_vocabulary_size=256,
  ).find(
      models.find_model(
          checkpoints.open(embedded.target_checkpoint()), vocabulary=vocabulary
      )
  )
  loaded = found.load()
  assert loaded.description == found.description
  assert loaded.description.short_vocabulary == 256
  assert loaded.description.paths[-1] == str(folder)
  assert loaded.models[0].config.head_size == 256


def _other_vocabulary(german):
  other = vocabularies.Fingerprint(2048, 'ab' * 32)
  return dataclasses.replace(german, vocabulary=other)


@pytest.mark.parametrize(
    ('change', 'arguments', 'message'),
    [
        (_other_vocabulary, {}, 'hash abababab'),
        (lambda _: count(num_pieces=2049), {}, '2049'),
        (lambda german: german, {'end': 2}, 'end 2'),
    ],
)
def test_tables_that_do_not_fit(
    change, arguments, message, german, vocabulary, tmp_path
):
  with pytest.raises(token_counts.TableError, match=message):
    find(save(change(german), tmp_path), vocabulary, **arguments)


def test_damaged_file(tmp_path):
  with pytest.raises(token_counts.TableError, match='There is no token_cou'):
    token_counts.load(tmp_path)
  path = save(count(), tmp_path) / token_counts.FILE_NAME
  path.write_bytes(path.read_bytes()[:-9])
  with pytest.raises(token_counts.TableError, match='is damaged'):
    token_counts.load(tmp_path)


class TestMostFrequent:

  def test_is_ranked_by_count(self):
    counts = count([[3, 3, 3, 2, 2, 5, 6, 1]], num_pieces=8)
    assert counts.most_frequent(3).tolist() == [1, 2, 3]
    assert counts.most_frequent(4).tolist() == [1, 2, 3, 5]
    # Tokens that do not occur are left out.
    assert counts.most_frequent(8).tolist() == [1, 2, 3, 5, 6]
    assert counts.coverage(counts.most_frequent(3)) == 6 / 8

  @pytest.mark.parametrize('texts', [[[3, 3, 2]], [[3, 3, 3, 2, 2, 1]]])
  def test_always_has_the_end_of_sequence(self, texts):
    counts = count(texts)
    assert counts.most_frequent(1).tolist() == [1]
    assert counts.most_frequent(2).tolist() == [1, 3]

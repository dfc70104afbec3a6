# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of tables as draft models: distribution, smoothing, bad input."""

import collections
import dataclasses
import fractions
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import embedded
from speculative_t5x.decoder import text_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import tables
from speculative_t5x.loading import models
from speculative_t5x.loading import token_counts
from speculative_t5x.loading import vocabularies
from speculative_t5x.loading.drafters import source
from speculative_t5x.loading.drafters import table_source
from speculative_t5x.networks import t5_model
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import operations
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.tasks import bulletins
from speculative_t5x.testing import table_model
from tests import enumeration
from tests import tabular
from tests import tiny

VOCAB, LIMITS = 4, (4, 3, 1)
SPECIAL_IDS = t5_model.SPECIAL_IDS
# Tokens of a vocabulary of 4 pieces; 1 ends a text.
TEXTS = [[2, 3, 2, 1], [3, 3, 3, 1], [2, 2, 3, 1], [2], [2, 3, 3, 2, 2, 1], [1]]


def count(texts=TEXTS, num_kept=3, num_pieces=VOCAB):
  return token_counts.count(
      texts, num_pieces=num_pieces, eos_id=1, num_kept=num_kept
  )


def probabilities(table):
  """Returns q of the next token after each token, [vocab, vocab]."""
  table = jax.tree.map(jnp.asarray, table)
  width = table.unigram.size
  model = tables.Ngram(width, SPECIAL_IDS)
  tokens = jnp.arange(width, dtype=jnp.int32)[:, None]
  logits, _ = model.decode(table, None, None, tokens, tokens[:, 0], None)
  return np.exp(logits[:, 0])


def witten_bell(texts, num_kept, order, num_pieces=VOCAB):
  """Returns q by context, counted in plain Python, with exact fractions."""
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
  @pytest.mark.parametrize('num_kept', [1, 2, 3])
  @pytest.mark.parametrize('vocab_size', [VOCAB, VOCAB + 3])
  def test_agrees_with_a_plain_count(self, vocab_size, num_kept, order):
    table = table_source.smooth(count(num_kept=num_kept), order, vocab_size, 0)
    found = probabilities(table)
    expected = witten_bell(TEXTS, num_kept, order)
    for token in range(VOCAB):  # token 0 is never written: texts start there
      own = expected['start' if token == 0 else token]
      np.testing.assert_allclose(
          found[token, :VOCAB], np.array(own, float), rtol=2e-6
      )
    assert not found[:, VOCAB:].any()

  @pytest.mark.parametrize('start', [0, 5])
  def test_random_texts(self, start):
    """The distribution after any token sums to 1, wherever a text begins."""
    rng = np.random.default_rng(0)
    texts = [rng.zipf(1.5, n) % 50 for n in rng.integers(1, 30, 300)]
    table = table_source.smooth(count(texts, 8, 50), 2, 64, start)
    found = probabilities(table)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=2e-6)
    expected = witten_bell([t.tolist() for t in texts], 8, 2, 50)
    for token, own in ((start, expected['start']), (7, expected[7])):
      np.testing.assert_allclose(
          found[token, :50], np.array(own, float), rtol=1e-5
      )

  def test_many_texts_are_counted_in_parts(self, monkeypatch):
    expected = count(TEXTS * 5)
    monkeypatch.setattr(token_counts, '_CHUNK', 4)
    found = count(iter(TEXTS * 5))
    for field in dataclasses.fields(expected):
      np.testing.assert_array_equal(
          getattr(found, field.name), getattr(expected, field.name)
      )


@dataclasses.dataclass(frozen=True)
class TableCase(enumeration.Case):
  """Paths of a drafter whose parameters are a table, or nothing.

  Attributes:
    own: [vocab, vocab] q of the next token after each.
  """

  own: np.ndarray | None = None

  @functools.cached_property
  def probabilities(self):
    """See `enumeration.Case.probabilities`."""
    tables = self.target_tables
    return enumeration.standardized(tables, self.sampling, VOCAB), self.own

  def distributions(self, example, tokens):
    """See `enumeration.Case.distributions`."""
    target, own = self.probabilities
    last = tokens[-1] if tokens else SPECIAL_IDS.start
    return target[(example, *table_model.place(tokens))], own[last]

  def draft_state(self, num_tokens, cache, rng):
    """See `enumeration.Case.draft_state`; nothing is cached."""
    state = super().draft_state(num_tokens, cache, rng)
    return state.replace(cache=None)


def make_case(table, gamma, temperature=1.0, topk=0, seed=5):
  drawn_from = sampling_lib.make_sampling(temperature, topk)
  target = table_model.random_logits(seed, len(LIMITS), VOCAB)
  logits = jnp.log(probabilities(table)) if table else jnp.zeros((VOCAB,) * 2)
  return TableCase(
      target, table, LIMITS, gamma, drawn_from, drawn_from,
      own=np.asarray(sampling_lib.standardize(logits, drawn_from)),
  )  # fmt: skip


def error_of(case, model):
  """Returns how far outputs of the production step are from the target's."""
  production = enumeration.Production(
      case.gamma,
      VOCAB,
      VOCAB,
      max(LIMITS),
      drafter=draft_model.DraftModel(model, case.gamma, VOCAB),
  )
  found, *_ = enumeration.joint_distributions(case, production)
  error = 0.0
  for table, limit, distribution in zip(case.probabilities[0], LIMITS, found):
    exact = tabular.exact_distribution(table, limit)
    for output in exact.keys() | distribution.keys():
      difference = exact.get(output, 0.0) - distribution.get(output, 0.0)
      error = max(error, abs(difference))
  return error


def make_table(order):
  return jax.tree.map(
      lambda x: x.astype(np.float64) if x.dtype == np.float32 else x,
      table_source.smooth(count(num_kept=2), order, VOCAB, SPECIAL_IDS.start),
  )


class PreviousButOne(tables.Ngram):
  """Looks up the token before the last one."""

  def decode(self, params, memory, cache, tokens, positions, at):
    if at is not None:
      at = jnp.maximum(at - 1, 0)
    return super().decode(params, memory, cache, tokens, positions, at)


class Stale(tables.Ngram):
  """Looks up the token at which the block begins, at each draft token."""

  def decode(self, params, memory, cache, tokens, positions, at):
    if at is None:
      tokens = jnp.full_like(tokens, SPECIAL_IDS.start)
    return super().decode(params, memory, cache, tokens, positions, at)


class Unnormalised(tables.Ngram):
  """Adds what belongs to the continuations to the whole unigram weight."""

  def decode(self, params, memory, cache, tokens, positions, at):
    params = params.replace(backoff=jnp.ones_like(params.backoff))
    return super().decode(params, memory, cache, tokens, positions, at)


@pytest.mark.usefixtures('float64')
class TestDistribution:

  @pytest.mark.parametrize('order', [1, 2])
  @pytest.mark.parametrize(
      ('gamma', 'temperature', 'topk'),
      [(1, 1.0, 0), (2, 1.0, 0), (3, 0.7, 2), (2, 0.0, 0)],
  )
  def test_outputs_follow_the_target(self, gamma, temperature, topk, order):
    case = make_case(make_table(order), gamma, temperature, topk)
    assert error_of(case, tables.Ngram(VOCAB, SPECIAL_IDS)) < 1e-6

  @pytest.mark.parametrize('temperature', [0.0, 1.0])
  def test_uniform(self, temperature):
    case = make_case(None, 2, temperature)
    assert error_of(case, tables.Uniform(VOCAB, SPECIAL_IDS)) < 1e-6

  @pytest.mark.parametrize('mutant', [PreviousButOne, Stale, Unnormalised])
  def test_detects(self, mutant):
    """Draft tokens of such a table are not those that the case expects."""
    case = make_case(make_table(2), 2)
    error = error_of(case, mutant(VOCAB, SPECIAL_IDS))
    print(f'{mutant.__name__}: off by {error:.3f}')
    assert error > 1e-3


CONFIG = tiny.config(
    vocab_size=2048, num_encoder_layers=1, num_decoder_layers=1
)
SENTENCES = ['The train from Bonn is late.', 'It will rain in Turin today.']


@pytest.fixture(scope='module')
def vocabulary():
  return vocabularies.load(bulletins.VOCABULARY_FILE)


@pytest.fixture(scope='module')
def german(vocabulary):
  """Counts of the first German bulletins."""
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


def find(folder, vocabulary=None, config=CONFIG, order=2, **special_ids):
  ids = dataclasses.replace(SPECIAL_IDS, **special_ids)
  target = models.ModelSource(None, config, ids)
  return table_source.FromFile(folder, order).find(target, vocabulary)


class TestFromFile:

  @pytest.mark.parametrize(
      ('order', 'kind'), [(0, 'uniform'), (1, 'unigram'), (2, 'bigram')]
  )
  def test_decodes(self, german, vocabulary, tmp_path, order, kind):
    if order:
      loaded = find(save(german, tmp_path), vocabulary, order=order)()
      assert loaded.description.table == str(tmp_path)
    else:
      made = source.WithoutParameters(tables.make_uniform, kind)
      loaded = made.find(models.ModelSource(None, CONFIG), None)()
    assert loaded.description.kind == loaded.description.name == kind
    decoder = text_decoder.TextDecoder(
        tiny.model(CONFIG), loaded, vocabulary,
        gamma=3, inputs_length=24, targets_length=12,
        matmul_precision='highest',
    )  # fmt: skip
    found, plain = decoder.decode(SENTENCES), decoder.decode_plain(SENTENCES)
    np.testing.assert_array_equal(found.sequences, plain.sequences)
    assert found.statistics['drafted'] > 0
    request, _ = decoder.make_request(SENTENCES, temperature=1.0)
    assert operations.count(decoder.tokens, request).ops_coefficient < 0.5

  def test_bigrams_resemble_the_embedded_target(self, german, vocabulary):
    """Acceptance grows with the order."""
    decoder = embedded.load_decoder(gamma=2)
    texts = [text for text, _ in bulletins.read_pairs('test')[:8]]
    request, _ = decoder.make_request(texts, temperature=1.0)
    decoded = jax.device_get(decoder.tokens.plain(request))
    alphas = []
    for order in (1, 2):
      table = table_source.smooth(german, order, 2048, 0)
      loaded = table_source.from_table(table, order)
      tokens = decoder.tokens.with_drafter(loaded, 2)
      scored = acceptance.score(tokens, request, decoded)
      alphas.append(np.mean(np.concatenate([text.betas for text in scored])))
    assert 0.01 < alphas[0] < alphas[1] < 0.9

  def test_order(self, tmp_path):
    with pytest.raises(ValueError, match='must be 1 .unigram. or 2 .bigram.'):
      find(save(count(), tmp_path), order=3)

  def test_of_another_vocabulary(self, german, vocabulary, tmp_path):
    other = dataclasses.replace(
        german, vocabulary=vocabularies.Fingerprint(2048, 'ab' * 32)
    )
    with pytest.raises(
        token_counts.TableError,
        match='is of another vocabulary .2048 pieces, hash abababab. than',
    ):
      find(save(other, tmp_path), vocabulary)

  def test_of_a_larger_vocabulary(self, tmp_path):
    with pytest.raises(token_counts.TableError, match='65 pieces, but'):
      find(save(count(num_pieces=65), tmp_path), config=tiny.config())

  def test_of_another_end_of_sequence(self, tmp_path):
    with pytest.raises(token_counts.TableError, match='id 1, the model has 2'):
      find(save(count(), tmp_path), end=2)


class TestFile:

  def test_is_read_as_it_was_written(self, german, tmp_path):
    found = token_counts.load(save(german, tmp_path))
    for field in dataclasses.fields(german):
      np.testing.assert_array_equal(
          getattr(found, field.name), getattr(german, field.name)
      )

  def test_missing(self, tmp_path):
    with pytest.raises(token_counts.TableError, match='There is no token_cou'):
      token_counts.load(tmp_path)

  @pytest.mark.parametrize('share', [0, 0.5, 0.99])
  def test_truncated(self, tmp_path, share):
    path = save(count(), tmp_path) / token_counts.FILE_NAME
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(token_counts.TableError, match='is damaged'):
      token_counts.load(tmp_path)

  @pytest.mark.parametrize(
      'changes',
      [
          {'next_tokens': np.full((VOCAB + 1, 3), VOCAB)},
          {'totals': np.zeros(VOCAB, np.int64)},
      ],
      ids=str,
  )
  def test_arrays_that_do_not_fit(self, tmp_path, changes):
    save(dataclasses.replace(count(), **changes), tmp_path)
    with pytest.raises(token_counts.TableError, match='is damaged'):
      token_counts.load(tmp_path)


class TestBadInput:

  def test_no_tokens(self):
    with pytest.raises(ValueError, match='no tokens'):
      count([[], []])

  @pytest.mark.parametrize('token', [-1, 2**24])
  def test_token_that_is_no_id(self, token):
    with pytest.raises(ValueError, match=f'the token {token}, which is no id'):
      count([[2, token, 3]])


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


@pytest.mark.parametrize(
    'setting',
    [{'order': [1]}, {'order': True}, {'order': 3}],
    ids=str,
)
def test_bad_settings(setting):
  ((name, value),) = setting.items()
  with pytest.raises(ValueError) as caught:
    table_source.FromFile(**{'path': 'table', **setting})
  assert str(caught.value).startswith(f'{name} must be')
  assert str(caught.value).endswith(f'got {value!r}.')

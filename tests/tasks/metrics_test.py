# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of metrics."""

import json

import numpy as np
import pytest
import sentencepiece

from speculative_t5x.tasks import metrics
from speculative_t5x.tasks import multi30k
from tests.shared import shared_folder

_EOS = 1


class TestBleu:

  def test_smoothing_is_exponential(self):
    # Words match 4 of 4, pairs 1 of 3, threes none of 2, fours none of 1.
    score = metrics.bleu(['a b c d'], ['a b d c'])['bleu']
    expected = 100 * (1 * 1 / 3 * (1 / 2) / 2 * (1 / 4) / 1) ** 0.25
    assert score == pytest.approx(expected)

  def test_case_counts(self):
    assert metrics.bleu(['Ein Zug nach Köln'], ['ein zug nach köln']) != {
        'bleu': pytest.approx(100)
    }

  def test_tokenization(self):
    # German quotation marks are tokens of their own by 'intl' alone.
    texts = ['„Zug“ nach Köln heute'], ['Zug nach Köln heute']
    default = metrics.bleu(*texts)['bleu']
    assert default == metrics.bleu(*texts, tokenize='13a')['bleu']
    assert default != metrics.bleu(*texts, tokenize='intl')['bleu']

  @pytest.mark.parametrize('model', ['draft', 'target'])
  def test_agrees_with_t5x(self, model):
    shared = shared_folder()
    if shared is None:
      pytest.skip('no shared test data')
    data_dir = shared / 'data' / 'multi30k'
    oracle = shared / 't5x_oracle' / model
    vocabulary = sentencepiece.SentencePieceProcessor(
        model_file=str(data_dir / 'ende4k.model')
    )
    tokens = np.load(oracle / 'oracle.npz')['greedy_tokens']
    predictions = [vocabulary.decode(_until_eos(row)) for row in tokens]
    pairs = multi30k.read_pairs(data_dir, 'validation')[: len(tokens)]
    score = metrics.bleu([german for _, german in pairs], predictions)
    expected = json.loads((oracle / 'oracle.json').read_text())['greedy_bleu']
    assert score['bleu'] == pytest.approx(expected, abs=1e-9)


def _until_eos(row: np.ndarray) -> list[int]:
  """Returns the tokens before EOS, or all if there is no EOS."""
  tokens = row.tolist()
  return tokens[: tokens.index(_EOS)] if _EOS in tokens else tokens


class TestRouge:

  def test_counts_by_hand(self):
    score = metrics.rouge(['the cat sat on the mat'], ['the cat on a mat'])
    # 4 of 6 and 5 words match, 1 of 5 and 4 pairs, and 4 words in order.
    assert score == {
        'rouge1': pytest.approx(100 * 8 / 11),
        'rouge2': pytest.approx(100 * 2 / 9),
        'rougeLsum': pytest.approx(100 * 8 / 11),
    }

  @pytest.mark.parametrize(
      ('separator', 'expected'), [(' . ', 100), ('\n', 100), ('. ', 50)]
  )
  def test_sentences(self, separator, expected):
    """The order of sentences does not matter to ROUGE-Lsum."""
    target = separator.join(['one two', 'three four'])
    prediction = separator.join(['three four', 'one two'])
    score = metrics.rouge([target], [prediction])
    assert score['rougeLsum'] == pytest.approx(expected)
    assert score['rouge2'] == pytest.approx(100 * 4 / 6)

  def test_mean_over_examples(self):
    score = metrics.rouge(['a b', 'c d', 'e f'], ['a b', 'c x', ''])
    assert score['rouge1'] == pytest.approx((100 + 50 + 0) / 3)
    assert score['rouge2'] == pytest.approx(100 / 3)

  def test_case_is_ignored_and_words_are_not_stemmed(self):
    assert metrics.rouge(['Trains'], ['trains!'])['rouge1'] == 100
    assert metrics.rouge(['trains'], ['train'])['rouge1'] == 0

  @pytest.mark.parametrize('metric', [metrics.bleu, metrics.rouge])
  def test_rejects_different_numbers_of_texts(self, metric):
    with pytest.raises(ValueError, match='argument'):
      metric(['a'], ['a', 'b'])


class TestSpeculation:
  """Two examples, gamma 3; no draft token of position 3 was tested."""

  counts = {
      'scores': [-1.0, -2.0],
      'tokens': [9, 3],
      'target_calls': [2, 1],
      'tested': [5, 1],
      'accepted': [3, 0],
      'tested_per_position': [[3, 2, 0], [1, 0, 0]],
      'accepted_per_position': [[2, 1, 0], [0, 0, 0]],
  }
  rates = {
      'tokens_per_target_call': 12 / 3,
      'acceptance_rate': 3 / 6,
      'acceptance_rate/position_1': 2 / 4,
      'acceptance_rate/position_2': 1 / 2,
  }

  def test_ratios_of_totals(self):
    assert metrics.speculation(self.counts) == self.rates
    names = {name.partition('/')[0] for name in self.rates}
    assert names == set(metrics.SPECULATION)

  def test_several_decodes_per_example(self):
    """Each array has one more axis, as with T5X's `return_all_decodes`."""
    several = {name: [value] for name, value in self.counts.items()}
    assert metrics.speculation(several) == self.rates

  @pytest.mark.parametrize('bad', [np.nan, -np.inf])
  def test_scores_that_are_not_finite(self, bad):
    with pytest.raises(ValueError, match='output 1 is not finite'):
      metrics.speculation(self.counts | {'scores': [-1.0, bad]})

  @pytest.mark.parametrize('name', ['target_calls', 'tested'])
  def test_absent_without_one_of_their_counts(self, name):
    counts = {key: x for key, x in self.counts.items() if key != name}
    calls, *tests = self.rates
    left = tests if name == 'target_calls' else [calls]
    assert metrics.speculation(counts).keys() == set(left)

  def test_absent_where_nothing_was_decoded(self):
    nothing = {name: np.zeros_like(x) for name, x in self.counts.items()}
    assert metrics.speculation(nothing) == {}

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of hints as token ids."""

import pytest

from speculative_t5x.decoder import hints
from speculative_t5x.loading import vocabularies
from speculative_t5x.tasks import bulletins

TEXT, OTHER = 'Der Zug ist da.', 'Es regnet.'


@pytest.fixture(scope='module')
def vocabulary():
  return vocabularies.load(bulletins.VOCABULARY_FILE)


class TestEncode:

  def test_texts_end_with_the_end_of_sequence(self, vocabulary):
    one, other = ([*vocabulary.encode(x), 1] for x in (TEXT, OTHER))
    assert hints.encode(TEXT, vocabulary) == [one]
    assert hints.encode([TEXT, OTHER], vocabulary) == [one, other]
    assert hints.encode(('', TEXT, ' '), vocabulary) == [one]
    for nothing in (None, '', [], ['', '']):
      assert hints.encode(nothing, vocabulary) == []

  def test_limit_counts_what_is_stacked(self, vocabulary):
    full = hints.encode([TEXT, OTHER], vocabulary)
    (whole,) = hints.stack([full])
    for limit in range(1, sum(map(len, full)) + 3):
      cut = hints.encode([TEXT, OTHER], vocabulary, limit)
      (row,) = hints.stack([cut])
      expected = whole[:limit].tolist()
      assert row[: len(expected)].tolist() == expected
      assert (row[limit:] == -1).all()

  @pytest.mark.parametrize('wrong', [3, [TEXT, None], {'a': TEXT}, [[TEXT]]])
  def test_no_text(self, vocabulary, wrong):
    with pytest.raises(TypeError, match='Hints are a text, a list of texts'):
      hints.encode(wrong, vocabulary)


class TestStack:

  def test_what_is_no_token_separates_texts(self):
    rows = hints.stack([[[5, 1], [6, 7, 1]], [], [[8]]])
    assert rows[:, :7].tolist() == [
        [5, 1, -1, 6, 7, 1, -1],
        [-1, -1, -1, -1, -1, -1, -1],
        [8, -1, -1, -1, -1, -1, -1],
    ]

  def test_without_any(self):
    assert hints.stack([[], []]) is None

  @pytest.mark.parametrize(
      ('length', 'width'), [(0, 64), (1, 64), (40, 64), (64, 64), (65, 128)]
  )
  def test_room(self, length, width):
    rows = hints.stack([[[5] * length], []], room=40)
    assert rows.shape == (2, width)
    assert (rows >= 0).sum() == length

  def test_unstack(self):
    encoded = [[[5, 1], [6, 7, 1]], [], [[8] * 32]]
    rows = hints.stack(encoded)
    assert hints.unstack(rows) == encoded

  @pytest.mark.parametrize(
      ('length', 'width'), [(1, 32), (32, 32), (33, 64), (64, 64), (65, 128)]
  )
  def test_few_widths(self, length, width):
    assert hints.stack([[[5] * length]]).shape == (1, width)

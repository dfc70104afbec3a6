# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for batches of requests, and their hints."""

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import hints
from speculative_t5x.loading import vocabularies
from speculative_t5x.rules import block
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling
from speculative_t5x.tasks import bulletins
from tests import tiny


class TestWholeBatches:

  def test_rows_that_fill_a_batch_are_padding(self):
    rows = [[5, 6, 1], [7, 1], [9, 8, 7, 1]]
    first, last = tiny.batches(rows, 2, length=5, example_ids=[7, 8, 9])
    assert first.inputs.tolist() == [[5, 6, 1, -1], [7, 1, -1, -1]]
    assert last.inputs.tolist() == [[9, 8, 7, 1], [-1, -1, -1, -1]]
    assert first.limits.tolist() == [5, 5]
    assert last.limits.tolist() == [5, 0]
    assert first.hints is None
    assert last.example_ids.tolist() == [9, 0]

  def test_hints_follow_their_examples(self):
    rows = [[3, 1]] * 3
    hints = [[[3, 4]], [], [[6], [7]]]
    first, last = tiny.batches(rows, 2, length=5, hints=hints)
    assert first.hints.shape == last.hints.shape
    assert first.hints[:, :2].tolist() == [[3, 4], [-1, -1]]
    assert last.hints[:, :3].tolist() == [[6, -1, 7], [-1, -1, -1]]

  def test_example_ids_keep_all_bits(self):
    ids = [-5, 2**24 + 1, -(2**31)]
    (batch,) = tiny.batches([[1]] * 3, length=1, example_ids=ids)
    assert batch.example_ids.dtype == jnp.int32
    assert batch.example_ids.tolist() == ids

  def test_settings(self):
    own = sampling.Sampling(0.7, top_k=3)
    drafts = sampling.Sampling(0.4, min_p=1)
    rule = block.BlockVerification()
    options = dict(length=4, sampling=own, seed=11, rule=rule)
    (batch,) = tiny.batches([[5, 1]], draft_sampling=drafts, **options)
    assert batch.sampling == own.as_arrays()
    assert batch.draft_sampling == drafts.as_arrays()
    assert (int(batch.seed), batch.rule) == (11, rule)
    (batch,) = tiny.batches([[5, 1]], **options)
    assert batch.draft_sampling == own.as_arrays()


def test_padding():
  rows = [np.array([5, 6]), np.array([], int), [1, 2, 3, 4]]
  padded = batching.pad(rows, 3)
  assert padded.tolist() == [[5, 6, -1], [-1, -1, -1], [1, 2, 3]]
  assert padded.dtype == np.int32
  assert batching.pad([[7]], 3, 1).tolist() == [[7, 1, 1]]


def test_text_ids_end_at_the_models_own_special_ids():
  ids = contracts.SpecialIds(end=2, padding=1, start=0)
  assert batching.text_ids([0, 5, 1, 9, 2, 6], ids) == [0, 5, 9]


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


class TestStack:

  def test_what_is_no_token_separates_texts(self):
    rows = hints.stack([[[5, 1], [6, 7, 1]], [], [[8]]])
    assert rows[:, :7].tolist() == [
        [5, 1, -1, 6, 7, 1, -1],
        [-1, -1, -1, -1, -1, -1, -1],
        [8, -1, -1, -1, -1, -1, -1],
    ]

  @pytest.mark.parametrize(
      ('room', 'length', 'width'),
      [(0, 1, 32), (0, 32, 32), (0, 33, 64), (40, 0, 64), (40, 65, 128)],
  )  # fmt: skip
  def test_few_widths(self, room, length, width):
    rows = hints.stack([[[5] * length], []], room=room)
    assert rows.shape == (2, width)
    assert (rows >= 0).sum() == length

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of drafts by name: tables and bad names."""

import jax
import numpy as np
import pytest

from speculative_t5x.loading import token_counts
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import table_source
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import random_models
from speculative_t5x.research.simulation import t5_published
from tests import tiny

BASE = t5_published.make_config('base')
WORKLOAD = memory.Workload(
    batch_size=2, num_decodes=1, inputs_length=8, targets_length=8, gamma=3
)
# One float32 per token in each of two arrays.
UNIGRAM = 2 * 32_128


def load(name, vocab_size):
  """Returns the drafter with a random table."""
  draft = by_name.find(name, tiny.config(vocab_size=vocab_size))
  target = tiny.model(tiny.config())
  return draft.load(
      target, make_model=None, make_table=random_models.make_table
  )


class TestTables:

  @pytest.mark.parametrize(
      ('name', 'num_params'),
      [('unigram', UNIGRAM), ('bigram', UNIGRAM + 2 * 64 * 32_128)],
  )
  @pytest.mark.parametrize('dtype', ['float32', 'bfloat16'])
  def test_sizes(self, name, num_params, dtype):
    """A table has 4 bytes per number, in any dtype of the target."""
    draft = by_name.find(name, t5_published.make_config('base', dtype))
    described = draft.description
    assert (described.kind, described.name) == (name, name)
    assert described.num_params == num_params
    found = draft.num_bytes(WORKLOAD)
    assert found == memory.DeviceBytes(
        params=4 * num_params, cache=0, cross=0, logits=4 * 2 * 3 * 32_128
    )

  @pytest.mark.parametrize(('order', 'name'), table_source.KINDS.items())
  def test_shapes_are_those_of_counted_texts(self, order, name):
    """One token has more continuations than are kept."""
    texts = [[2, token, 1] for token in range(3, 99)]
    counts = token_counts.count(
        texts, num_pieces=100, eos_id=1, num_kept=token_counts.NUM_KEPT
    )
    smoothed = table_source.smooth(counts, order, 128, 0)
    found = load(name, 128).params
    describe = lambda tree: jax.tree.map(lambda x: (x.shape, x.dtype), tree)
    assert describe(found) == describe(smoothed)


@pytest.mark.parametrize('name', ['unigram', 'bigram'])
@pytest.mark.parametrize('vocab_size', [9, 200])
def test_random_tables_are_distributions(name, vocab_size):
  found = load(name, vocab_size).params
  np.testing.assert_allclose(np.sum(found.unigram), 1, rtol=1e-5)
  sums = found.backoff + np.sum(found.next_probs, axis=1)
  np.testing.assert_allclose(sums, 1, rtol=1e-5)
  for row in np.asarray(found.next_tokens):
    assert len(set(row.tolist())) == len(row)
    assert all(0 <= token < vocab_size for token in row)


@pytest.mark.parametrize(
    ('name', 'message'),
    [
        ('trigram', "no draft 'trigram'. Choose one of small, .*, bigram"),
        ('bigram_short_9', "no draft 'bigram_short_9'"),
        ('early_exit_2_short_9', "no draft 'early_exit_2_short_9'"),
        ('shared_encoder_0_small', "no draft 'shared_encoder_0_small'"),
        ('small_short_1', 'a short head has 2 to 32128 tokens'),
        ('small_short_32129', 'a short head has 2 to 32128 tokens'),
    ],
)
def test_refused(name, message):
  with pytest.raises(ValueError, match=message):
    by_name.find(name, BASE)

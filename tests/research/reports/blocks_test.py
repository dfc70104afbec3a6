# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that traced blocks agree with the run."""

import collections
import functools
import itertools

import jax
import numpy as np

from speculative_t5x.decoder import token_decoder
from speculative_t5x.research.reports import token_trace
from speculative_t5x.speculation import sampling
from tests import tiny

LENGTH, GAMMA, ROWS = 17, 3, 2
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return tiny.decoder(
      CONFIG, gamma=GAMMA, length=LENGTH, matmul_precision='highest'
  )


def request(first, temperature, seed):
  (made,) = tiny.batches(
      tiny.encoder_tokens(12, 9)[first : first + ROWS],
      length=LENGTH - 1,
      example_ids=range(first, first + ROWS),
      seed=seed,
      sampling=sampling.Sampling(temperature),
  )
  return made


def test_blocks_agree_with_the_run():
  kinds = collections.Counter()
  for first, temperature, seed in itertools.product(
      (0, 2, 4, 6), (0.0, 1.0), range(2)
  ):
    asked = request(first, temperature, seed)
    blocks = token_trace.blocks_of(decoder(), asked)
    decoded = tiny.decoded(decoder(), asked)
    tokens = [
        token
        for block in blocks
        for token in (*block.accepted, block.from_target)
        if token is not None
    ]
    assert tokens == decoded.sequences[0, : decoded.num_tokens[0]].tolist()
    assert len(tokens) == sum(block.num_committed for block in blocks)
    row = jax.tree.map(lambda x: x[0], decoded.statistics)
    accepted = [len(block.accepted) for block in blocks]
    np.testing.assert_array_equal(
        np.bincount(accepted, minlength=GAMMA + 1), row.accepted_histogram
    )
    rejected = [block for block in blocks if block.rejected is not None]
    assert len(rejected) == row.num_tested - row.num_accepted
    assert all(block.rejected != block.from_target for block in rejected)
    cut_short = [block for block in blocks if block.from_target is None]
    assert len(cut_short) == row.num_cut_short
    assert all(block is blocks[-1] for block in cut_short)
    kinds.update(accepted)
    kinds.update(rejected=len(rejected), cut_short=len(cut_short))
  # All kinds of block occur.
  assert all(kinds[kind] for kind in (*range(GAMMA + 1), 'rejected'))
  assert kinds['cut_short']

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that traced blocks agree with the run."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research.measurement import tracing
from speculative_t5x.speculation import sampling
from tests import tiny

LENGTH, GAMMA, ROWS = 17, 3, 2
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return tiny.decoder(
      CONFIG, gamma=GAMMA, length=LENGTH, matmul_precision='highest'
  )


def request(first=0, *, temperature=1.0, seed=0, limit=LENGTH):
  setting = sampling.Sampling(temperature)
  return requests_lib.Request(
      tiny.encoder_tokens(12, 9)[first : first + ROWS],
      jnp.arange(first, first + ROWS, dtype=jnp.int32),
      jnp.full((ROWS,), limit, jnp.int32),
      jnp.int32(seed),
      setting,
      setting,
  )


def num_accepted(blocks):
  return [len(block.accepted) for block in blocks]


def tokens_of(blocks):
  tokens = []
  for block in blocks:
    tokens += block.accepted
    tokens += [] if block.from_target is None else [block.from_target]
  return tokens


class TestTrace:

  @pytest.mark.parametrize('first', [0, 5])
  @pytest.mark.parametrize('temperature', [0.0, 1.0])
  @pytest.mark.parametrize('seed', range(4))
  def test_blocks_agree_with_the_run(self, first, temperature, seed):
    asked = request(first, temperature=temperature, seed=seed)
    blocks = tracing.trace(decoder(), asked)
    decoded = jax.device_get(decoder().speculative(asked))
    row = jax.tree.map(lambda x: x[0], decoded.statistics)
    num_tokens = decoded.num_tokens[0]
    assert tokens_of(blocks) == decoded.sequences[0, :num_tokens].tolist()
    assert len(blocks) == decoded.num_calls[0]
    np.testing.assert_array_equal(
        np.bincount(num_accepted(blocks), minlength=GAMMA + 1),
        row.accepted_histogram,
    )
    rejected = [block for block in blocks if block.rejected is not None]
    assert len(rejected) == row.num_rejections
    assert all(block.rejected != block.from_target for block in rejected)
    cut_short = [block for block in blocks if block.from_target is None]
    assert len(cut_short) == row.num_cut_short
    assert all(block is blocks[-1] for block in cut_short)

  def test_all_kinds_of_block_occur(self):
    """Otherwise the test above would show little."""
    blocks = [
        block
        for first in (0, 2, 4, 6)
        for seed in range(4)
        for block in tracing.trace(
            decoder(), request(first, limit=16, seed=seed)
        )
    ]
    assert set(num_accepted(blocks)) == set(range(GAMMA + 1))
    assert any(block.rejected is not None for block in blocks)
    assert any(block.from_target is None for block in blocks)

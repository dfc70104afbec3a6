# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests for telling apart what became of each guess."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x import sampling
from speculative_t5x import token_decoder
from speculative_t5x import tracing
from tests import tiny

LENGTH, GAMMA, ROWS = 17, 3, 2
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def decoder() -> token_decoder.TokenDecoder:
  return token_decoder.TokenDecoder(
      tiny.model(CONFIG),
      tiny.model(CONFIG, noise=0.15),
      gamma=GAMMA,
      length=LENGTH,
      matmul_precision='highest',
  )


def request(first=0, *, temperature=1.0, seed=0, limit=LENGTH):
  law = sampling.make_sampling(temperature)
  return token_decoder.Request(
      tiny.encoder_tokens(12, 9)[first : first + ROWS],
      jnp.arange(first, first + ROWS, dtype=jnp.int32),
      jnp.full((ROWS,), limit, jnp.int32),
      jnp.int32(seed),
      law,
      law,
  )


def num_accepted(blocks):
  return [len(block.accepted) for block in blocks]


def tokens_of(blocks):
  tokens = []
  for block in blocks:
    tokens += block.accepted
    tokens += [] if block.drawn is None else [block.drawn]
  return tokens


class TestTrace:

  @pytest.mark.parametrize('first', [0, 5])
  @pytest.mark.parametrize('temperature', [0.0, 1.0])
  @pytest.mark.parametrize('seed', range(4))
  def test_blocks_are_the_run(self, first, temperature, seed):
    asked = request(first, temperature=temperature, seed=seed)
    blocks = tracing.trace(decoder(), asked)
    decoded, _ = jax.device_get(decoder().recorded(asked))
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
    assert all(block.rejected != block.drawn for block in rejected)
    cut_short = [block for block in blocks if block.drawn is None]
    assert len(cut_short) == row.num_cut_short
    assert all(block is blocks[-1] for block in cut_short)

  def test_all_kinds_of_block_come_up(self):
    """Or the test above would show little."""
    blocks = [
        block
        for first in (0, 2, 4, 6)
        for block in tracing.trace(decoder(), request(first, limit=16))
    ]
    assert set(num_accepted(blocks)) == set(range(GAMMA + 1))
    assert any(block.rejected is not None for block in blocks)
    assert any(block.drawn is None for block in blocks)

  def test_row_without_room(self):
    assert tracing.trace(decoder(), request(limit=0)) == []


class TestBlock:

  @pytest.mark.parametrize(
      ('new', 'draft', 'expected'),
      [
          ([5, 6, 7, 8], [5, 6, 7], ((5, 6, 7), None, 8)),
          ([5, 6, 9], [5, 6, 7], ((5, 6), 7, 9)),
          ([9], [5, 6, 7], ((), 5, 9)),
          # The end, or the limit, inside the draft.
          ([5, 1], [5, 1, 7], ((5, 1), None, None)),
          ([5], [5, 6, 7], ((5,), None, None)),
          # A token drawn that happens to be the guess after the rejected one.
          ([5, 7], [5, 6, 7], ((5,), 6, 7)),
      ],
  )
  def test_worked(self, new, draft, expected):
    assert tracing._block(new, draft) == tracing.Block(*expected)


class TestRender:

  def test_a_line_a_block(self):
    blocks = [
        tracing.Block((4, 5), 6, 7),
        tracing.Block((), 4, 5),
        tracing.Block((6, 7, 4), None, 5),
        tracing.Block((7,), None, None),
    ]
    lines = tracing.render(blocks, 'abcdefgh'.__getitem__).split('\n')
    green, red, blue = '\033[32m', '\033[31;9m', '\033[34;1m'
    end = '\033[0m'
    assert lines == [
        f'{green}e{end} {green}f{end} {red}g{end} {blue}h{end}',
        f'{red}e{end} {blue}f{end}',
        f'{green}g{end} {green}h{end} {green}e{end} {blue}f{end}',
        f'{green}h{end}',
    ]

  def test_legend_shows_every_colour(self):
    legend = tracing.legend()
    for colour in ('\033[32m', '\033[31;9m', '\033[34;1m'):
      assert colour in legend

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distinguishing near ties from mismatches in greedy outputs."""

import copy
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5_modules
from speculative_t5x.research.measurement import decisions
from speculative_t5x.research.measurement import forced
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.speculation import sampling
from tests import tiny

BATCH, LENGTH, GAMMA = 3, 11, 3
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def decoder(num_valid_tokens=None):
  return tiny.decoder(
      CONFIG,
      gamma=GAMMA,
      length=LENGTH,
      noise=0.0,
      num_valid_tokens=num_valid_tokens,
      matmul_precision='highest',
  )


def request():
  greedy = sampling.Sampling(0.0)
  return requests_lib.Request(
      tiny.encoder_tokens(BATCH, 9),
      jnp.arange(BATCH, dtype=jnp.int32),
      jnp.full((BATCH,), LENGTH, jnp.int32),
      jnp.int32(0),
      greedy,
      greedy,
  )


def sequences():
  """Returns arbitrary outputs."""
  rows = np.random.default_rng(0).integers(2, 64, (BATCH, LENGTH))
  return rows.astype(np.int32)


@functools.cache
def teacher_forced():
  """Returns logits of every token of `sequences`, [batch, length, vocab]."""
  fed = np.pad(sequences(), ((0, 0), (1, 0)))[:, :-1]
  forward = jax.jit(
      lambda params: t5_modules.Transformer(CONFIG).apply(
          {'params': params},
          request().inputs,
          jnp.asarray(fed),
          jnp.ones_like(fed),
          enable_dropout=False,
      )
  )
  with jax.default_matmul_precision('highest'):
    return np.asarray(forward(tiny.params(CONFIG)))


def compare(row, position, token):
  """Compares the sequences with a copy in which one token differs."""
  other = sequences()
  other[row, position] = token
  return near_ties.compare(decoder(), request(), sequences(), other)


class TestLogitsOfBothPaths:

  @pytest.mark.parametrize('block', [1, GAMMA + 1])
  def test_agree_with_teacher_forcing_everywhere(self, block):
    """Positions smaller than the block are included."""
    for row in range(BATCH):
      for position in range(LENGTH):
        found = forced.logits_at(
            decoder(), request(), row, sequences()[row], position, block
        )
        np.testing.assert_allclose(
            found, teacher_forced()[row, position], atol=2e-5
        )

  def test_several_decodes_per_example(self):
    several = tiny.decoder(
        CONFIG,
        gamma=GAMMA,
        length=LENGTH,
        noise=0.0,
        num_decodes=2,
        matmul_precision='highest',
    )
    for row in range(2 * BATCH):
      example = row // 2
      found = forced.logits_at(
          several, request(), row, sequences()[example], 4, 1
      )
      np.testing.assert_allclose(found, teacher_forced()[example, 4], atol=2e-5)


def test_all_of_a_row_is_repeated():
  """Inputs in other places than their features would be decoded wrongly."""
  asked = request().replace(features=decoder().encode(request()))
  found = forced.repeat_row(decoder(), asked, 1)
  assert found.hints is None
  for name in ('inputs', 'features'):
    given, repeated = getattr(asked, name), getattr(found, name)
    np.testing.assert_array_equal(repeated, jnp.stack([given[1]] * len(given)))


def test_paths_are_those_of_both_batches(monkeypatch):
  """Also for two runs of the same way of decoding."""
  written, other = sequences()[0], sequences()[0].copy()
  other[3] ^= 1
  found = []

  def logits_at(decoder, request, row, sequence, position, block):
    found.append((request.inputs.shape, block))
    return np.full(64, 0.5 * len(found), np.float32)

  monkeypatch.setattr(forced, 'logits_at', logits_at)
  tokens = request().inputs
  for changed in (tokens[:2], jnp.pad(tokens, ((0, 0), (0, 3)))):
    found.clear()
    difference = near_ties.explain(
        decisions.Output(decoder(), request(), 0, False, written),
        decisions.Output(
            decoder(),
            request().replace(inputs=changed),
            0,
            False,
            other,
        ),
    )
    assert found == [
        (shape, block)
        for shape in (tokens.shape, changed.shape)
        for block in (1, GAMMA + 1)
    ]
    assert difference.path_difference == 1.5


class TestCompare:

  def test_identical(self):
    assert not near_ties.compare(
        decoder(), request(), sequences(), sequences()
    )

  @pytest.mark.parametrize('position', [0, 2, LENGTH - 1])
  def test_mismatch(self, position):
    logits = teacher_forced()[1, position]
    written = sequences()[1, position]
    other = int(np.argmax(np.abs(logits - logits[written])))
    (difference,) = compare(1, position, other)
    assert not difference.is_near_tie
    assert (difference.row, difference.position) == (1, position)
    assert difference.decision == 'argmax'
    assert difference.tokens == (written, other)
    for own in difference.logits:
      np.testing.assert_allclose(own, logits[[written, other]], atol=2e-5)
    np.testing.assert_allclose(
        difference.margin,
        np.max(logits) - min(logits[other], logits[written]),
        rtol=1e-4,
    )
    assert difference.path_difference < 2e-5

  def test_only_the_first_difference_per_row_counts(self):
    other = sequences()
    other[0, 4:] = 7
    other[2, 6] = 9
    found = near_ties.compare(decoder(), request(), sequences(), other)
    assert [(d.row, d.position) for d in found] == [(0, 4), (2, 6)]

  @pytest.mark.parametrize(
      ('path_difference', 'is_near_tie'), [(0.26, True), (0.24, False)]
  )
  def test_margin_is_compared_with_twice_the_difference(
      self, monkeypatch, path_difference, is_near_tie
  ):
    """The logits differ by 0.5, and the paths by a given amount."""
    written = sequences()[0, 3]
    other = int(written) ^ 1

    def logits_at(decoder, request, row, sequence, position, block):
      logits = np.zeros(64, np.float32)
      logits[written] = 0.5
      logits[40] = path_difference if block > 1 else 0.0
      logits[50:] = -np.inf
      return logits

    monkeypatch.setattr(forced, 'logits_at', logits_at)
    (difference,) = compare(0, 3, other)
    assert difference.is_near_tie == is_near_tie
    np.testing.assert_allclose(difference.path_difference, path_difference)
    np.testing.assert_allclose(difference.margin, 0.5)

  def test_equal_logits_far_from_the_largest(self, monkeypatch):
    logits = np.zeros(64, np.float32)
    logits[40] = 0.5
    monkeypatch.setattr(forced, 'logits_at', lambda *_: logits)
    written = int(sequences()[0, 3]) % 32
    (difference,) = compare(0, 3, written ^ 1)
    assert difference.margin == 0.5 and not difference.is_near_tie

  def test_paths_use_the_programs_of_the_run(self):
    """The fake logits depend on the program, more than rounding does."""
    logit = {
        (BATCH, 1, 'highest'): 3.0,
        (BATCH, GAMMA + 1, 'highest'): 4.5,
    }
    written, other = sequences()[2, 7], sequences()[2, 7] ^ 1

    class Rounding(network_lib.NetworkModel):

      def decode(self, params, memory, cache, tokens, positions, at):
        precision = jax.config.jax_default_matmul_precision
        logits = jnp.zeros((*tokens.shape, 64))
        made_by = (*tokens.shape, precision)
        return logits.at[..., other].set(logit.get(made_by, 99.0)), cache

    rounding = copy.copy(decoder())
    rounding.target_model = Rounding(
        decoder().target.config, decoder().target.special_ids
    )
    changed = sequences()
    changed[2, 7] = other
    found = near_ties.compare(rounding, request(), sequences(), changed)
    assert found == [
        near_ties.Difference(
            2,
            7,
            decisions.Kind.ARGMAX,
            (written, other),
            logits=((0.0, 3.0), (0.0, 4.5)),
            margin=3.0,
            path_difference=1.5,
        )
    ]

  def test_forbidden_ids_do_not_matter(self):
    other = sequences() % 40
    other[0, 1] += 1
    found = near_ties.compare(
        decoder(num_valid_tokens=50), request(), sequences() % 40, other
    )
    (difference,) = found
    assert np.isfinite(difference.margin)
    assert 0 < difference.path_difference < 2e-5

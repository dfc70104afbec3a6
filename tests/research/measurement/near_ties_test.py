# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of distinguishing near ties from mismatches in greedy outputs."""

import copy
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.networks import network as network_lib
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.speculation import sampling
from tests import tiny

BATCH, LENGTH, GAMMA = 3, 11, 3
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)


@functools.cache
def decoder(**options):
  return tiny.decoder(
      CONFIG, gamma=GAMMA, length=LENGTH, noise=0.0,
      matmul_precision='highest', **options,
  )  # fmt: skip


def request():
  return tiny.batches(tiny.encoder_tokens(BATCH, 9), length=LENGTH)[0]


def sequences():
  """Return arbitrary outputs."""
  rows = np.random.default_rng(0).integers(2, 64, (BATCH, LENGTH))
  return rows.astype(np.int32)


@functools.cache
def teacher_forced():
  """Return logits of every token of `sequences`, [batch, length, vocab]."""
  return np.asarray(
      tiny.teacher_forced(
          CONFIG, tiny.params(CONFIG), request().inputs, sequences()
      )
  )


def compare(row, position, token):
  """Compare the sequences with a copy in which one token differs."""
  other = sequences()
  other[row, position] = token
  return near_ties.compare(decoder(), request(), sequences(), other)


@pytest.mark.parametrize('num_decodes', [1, 2])
@pytest.mark.parametrize('block', [1, GAMMA + 1])
def test_both_paths_agree_with_teacher_forcing(block, num_decodes):
  """Positions smaller than the block are included."""
  several = decoder(num_decodes=num_decodes)
  for index in range(num_decodes * BATCH):
    example = index // num_decodes
    for position in range(LENGTH) if num_decodes == 1 else (2, LENGTH - 1):
      found = near_ties.logits_at(
          near_ties.BatchRow(several, request(), index, False),
          sequences()[example],
          position,
          block,
      )
      np.testing.assert_allclose(
          found, teacher_forced()[example, position], atol=2e-5
      )


def test_all_of_a_row_is_repeated():
  asked = request()
  found = near_ties.repeat_row(near_ties.BatchRow(decoder(), asked, 1, False))
  assert found.hints is None
  row = asked.inputs[1]
  np.testing.assert_array_equal(found.inputs, [row] * len(asked.inputs))


def test_paths_use_the_programs_of_both_batches():
  """The fake logits depend on the program, more than rounding does."""
  logit = {
      (BATCH, 1, 'highest'): 3.0,
      (BATCH, GAMMA + 1, 'highest'): 4.5,
      (2, 1, 'highest'): 5.0,
      (2, GAMMA + 1, 'highest'): 2.5,
  }
  both = np.stack([sequences()[2], sequences()[2]])
  both[1, 7] ^= 1
  written, other = both[:, 7].tolist()

  class Rounding(network_lib.NetworkModel):

    def decode(self, params, memory, cache, tokens, positions, at):
      precision = jax.config.jax_default_matmul_precision
      logits = jnp.zeros((*tokens.shape, 64))
      made_by = (*tokens.shape, precision)
      return logits.at[..., other].set(logit.get(made_by, 99.0)), cache

  own = copy.copy(decoder())
  own.target_model = Rounding(own.target.config, own.target.special_ids)
  first = near_ties.BatchRow(own, request(), 2, False)
  inputs = request().inputs[:2]
  second = near_ties.BatchRow(own, request().replace(inputs=inputs), 1, True)
  assert near_ties.explain(first, second, both) == near_ties.Difference(
      2,
      7,
      'argmax',
      (written, other),
      logits=((0.0, 3.0), (0.0, 2.5)),
      margin=3.0,
      path_difference=2.5,
  )


class TestCompare:

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

    def logits_at(row, sequence, position, block):
      logits = np.zeros(64, np.float32)
      logits[written] = 0.5
      logits[40] = path_difference if block > 1 else 0.0
      logits[50:] = -np.inf
      return logits

    monkeypatch.setattr(near_ties, 'logits_at', logits_at)
    (difference,) = compare(0, 3, other)
    assert difference.is_near_tie == is_near_tie
    np.testing.assert_allclose(difference.path_difference, path_difference)
    np.testing.assert_allclose(difference.margin, 0.5)

  def test_equal_logits_far_from_the_largest(self, monkeypatch):
    logits = np.zeros(64, np.float32)
    logits[40] = 0.5
    monkeypatch.setattr(near_ties, 'logits_at', lambda *_: logits)
    written = int(sequences()[0, 3]) % 32
    (difference,) = compare(0, 3, written ^ 1)
    assert difference.margin == 0.5 and not difference.is_near_tie

  def test_forbidden_ids_do_not_matter(self):
    other = sequences() % 40
    other[0, 1] += 1
    found = near_ties.compare(
        decoder(num_valid_tokens=50), request(), sequences() % 40, other
    )
    (difference,) = found
    assert np.isfinite(difference.margin)
    assert 0 < difference.path_difference < 2e-5


class TestDistanceToDrawing:
  """Over several blocks of a draw."""

  VOCAB = 300

  def ends(self):
    probs = np.random.default_rng(3).dirichlet(np.full(self.VOCAB, 0.5))
    return np.cumsum(probs.astype(np.float32).astype(np.float64))

  def test_drawn_tokens_have_none(self):
    """And any other token of some probability has one."""
    ends = self.ends()
    ends /= ends[-1]
    probs = np.diff(ends, prepend=0).astype(np.float32)
    words = np.random.default_rng(4).integers(0, 2**32, (400, 2), np.uint32)
    rows = jnp.tile(jnp.asarray(probs), (len(words), 1))
    drawn = np.asarray(sampling.draw(rows, jnp.asarray(words))).tolist()
    assert {token // sampling.BLOCK for token in drawn} == {0, 1, 2}
    other = int(np.argmax(probs))
    for token, uniform in zip(drawn, words / 2**32, strict=True):
      own, far = (
          near_ties._distance_to_drawing(each, uniform, ends)
          for each in (token, other)
      )
      assert own < near_ties._ROUNDING
      assert token == other or far > 10 * near_ties._ROUNDING

  def test_neighbouring_blocks(self):
    """The second word must give each token in its own block."""
    bounds = self.ends()
    bounds /= bounds[-1]
    edge = bounds[sampling.BLOCK - 1]
    ends = np.concatenate([[0], bounds])

    def of_block(first, last, second):
      point = ends[first] + second * (ends[last] - ends[first])
      return int(np.searchsorted(bounds, point, side='right'))

    distance = lambda token: near_ties._distance_to_drawing(
        token, (edge + 1e-4, 0.4), bounds
    )
    assert distance(of_block(128, 256, 0.4)) == 0
    np.testing.assert_allclose(distance(of_block(0, 128, 0.4)), 1e-4, rtol=1e-6)
    assert distance(of_block(128, 256, 0.9)) > 0.01


class TestSamples:

  def row(self, **options):
    sampled = request().replace(sampling=sampling.Sampling(1.0).as_arrays())
    return near_ties.BatchRow(decoder(**options), sampled, 1, False)

  def test_each_uniform_draws_what_plain_decoding_wrote(self):
    row = self.row()
    written = tiny.decoded(row.decoder.alone, row.batch).sequences[row.index]
    for position in range(LENGTH):
      other = written.copy()
      other[position] = (written[position] + 1) % 64
      found = near_ties.explain(row, row, np.stack([written, other]))
      assert (found.position, found.decision) == (position, 'draw')
      assert not found.is_near_tie and found.tolerance < 1e-4
      if written[position] == decoder().target.special_ids.end:
        break

  @pytest.mark.parametrize(
      ('shift', 'is_near_tie'), [(0.0, True), (-2e-3, False)]
  )
  def test_uniform_on_a_boundary(self, monkeypatch, shift, is_near_tie):
    """The token above the boundary is written instead of that below it."""
    logits = np.zeros(64, np.float32)
    monkeypatch.setattr(near_ties, 'logits_at', lambda *_: logits)
    monkeypatch.setattr(near_ties, '_uniform', lambda *_: (0.0, 0.5 + shift))
    both = np.stack([sequences()[0], sequences()[0]])
    both[:, 2] = 31, 32
    found = near_ties.explain(self.row(), self.row(), both)
    assert found.is_near_tie == is_near_tie
    np.testing.assert_allclose(found.margin, abs(shift), atol=1e-9)

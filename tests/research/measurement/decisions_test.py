# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the decisions of a sample are found, and their boundaries."""

import copy
import functools
import types

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.research.measurement import decisions
from speculative_t5x.research.measurement import near_ties
from speculative_t5x.research.measurement import tracing
from speculative_t5x.speculation import sampling
from tests import tiny

ROWS, LENGTH, GAMMA = 3, 9, 2
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
EPS = 1e-5


@functools.cache
def decoder():
  return tiny.decoder(
      CONFIG, gamma=GAMMA, length=LENGTH, noise=0.4, matmul_precision='highest'
  )


def request():
  (made,) = tiny.requests(
      tiny.encoder_tokens(ROWS, 9),
      length=LENGTH,
      seed=3,
      sampling=sampling.Sampling(1.0, top_k=20),
      draft_sampling=sampling.Sampling(0.7),
  )
  return made


@functools.cache
def sequences(is_speculative):
  way = decoder().speculative if is_speculative else decoder().plain
  return np.asarray(way(request()).sequences)


def row_of(index, is_speculative):
  return near_ties.Row(decoder(), request(), index, is_speculative)


@functools.cache
def calls(row):
  return tracing.calls(decoder(), request(), row)


def decisions_of(row):
  return decisions.of_calls(decoder().drafter, calls(row))


def bounds_of(row, decision):
  """Return the boundaries of a decision in the row's own path."""
  sequence = sequences(row.is_speculative)[row.index]
  logits = near_ties.path_logits(row, row, sequence, decision.position)
  return decisions._bounds(row, row, sequence, decision, logits)[0]


def check_drawn(row, decision):
  """Check that the uniform is in the interval of the token."""
  bounds, token = bounds_of(row, decision), decision.token
  _, uniform = decisions._uniform(row, decision)  # of one block
  start = bounds[token - 1] if token else 0.0
  assert start - EPS <= uniform <= bounds[token] + EPS


def with_entry(row, index, value):
  row = row.copy()
  row[index] = value
  return row


class TestUniforms:
  """Each decision of a run is what its uniform and the boundaries say."""

  @pytest.mark.parametrize('index', range(ROWS))
  def test_plain(self, index):
    row, sequence = row_of(index, False), sequences(False)[index]
    for position in range(LENGTH):
      token = int(sequence[position])
      other = with_entry(sequence, position, (token + 1) % 64)
      found, _ = decisions.find(row, row, np.stack([sequence, other]))
      assert (found.kind, found.position, found.token) == (
          'draw', position, token
      )  # fmt: skip
      check_drawn(row, found)
      if token == decoder().target.special_ids.end:
        break

  def test_speculative(self):
    kinds = set()
    for index in range(ROWS):
      row = row_of(index, True)
      for decision in decisions_of(index):
        kinds.add((str(decision.kind), decision.is_accepted))
        written = sequences(True)[index][decision.position]
        if decision.kind == 'acceptance':
          bound = bounds_of(row, decision)[decision.token]
          uniform, _ = decisions._uniform(row, decision)
          assert decision.is_accepted == (uniform < bound)
          assert decision.is_accepted == (decision.token == written)
        else:
          check_drawn(row, decision)
          assert decision.kind == 'draft' or decision.token == written
    assert kinds == {
        ('draft', None), ('acceptance', True), ('acceptance', False),
        ('resampled', None), ('draw', None),
    }  # fmt: skip


@pytest.fixture
def find(monkeypatch):
  """Return a function that finds how two runs of row 0 differ.

  The one is as it was decoded; in the other, a call has some values changed.
  """

  def find(number, drafter=None, first_token=None, **values):
    changed = list(calls(0))
    changed[number] = changed[number]._replace(**values)
    replayed = iter([calls(0), changed])
    monkeypatch.setattr(tracing, 'calls', lambda *_: next(replayed))
    # Of the tokens, only the first are compared with those decoded again.
    monkeypatch.setattr(near_ties, 'first_difference', lambda _: 0)
    own = copy.copy(decoder())
    own.drafter = drafter or own.drafter
    row, sequence = near_ties.Row(own, request(), 0, True), sequences(True)[0]
    if first_token is not None:
      sequence = with_entry(sequence, 0, first_token)
    return decisions.find(row, row, np.stack([sequence, sequence]))

  return find


def _number_of_rejecting_call():
  return next(i for i, call in enumerate(calls(0)) if call.is_rejected)


class TestFind:

  def test_sample_that_cannot_be_repeated(self):
    row, written = row_of(0, True), sequences(True)[0]
    both = np.stack([written, with_entry(written, 1, (written[1] + 1) % 64)])
    assert decisions.find(row, row, both) is None
    found = decisions.explain(row, row, both)
    assert found.margin is None and not found.is_near_tie
    assert (found.row, found.position, found.decision) == (0, 1, None)

  def test_acceptance(self, find):
    number = _number_of_rejecting_call()
    call = calls(0)[number]
    one, other = find(number, num_accepted=call.num_accepted + 1)
    assert one.kind == 'acceptance'
    assert (one.is_accepted, other.is_accepted) == (False, True)
    assert one.position == call.num_before + call.num_accepted

  def test_draft_token(self, find):
    changed = with_entry(calls(0)[0].draft_tokens, 0, 63)
    one, other = find(0, draft_tokens=changed)
    assert (one.kind, one.position, other.token) == ('draft', 0, 63)
    # The run wrote something else than is decoded here.
    assert find(0, draft_tokens=changed, first_token=63) is None

  def test_drafter_without_one_uniform_per_token(self, find):
    drafter = types.SimpleNamespace(
        max_draft_tokens=GAMMA, num_uniforms=GAMMA + 1
    )
    changed = with_entry(calls(0)[0].draft_tokens, 0, 63)
    assert find(0, drafter, draft_tokens=changed) is None

  def test_draft_tokens_behind_a_rejected_one_do_not_matter(self, find):
    number = _number_of_rejecting_call()
    call = calls(0)[number]
    assert call.num_accepted + 1 < GAMMA
    changed = with_entry(call.draft_tokens, GAMMA - 1, 63)
    assert find(number, draft_tokens=changed) is None


class TestDistanceToDrawing:
  """Over several blocks of a draw."""

  VOCAB = 300

  def probabilities(self):
    rng = np.random.default_rng(3)
    return rng.dirichlet(np.full(self.VOCAB, 0.5)).astype(np.float32)

  def bounds(self):
    p = self.probabilities().astype(np.float64)[None]
    return decisions._boundaries(near_ties.Kind.DRAW, p, p)[0]

  def test_drawn_tokens_have_none(self):
    """And any other token of some probability has one."""
    words = np.random.default_rng(4).integers(0, 2**32, (400, 2), np.uint32)
    rows = jnp.tile(jnp.asarray(self.probabilities()), (len(words), 1))
    drawn = np.asarray(sampling.draw(rows, jnp.asarray(words))).tolist()
    assert {token // sampling.BLOCK for token in drawn} == {0, 1, 2}
    other, bounds = int(np.argmax(self.probabilities())), self.bounds()
    for token, uniform in zip(drawn, words / 2**32, strict=True):
      own, far = (
          decisions._distance_to_drawing(each, uniform, bounds)
          for each in (token, other)
      )
      assert own < decisions._ROUNDING
      assert token == other or far > 10 * decisions._ROUNDING

  def test_neighbouring_blocks(self):
    """The second word must give each token in its own block."""
    bounds = self.bounds()
    edge = bounds[sampling.BLOCK - 1]
    ends = np.concatenate([[0], bounds])

    def of_block(first, last, second):
      point = ends[first] + second * (ends[last] - ends[first])
      return int(np.searchsorted(bounds, point, side='right'))

    distance = lambda token: decisions._distance_to_drawing(
        token, (edge + 1e-4, 0.4), bounds
    )
    assert distance(of_block(128, 256, 0.4)) == 0
    np.testing.assert_allclose(distance(of_block(0, 128, 0.4)), 1e-4, rtol=1e-6)
    assert distance(of_block(128, 256, 0.9)) > 0.01


def test_no_residual():
  p = np.array([[0.25, 0.5, 0.25]])
  found = decisions._boundaries(near_ties.Kind.RESAMPLED, p, p)
  np.testing.assert_allclose(found, [[0.25, 0.75, 1]])


@pytest.fixture
def explain(monkeypatch):
  """Return a function that explains a draw of a row's token 2."""

  def explain(row, tokens, uniform):
    sequence = sequences(row.is_speculative)[row.index]
    found = [
        decisions.Decision(near_ties.Kind.DRAW, 2, token, None, 0, 0)
        for token in tokens
    ]
    monkeypatch.setattr(decisions, 'find', lambda *_: found)
    monkeypatch.setattr(decisions, '_uniform', lambda *_: uniform)
    return decisions.explain(row, row, np.stack([sequence, sequence]))

  return explain


def test_rounding_of_sums_counts_where_paths_agree(explain, monkeypatch):
  logits = np.zeros(64, np.float32)
  monkeypatch.setattr(near_ties, 'logits_at', lambda *_: logits)
  equal = request().replace(sampling=sampling.Sampling(1.0).as_arrays())
  row = near_ties.Row(decoder(), equal, 0, False)
  found = explain(row, (31, 32), (0.0, 0.5 + 2 * np.finfo(np.float32).eps))
  assert found.is_near_tie


@pytest.mark.parametrize('is_speculative', [False, True])
@pytest.mark.parametrize(
    ('shift', 'is_near_tie'), [(0.0, True), (-2e-3, False)]
)
def test_uniform_on_a_boundary(explain, is_speculative, shift, is_near_tie):
  """The token above the boundary is written instead of that below it."""
  row = row_of(1, is_speculative)
  bounds = bounds_of(
      row, decisions.Decision(near_ties.Kind.DRAW, 2, 0, None, 0, 0)
  )
  widths = np.diff(bounds, prepend=0)
  below = int(np.argmax(widths[:-1]))
  above = int(np.flatnonzero(bounds > bounds[below])[0])
  assert widths[below] > 2 * abs(shift)
  uniform = 0.0, float(bounds[below]) + shift
  found = explain(row, (below, above), uniform)
  assert found.is_near_tie == is_near_tie
  np.testing.assert_allclose(found.margin, abs(shift), atol=1e-9)
  assert 0 < found.tolerance < 1e-3

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that the decisions of a sample are found, and their boundaries."""

import copy
import dataclasses
import functools
import json
import types

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.research.measurement import acceptance
from speculative_t5x.research.measurement import decisions
from speculative_t5x.research.measurement import forced
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
  return requests_lib.Request(
      tiny.encoder_tokens(ROWS, 9),
      jnp.arange(ROWS, dtype=jnp.int32),
      jnp.full((ROWS,), LENGTH, jnp.int32),
      jnp.int32(3),
      sampling.Sampling(1.0, topk=20),
      sampling.Sampling(0.7),
  )


@functools.cache
def outputs(is_speculative):
  """Returns the rows of a run."""
  way = decoder().speculative if is_speculative else decoder().plain
  sequences = np.asarray(way(request()).sequences)
  return [
      decisions.Output(decoder(), request(), row, is_speculative, sequence)
      for row, sequence in enumerate(sequences)
  ]


@functools.cache
def calls(row):
  return tracing.calls(decoder(), request(), row)


def bounds_of(output, decision):
  at = output.row, decision.context, decision.position
  logits = forced.logits_at(decoder(), request(), *at, output.block)
  q = acceptance.draft_probs(decoder(), request(), *at[:2])[decision.position]
  return near_ties._bounds(decision.kind, logits, q, request().sampling)


def check_drawn(decision, bounds):
  """Checks that the uniform is in the interval of the first run's token."""
  token, (_, uniform) = decision.tokens[0], decision.uniform  # of one block
  start = bounds[token - 1] if token else 0.0
  assert start - EPS <= uniform <= bounds[token] + EPS


def with_entry(row, index, value):
  row = row.copy()
  row[index] = value
  return row


class TestUniforms:
  """Each decision of a run is what its uniform and the boundaries say."""

  @pytest.mark.parametrize('row', range(ROWS))
  def test_plain(self, row):
    output = outputs(False)[row]
    for position in range(LENGTH):
      token = int(output.sequence[position])
      other = with_entry(output.sequence, position, (token + 1) % 64)
      found = decisions.find(
          output, decisions.Output(decoder(), request(), row, False, other)
      )
      assert found.kind == 'draw' and found.position == position
      assert found.tokens == (token, (token + 1) % 64)
      check_drawn(found, bounds_of(output, found))
      if token == decoder().target.special_ids.end:
        break

  @pytest.mark.parametrize('row', range(ROWS))
  def test_draft_tokens(self, row):
    output = outputs(True)[row]
    for number, call in enumerate(calls(row)):
      for index in range(call.num_accepted + call.is_rejected):
        token = int(call.draft_tokens[index])
        changed = with_entry(call.draft_tokens, index, (token + 1) % 64)
        other = call._replace(draft_tokens=changed)
        found = decisions._find_in_call(output, number, call, other)
        assert found.kind == 'draft'
        assert found.position == call.num_before + index
        assert found.tokens == (token, (token + 1) % 64)
        check_drawn(found, bounds_of(output, found))

  def test_acceptance(self):
    kinds = set()
    for row, output in enumerate(outputs(True)):
      for number, call in enumerate(calls(row)):
        for index in range(call.num_accepted + call.is_rejected):
          is_accepted = index < call.num_accepted
          other = call._replace(
              num_accepted=index if is_accepted else index + 1
          )
          found = decisions._find_in_call(output, number, call, other)
          assert found.kind == 'acceptance'
          assert found.position == call.num_before + index
          assert found.draft_token == call.draft_tokens[index]
          bound = bounds_of(output, found)[found.draft_token]
          assert is_accepted == (found.uniform[0] < bound)
          kinds.add(is_accepted)
    assert kinds == {True, False}

  def test_last_token_of_a_block(self):
    kinds = set()
    for row, output in enumerate(outputs(True)):
      for number, call in enumerate(calls(row)):
        if call.is_cut_short:
          continue
        last = call.num_accepted
        changed = with_entry(call.tokens, last, (call.tokens[last] + 1) % 64)
        other = call._replace(tokens=changed)
        found = decisions._find_in_call(output, number, call, other)
        assert found.kind == ('resampled' if call.is_rejected else 'draw')
        json.dumps([found.position, found.tokens, found.uniform])
        assert found.position == call.num_before + last
        check_drawn(found, bounds_of(output, found))
        kinds.add(found.kind)
    assert kinds == {'resampled', 'draw'}


class TestFind:

  def test_sample_that_cannot_be_repeated(self):
    output = outputs(True)[0]
    wrong = with_entry(output.sequence, 1, (output.sequence[1] + 1) % 64)
    other = decisions.Output(decoder(), request(), 0, True, wrong)
    assert decisions.find(output, other) is None
    found = near_ties.explain(output, other)
    assert found.margin is None and not found.is_near_tie
    assert (found.row, found.position) == (0, 1)

  def test_draft_tokens_behind_a_rejected_one_do_not_matter(self):
    output, number, call = next(
        (output, number, call)
        for row, output in enumerate(outputs(True))
        for number, call in enumerate(calls(row))
        if call.is_rejected and call.num_accepted == 0
    )
    token = int(call.draft_tokens[1])
    changed = with_entry(call.draft_tokens, 1, (token + 1) % 64)
    other = call._replace(draft_tokens=changed)
    assert decisions._find_in_call(output, number, call, other) is None

  def test_drafter_without_one_uniform_per_token(self):
    other_decoder = copy.copy(decoder())
    other_decoder.drafter = types.SimpleNamespace(
        max_draft_tokens=GAMMA, num_uniforms=GAMMA + 1
    )
    output = dataclasses.replace(outputs(True)[0], decoder=other_decoder)
    call = calls(0)[0]
    changed = with_entry(call.draft_tokens, 0, call.draft_tokens[0] ^ 1)
    other = call._replace(draft_tokens=changed)
    assert decisions._find_in_call(output, 0, call, other) is None


class TestDrawMargin:
  """Over several blocks of a draw."""

  VOCAB = 300

  def probabilities(self):
    rng = np.random.default_rng(3)
    return rng.dirichlet(np.full(self.VOCAB, 0.5)).astype(np.float32)

  def margin(self, tokens, uniform):
    p = self.probabilities().astype(np.float64)
    bounds = near_ties._boundaries(decisions.Kind.DRAW, p, None)
    decision = decisions.Decision(
        decisions.Kind.DRAW, 0, tokens, np.zeros(1, np.int32), None, uniform
    )
    return near_ties._margin(decision, bounds), bounds

  def test_drawn_tokens_have_none(self):
    """And any other token of some probability has one."""
    words = np.random.default_rng(4).integers(0, 2**32, (400, 2), np.uint32)
    rows = jnp.tile(jnp.asarray(self.probabilities()), (len(words), 1))
    drawn = np.asarray(sampling.draw(rows, jnp.asarray(words))).tolist()
    assert {token // sampling.BLOCK for token in drawn} == {0, 1, 2}
    other = int(np.argmax(self.probabilities()))
    for token, uniform in zip(drawn, words / 2**32, strict=True):
      margin, _ = self.margin((token, token), tuple(uniform))
      assert margin < near_ties._ROUNDING
      margin, _ = self.margin((token, other), tuple(uniform))
      assert token == other or margin > 10 * near_ties._ROUNDING

  def test_neighbouring_blocks(self):
    """The second word must give each token in its own block."""
    _, bounds = self.margin((0, 0), (0.0, 0.0))
    edge = bounds[sampling.BLOCK - 1]
    ends = np.concatenate([[0], bounds])

    def of_block(first, last, second):
      point = ends[first] + second * (ends[last] - ends[first])
      return int(np.searchsorted(bounds, point, side='right'))

    tokens = of_block(0, 128, 0.4), of_block(128, 256, 0.4)
    margin, _ = self.margin(tokens, (edge + 1e-4, 0.4))
    np.testing.assert_allclose(margin, 1e-4, rtol=1e-6)
    wrong = tokens[0], of_block(128, 256, 0.9)
    margin, _ = self.margin(wrong, (edge + 1e-4, 0.4))
    assert margin > 0.01


class TestBoundaries:

  def test_no_residual(self):
    p = np.array([0.25, 0.5, 0.25])
    found = near_ties._boundaries(decisions.Kind.RESAMPLED, p, p)
    np.testing.assert_allclose(found, [0.25, 0.75, 1])

  def test_rounding_of_sums_counts_where_paths_agree(self, monkeypatch):
    output = outputs(False)[0]
    uniform = 0.0, 0.5 + 2 * float(np.finfo(np.float32).eps)
    decision = decisions.Decision(
        decisions.Kind.DRAW, 2, (31, 32), output.sequence, None, uniform
    )
    monkeypatch.setattr(decisions, 'find', lambda *_: decision)
    logits = np.zeros(64, np.float32)
    monkeypatch.setattr(forced, 'logits_at', lambda *_: logits)
    equal = requests_lib.Request(
        *(getattr(request(), name) for name in (
            'inputs', 'example_ids', 'limits', 'seed',
        )),
        sampling.Sampling(1.0),
        sampling.Sampling(1.0),
    )  # fmt: skip
    output = dataclasses.replace(output, request=equal)
    assert near_ties.explain(output, output).is_near_tie


@pytest.mark.parametrize('is_speculative', [False, True])
@pytest.mark.parametrize(
    ('shift', 'is_near_tie'), [(0.0, True), (-2e-3, False)]
)
def test_uniform_on_a_boundary(monkeypatch, is_speculative, shift, is_near_tie):
  """The token above the boundary is written instead of that below it."""
  output = outputs(is_speculative)[1]
  decision = decisions.Decision(decisions.Kind.DRAW, 2, (0, 0), output.sequence)
  bounds = bounds_of(output, decision)
  widths = np.diff(bounds, prepend=0)
  below = int(np.argmax(widths[:-1]))
  above = int(np.flatnonzero(bounds > bounds[below])[0])
  uniform = 0.0, float(bounds[below]) + shift
  assert widths[below] > 2 * abs(shift)
  monkeypatch.setattr(
      decisions,
      'find',
      lambda *_: decisions.Decision(
          decisions.Kind.DRAW, 2, (below, above), output.sequence, None, uniform
      ),
  )
  found = near_ties.explain(output, output)
  assert found.is_near_tie == is_near_tie
  np.testing.assert_allclose(found.margin, abs(shift), atol=1e-9)
  assert 0 < found.tolerance < 1e-3

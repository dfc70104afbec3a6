# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests that a drafter from outside the package works everywhere, exactly."""

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.loading.drafters import drafting
from speculative_t5x.research import whole_batches
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import sampling
from tests import repeat_last
from tests import tiny
from tests import workloads

SOURCE = drafting.Drafting(repeat_last.RepeatLast, 'repeat_last')
SAMPLED = {'sampling': sampling.Sampling(1.0)}
TEXTS = ['The train from Bonn is late.', 'It will rain in Turin today.']


@functools.cache
def decoder():
  return workloads.text_decoder(SOURCE, gamma=3, matmul_precision='highest')


def own(make):
  """Return the decoder with another drafter."""
  return decoder().tokens.with_drafter(drafting.Drafting(make, 'own'), 3)


def changed(change):
  """Return the decoder with a drafter that changes what `propose` returns."""

  class Changed(repeat_last.RepeatLast):

    def propose(self, *args):
      return change(*super().propose(*args))

  return own(Changed)


def test_special_ids_that_differ_from_the_target():
  class Other(repeat_last.RepeatLast):

    @property
    def form(self):
      return forms.Chain(self.gamma, special_ids=contracts.SpecialIds(2, 0, 0))

  drafter = drafting.Drafting(Other, 'other')
  with pytest.raises(ValueError, match=r'end=2.*target \w+\(end=1'):
    decoder().tokens.with_drafter(drafter, 2)


class TestOddDrafts:

  def test_ids_outside_the_vocabulary_end_a_draft(self):
    def change(draft, *rest):
      outside = jnp.resize(jnp.array([-1, 2048]), len(draft.tokens))
      tokens = draft.tokens.at[:, 1].set(outside)
      return draft.replace(tokens=tokens), *rest

    batch, _ = whole_batches.make_batch(decoder(), TEXTS, **SAMPLED)
    found = tiny.decoded(changed(change), batch)
    assert np.all((found.sequences >= 0) & (found.sequences < 2048))
    for drafted in found.statistics.drafted_histogram[:2]:
      assert drafted[1] > 0 and not drafted[2:].any()
    assert np.all(found.statistics.num_computed > found.num_calls)

  def test_lengths_are_clipped(self):
    def change(draft, *rest):
      more = jnp.resize(jnp.array([10, -10]), len(draft.lengths))
      return draft.replace(lengths=draft.lengths + more), *rest

    batch, _ = whole_batches.make_batch(decoder(), TEXTS, **SAMPLED)
    found = tiny.decoded(changed(change), batch)
    longest, empty = found.statistics.drafted_histogram[:2]
    assert longest[3] > 0 and not longest[4:].any()
    assert empty[0] > 0 and not empty[1:].any()


_with = lambda **changes: lambda draft, *rest: (draft.replace(**changes), *rest)
# What `propose` returns in place of a draft, a state and a cache, and what the
# error names.
RETURNED = [
    (_with(tokens=np.zeros((2, 2), np.int32)), r'2, 2\] instead .* .tokens'),
    (_with(is_point_mass=np.ones((2, 3), bool)), r'None instead .* .probs'),
    (lambda draft, state: (draft, state, None), 'two values'),
    (lambda draft, *rest: (draft.tokens, *rest), 'a Draft'),
    (lambda draft, _: (draft, draft.lengths), 'its state'),
    (_with(target_cache=np.zeros(2)), "target's cache"),
]
# What makes a drafter, and what the error names.
MADE = [
    (lambda target, gamma: repeat_last.RepeatLast(target, 5), 'made for 1'),
    (lambda target, gamma: 'drafter', 'lacks a form'),
]


class TestMistakes:
  """Each raises one clear error before anything is compiled."""

  @pytest.mark.parametrize(('change', 'message'), RETURNED)
  def test_what_propose_returns(self, change, message):
    batch, _ = whole_batches.make_batch(decoder(), TEXTS)
    with pytest.raises(ValueError, match=message):
      whole_batches.decode(changed(change), batch)

  @pytest.mark.parametrize(('make', 'message'), MADE)
  def test_what_makes_a_drafter(self, make, message):
    with pytest.raises(ValueError, match=message):
      own(make)

  def test_a_drafter_that_draws_more_than_it_declares(self):
    @dataclasses.dataclass(frozen=True)
    class Greedy(repeat_last.RepeatLast):
      num_uniforms: int = 2

      def propose(self, params, memory, state, view):
        view.uniforms.split(3)
        return super().propose(params, memory, state, view)

    batch, _ = whole_batches.make_batch(decoder(), TEXTS)
    with pytest.raises(
        ValueError, match='drafter Greedy asks for 3 .* and declares 2'
    ):
      whole_batches.decode(own(Greedy), batch)

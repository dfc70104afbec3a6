# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of several drafters in order."""

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.loading import descriptions
from speculative_t5x.loading.drafters import in_order_source
from speculative_t5x.loading.drafters import source
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.testing import table_model
from tests import repeat_last
from tests.speculation import distribution_test

GAMMA, VOCAB = 3, 3
TARGET = table_model.Model(VOCAB)


class Sometimes(repeat_last.RepeatLast):
  """Repeats the last token so often as its id says."""

  def propose(self, params, memory, state, view):
    """See `contracts.Drafter.propose`."""
    draft, *rest = super().propose(params, memory, state, view)
    lengths = jnp.minimum(draft.lengths, draft.tokens[:, 0])
    return draft.replace(lengths=lengths), *rest


@dataclasses.dataclass(frozen=True)
class LastHasTheTables(in_order.InOrder):
  """Its parameters are those of the last drafter."""

  def init(self, params, *args):
    return super().init((None, params), *args)

  def propose(self, params, *args):
    return super().propose((None, params), *args)


def make_drafter() -> LastHasTheTables:
  last = draft_model.DraftModel(TARGET, GAMMA, VOCAB)
  return LastHasTheTables((Sometimes(TARGET, GAMMA), last), TARGET)


def drafted_after(prefix):
  """Drafts after a prefix; the cache holds stale tokens past it."""
  case, length = distribution_test.make_case(gamma=GAMMA), 8
  drafter = make_drafter()
  sequences = np.zeros((1, length), np.int32)
  sequences[0, : len(prefix)] = prefix
  num_fed = jnp.array([len(prefix) + 4])
  cache = np.full((1, length + GAMMA + 1), 1, np.int32)
  cache[0, : len(prefix)] = [0, *prefix[:-1]]
  zeros = jnp.zeros((1,), jnp.int32)
  memory = draft_model.DraftModelMemory(zeros, zeros, zeros)
  state = draft_model.DraftModelState(jnp.asarray(cache), num_fed)
  bits = np.random.default_rng(0).integers(0, 2**32, (1, GAMMA, 2), np.uint32)
  view = contracts.View(
      jnp.asarray(sequences),
      jnp.array([len(prefix)]),
      jnp.array([GAMMA]),
      uniforms_lib.Uniforms(jnp.asarray(bits), 'The drafter'),
      sampling_lib.make_sampling(),
      contracts.TargetView(None, None, None),
      None,
  )
  tables = jnp.asarray(case.draft_tables, jnp.float32)
  draft, *_ = drafter.propose(tables, (None, memory), (None, state), view)
  return case, draft


class TestPending:

  def check(self):
    """The draft model goes on after the tokens before its own."""
    for prefix in [(0, 2), (2, 2), (2, 0, 2)]:
      case, draft = drafted_after(prefix)
      num = prefix[-1]
      tokens = tuple(draft.tokens[0].tolist())
      for i in range(num, int(draft.lengths[0])):
        _, q = case.distributions(0, prefix + tokens[:i])
        np.testing.assert_allclose(draft.probs[0, i], q, atol=1e-6)

  def test_tokens_before_its_own_are_read(self):
    self.check()

  def test_taking_them_for_fed_is_found(self, monkeypatch):
    original = in_order.InOrder._after

    def without_pending(self, draft, view):
      return original(self, draft, view)._replace(num_pending=0)

    monkeypatch.setattr(in_order.InOrder, '_after', without_pending)
    with pytest.raises(AssertionError):
      self.check()


class TestJoin:

  def test_places_and_kinds(self):
    point = contracts.Draft(
        jnp.array([[7, 8, 0], [5, 0, 0], [0, 0, 0]]), jnp.array([2, 1, 0])
    )
    probs = jnp.arange(9, dtype=jnp.float32).reshape(3, 3, 1)
    drawn = contracts.Draft(
        jnp.array([[1, 2, 3], [1, 2, 3], [1, 2, 3]]),
        jnp.array([1, 2, 3]),
        probs,
    )
    found = in_order.join(point, drawn)
    assert found.tokens.tolist() == [[7, 8, 1], [5, 1, 2], [1, 2, 3]]
    assert found.lengths.tolist() == [3, 3, 3]
    assert found.is_point_mass.tolist() == [
        [True, True, False], [True, False, False], [False, False, False]
    ]  # fmt: skip
    assert found.probs[0, 2, 0] == probs[0, 0, 0]
    assert found.probs[1, 1:, 0].tolist() == probs[1, :2, 0].tolist()
    assert found.probs[2, :, 0].tolist() == probs[2, :, 0].tolist()

  def test_only_point_masses_need_no_probabilities(self):
    draft = contracts.Draft(jnp.zeros((1, 2), jnp.int32), jnp.array([1]))
    assert in_order.join(draft, draft).probs is None


class TestSources:

  def test_one_source(self):
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last')
    with pytest.raises(ValueError, match='at least two drafters in order'):
      in_order_source.FromSources([own])

  def test_no_source(self):
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last')
    with pytest.raises(ValueError, match='must be a source of a drafter'):
      in_order_source.FromSources([own, repeat_last.RepeatLast])

  def test_loaded(self):
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last').load()
    loaded = in_order_source.from_drafters([own, own])
    assert loaded.description.kind == 'repeat_last then repeat_last'
    made = loaded.drafter(TARGET, 4)
    assert made.max_draft_tokens == 4
    assert loaded.params == (None, None)

  def test_described_by_all_that_tells_drafters_apart(self):
    """Checkpoints of one name are others, and their files are watched."""
    own = source.WithoutParameters(repeat_last.RepeatLast, 'repeat_last').load()

    def describe(*models):
      loaded = [
          dataclasses.replace(
              own, description=descriptions.DrafterDescription(**each)
          )
          for each in models
      ]
      return in_order_source.from_drafters([own, *loaded]).description

    model = {
        'kind': 'model', 'name': 'a/1', 'checkpoint': '/x/a/1',
        'dtype': 'float32', 'model_parallel': False, 'short_vocabulary': 512,
        'table': '/table',
    }  # fmt: skip
    found = dataclasses.asdict(describe(model))
    assert found['name'] == 'repeat_last then a/1'
    for key in model.keys() - {'kind', 'name'}:
      assert found[key] == model[key]
    other = {**model, 'checkpoint': '/y/a/1'}
    assert describe(model, other).checkpoint == '/x/a/1 then /y/a/1'

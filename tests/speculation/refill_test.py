# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of bounded steps, and of new requests in place of ended rows.

Forty requests go through four rows. Each must have the output that it has
alone.
"""

import dataclasses
import functools

from flax import traverse_util
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.networks import network
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import table_model
from tests import exhaustive
from tests import mixed_drafts
from tests import tiny
from tests import tiny_decoders

NUM_REQUESTS, ROWS, GAMMA, LENGTH, MAX_STEPS = 40, 4, 3, 20, 5
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=1)
ALONE_IDS = contracts.SpecialIds(end=1, padding=0, start=None)


class Tables:
  """Tables as target and draft model, which do not depend on batches."""

  vocab_size = 5
  policy = draft_length.Fixed()

  def __init__(self):
    tables = table_model.random_logits(1, NUM_REQUESTS, self.vocab_size)
    other = table_model.random_logits(2, NUM_REQUESTS, self.vocab_size)
    self.params = jnp.asarray(tables, jnp.float32)
    self.draft_params = jnp.asarray(tables + 0.4 * other, jnp.float32)
    self.model = table_model.Model(self.vocab_size)
    self.inputs = np.arange(NUM_REQUESTS, dtype=np.int32)

  def drafter(self):
    return draft_model.ModelDrafter(self.model, GAMMA, self.vocab_size)


class TinyT5:
  """A target and a draft model with memories and caches of their own."""

  policy = draft_length.Fixed()

  def __init__(self):
    self.params = tiny.model(CONFIG).params
    self.draft_params = tiny.model(CONFIG, noise=0.15).params
    self.model = tiny.drafter(tiny.model(CONFIG), GAMMA).model
    self.inputs = np.asarray(tiny.encoder_tokens(NUM_REQUESTS, 9))

  def drafter(self):
    return tiny.drafter(tiny.model(CONFIG), GAMMA)


class DecoderAlone:
  """A decoder alone with a window, and prompts of unequal lengths."""

  policy = draft_length.Fixed()

  def __init__(self):
    config = dataclasses.replace(tiny_decoders.CONFIGS['gemma3'], num_layers=1)
    params, noise = (tiny_decoders.params(config, seed) for seed in (0, 1))
    near = jax.tree.map(lambda x, y: x + 0.1 * y, params, noise)
    target = models.make_model(config, params)
    self.params = target.params
    self.draft_params = models.make_model(config, near).params
    self.model = network.NetworkModel(target.config, ALONE_IDS)
    self.inputs = np.asarray(tiny.encoder_tokens(NUM_REQUESTS, 12, 96))

  def drafter(self):
    return draft_model.ModelDrafter(self.model, GAMMA, self.model.vocab_size)


class FeatureHead(TinyT5):
  """A head, which reads what the last target call of a row has shown.

  It has the parameters of the target's that it has a place for.
  """

  sizes = {}

  def __init__(self):
    super().__init__()
    sizes = dict(encoder_dim=CONFIG.emb_dim, feature_dim=CONFIG.emb_dim)
    sizes |= self.sizes
    self._head = tiny.model(
        dataclasses.replace(CONFIG, num_encoder_layers=0, **sizes)
    )
    own, known = map(
        traverse_util.flatten_dict, (self._head.params, self.params)
    )
    own |= {name: leaf for name, leaf in known.items() if name in own}
    self.draft_params = traverse_util.unflatten_dict(own)

  def drafter(self):
    return model_drafting.of_model(self._head).make(self.model, GAMMA)


class BlockHead(FeatureHead):
  """A head that is fed all that the last target call of a row committed."""

  sizes = dict(num_masks=GAMMA - 1, recurrence_dim=3)


class Mixed(Tables):
  """A drafter and a policy whose states depend on the last outcome."""

  policy = mixed_drafts.KeyPolicy()

  def drafter(self):
    return mixed_drafts.MixedDrafts(self.vocab_size, GAMMA)


KINDS = {
    'tables': Tables,
    't5': TinyT5,
    'decoder': DecoderAlone,
    'feature head': FeatureHead,
    'block head': BlockHead,
    'mixed': Mixed,
}


@functools.cache
def pair(kind):
  return KINDS[kind]()


def limits_of(requests):
  """Return limits from 1 to the length, unordered."""
  return 1 + (7 * np.asarray(requests) + 3) % LENGTH


@functools.cache
def programs(kind, is_plain, num_decodes):
  """Return compiled functions to start, to advance and to admit."""
  it = pair(kind)
  drafter = nothing.NoDrafter() if is_plain else it.drafter()

  setup = state_lib.Setup(
      it.model,
      it.params,
      drafter,
      None if is_plain else it.draft_params,
      policy=it.policy,
  )

  @jax.jit
  def start(temperatures, inputs, requests, limits):
    keys = state_lib.row_keys(jnp.int32(5), requests, num_decodes)
    limits = jnp.repeat(limits, num_decodes)
    begun = state_lib.begin(
        setup,
        inputs,
        keys,
        limits,
        sampling.Sampling(jnp.repeat(temperatures, num_decodes)),
        length=LENGTH,
    )
    return loop.start(begun, outcome.COUNTING)

  @functools.partial(jax.jit, static_argnums=1)
  def advance(run, max_steps, until):
    return loop.advance(setup, run, max_steps, until, fold=outcome.COUNTING)

  return start, advance, jax.jit(loop.admit)


class Decoding:
  """Decodes requests in the rows of one kind of pair, at one temperature."""

  def __init__(self, kind, temperature, is_plain=False, num_decodes=1):
    self.inputs = pair(kind).inputs
    self.num_decodes = num_decodes
    functions = programs(kind, is_plain, num_decodes)
    self._start, self._advance, self.admit = functions
    self.temperature = temperature
    # Each request has a temperature of its own, and some are greedy.
    self.share = np.linspace(0, 1, 4)[np.arange(NUM_REQUESTS) % 4]

  def start(self, requests):
    requests = np.asarray(requests)
    at = np.maximum(requests, 0)  # -1 is padding
    limits = np.where(requests < 0, 0, limits_of(at))
    return self._start(
        np.float32(self.temperature * self.share[at]),
        self.inputs[at],
        at.astype(np.int32),
        limits.astype(np.int32),
    )

  def advance(self, run, until, max_steps=MAX_STEPS):
    return self._advance(run, max_steps, until)

  def of_example(self, run, place):
    """Return the results of the rows of one example."""
    rows = slice(place * self.num_decodes, (place + 1) * self.num_decodes)
    state = run.state
    return jax.tree.map(
        lambda x: np.asarray(x)[rows],
        {
            'sequences': state.sequences,
            'num_tokens': state.num_tokens,
            'log_probs': state.log_probs,
            'num_calls': state.num_calls,
            'statistics': run.kept,
        },
    )

  def alone(self, request):
    """Decode one request beside padding, to its end."""
    run = self.start([request] + [-1] * (ROWS // self.num_decodes - 1))
    run, _ = self.advance(run, jnp.int32(ROWS), LENGTH)
    assert np.all(run.state.has_ended)
    return self.of_example(run, 0)

  def refilled(self):
    """Decode all requests by admissions; return results and admissions."""
    num_places = ROWS // self.num_decodes
    waiting = list(range(num_places, NUM_REQUESTS))
    at = list(range(num_places))
    run = self.start(at)
    done, num_admissions = {}, 0
    while any(request is not None for request in at):
      before = int(np.sum(run.state.has_ended))
      run, work = self.advance(run, jnp.int32(before + 1))
      assert 0 < work.num_steps <= MAX_STEPS
      has_ended = np.asarray(run.state.has_ended).reshape(num_places, -1)
      new, places = [], []
      for place in np.flatnonzero(has_ended.all(axis=1)).tolist():
        if at[place] is None:
          continue
        done[at[place]] = self.of_example(run, place)
        at[place] = None
        if waiting:
          at[place] = waiting.pop(0)
          new.append(at[place])
          places.append(place)
      if new:
        spare = num_places - len(new)
        started = self.start(new + [-1] * spare)
        places = np.array(places + [num_places] * spare, np.int32)
        run = self.admit(run, started, places)
        num_admissions += len(new)
    return done, num_admissions


@pytest.mark.parametrize(
    ('kind', 'is_plain', 'num_decodes'),
    [
        ('tables', False, 1),
        ('tables', True, 1),
        ('mixed', False, 1),
        ('t5', False, 2),
        ('decoder', False, 1),
        ('feature head', False, 2),
        ('block head', False, 2),
    ],
)
def test_each_request_has_its_output_alone(kind, is_plain, num_decodes):
  decoding = Decoding(kind, 1.0, is_plain, num_decodes)
  found, num_admissions = decoding.refilled()
  assert num_admissions == NUM_REQUESTS - ROWS // num_decodes
  assert found.keys() == set(range(NUM_REQUESTS))
  accepted = [np.sum(x['statistics'].num_accepted) for x in found.values()]
  assert is_plain or sum(accepted) > NUM_REQUESTS // 2  # or drafts say little
  for request in range(0, NUM_REQUESTS, num_decodes):
    assert_same_output(found[request], decoding.alone(request))


def test_features_of_the_row_before_are_found(monkeypatch):
  """`admit` replaces what the target has shown."""
  admit = loop.admit

  def keeping(run, new, examples):
    kept = run.state.last_features
    after = admit(run, new, examples)
    return after._replace(state=after.state.replace(last_features=kept))

  decoding = Decoding('feature head', 1.0, num_decodes=2)
  monkeypatch.setattr(decoding, 'admit', jax.jit(keeping))
  found, _ = decoding.refilled()
  with pytest.raises(AssertionError):
    for request in range(0, NUM_REQUESTS, 2):
      assert_same_output(found[request], decoding.alone(request))


def assert_same_output(found, expected):
  """Compare the results of rows in other company."""
  scores = [each.pop('log_probs') for each in (found, expected)]
  np.testing.assert_allclose(*scores, rtol=1e-6, atol=1e-6)
  jax.tree.map(np.testing.assert_array_equal, found, expected)


def assert_same_arrays(*runs):
  """Compare all arrays of two runs, and keys as numbers."""
  found = []
  for run in runs:
    keys = jax.random.key_data(run.batch.keys)
    run = run._replace(batch=run.batch.replace(keys=keys))
    found.append(jax.tree.leaves(run))
  for one, other in zip(*found, strict=True):
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    'kind', exhaustive.all_but(['mixed', 'decoder'], ['mixed', 't5', 'decoder'])
)
def test_run_of_one_row(kind):
  """A single row, whose arrays may have no axis for rows."""
  decoding = Decoding(kind, 0.0)
  ended, _ = decoding.advance(decoding.start([3]), jnp.int32(1), LENGTH)
  new = decoding.start([7])
  run = decoding.admit(ended, new, np.array([0], np.int32))
  run, _ = decoding.advance(run, jnp.int32(1), LENGTH)
  assert_same_output(decoding.of_example(run, 0), decoding.alone(7))
  for outside in (-1, 1):
    kept = decoding.admit(ended, new, np.array([outside], np.int32))
    assert_same_arrays(kept, ended)


class TestAdvance:

  def test_stops_after_its_steps_and_continues(self):
    decoding = Decoding('tables', 1.0)
    begun = decoding.start(range(ROWS))
    whole, expected = decoding.advance(begun, jnp.int32(ROWS), LENGTH)
    run, total = begun, []
    while not np.all(run.state.has_ended):
      run, work = decoding.advance(run, jnp.int32(ROWS), 2)
      assert work.num_steps <= 2
      total.append(work)
    assert tuple(map(sum, zip(*total))) == expected
    jax.tree.map(np.testing.assert_array_equal, run.kept, whole.kept)
    np.testing.assert_array_equal(run.state.sequences, whole.state.sequences)
    np.testing.assert_array_equal(run.state.log_probs, whole.state.log_probs)


class TestAdmit:

  @pytest.mark.parametrize(('kind', 'num_decodes'), [('mixed', 1), ('t5', 2)])
  def test_requests_outside_change_nothing(self, kind, num_decodes):
    """A place of -1 is not the last one."""
    decoding = Decoding(kind, 1.0, num_decodes=num_decodes)
    num_places = ROWS // num_decodes
    run = decoding.start(range(num_places))
    new = decoding.start(range(num_places, 2 * num_places))
    outside = np.array([-1, num_places, -2, -1][:num_places], np.int32)
    kept = decoding.admit(run, new, outside)
    assert_same_arrays(kept, run)

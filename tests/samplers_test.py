# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Tests of the decode functions for T5X, without T5X.

The package that holds the functions needs T5X; the functions do not.
"""

import functools
import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import speculative_t5x
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import nothing
from speculative_t5x.networks import t5
from speculative_t5x.rules import coupled
from speculative_t5x.rules import lenience
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import score_order
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import table_model
from tests.t5x_guest import limits

VOCAB, GAMMA, LENGTH, EXAMPLES = 6, 3, limits.LENGTH, limits.EXAMPLES
DECODES = 2
IDS = np.arange(5, 5 + EXAMPLES, dtype=np.int32)
BASE = dict(
    temperature=0.9, topk=0, topp=0.0, minp=0.0, typicalp=0.0,
    draft_sampling=sampling.Sampling(0.9), seed=0,
    max_decode_steps=np.full(EXAMPLES, LENGTH),
)  # fmt: skip


def _load():
  package = pathlib.Path(speculative_t5x.__file__).parent
  spec = importlib.util.spec_from_file_location(
      'samplers', package / 't5x_guest/samplers.py'
  )
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


samplers = _load()


def models():
  """Return a target that never ends and a similar draft model."""
  tables = table_model.random_logits(1, EXAMPLES, VOCAB)
  tables[..., t5.SPECIAL_IDS.end] = -np.inf
  other = tables + table_model.random_logits(2, EXAMPLES, VOCAB)
  drafter = draft_model.ModelDrafter(table_model.Model(VOCAB), GAMMA, VOCAB)
  return (
      samplers.Target(
          table_model.Model(VOCAB), jnp.float32(tables), jnp.arange(EXAMPLES)
      ),
      samplers.BoundDrafter(drafter, jnp.float32(other)),
  )


def sample(options, rescale_log_probs=True):
  target, drafter = models()
  return samplers.speculative_sample(
      target, drafter, IDS, LENGTH, DECODES,
      rescale_log_probs=rescale_log_probs, **options,
  )  # fmt: skip


def sample_plainly(options):
  target, _ = models()
  given = {k: v for k, v in options.items() if k != 'draft_sampling'}
  return samplers.plain_sample(target, IDS, LENGTH, DECODES, **given)


def by_the_loop(options, is_plain=False):
  """Decode by the loop, with each argument in its place."""
  target, drafter = models()
  if is_plain:
    drafter = samplers.BoundDrafter(nothing.NoDrafter(), None)
  rules = [options[name] for name in ('topk', 'topp', 'minp', 'typicalp')]
  setup = state_lib.Setup(
      target.model, target.params, drafter.drafter, drafter.params,
  )  # fmt: skip
  begun = state_lib.begin(
      setup,
      target.inputs,
      state_lib.row_keys(options['seed'], IDS, DECODES),
      jnp.repeat(options['max_decode_steps'], DECODES),
      sampling.Sampling(options['temperature'], *rules),
      options['draft_sampling'],
      length=LENGTH,
  )
  state, _, folded = loop.decode(setup, begun, outcome_lib.COUNTING)
  counts = {'tokens': state.num_tokens, 'target_calls': state.num_calls}
  if not is_plain:
    counts |= folded.named()
  every = state.sequences, state.log_probs, counts
  return score_order.best_last(state.log_probs, every, DECODES)


@functools.cache
def compiled(function):
  return jax.jit(function)


def differ(one, two) -> bool:
  return any((x != y).any() for x, y in zip(*map(jax.tree.leaves, (one, two))))


@pytest.mark.parametrize(
    'changes',
    [
        {}, {'temperature': 0.4}, {'topk': 2}, {'topp': 0.4}, {'seed': 7},
        {'max_decode_steps': limits.EACH}, {'topk': 4, 'topp': 0.6},
        {'minp': 0.5}, {'typicalp': 0.4},
        {'draft_sampling': sampling.Sampling(0.1)},
        {'draft_sampling': sampling.Sampling(0.9, top_k=1)},
    ],
    ids=lambda changes: '-'.join(changes) or 'none',
)  # fmt: skip
def test_arguments_reach_the_loop(changes):
  found = compiled(sample)(BASE | changes)
  expected = compiled(by_the_loop)(BASE | changes)
  jax.tree.map(np.testing.assert_array_equal, found, expected)
  assert differ(found, compiled(sample)(BASE)) == bool(changes)


def test_plain_sampling_is_the_loop_without_drafts():
  options = BASE | {'temperature': 0.4, 'seed': 7}
  jax.tree.map(
      np.testing.assert_array_equal,
      compiled(sample_plainly)(options),
      compiled(functools.partial(by_the_loop, is_plain=True))(options),
  )


def test_lenience_accepts_all_that_is_possible():
  *_, aux = compiled(sample)(BASE | {'rule': lenience.make_rule(0.0)})
  np.testing.assert_array_equal(aux['accepted'], aux['tested'])
  *_, other = compiled(sample)(BASE)
  assert np.sum(aux['target_calls']) < np.sum(other['target_calls'])


def test_coupled_samples_are_those_of_plain_sampling():
  options = {**BASE, 'rule': coupled.CoupledGumbel(), 'topp': 0.9}
  found = compiled(sample)(options)
  expected = compiled(sample_plainly)(options)
  np.testing.assert_array_equal(found[0], expected[0])
  np.testing.assert_allclose(found[1], expected[1], rtol=1e-5)
  assert np.sum(found[2]['target_calls']) < np.sum(found[2]['tokens'])

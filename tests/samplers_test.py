# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What T5X's arguments mean to the decode functions, without T5X.

The package that holds the functions needs T5X; they themselves do not.
"""

import functools
import importlib.util
import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import speculative_t5x
from speculative_t5x import loops
from speculative_t5x import sampling
from speculative_t5x import speculation
from speculative_t5x.drafters import draft_model
from tests import tabular
from tests.t5x_guest import limits

VOCAB, GAMMA, LENGTH, EXAMPLES = 6, 3, limits.LENGTH, limits.EXAMPLES
DECODES = 2
IDS = np.arange(5, 5 + EXAMPLES, dtype=np.int32)
BASE = dict(
    temperature=0.9, topk=0, topp=0.0, draft_temperature=0.9, seed=0,
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


def seams():
  """A target that never ends, and a draft like it: a table per example."""
  tables = tabular.random_tables(1, EXAMPLES, VOCAB)
  tables[..., speculation.EOS_ID] = -np.inf
  other = tables + tabular.random_tables(2, EXAMPLES, VOCAB)
  drafter = draft_model.DraftModel(
      tabular.decoder(VOCAB), lambda params, tokens: tokens, GAMMA, VOCAB
  )
  table = jnp.repeat(jnp.arange(EXAMPLES), DECODES)
  return (
      loops.Target(
          tabular.decoder(VOCAB), jnp.float32(tables), table, table, table
      ),
      loops.Guesser(drafter, jnp.float32(other)),
  )


def sample(options, rescale_log_probs=True):
  target, guesser = seams()
  return samplers.speculative_sample(
      target, guesser, IDS, LENGTH, speculation.EOS_ID, DECODES,
      rescale_log_probs=rescale_log_probs, **options,
  )  # fmt: skip


def sample_plainly(options, rescale_log_probs=True):
  target, _ = seams()
  return samplers.plain_sample(
      target, IDS, LENGTH, speculation.EOS_ID, DECODES,
      rescale_log_probs=rescale_log_probs, **options,
  )  # fmt: skip


def by_the_loop(options):
  """What the loop decodes with each argument where it belongs."""
  rules = options['topk'], options['topp']
  state, _ = loops.decode_speculatively(
      *seams(),
      rows(options),
      sampling.Sampling(options['temperature'], *rules),
      sampling.Sampling(options['draft_temperature'], *rules),
      length=LENGTH,
  )
  counts = state.statistics
  every = state.sequences, state.log_probs, {
      'tokens': state.num_tokens,
      'target_calls': state.num_calls,
      'drafted': counts.num_drafted,
      'drafted_computed': counts.num_computed,
      'tested': counts.num_tested,
      'accepted': counts.num_accepted,
  }  # fmt: skip
  return loops.best_last(state.log_probs, every, DECODES)


def by_the_plain_loop(options):
  state, _ = loops.decode_plainly(
      seams()[0],
      rows(options),
      sampling.Sampling(
          options['temperature'], options['topk'], options['topp']
      ),
      length=LENGTH,
  )
  every = state.sequences, state.log_probs, {
      'tokens': state.num_tokens, 'target_calls': state.num_calls,
  }  # fmt: skip
  return loops.best_last(state.log_probs, every, DECODES)


def rows(options):
  return speculation.Rows(
      speculation.row_keys(options['seed'], IDS, DECODES),
      jnp.repeat(options['max_decode_steps'], DECODES),
  )


@functools.cache
def compiled(function):
  return jax.jit(function)


def differ(one, two) -> bool:
  return any(
      (x != y).any() for x, y in zip(*map(jax.tree.leaves, (one, two)))
  )


CHANGES = pytest.mark.parametrize(
    'changes',
    [
        {}, {'temperature': 0.4}, {'topk': 2}, {'topp': 0.4}, {'seed': 7},
        {'max_decode_steps': limits.EACH}, {'topk': 4, 'topp': 0.6},
        {'draft_temperature': 0.1},
    ],
    ids=lambda changes: '-'.join(changes) or 'none',
)  # fmt: skip


@CHANGES
def test_each_argument_goes_where_it_belongs(changes):
  found = compiled(sample)(BASE | changes)
  expected = compiled(by_the_loop)(BASE | changes)
  jax.tree.map(np.testing.assert_array_equal, found, expected)
  assert differ(found, compiled(sample)(BASE)) == bool(changes)


@CHANGES
def test_plainly_as_well(changes):
  given = lambda changes: {
      k: v for k, v in (BASE | changes).items() if k != 'draft_temperature'
  }
  found = compiled(sample_plainly)(given(changes))
  expected = compiled(by_the_plain_loop)(given(changes))
  jax.tree.map(np.testing.assert_array_equal, found, expected)
  # The draft's temperature is no argument of it.
  has_changed = bool(changes) and 'draft_temperature' not in changes
  assert differ(found, compiled(sample_plainly)(given({}))) == has_changed


@pytest.mark.parametrize('rescale', [True, False])
@pytest.mark.parametrize(
    ('function', 'loop', 'num_samplings'),
    [
        (sample, 'decode_speculatively', 2),
        (sample_plainly, 'decode_plainly', 1),
    ],
)
def test_what_else_the_loop_is_told(
    monkeypatch, function, loop, num_samplings, rescale
):
  """The draft samples at the target's temperature by default."""
  told = {}

  def decode(*args, **kwargs):
    told.update(kwargs, samplings=args[-num_samplings:])
    raise StopIteration

  monkeypatch.setattr(loops, loop, decode)
  with pytest.raises(StopIteration):
    function({'temperature': 0.3, 'topk': 0, 'topp': 0.5}, rescale)
  assert told == {
      'samplings': (sampling.make_sampling(0.3, 0, 0.5),) * num_samplings,
      'length': LENGTH,
      'rescale_log_probs': rescale,
  }


@pytest.mark.parametrize(('max_steps', 'hard_limit', 'tokens'), limits.CASES)
def test_limits(max_steps, hard_limit, tokens):
  """The smaller one holds."""
  found = samplers._rows(IDS, 0, 2, LENGTH, max_steps, hard_limit)
  np.testing.assert_array_equal(found.limits, np.repeat(tokens, 2))

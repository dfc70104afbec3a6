# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Enumerated outputs of every drafter beside `tests/combinations_test.py`.

Here are longer blocks, other samplings, and what is drafted: a drafter whose
drafts are worse than they should be keeps the target's distribution, so that
its draft tokens' distributions are compared with those of their model.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import early_exit
from speculative_t5x.drafters import in_order
from speculative_t5x.loading.drafters import model_drafting
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.testing import all_drafts
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model
from tests import combinations
from tests import exhaustive
from tests import mixed_drafts
from tests import repeat_last
from tests import tiny
from tests import tiny_decoders
from tests import tiny_drafters

pytestmark = pytest.mark.long

CONFIG, VOCAB = tiny_drafters.CONFIG, tiny_drafters.VOCAB
SAMPLINGS = {}, {'temperature': 0.0}, {'temperature': 0.6, 'top_k': 2}


def reach(program, rule='tokenwise') -> reachable.Reached:
  return reachable.reach(
      program, combinations.RULES[rule], combinations.enumerator(rule)
  )


def check(pair: pairs.Pair, policy=draft_length.Fixed(), samplings=SAMPLINGS):  # noqa: B008
  """Check the outputs of a pair at some samplings."""
  program = step_programs.Program(pair, policy)
  for sampling in samplings:
    program = program.with_sampling(sampling_lib.Sampling(**sampling))
    assert combinations.error(program, reach(program)) < pair.tolerance


@pytest.mark.usefixtures('float64')
class TestTables:

  @pytest.mark.parametrize(
      ('name', 'gamma'), [('bigram', 1), ('short vocabulary', 3)]
  )
  def test_drafters_that_are_tables(self, name, gamma):
    check(tiny_drafters.make(name, gamma))

  def test_drafts_of_both_kinds(self):
    """Drafts of any length, drawn and chosen, by the last outcome."""
    pair = tiny_drafters.of_tables(mixed_drafts.MixedDrafts(VOCAB, 3))
    policy = mixed_drafts.KeyPolicy()
    check(pair, policy, [{}, {'temperature': 0.6, 'top_k': 2}])


def error_of_drawn(program, find_logits, drafted) -> float:
  """Return the error of drafts, see `draft_error`, without copied tokens."""
  drawn = [
      (example, prefix + tokens[:i], tokens[i : i + 1], [q])
      for example, prefix, tokens, probs in drafted
      for i, q in enumerate(probs)
      if np.max(q) < 1
  ]
  return combinations.draft_error(program, find_logits, drawn)


def error_after_lookup() -> float:
  """Return the error of what a draft model drafts after tokens of lookup."""
  program = step_programs.Program(
      tiny_drafters.make('lookup then model'), draft_length.Fixed()
  )
  reach(program)
  (known,) = program.known.values()
  drafted = [
      (*place, tokens, np.frombuffer(probs).reshape(len(tokens), -1))
      for *place, tokens, probs in known
  ]
  logits = tiny_drafters.draft_tables()
  find_logits = lambda example, tokens: logits[
      example, *table_model.place(tokens)
  ]
  return error_of_drawn(program, find_logits, drafted)


@pytest.mark.usefixtures('float64')
def test_tokens_of_a_drafter_before_are_fed(monkeypatch):
  assert error_after_lookup() < 1e-12
  after = in_order.DraftersInOrder._after
  monkeypatch.setattr(
      in_order.DraftersInOrder,
      '_after',
      lambda *args: after(*args)._replace(num_pending=0),
  )
  assert error_after_lookup() > 1e-3


@pytest.fixture
def exact_products():
  with jax.default_matmul_precision('highest'):
    yield


EXIT = dataclasses.replace(CONFIG, num_decoder_layers=1)


def exit_params(head=None):
  """Return the target's first layer, with a head of its own if given."""
  params = tiny.params(CONFIG)
  if head is not None:
    params = CONFIG.put_head(params, head)
  decoder = {k: v for k, v in params['decoder'].items() if k != 'layers_1'}
  return {**params, 'decoder': decoder}


def other_head():
  """Return the head of another random network."""
  return CONFIG.take_head(tiny.params(CONFIG, noise=1.0))


def with_other_head():
  drafter = tiny.early_exit(CONFIG, 1)
  return dataclasses.replace(drafter, params=other_head())


# What drafts, the network that it should draft with, and its parameters: for a
# T5, and below for a decoder alone.
NETWORKS = {
    'draft model': lambda: (
        model_drafting.of_model(tiny.model(CONFIG, noise=0.5)),
        CONFIG,
        tiny.params(CONFIG, noise=0.5),
    ),
    'early exit': lambda: (
        tiny.early_exit(CONFIG, 1), EXIT, exit_params()
    ),
    'head': lambda: (with_other_head(), EXIT, exit_params(other_head())),
    'shared encoder': lambda: (
        model_drafting.of_model(
            tiny.model(tiny_drafters.DECODER, noise=0.5)
        ),
        tiny_drafters.DECODER,
        tiny.params(tiny_drafters.DECODER, noise=0.5),
    ),
}  # fmt: skip
ALONE = tiny_drafters.ALONE
OF_ALONE = {
    'draft model of a decoder alone': lambda: (
        model_drafting.of_model(tiny_drafters.alone(1)),
        ALONE,
        tiny_decoders.params(ALONE, 1),
    ),
    'early exit of a decoder alone': lambda: (
        tiny.early_exit(ALONE, 1),
        ALONE.first_layers(1),
        tiny_decoders.params(ALONE),
    ),
}
NETWORKS |= OF_ALONE
# By gamma. With one draft token, a network falls behind after its acceptance.
LIMITS = {1: (3, 2), 2: (3, 2), 3: (2, 1)}


@functools.cache  # the expected distributions are computed once
def expected(name: str, gamma: int) -> tiny_drafters.FindLogits:
  _, config, params = NETWORKS[name]()
  if name in OF_ALONE:
    return tiny_drafters.alone_logits(params, config)
  depth = max(LIMITS[gamma]) - 1 + gamma
  return tiny_drafters.teacher_forced(config, params, depth)


def make_program(name: str, gamma: int, sampling) -> step_programs.Program:
  drafter, *_ = NETWORKS[name]()
  target = ALONE if name in OF_ALONE else CONFIG
  return step_programs.Program(
      tiny_drafters.of_network(drafter, gamma, LIMITS[gamma], target),
      draft_length.Fixed(),
      sampling_lib.Sampling(**sampling),
  )


def first_drafts(program):
  """Return what is drafted before any token, see `draft_error`."""
  rule = combinations.RULES['tokenwise']
  state = program.begin(rule)
  examples = np.arange(len(program.pair.limits))
  found = all_drafts.drafts(program, rule, examples, state)
  return [(each.row, (), each.tokens, each.probs) for each in found]


@pytest.mark.usefixtures('exact_products')
@pytest.mark.parametrize(
    ('name', 'gamma', 'sampling'),
    [
        ('draft model of a decoder alone', 1, {}),
        ('early exit', 1, {'temperature': 0.6, 'top_k': 2}),
        ('head', 1, {}),
        ('shared encoder', 1, {'temperature': 0.6, 'top_k': 2}),
        *(
            pytest.param(name, gamma, {}, marks=pytest.mark.exhaustive)
            for name, gamma in (
                ('draft model', 1),
                ('early exit', 3),
                ('shared encoder', 3),
                ('draft model of a decoder alone', 2),
                ('early exit of a decoder alone', 3),
            )
        ),
    ],
)
def test_outputs_and_drafts_of_networks(name, gamma, sampling):
  program = make_program(name, gamma, sampling)
  assert combinations.error(program, reach(program)) < 2e-5
  found = combinations.draft_error(program, expected(name, gamma))
  assert found < 2e-5


class Once(repeat_last.RepeatLast):
  """Drafts the last token of each row once."""

  def propose(self, params, memory, state, view):
    draft, *others = super().propose(params, memory, state, view)
    lengths = jnp.minimum(draft.lengths, 1)
    return draft.replace(lengths=lengths), *others


@pytest.mark.usefixtures('exact_products')
def test_tokens_of_two_drafters_before_are_fed():
  """Layers of the target read all of them, and a table the last two tokens."""
  gamma = 3
  pair = tiny_drafters.of_network(tiny.early_exit(CONFIG, 1), gamma)
  once = Once(pair.target, gamma)
  in_turn = in_order.DraftersInOrder((once, once, pair.drafter), pair.target)
  pair = dataclasses.replace(
      pair, drafter=in_turn, draft_params=(None, None, pair.draft_params)
  )
  program = step_programs.Program(pair, draft_length.Fixed())
  found = first_drafts(program)
  assert error_of_drawn(program, expected('early exit', gamma), found) < 2e-5


def _deeper(original):
  """Draft with one layer more."""

  def propose(self, *args):
    deeper = dataclasses.replace(self, exit_layer=self.exit_layer + 1)
    return original(deeper, *args)

  return propose


def _last_layers(original):
  def share(self, params, target):
    cross = target.memory.cross[-self.exit_layer :]
    shared = original(self, params, target)
    return shared._replace(memory=target.memory.replace(cross=cross))

  return share


def _late(original):
  def propose(self, params, memory, state, view):
    late = view._replace(num_tokens=view.num_tokens + 1)
    return original(self, params, memory, state, late)

  return propose


def _written_behind(original):
  """Leave the draft's entries where committed tokens are."""

  def propose(self, params, memory, state, view):
    draft, state = original(self, params, memory, state, view)
    roll = lambda x: jnp.roll(x, -1, axis=-1)
    cache = jax.tree.map(roll, draft.target_cache)
    return draft.replace(target_cache=cache), state

  return propose


def _padding_is_read(original):
  def init(self, params, context, rows, slots):
    inputs = jnp.maximum(context.inputs, 0)
    context = context._replace(inputs=inputs)
    return original(self, params, context, rows, slots)

  return init


def _not_rewound(original):
  def propose(self, params, memory, state, view):
    fed = state.replace(num_fed=view.num_tokens)  # also where it was not
    return original(self, params, memory, fed, view)

  return propose


_EXIT = early_exit.ExitDrafter
MUTANTS = {
    'one layer too many': ('early exit', _EXIT, 'propose', _deeper),
    'inputs of the last layers': ('early exit', _EXIT, '_share', _last_layers),
    'one position too late': ('early exit', _EXIT, 'propose', _late),
    'cache left behind': ('early exit', _EXIT, 'propose', _written_behind),
    'padding is read': (
        'shared encoder', draft_model.ModelDrafter, 'init', _padding_is_read,
    ),
    'cache that is not rewound': (
        'shared encoder', draft_model.ModelDrafter, 'propose', _not_rewound,
    ),
}  # fmt: skip


@pytest.mark.usefixtures('exact_products')
@pytest.mark.parametrize(
    'name',
    exhaustive.all_but(['cache left behind', 'padding is read'], MUTANTS),
)
def test_mutants_are_found(name, monkeypatch):
  drafter, owner, attribute, make = MUTANTS[name]
  monkeypatch.setattr(owner, attribute, make(getattr(owner, attribute)))
  program = make_program(drafter, 1, {})
  try:
    first = first_drafts(program)
    if combinations.draft_error(program, expected(drafter, 1), first) > 2e-3:
      return
    found = combinations.error(program, reach(program))
  except AssertionError:  # found by a check on the way
    return
  of_drafts = combinations.draft_error(program, expected(drafter, 1))
  assert max(found, of_drafts) > 2e-3

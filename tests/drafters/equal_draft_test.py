# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A draft equal to its target is accepted whole, whatever drafts before it.

What is drafted in vain costs only time, so that no test of outputs sees it.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import in_order
from speculative_t5x.drafters import nothing
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.testing import table_model
from tests import tiny

ROWS, LENGTH, GAMMA, VOCAB = 4, 14, 4, 5
CONFIG = tiny.config()
NETWORK = network_lib.NetworkModel(CONFIG, t5.SPECIAL_IDS)
TABLES = table_model.Model(VOCAB)
EOS = t5.SPECIAL_IDS.end


def known_length(num_tokens, row):
  """Return how many tokens `Known` drafts, from 0 to more than a block."""
  return (num_tokens + row) % (GAMMA + 2)


@dataclasses.dataclass(frozen=True)
class Known:
  """Drafts known outputs: none, some or all of a block, by row and place.

  Its parameters are the outputs [rows, length] and their numbers of tokens.
  """

  form: forms.Chain

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, view):
    outputs, num_known = params
    at = view.num_tokens[:, None] + jnp.arange(self.form.gamma)
    room = ((0, 0), (0, self.form.gamma))
    tokens = jnp.take_along_axis(jnp.pad(outputs, room), at, axis=1)
    row = jnp.arange(len(outputs), dtype=jnp.int32)
    lengths = known_length(view.num_tokens, row)
    most = jnp.minimum(view.num_wanted, num_known - view.num_tokens)
    draft = contracts.Draft(tokens, jnp.minimum(lengths, most))
    return draft, state


def decode(target, params, inputs, drafter, draft_params, policy=None):
  """Decode greedily, and count."""
  greedy = sampling.Sampling(0.0)

  @jax.jit
  def run(params, draft_params, inputs):
    setup = state_lib.Setup(
        target, params, drafter, draft_params,
        policy=policy or draft_length.Fixed(),
    )  # fmt: skip
    keys = state_lib.row_keys(0, jnp.arange(ROWS))
    limits = jnp.array([LENGTH, LENGTH - 1, LENGTH - 3, LENGTH - 6])
    begun = state_lib.begin(
        setup, inputs, keys, limits, greedy, length=LENGTH
    )
    return loop.decode(setup, begun, outcome_lib.COUNTING)

  return jax.device_get(run(params, draft_params, inputs))


@pytest.fixture(scope='module')
def network():
  """Return parameters, inputs and what plain decoding makes of them."""
  params, inputs = tiny.params(CONFIG), tiny.encoder_tokens(ROWS, 6)
  plain, *_ = decode(NETWORK, params, inputs, nothing.NoDrafter(), None)
  return params, inputs, plain


@pytest.fixture(scope='module')
def tables():
  """Return tables of which some end, inputs, and the plain outputs."""
  params = table_model.random_logits(10, ROWS, VOCAB).astype(np.float32)
  inputs = jnp.arange(ROWS, dtype=jnp.int32)
  plain, *_ = decode(TABLES, params, inputs, nothing.NoDrafter(), None)
  ends = np.any(plain.sequences == EOS, axis=1)
  assert ends.any() and not ends.all()
  return params, inputs, plain


def check_accepted_whole(target, found, drafter, draft_params):
  """Check every draft, all counts, and that every block is full."""
  params, inputs, plain = found
  known = plain.sequences, plain.num_tokens
  state, work, counts = decode(
      target,
      params,
      inputs,
      in_order.DraftersInOrder((Known(forms.Chain(GAMMA)), drafter), target),
      (known, draft_params),
  )
  np.testing.assert_array_equal(state.sequences, plain.sequences)
  np.testing.assert_array_equal(counts.num_accepted, counts.num_computed)
  full_blocks = -(-plain.num_tokens // (GAMMA + 1))
  np.testing.assert_array_equal(state.num_calls, full_blocks)
  assert work.num_steps == full_blocks.max()


def network_drafters(params):
  """Return drafters that are the target, and their parameters."""
  whole = tiny.early_exit(CONFIG, CONFIG.num_decoder_layers)
  return {
      'draft model': (
          draft_model.ModelDrafter(NETWORK, GAMMA, CONFIG.vocab_size),
          params,
      ),
      'early exit': (whole.make(NETWORK, GAMMA), whole.params),
  }


@pytest.mark.parametrize('name', ['draft model', 'early exit'])
def test_networks(network, name):
  drafter, draft_params = network_drafters(network[0])[name]
  check_accepted_whole(NETWORK, network, drafter, draft_params)


def test_tables(tables):
  drafter = draft_model.ModelDrafter(TABLES, GAMMA, VOCAB)
  check_accepted_whole(TABLES, tables, drafter, tables[0])


@dataclasses.dataclass(frozen=True)
class UpTo(draft_length.Fixed):
  """Stops a draft when it has a number of tokens, those before included."""

  number: int = 2
  name = 'up_to'
  is_constant = False

  def begin(self, state, num_drafted, gamma):
    return num_drafted

  def continues(self, state, progress, logits, tokens, gamma):
    return progress + 1 < self.number, progress + 1


def test_policies_see_the_tokens_of_drafters_before(tables):
  params, inputs, plain = tables
  known = plain.sequences, plain.num_tokens
  model = draft_model.ModelDrafter(TABLES, GAMMA, VOCAB)
  drafter = in_order.DraftersInOrder((Known(forms.Chain(GAMMA)), model), TABLES)
  *_, counts = decode(TABLES, params, inputs, drafter, (known, params), UpTo())
  expected = np.zeros_like(counts.drafted_histogram)
  for row, num_tokens in enumerate(plain.num_tokens.tolist()):
    at = 0
    while at < num_tokens:
      num_known = min(known_length(at, row), num_tokens - at)
      # The model drafts at least one token, and a second one only if it began.
      length = min(max(num_known + 1, 2), GAMMA, num_tokens - at)
      expected[row, length] += 1
      at += length + 1
  np.testing.assert_array_equal(counts.drafted_histogram, expected)


class OneRow(draft_length.Fixed):
  """Wants draft tokens of the first row alone."""

  name = 'one_row'
  is_constant = False

  def num_wanted(self, state, num_remaining, gamma):
    return jnp.where(jnp.arange(ROWS) == 0, gamma, 0)


def test_an_ended_row_drafts_no_more(tables):
  params, inputs, plain = tables
  drafter = draft_model.ModelDrafter(TABLES, GAMMA, VOCAB)
  _, work, _ = decode(TABLES, params, inputs, drafter, params, OneRow())
  assert plain.num_tokens[0] == 3 and plain.sequences[0, 2] == EOS
  # The three tokens are one draft; the target calls after it have width 1.
  assert work.num_draft_steps == 3
  assert work.calls_by_width.tolist() == [plain.num_tokens.max() - 1, 0, 1, 0]

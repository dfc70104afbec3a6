# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Training of heads that draft blocks."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.training import batches
from speculative_t5x.training import block_distillation
from speculative_t5x.training import divergences
from speculative_t5x.training import draft_acceptance
from tests import tiny

TARGET = tiny.config(vocab_size=5)
HEAD = dataclasses.replace(
    TARGET,
    num_encoder_layers=0,
    num_decoder_layers=1,
    num_masks=2,
    recurrence_dim=3,
)
INPUTS = np.array([(2, 3, 1, -1), (4, 4, 2, 1)], np.int32)
TEXTS = np.array([(2, 4, 3, 2, 1, -1), (3, 1, -1, -1, -1, -1)], np.int32)
PAIRS = batches.TokenPairs(INPUTS, TEXTS)


def objective(divergence=divergences.total_variation, **changes):
  return block_distillation.BlockDistillation(
      tiny.params(TARGET),
      TARGET,
      dataclasses.replace(HEAD, **changes),
      divergence,
      anchor_period=1,
  )


@functools.cache
def params(**changes):
  return tiny.params(dataclasses.replace(HEAD, **changes), noise=0.5)


def alone(network, own, example, anchor) -> np.ndarray:
  """Return the logits of one block, which is read as a text of its own."""
  ids = [0, *TEXTS[example, :anchor]]
  ids += [network.vocab_size + i for i in range(network.num_masks)]
  encoded = TARGET.encode(tiny.params(TARGET), jnp.asarray(INPUTS))
  network_apply = functools.partial(network.apply, own)
  crosses = network_apply(encoded[example][None], method='cross_keys_values')

  def read(module):
    x = module.decoder.score(
        jnp.int32([ids]),
        jnp.tril(jnp.ones((len(ids),) * 2, bool))[None],
        crosses,
        jnp.asarray(INPUTS[example] >= 0)[None, None],
    )
    return module.decoder.logits_of(x)

  logits, driven = network_apply(method=read)
  logits, driven = logits[0, anchor:], driven[0, anchor:]
  if network.recurrence_dim is None:
    return np.asarray(logits)
  state, found = jnp.zeros_like(driven[0]), []
  for i, own_logits in enumerate(logits):
    token = [0, *TEXTS[example]][anchor + i]
    added, state = network_apply(
        state, jnp.int32(token), driven[i], method='follow'
    )
    found.append(own_logits + added)
  return np.asarray(found)


@pytest.mark.parametrize('recurrence_dim', [3, None])
def test_blocks_of_a_text_know_nothing_of_each_other(recurrence_dim):
  """All blocks at once have the logits of each block alone."""
  changes = dict(recurrence_dim=recurrence_dim)
  of_blocks = objective(**changes)
  with jax.default_matmul_precision('highest'):
    _, logits, tokens = of_blocks.read(params(**changes), PAIRS)
    assert logits.shape == (2, 6, 3, 5) and tokens.shape == (2, 6, 4)
    for example, count in enumerate((5, 2)):
      for anchor in range(count):
        expected = alone(
            of_blocks.draft, params(**changes), example, anchor
        )
        # The recurrence knows tokens of the text alone.
        known = (TEXTS[example, anchor : anchor + 3] >= 0).sum()
        np.testing.assert_allclose(
            logits[example, anchor, :known], expected[:known], atol=1e-5
        )
  assert tokens[0, 3].tolist() == [2, 1, -1, -1]


def test_the_gradient_is_that_of_the_accepted_tokens():
  """With the total variation, by the rates of each block."""
  of_blocks = objective()

  def accepted(own):
    target, draft, tokens = of_blocks.read(own, PAIRS)
    rates = 1 - divergences.total_variation(target, draft)
    rates = jnp.where(tokens[..., :-1] >= 0, rates, 0)
    return -jnp.sum(jnp.cumprod(rates, axis=-1))

  loss = lambda own: objective().loss(own, PAIRS, None)[0]
  one, other = jax.grad(loss)(params()), jax.grad(accepted)(params())
  assert max(float(jnp.max(jnp.abs(x))) for x in jax.tree.leaves(one)) > 0.01
  jax.tree.map(
      functools.partial(np.testing.assert_allclose, atol=1e-5), one, other
  )


def test_each_token_is_an_anchor_as_often():
  of_blocks = objective().replace(anchor_period=3)
  firsts = set()
  for seed in range(12):
    _, _, tokens = of_blocks.read(params(), PAIRS, jax.random.key(seed))
    firsts.add(tuple(np.asarray(tokens)[0, :, 0].tolist()))
  assert firsts == {(2, 2), (4, 1), (3, -1)}


def test_validation_anchors_other_tokens_of_each_row():
  """Were they the same, texts' first tokens would count too often."""
  of_blocks = objective().replace(anchor_period=3)
  same = batches.TokenPairs(INPUTS[[0] * 3], TEXTS[[0] * 3])
  _, logits, tokens = of_blocks.read(params(), same)
  _, expected, every = objective().read(params(), PAIRS)
  anchors = [(0, 3), (1, 4), (2, 5)]
  for row, at in enumerate(anchors):
    np.testing.assert_array_equal(tokens[row], every[0, at, :])
    is_known = np.asarray(every)[0, at, :-1] >= 0
    np.testing.assert_allclose(
        logits[row][is_known], expected[0, at, :][is_known], atol=1e-5
    )


@pytest.mark.parametrize('temperature', [0, 1])
def test_validation_counts_tokens_of_blocks(temperature):
  """From each token on, one by one."""
  of_blocks = objective()
  validation = draft_acceptance.validation(
      of_blocks, {t: batches.in_order(PAIRS, 2) for t in (0, 1)}
  )
  found = validation(params())
  p, q, tokens = (
      np.asarray(x, np.float64) for x in of_blocks.read(params(), PAIRS)
  )
  p, q = (np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in (p, q))
  made, firsts = [], []
  for place in zip(*np.nonzero(tokens[..., 0] >= 0)):
    made.append(1.0)
    reached = 1.0
    for i, token in enumerate(tokens[place][:3].astype(int)):
      if tokens[place][i + 1] < 0:
        break
      if temperature:
        reached *= min(1, q[place][i, token] / p[place][i, token])
      else:
        reached *= p[place][i].argmax() == q[place][i].argmax()
      made[-1] += reached
    firsts.append(np.minimum(p[place][0], q[place][0]).sum())
  name = f'tokens_per_call_7_t{temperature}'
  assert found[name] == pytest.approx(np.mean(made), abs=1e-5)
  assert found['acceptance_t1'] == pytest.approx(np.mean(firsts), abs=1e-5)
  score = sum(found[f'tokens_per_call_7_t{t}'] for t in (0, 1)) / 2
  assert validation.score(found) == pytest.approx(score)

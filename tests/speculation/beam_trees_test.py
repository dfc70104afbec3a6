# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A speculative beam search finds what a plain one finds, whatever is drafted.

Tables give the same logits to both, so that tokens, order, scores and numbers
of steps are equal bit for bit.
"""

import dataclasses
import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.drafters import beam_drafts
from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.testing import table_model
from tests import tiny

EXAMPLES, LENGTH, VOCAB = 6, 7, 5
LIMITS = np.int32([7, 7, 5, 7, 1, 0])
END = table_model.SPECIAL_IDS.end
MODEL = table_model.Model(VOCAB)
PLACES = np.arange(EXAMPLES, dtype=np.int32)
CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=2)
INPUTS = tiny.encoder_tokens(2, 9)[1:]
PARAMS = tiny.params(CONFIG)


@dataclasses.dataclass(frozen=True)
class Given:
  """Drafts trees of given shape: the same in every call, but for the roots."""

  max_draft_tokens: int
  tokens: tuple[int, ...]
  parents: tuple[int, ...]
  is_there: tuple[bool, ...]

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, roots):
    drafted = beam_trees.Tree(
        *(
            jnp.broadcast_to(jnp.asarray(x, dtype), (EXAMPLES, len(x)))
            for x, dtype in (
                (self.tokens, jnp.int32),
                (self.parents, jnp.int32),
                (self.is_there, bool),
            )
        )
    )
    join = lambda *x: jnp.concatenate(x, axis=1)
    return jax.tree.map(join, roots.tree(), drafted), None

  def commit(self, state, block, rows, paths, num_cached):
    return None


def random_tree(seed, beams, gamma, size):
  """Return a tree with duplicates, chains, ends and nodes that fill it."""
  rng = np.random.default_rng(seed)
  depths, parents = [0] * beams, []
  for _ in range(size):
    parent = rng.choice([i for i, x in enumerate(depths) if x < gamma])
    parents.append(int(parent))
    depths.append(depths[parent] + 1)
  tokens = rng.integers(0, VOCAB, size).tolist()
  return Given(gamma, (*tokens,), (*parents,), (*(rng.random(size) < 0.8),))


def complete_tree(beams, gamma):
  """Return the tree of all tokens behind all roots."""
  parents, tokens, level = [], [], list(range(beams))
  for _ in range(gamma):
    first = beams + len(parents)
    pairs = list(itertools.product(level, range(VOCAB)))
    parents += [parent for parent, _ in pairs]
    tokens += [token for _, token in pairs]
    level = list(range(first, first + len(pairs)))
  return Given(gamma, (*tokens,), (*parents,), (True,) * len(tokens))


def tables(seed=3):
  found = table_model.random_logits(seed, EXAMPLES, VOCAB)
  found[0, ..., END] += 3
  found[1, ..., END] -= 30
  return jnp.asarray(found, jnp.float32)


@functools.cache
def plain(beams, penalty):
  run = functools.partial(beams_lib.search, MODEL, beams=beams, length=LENGTH)
  return jax.device_get(
      jax.jit(run)(tables(), PLACES, LIMITS, np.float32(penalty))
  )


def search(drafter, beams, penalty, draft_params=None):
  run = functools.partial(
      beam_trees.search, MODEL, beams=beams, length=LENGTH
  )
  return jax.device_get(
      jax.jit(run, static_argnums=1)(
          tables(), drafter, draft_params, PLACES, LIMITS, np.float32(penalty)
      )
  )


def check(found, expected):
  jax.tree.map(np.testing.assert_array_equal, found, expected)


DRAFTERS = {
    'nothing': lambda beams: Given(0, (), (), ()),
    'random': lambda beams: random_tree(1, beams, 3, 12),
    'other random': lambda beams: random_tree(2, beams, 2, 9),
    'complete': lambda beams: complete_tree(beams, 2),
    'under one root': lambda beams: Given(
        1, (*range(VOCAB),), (beams - 1,) * VOCAB, (True,) * VOCAB
    ),
}


@pytest.mark.parametrize('name', DRAFTERS)
@pytest.mark.parametrize(('beams', 'penalty'), [(2, 0.6), (4, 0.0), (3, 1.0)])
def test_any_tree(name, beams, penalty):
  drafter, expected = DRAFTERS[name](beams), plain(beams, penalty)
  found, calls = search(drafter, beams, penalty)
  check(found, expected)
  fewest = -(-expected.num_steps // (drafter.max_draft_tokens + 1))
  assert np.all((calls >= fewest) & (calls <= expected.num_steps))
  if name == 'nothing':
    np.testing.assert_array_equal(calls, expected.num_steps)
  if name == 'complete':  # a call makes as many steps as it can
    np.testing.assert_array_equal(calls, fewest)


@pytest.mark.parametrize('noise', [0.0, 0.4])
def test_beams_of_a_draft_model(noise):
  other = table_model.random_logits(8, EXAMPLES, VOCAB)
  draft_params = tables() + jnp.asarray(noise * other, jnp.float32)
  model = draft_model.DraftModel(MODEL, 3, VOCAB)
  expected = plain(3, 0.6)
  found, calls = search(
      beam_drafts.BeamDrafts(model, 5), 3, 0.6, draft_params
  )
  check(found, expected)
  saved = expected.num_steps.sum() / calls.sum()
  assert saved > (2 if noise == 0 else 1.2)


class TestNetwork:
  """Logits of all paths are those of a decoder that decodes one path alone."""

  GAMMA, BEAMS, START = 3, 2, 4

  def test_paths(self):
    params = tiny.model(CONFIG).params
    network = tiny.drafter(tiny.model(CONFIG), 1).model
    given = random_tree(5, self.BEAMS, self.GAMMA, 10)
    prefixes = np.int32([[0, 5, 9, 30, 7], [0, 5, 8, 44, 12]])
    tokens = [*prefixes[:, -1], *(3 + 7 * np.array(given.tokens))]
    tree = beam_trees.Tree(
        jnp.int32([tokens]),
        jnp.int32([[*range(self.BEAMS), *given.parents]]),
        jnp.ones((1, len(tokens)), bool),
    )
    roots = beam_trees.Roots(
        tree.tokens[:, : self.BEAMS],
        jnp.int32([self.START]),
        jnp.zeros((1, self.BEAMS)),
    )
    tree_nodes = beam_trees.nodes_of(tree, roots, self.BEAMS, self.GAMMA)

    @jax.jit
    def run(params):
      slots = self.START + self.GAMMA + 4
      started = network.start(params, INPUTS, self.BEAMS, slots)
      cached = started.cache
      _, cached = network.decode(
          params, started.memory, cached, prefixes,
          jnp.zeros(self.BEAMS, jnp.int32), None,
      )  # fmt: skip
      # The last token of each row is decoded again, as the root of a tree, and
      # what is past the cached slots must not matter.
      stale = lambda x: x.at[..., self.START :].set(jnp.nan)
      cached = jax.tree.map(stale, cached)
      block = network.new_block(cached, 1, len(tokens))
      size = jnp.int32([self.START])
      # In two calls: those that come first are seen by the others.
      one, block = network.decode_tree(
          params, started.memory, cached, block, tree_nodes, 0, 6, size
      )
      two, block = network.decode_tree(
          params, started.memory, cached, block, tree_nodes, 6,
          len(tokens) - 6, size,
      )  # fmt: skip
      return started, cached, block, jnp.concatenate([one, two], axis=1)

    with jax.default_matmul_precision('highest'):
      started, cached, block, logits = run(params)
    sees = np.array(tree_nodes.sees[0])
    for node, path in enumerate(sees):
      root = int(tree_nodes.roots[0, node])
      outputs = [*prefixes[root, 1:-1], *np.array(tokens)[path]]
      alone = tiny.teacher_forced(
          CONFIG, PARAMS, INPUTS, jnp.int32([[*outputs, 0]])
      )
      np.testing.assert_allclose(logits[0, node], alone[0, -1], atol=2e-5)
    self._check_commit(params, network, started, cached, block, tree, prefixes)

  def _check_commit(
      self, params, network, started, cached, block, tree, prefixes
  ):
    """Rows change their places, and go on along paths of the tree."""
    parents = np.array(tree.parents[0])
    leaf = len(parents) - 1
    path = [leaf]
    while parents[path[0]] != path[0]:
      path.insert(0, int(parents[path[0]]))
    rows = jnp.int32([[path[0], path[0]]])  # both continue the same one
    paths = jnp.int32([[path, path]])
    size = jnp.int32([self.START])
    with jax.default_matmul_precision('highest'):
      cache = network.commit(cached, block, rows, paths, size)
      logits, _ = network.decode(
          params, started.memory, cache,
          jnp.int32([[11], [17]]),
          jnp.full(2, self.START + len(path), jnp.int32), None,
      )  # fmt: skip
    before = [*prefixes[path[0], 1:-1], *np.array(tree.tokens[0])[path]]
    for row, token in enumerate((11, 17)):
      alone = tiny.teacher_forced(
          CONFIG, PARAMS, INPUTS, jnp.int32([[*before, token, 0]])
      )
      np.testing.assert_allclose(logits[row, -1], alone[0, -1], atol=2e-5)


@pytest.mark.parametrize('bias_per_layer', (False, True))
def test_networks(bias_per_layer):
  """A T5 and a draft of it find what the plain search finds."""
  config = dataclasses.replace(CONFIG, bias_per_layer=bias_per_layer)
  target, draft = tiny.model(config), tiny.model(config, noise=0.15)
  model = tiny.drafter(target, 1).model
  drafter = beam_drafts.BeamDrafts(tiny.drafter(draft, 2), 6)
  inputs, limits = tiny.encoder_tokens(3, 9), np.int32([9, 6, 9])
  arguments = inputs, limits, np.float32(0.6)
  run = functools.partial(beam_trees.search, beams=3, length=9)
  plain_run = functools.partial(beams_lib.search, beams=3, length=9)
  with jax.default_matmul_precision('highest'):
    found, calls = jax.jit(run, static_argnums=(0, 2))(
        model, target.params, drafter, draft.params, *arguments
    )
    expected = jax.jit(plain_run, static_argnums=0)(
        model, target.params, *arguments
    )
  one, other = map(beams_lib.outputs, (found, expected))
  np.testing.assert_array_equal(one.tokens, other.tokens)
  np.testing.assert_allclose(one.scores, other.scores, atol=1e-5)
  assert np.sum(calls) < np.sum(expected.num_steps)

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
from speculative_t5x.drafters import tables as tables_lib
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import token_trees
from speculative_t5x.testing import table_model
from tests import exhaustive
from tests import tiny_cases

EXAMPLES, LENGTH, VOCAB = 6, 7, 5
LIMITS = np.int32([7, 7, 5, 7, 1, 0])
END = table_model.SPECIAL_IDS.end
MODEL = table_model.Model(VOCAB)
PLACES = np.arange(EXAMPLES, dtype=np.int32)


def brevity(penalty):
  return beam_scores.BrevityPenalty(np.float32(penalty))


@dataclasses.dataclass(frozen=True)
class Given:
  """Drafts trees of given shape: the same in every call, but for the roots."""

  form: forms.Tree
  tokens: tuple[int, ...]
  parents: tuple[int, ...]
  is_there: tuple[bool, ...]

  def init(self, params, context, rows, slots):
    return None, None

  def propose(self, params, memory, state, view):
    drafted = token_trees.Candidates(
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
    roots = token_trees.of_roots(
        jnp.zeros((EXAMPLES, self.form.roots), jnp.int32)
    )
    return jax.tree.map(join, roots, drafted), None

  def commit(self, state, made, rows, paths):
    return None


def given(beams, gamma, tokens, parents, is_there):
  form = forms.Tree(
      gamma, num_nodes=beams + len(tokens), width=VOCAB, roots=beams
  )
  return Given(form, (*tokens,), (*parents,), (*is_there,))


def random_tree(seed, beams, gamma, size):
  """Return a tree with duplicates, chains, ends and nodes that fill it."""
  rng = np.random.default_rng(seed)
  depths, parents = [0] * beams, []
  for _ in range(size):
    parent = rng.choice([i for i, x in enumerate(depths) if x < gamma])
    parents.append(int(parent))
    depths.append(depths[parent] + 1)
  tokens = rng.integers(0, VOCAB, size).tolist()
  return given(beams, gamma, tokens, parents, rng.random(size) < 0.8)


def complete_tree(beams, gamma):
  """Return the tree of all tokens behind all roots."""
  parents, tokens, level = [], [], list(range(beams))
  for _ in range(gamma):
    first = beams + len(parents)
    pairs = list(itertools.product(level, range(VOCAB)))
    parents += [parent for parent, _ in pairs]
    tokens += [token for _, token in pairs]
    level = list(range(first, first + len(pairs)))
  return given(beams, gamma, tokens, parents, [True] * len(tokens))


def tables(seed=3):
  found = table_model.random_logits(seed, EXAMPLES, VOCAB)
  found[0, ..., END] += 3
  found[1, ..., END] -= 30
  return jnp.asarray(found, jnp.float32)


@functools.partial(jax.jit, static_argnums=(0, 5, 6, 8))
def _run(
    model, params, scoring, inputs, limits, beams, drafter, draft_params, length
):
  setup = beams_lib.SearchSetup(model, params, scoring, drafter, draft_params)
  return beam_loop.search(setup, inputs, limits, beams=beams, length=length)


def run(
    model, params, scoring, inputs, limits, beams, drafter=None,
    draft_params=None, length=LENGTH,
):  # fmt: skip
  """Search to the end, as NumPy arrays."""
  return jax.device_get(
      _run(
          model, params, scoring, inputs, limits, beams, drafter, draft_params,
          length,
      )
  )  # fmt: skip


def plain(beams, penalty, params=None, model=MODEL):
  params = tables() if params is None else params
  return run(model, params, brevity(penalty), PLACES, LIMITS, beams).state


def search(
    drafter, beams, penalty, draft_params=None, params=None, model=MODEL
):
  params = tables() if params is None else params
  found = run(
      model, params, brevity(penalty), PLACES, LIMITS, beams, drafter,
      draft_params,
  )  # fmt: skip
  return found.state, found.counts


def check(found, expected):
  jax.tree.map(np.testing.assert_array_equal, found, expected)


DRAFTERS = {
    'nothing': lambda beams: given(beams, 0, (), (), ()),
    'random': lambda beams: random_tree(1, beams, 3, 12),
    'other random': lambda beams: random_tree(2, beams, 2, 9),
    'complete': lambda beams: complete_tree(beams, 2),
    'under one root': lambda beams: given(
        beams, 1, (*range(VOCAB),), (beams - 1,) * VOCAB, (True,) * VOCAB
    ),
}


@pytest.mark.parametrize('name', DRAFTERS)
@pytest.mark.parametrize(('beams', 'penalty'), [(2, 0.6), (4, 0.0), (3, 1.0)])
def test_any_tree(name, beams, penalty):
  drafter, expected = DRAFTERS[name](beams), plain(beams, penalty)
  found, counts = search(drafter, beams, penalty)
  check(found, expected)
  calls = counts.accepted_histogram.sum(axis=-1)
  np.testing.assert_array_equal(
      expected.num_steps, calls + counts.num_accepted
  )
  fewest = -(-expected.num_steps // (drafter.form.gamma + 1))
  assert np.all((calls >= fewest) & (calls <= expected.num_steps))
  if name == 'nothing':
    np.testing.assert_array_equal(calls, expected.num_steps)
  if name == 'complete':  # a call makes as many steps as it can
    np.testing.assert_array_equal(calls, fewest)


class FirstToken(table_model.Model):
  """The next token depends on the last one, and on the first of the output.

  That lies in the row that a hypothesis began at, several calls ago.
  """

  def look_up(self, params, tables, cache, offsets):
    read = lambda at: jnp.take_along_axis(cache, at, axis=1)
    first = jnp.where(offsets > 0, read(jnp.minimum(offsets, 1)), 0)
    return params[tables, first, read(offsets)]

  def decode_tree(
      self, params, memory, cache, block, nodes, first, count, num_cached
  ):
    new = slice(first, first + count)
    block = block.at[:, new].set(nodes.tokens[:, new])
    is_first = nodes.sees[:, new] & (nodes.positions[:, None] == 1)
    of_block = jnp.take_along_axis(block, jnp.argmax(is_first, -1), axis=1)
    of_rows = cache.reshape(len(memory), -1, cache.shape[-1])[..., 1]
    of_rows = jnp.take_along_axis(of_rows, nodes.roots[:, new], axis=1)
    of_rows = jnp.where(num_cached[:, None] > 1, of_rows, 0)
    token = jnp.where(jnp.any(is_first, -1), of_block, of_rows)
    return params[memory[:, None], token, block[:, new]], block


def test_rows_follow_their_hypotheses():
  model, drafter = FirstToken(VOCAB), random_tree(1, 3, 3, 12)
  found, _ = search(drafter, 3, 0.6, model=model)
  check(found, plain(3, 0.6, model=model))


@pytest.mark.parametrize('noise', [0.0, 0.4])
def test_beams_of_a_draft_model(noise):
  other = table_model.random_logits(8, EXAMPLES, VOCAB)
  draft_params = tables() + jnp.asarray(noise * other, jnp.float32)
  model = draft_model.ModelDrafter(MODEL, 3, VOCAB)
  expected = plain(3, 0.6)
  found, counts = search(
      beam_drafts.of(model, 3, 5), 3, 0.6, draft_params
  )
  check(found, expected)
  calls = counts.accepted_histogram.sum(axis=-1)
  if noise == 0:  # the draft model's beams are the target's, and more
    np.testing.assert_array_equal(calls, -(-expected.num_steps // 4))
  assert expected.num_steps.sum() > 1.2 * calls.sum()


some_networks = pytest.mark.parametrize(
    'name', exhaustive.all_but(['t5', 'gemma3'], tiny_cases.CASES)
)


def two_cycles():
  """Return tables by which one hypothesis goes round 2 3 4, one 3 2 4.

  The first is the better one up to its 4, so that they change their rows.
  """
  shares = np.full((EXAMPLES, VOCAB + 1, VOCAB + 1, VOCAB), 1e-9)
  shares[:, 0, 0, 2:4] = 0.5
  for cycle in (2, 3, 4), (3, 2, 4):
    for last, token in zip(cycle, (*cycle[1:], cycle[0])):
      shares[:, cycle[0], last, token] = 1
  shares[:, 2, 3, 4], shares[:, 2, 3, 0] = 0.6, 0.4
  return jnp.asarray(np.log(shares), jnp.float32)


def test_chains():
  """Of a drafter with a cache, whose rows follow the hypotheses."""
  params, model = two_cycles(), FirstToken(VOCAB)
  drafter = draft_model.ModelDrafter(model, 3, VOCAB)
  expected = plain(2, 0.6, params, model)
  found, counts = search(drafter, 2, 0.6, params, params, model)
  check(found, expected)
  # A first step, since a single chain has one hypothesis, and 4 per call.
  calls = [-(-max(limit - 1, 0) // 4) + (limit > 0) for limit in LIMITS]
  np.testing.assert_array_equal(
      counts.accepted_histogram.sum(axis=-1), calls
  )


def test_beams_of_a_draft_model_with_another_start():
  """It begins with its own, and its rows follow the hypotheses."""

  class Draft(FirstToken):

    def start(self, *args):
      started = super().start(*args)
      return started._replace(first_tokens=started.first_tokens + 4)

  # The better one falls behind in the second call, so that they change places.
  behind = jnp.log(jnp.float32([0.55, 0.45]))
  params = two_cycles().at[:, 3, 4, jnp.array([3, 0])].set(behind)
  model = FirstToken(VOCAB)
  draft_params = params.at[:, 0, 4].set(params[:, 0, 0])
  draft_params = draft_params.at[:, 0, 0].set(params[:, 0, 0, ::-1])
  drafter = draft_model.ModelDrafter(Draft(VOCAB), 1, VOCAB)
  found, counts = search(
      beam_drafts.of(drafter, 2, 2), 2, 0.6, draft_params, params, model
  )
  check(found, plain(2, 0.6, params, model))
  np.testing.assert_array_equal(
      counts.accepted_histogram.sum(axis=-1), -(-LIMITS // 2)
  )


def test_trees_of_tables():
  """Of n-grams and the like, which have no cache."""
  uniform = tables_lib.make_uniform(MODEL, 2)
  drafter = beam_drafts.of(uniform, 2)
  found, _ = search(drafter, 2, 0.6)
  check(found, plain(2, 0.6))
  assert drafter.form.roots == 2


class TestPaths:
  """Logits of all paths are those of a decoder that decodes one path alone."""

  GAMMA, BEAMS = 3, 2
  # Of each row; the last token of each is the root of a tree.
  PREFIXES = np.int32([[[5, 9, 30, 7], [5, 8, 44, 12]]] * 2) + [[[0]], [[9]]]

  @some_networks
  def test_paths(self, name):
    case = tiny_cases.CASES[name]()
    prefixes = self.PREFIXES
    examples, beams, count = prefixes.shape
    given = random_tree(5, beams, self.GAMMA, 10)
    drafted = np.tile(3 + 7 * np.array(given.tokens), (examples, 1))
    tree = token_trees.Candidates(
        jnp.int32(np.concatenate([prefixes[..., -1], drafted], axis=1)),
        jnp.int32([[*range(beams), *given.parents]] * examples),
        jnp.ones((examples, beams + 10), bool),
    )
    with jax.default_matmul_precision('highest'):
      started, cached, block, nodes, logits = self._decode(case, tree)
    sees, tokens = np.array(nodes.sees), np.array(tree.tokens)
    for example, node in np.ndindex(tokens.shape):
      root = int(nodes.roots[example, node])
      path = tokens[example][sees[example, node]]
      output = [*prefixes[example, root, :-1], *path]
      np.testing.assert_allclose(
          logits[example, node], case.alone(example, output), atol=1e-4
      )
    self._check_commit(case, started, cached, block, tree)

  def _decode(self, case, tree):
    """Return what `start` gave, the cache, the block, nodes and logits."""
    examples, beams, count = self.PREFIXES.shape
    size, fed = tree.tokens.shape[1], self.PREFIXES.reshape(-1, count)
    # As on a TPU: the first call computes two nodes that the second decodes.
    padded = dataclasses.replace(case.model.network, min_block=8)
    network = dataclasses.replace(case.model, network=padded)

    @jax.jit
    def run(params):
      slots = count + self.GAMMA + 4
      started = network.start(params, case.inputs, len(fed), slots)
      first = started.first_tokens[:, None]
      _, cached = network.decode(
          params,
          started.memory,
          started.cache,
          jnp.concatenate([first, fed], axis=1),
          started.offsets,
          None,
      )
      # The last token of each row is decoded again, as the root of a tree, and
      # what is past the cached slots must not matter.
      num_cached = started.offsets + count
      is_cached = lambda x: jnp.arange(x.shape[-1]) < num_cached[:, None]
      stale = lambda x: jnp.where(is_cached(x)[:, None, None], x, jnp.nan)
      cached = network.share_rows(jax.tree.map(stale, cached), examples)
      block = network.new_block(cached, examples, size)
      num_cached = num_cached[::beams]
      nodes = token_trees.nodes_of(tree, num_cached, beams, self.GAMMA)
      # In two calls: those that come first are seen by the others.
      decode = lambda block, first, count: network.decode_tree(
          params, started.memory, cached, block, nodes, first, count, num_cached
      )
      one, block = decode(block, 0, 6)
      two, block = decode(block, 6, size - 6)
      logits = jnp.concatenate([one, two], axis=1)
      return started, cached, block, nodes, logits

    return run(case.params)

  def _check_commit(self, case, started, cached, block, tree):
    """Rows change their places, and go on along paths of the tree."""
    examples, beams, count = self.PREFIXES.shape
    parents = np.array(tree.parents[0])
    path = [len(parents) - 1]
    while parents[path[0]] != path[0]:
      path.insert(0, int(parents[path[0]]))
    num_cached = started.offsets + count
    tokens = np.int32([[11], [17]] * examples)
    # Both go on with one, and each with the root of the other.
    for chosen in ([path] * beams, [[1], [0]]):
      rows = jnp.int32([[each[0] for each in chosen]] * examples)
      paths = jnp.int32([chosen] * examples)
      with jax.default_matmul_precision('highest'):
        cache = case.model.commit(
            cached, block, rows, paths, num_cached[::beams]
        )
        places = num_cached + paths.shape[-1]
        in_rows, _ = case.model.decode(
            case.params,
            started.memory,
            case.model.separate_rows(cache),
            tokens,
            places,
            None,
        )
        in_tree = self._decode_roots(
            case, started, cache, tokens.reshape(examples, beams), places
        )
      for row, token in enumerate(tokens[:, 0]):
        example, beam = divmod(row, beams)
        before = self.PREFIXES[example, chosen[beam][0], :-1]
        own = np.array(tree.tokens)[example, chosen[beam]]
        expected = case.alone(example, [*before, *own, token])
        for logits in in_rows[row, -1], in_tree[example, beam]:
          np.testing.assert_allclose(logits, expected, atol=1e-4)

  def _decode_roots(self, case, started, cache, tokens, places):
    """Return the logits of a token of each row, as nodes of one block."""
    examples, beams = tokens.shape
    places = places[::beams]
    index = jnp.broadcast_to(jnp.arange(beams, dtype=jnp.int32), tokens.shape)
    tree = token_trees.Candidates(jnp.int32(tokens), index, index >= 0)
    logits, _ = case.model.decode_tree(
        case.params,
        started.memory,
        cache,
        case.model.new_block(cache, examples, beams),
        token_trees.nodes_of(tree, places, beams, 0),
        0,
        beams,
        places,
    )
    return logits

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Trees of candidates change no distribution, and no greedy output."""

import functools
import itertools
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import draft_tree
from speculative_t5x.drafters import likeliest_tree
from speculative_t5x.drafters import shaped_tree
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import in_order_drafting
from speculative_t5x.loading.drafters import tree_drafting
from speculative_t5x.rules import block
from speculative_t5x.rules import k_sequential
from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import verification
from speculative_t5x.testing import pairs
from speculative_t5x.testing import reachable
from speculative_t5x.testing import rules as rules_lib
from speculative_t5x.testing import step_programs
from speculative_t5x.testing import table_model
from tests import candidate_paths
from tests import exhaustive
from tests import tiny
from tests import tiny_cases

VOCAB = 3
RULES = candidate_paths.RULES
TREE, WIDE = (2, 2), (3, 1)


class TestShape:

  def test_nodes(self):
    """The tree that is drawn at the head of the module."""
    shape = candidates.as_shape((2, 2), 3)
    assert shape.parents == (0, 0, 0, 1, 1, 2, 2, 3, 4, 5, 6)
    assert [*map(len, shape.levels)] == [1, 2, 4, 4]
    tree = shape.tree(jnp.zeros((1, 11), jnp.int32))
    nodes = token_trees.nodes_of(tree, jnp.array([5], jnp.int32), 1, 3)
    assert np.flatnonzero(nodes.sees[0, 8]).tolist() == [0, 1, 4, 8]
    assert nodes.positions[0].tolist() == [5, 6, 6, *[7] * 4, *[8] * 4]

  def test_a_deep_node_sees_its_whole_path(self):
    tree = candidates.as_shape((1,), 9).tree(jnp.zeros((1, 1), jnp.int32))
    nodes = token_trees.nodes_of(tree, jnp.array([5], jnp.int32), 1, 9)
    assert nodes.sees[0].tolist() == np.tri(10, dtype=bool).tolist()
    assert nodes.positions[0].tolist() == [*range(5, 15)]

  def test_depths_past_the_branching_have_one_child_per_node(self):
    assert candidates.as_shape((3,), 2) == candidates.as_shape((3, 1, 5), 2)


def make_program(
    branching, gamma=2, vocab_size=VOCAB
) -> step_programs.Program:
  """Return the program of a tree from a draft model like the target.

  Without a branching it is one of the six likeliest of seven nodes.
  """
  model = table_model.TextModel(vocab_size)
  chain = draft_model.ModelDrafter(model, gamma, vocab_size)
  if branching is None:
    drafter = likeliest_tree.LikeliestTree(chain, 6, 3)
  else:
    shape = candidates.as_shape(branching, gamma)
    drafter = shaped_tree.ShapedTree(chain, shape)
  pair = pairs.of_tables(
      drafter,
      pairs.draft_logits(vocab_size),
      vocab_size=vocab_size,
      tolerance=1e-12,
      hints=None,
  )
  return step_programs.Program(pair, draft_length.Fixed())


unmutated_program = functools.cache(make_program)


def tree_of(rule):
  return None if rule == 'likeliest' else TREE


def find_error(program, rule, draws) -> float:
  """Return the largest total variation distance of an example's outputs."""
  if draws is None:
    paths = candidate_paths.LikeliestPaths(program, rule)
  else:
    paths = candidate_paths.Paths(program, rule, draws)
  found = paths.distributions()
  exact = reachable.exact_distributions(program)
  for each in found:
    np.testing.assert_allclose(sum(each.values()), 1)
  return max(map(rules_lib.total_variation, exact, found))


def sampled(program, temperature=1.0, draft_temperature=None):
  own = temperature if draft_temperature is None else draft_temperature
  return program.with_sampling(
      sampling.Sampling(temperature), sampling.Sampling(own)
  )


@pytest.mark.usefixtures('float64')
class TestEnumeratedDistribution:
  """Every path of the production step, weighted."""

  @pytest.mark.parametrize(
      ('rule', 'temperatures'),
      exhaustive.all_but(
          [('tokenwise', (1.0, 1.0)), ('k_sequential', (1.0, 1.0)),
           ('tokenwise', (0.6, 0.0)), ('likeliest', (1.0, 1.0))],
          itertools.product(RULES, [(1.0, 1.0), (0.6, 0.0), (0.0, 1.3)]),
      ),
  )  # fmt: skip
  def test_outputs_follow_the_target(self, rule, temperatures):
    program = sampled(unmutated_program(tree_of(rule)), *temperatures)
    assert find_error(program, *RULES[rule]) < program.pair.tolerance

  @pytest.mark.parametrize(
      ('rule', 'branching', 'vocab_size'),
      exhaustive.all_but(
          [('k_sequential', WIDE, 3), ('tokenwise', WIDE, 4)],
          [('k_sequential', WIDE, 3), ('tokenwise', WIDE, 4),
           ('k_sequential', (4, 2), 3), ('tokenwise', (4, 2), 4)],
      ),
  )  # fmt: skip
  def test_many_siblings(self, rule, branching, vocab_size):
    """A sharper q than p needs divisors above 2."""
    program = make_program(branching, vocab_size=vocab_size)
    error = find_error(sampled(program, 1.0, 0.5), *RULES[rule])
    assert error < program.pair.tolerance

  def test_more_candidates_than_tokens(self):
    """What is left over is never accepted."""
    program = sampled(unmutated_program((4,), 1))
    rule, draws = RULES['tokenwise']
    full = lambda logits, temperature, count: [
        # No token is left for the fourth one, whatever its uniform.
        candidate_paths.Drawn(x.weight, (*x.tokens, 0), (*x.uniforms, 0.5))
        for x in draws(logits, temperature, count - 1)
    ]
    assert find_error(program, rule, full) < program.pair.tolerance


def _with_stale_q(choose):
  """Leave the tried siblings in q."""

  def mutant(*args):
    with mock.patch.object(verification, '_without', lambda x, tokens: x):
      return choose(*args)

  return mutant


def _of_wrong_parent(nodes_of):
  """Have all nodes of the second depth attend to the first node."""

  def mutant(tree, *args):
    parents = tree.parents.at[:, 3:].set(1)
    return nodes_of(tree._replace(parents=parents), *args)

  return mutant


def _of_last_nodes(likeliest):
  """Keep the deepest nodes, and not those before them."""

  def mutant(tree, scores, count):
    index = jnp.cumsum(jnp.ones_like(scores), axis=1)
    return likeliest(tree, jnp.where(index > 1, index, jnp.inf), count)

  return mutant


def _of_sibling(commit):
  """Write the first node in the place of the one that was accepted."""
  return lambda self, state, made, rows, paths: commit(
      self, state, made, rows, jnp.minimum(paths, 1)
  )


def _of_later_node(commit):
  def mutant(self, cache, block, rows, paths, num_cached):
    return commit(self, cache, block, rows, (paths + 1) % 6, num_cached)

  return mutant


# Rule, owner, what is patched, and by what.
MUTANTS = {
    'residual is p': (
        'tokenwise', verification, 'residual', lambda _: lambda p, q: p,
    ),
    'stale q': ('tokenwise', verification, 'choose', _with_stale_q),
    'divisor 1': (
        'k_sequential', k_sequential, '_divisor',
        lambda _: lambda p, q, count: jnp.ones_like(p[:, :1]),
    ),
    'wrong parent': (
        'tokenwise', token_trees, 'nodes_of', _of_wrong_parent,
    ),
    "a sibling in the drafter's cache": (
        'tokenwise', draft_tree.DraftTree, 'commit', _of_sibling,
    ),
    'a path of other nodes': (
        'tokenwise', table_model.Model, 'commit', _of_later_node,
    ),
    'nodes without those before them': (
        'likeliest', likeliest_tree, '_likeliest', _of_last_nodes,
    ),
    'wrong parent of a likely node': (
        'likeliest', token_trees, 'nodes_of', _of_wrong_parent,
    ),
    'p is not normalized': (
        'likeliest', verification, 'acceptance',
        lambda accept: lambda p, q, u: accept(p, jnp.ones_like(q), u),
    ),
}  # fmt: skip


@pytest.mark.usefixtures('float64')
@pytest.mark.parametrize(
    'name',
    exhaustive.all_but(
        ['residual is p', 'stale q', 'a path of other nodes',
         'p is not normalized'], MUTANTS
    ),
)
def test_mutants_are_found(name, monkeypatch):
  rule, owner, attribute, make = MUTANTS[name]
  monkeypatch.setattr(owner, attribute, make(owner.__dict__[attribute]))
  assert find_error(make_program(tree_of(rule)), *RULES[rule]) > 1e-3


def test_what_the_target_would_draw_is_accepted():
  """The smallest divisor of the selection is 1 where p and q are equal."""
  p = jnp.float32([[0.5, 0.3, 0.2]])
  siblings = candidates.Siblings(
      jnp.int32([[0, 2]]),
      jnp.ones((1, 2), bool),
      jnp.log(p),
      sampling.Sampling(1.0).of_rows(1),
  )
  choice = k_sequential.KSequential().choose(
      p, siblings, jnp.full((1, 2), 0.999)
  )
  assert choice.index.tolist() == [0]


CONFIG = tiny.config(num_encoder_layers=1, num_decoder_layers=2)
LENGTH = 12
INPUTS = tiny.encoder_tokens(5, 9)


LIKELIEST, TWO_EACH = dict(nodes=13, width=4), dict(candidates=(2, 2))


def decoder_of(drafter, **options):
  decoder = tiny.decoder(CONFIG, gamma=3, length=LENGTH, **options)
  if drafter is None:
    return decoder
  return decoder.with_drafter(drafter, 3)


def tree(*branching, **options):
  return tree_drafting.CandidateTree(
      tiny.model(CONFIG, noise=0.15), branching or None, **options
  )


class TestNetworks:

  @pytest.mark.parametrize(
      ('rows', 'branching', 'options'),
      [
          (1, (4, 3), {}),
          (3, (4, 3), {}),
          (1, (), dict(nodes=12, width=5)),
          (3, (), dict(nodes=12, width=5)),
      ],
  )
  def test_greedy_outputs(self, rows, branching, options):
    """They are those of plain decoding, in fewer calls."""
    batch = tiny.batch(tiny.encoder_tokens(rows, 9), LENGTH)
    # With the model's own scores, as those of argmax are all 0.
    decoder = decoder_of(tree(*branching, **options), rescale_log_probs=False)
    found = tiny.decoded(decoder, batch)
    expected = tiny.decoded(decoder.alone, batch)
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-5)
    assert 2 * np.sum(found.num_calls) < np.sum(expected.num_calls)

  def test_a_tree_of_one_candidate_per_position_is_a_chain(self):
    """The same uniforms make the same tokens, and the same counts."""
    batch = tiny.batch(tiny.encoder_tokens(3, 9), LENGTH, 1.0)
    decoders = decoder_of(tree(1), num_decodes=2), decoder_of(
        None, num_decodes=2
    )
    found, expected = (
        tiny.decoded(each, batch) for each in decoders
    )
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    np.testing.assert_allclose(found.log_probs, expected.log_probs, atol=1e-5)
    np.testing.assert_array_equal(
        found.statistics.num_accepted, expected.statistics.num_accepted
    )

  @pytest.mark.parametrize(
      ('name', 'options'),
      exhaustive.all_but(
          [('gpt2', LIKELIEST)],
          itertools.product(
              ['gpt2', 'gemma3', 'bart', 'nllb', 't5gemma'],
              [LIKELIEST, TWO_EACH],
          ),
      ),
  )
  def test_other_networks(self, name, options):
    """A model that drafts for itself has nearly all its tokens accepted.

    That needs both caches to hold the path of each walk.
    """
    case = tiny_cases.CASES[name]()
    model = models.make_model(
        case.model.network, case.params, special_ids=case.model.special_ids
    )
    decoder = token_decoder.TokenDecoder(
        model,
        tree_drafting.CandidateTree(model, **options),
        gamma=3,
        max_tokens=LENGTH,
        inputs_length=case.inputs.shape[1],
    )
    settings = request.Settings(max_tokens=LENGTH)
    requests = [
        settings.request(row[row >= 0].tolist(), index)
        for index, row in enumerate(case.inputs)
    ]
    (batch,) = input_batch.whole_batches(
        requests, settings, size=2, inputs_length=case.inputs.shape[1]
    )
    found = tiny.decoded(decoder, batch)
    expected = tiny.decoded(decoder.alone, batch)
    np.testing.assert_array_equal(found.sequences, expected.sequences)
    np.testing.assert_array_equal(
        found.num_calls, -(-expected.num_tokens // 4)
    )

  @pytest.mark.parametrize(
      ('drafter', 'settings'),
      [
          (tree(2), dict(rule=block.BlockVerification())),
          (tree(nodes=5), dict(rule=k_sequential.KSequential())),
          (in_order_drafting.InOrder([tree(2)]), {}),
          (tree_drafting.CandidateTree(tiny.early_exit(CONFIG, 1), (2,)), {}),
      ],
      ids=['another rule', 'none drawn', 'in order', 'not a draft model'],
  )
  def test_what_does_not_fit(self, drafter, settings):
    with pytest.raises(ValueError, match='chain'):
      decoder_of(drafter).generate([[5, 9, 1]], **settings)

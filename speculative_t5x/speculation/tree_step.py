# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judging trees: one target call of every row over a tree of candidates.

  draft    a tree behind the last committed token, its root
  verify   one target call over the tree
  walk     from the root to an accepted child, as long as there is one
  commit   the path of the walk, and one more token, as of a chain

A tree of one candidate per position is a chain, and is judged as one.

Legend: rows, nodes (of a tree, its root included), gamma (depth of a tree),
width (most children of a node), vocab.
"""

from typing import Any, NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import candidates
from speculative_t5x.speculation import committing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import uniforms as uniforms_lib


class _Descent(NamedTuple):
  """The way down a tree so far.

  Attributes:
    node: [rows] int32, the last accepted node.
    is_open: [rows] bool, whether all tests so far accepted one, and no end.
    num_accepted: [rows] int32.
    num_tested: [rows] int32, positions of which candidates were tested.
    next_weights: [rows, vocab], see `candidates.Selection`.
  """

  node: jax.Array
  is_open: jax.Array
  num_accepted: jax.Array
  num_tested: jax.Array
  next_weights: jax.Array


def check(
    rule: contracts.Rule | contracts.CoupledRule,
    policy: draft_length.Policy,
    form: forms.Chain | forms.Tree,
) -> None:
  """Check that a rule and a policy can have drafts of a form; all have chains.

  Raises:
    ValueError: for others.
  """
  if isinstance(form, forms.Chain):
    return
  is_drawn = form.num_uniforms > 0
  if not isinstance(rule, candidates.CandidateRule) or not (
      is_drawn or rule.tests_undrawn
  ):
    raise ValueError(
        f'The rule {rule.name} does not test several'
        f' {"" if is_drawn else "undrawn "}candidates per position. Use'
        ' Tokenwise, in jobs configs/rules/tokenwise.gin, or draft chains.'
    )
  if not policy.is_constant:
    raise ValueError(
        f'The draft length policy {policy.name} changes the length of drafts,'
        ' and trees of candidates have one depth. Use Fixed, or draft chains.'
    )


def judge(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    tree: token_trees.Candidates,
    num_wanted: jax.Array,
    uniforms: tuple[jax.Array, jax.Array],
) -> tuple[contracts.Cache, jax.Array, committing.Judged]:
  """Score trees, walk down each and draw one more token.

  Arguments are those of `chain_step.judge`. In what happened, draft tokens are
  counted per position and not per candidate, and the draft token that a row
  rejected is its first candidate.

  Returns:
    The target's next cache; the path of each row, [rows, 1, gamma + 1] int32,
    see `contracts.Drafter.commit`; and what was found.
  References: Miao et al. (2023), "SpecInfer", arXiv:2305.09781, on trees in one
    call; for the tests, see the rules.
  """
  test_uniforms, draw_uniforms = uniforms
  with jax.named_scope('target'):
    logits, block = _score(setup, batch, state, tree)
  walk, paths, tokens, probs = _descend(
      setup, batch, tree, logits, num_wanted, test_uniforms
  )
  draft = contracts.Draft(tokens, num_wanted)
  next_token = sampling_lib.draw(walk.next_weights, draw_uniforms)
  scores = committing.scores_of(
      setup,
      draft,
      walk.num_accepted,
      next_token,
      jnp.take_along_axis(logits, paths[..., None], axis=1),
      probs,
  )
  cache = setup.target.commit(
      state.target_cache,
      block,
      # A row has a tree of its own, whose one root is the row: 0.
      jnp.zeros_like(paths[:, :1]),
      paths[:, None],
      batch.offsets + state.num_tokens,
  )
  tested = draft.replace(lengths=walk.num_tested)
  verified = committing.Verified(
      walk.num_accepted, next_token, *scores, features=None
  )
  return cache, paths[:, None], committing.Judged(draft, tested, verified)


def _score(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    tree: token_trees.Candidates,
) -> tuple[jax.Array, Any]:
  """Return the target's logits after each node, [rows, nodes, vocab]."""
  rows, num_nodes = tree.tokens.shape
  positions = batch.offsets + state.num_tokens
  root = state_lib.decoder_inputs(
      state.sequences, batch.first_tokens, state.num_tokens, 1
  )
  tokens = jnp.concatenate([root, tree.tokens[:, 1:]], axis=1)
  cache = state.target_cache
  return setup.target.decode_tree(
      setup.target_params,
      candidates.memory_of_rows(batch.memory, rows),
      cache,
      setup.target.new_block(cache, rows, num_nodes),
      token_trees.nodes_of(
          tree._replace(tokens=tokens),
          positions,
          1,
          setup.drafter.form.gamma,
      ),
      0,
      num_nodes,
      positions,
  )


def _descend(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    tree: token_trees.Candidates,
    logits: jax.Array,
    num_wanted: jax.Array,
    uniforms: jax.Array,
) -> tuple[_Descent, jax.Array, jax.Array, jax.Array]:
  """Walk down the trees.

  Args:
    tree: The candidates.
    logits: [rows, nodes, vocab], of the target.
    num_wanted: [rows] int32, the most candidates to accept.
    uniforms: [rows, gamma * width, 2].
  Returns:
    The walk; the node at each depth, [rows, gamma + 1] int32, of which those
    past the accepted ones are the last; the draft tokens of that path, [rows,
    gamma] int32, see `step`; and the target's distribution after each node,
    [rows, gamma + 1, vocab].
  """
  rows, width = tree.tokens.shape[0], setup.drafter.form.width
  gamma = setup.drafter.form.gamma
  at = lambda values, node: jnp.take_along_axis(
      values, node[:, None, None], axis=1
  )[:, 0]

  def test(walk: _Descent, of_depth):
    depth, bits = of_depth
    p = sampling_lib.standardize(at(logits, walk.node), batch.sampling)
    nodes, is_there = token_trees.children_of(tree, walk.node, width)
    is_wanted = walk.is_open & (depth < num_wanted)
    q_logits = tree.logits
    if q_logits is not None:
      # Those at the last depth have no children.
      last = tree.logits.shape[1] - 1
      q_logits = at(tree.logits, jnp.minimum(walk.node, last))
    siblings = candidates.Siblings(
        jnp.take_along_axis(tree.tokens, nodes, axis=1),
        is_there & is_wanted[:, None],
        q_logits,
        batch.draft_sampling,
    )
    choice = setup.rule.choose(
        p, siblings, uniforms_lib.coins(bits, p.dtype)
    )
    is_accepted = choice.index < width
    place = jnp.minimum(choice.index, width - 1)[:, None]
    take = lambda x: jnp.take_along_axis(x, place, axis=1)[:, 0]
    token = take(siblings.tokens)
    # Nothing comes after an end of sequence.
    is_end = setup.target.special_ids.is_end(token)
    after = _Descent(
        jnp.where(is_accepted, take(nodes), walk.node),
        is_accepted & ~is_end,
        walk.num_accepted + is_accepted.astype(jnp.int32),
        walk.num_tested
        + jnp.any(siblings.is_there, axis=1).astype(jnp.int32),
        jnp.where(
            walk.is_open[:, None], choice.next_weights, walk.next_weights
        ),
    )
    token = jnp.where(is_accepted, token, siblings.tokens[:, 0])
    return after, (walk.node, token, p)

  bits = jnp.moveaxis(uniforms.reshape(rows, gamma, width, 2), 1, 0)
  # After the last depth there is nothing to test.
  bits = jnp.pad(bits, ((0, 1), (0, 0), (0, 0), (0, 0)))
  none = jnp.zeros((rows,), jnp.int32)
  probs = jax.eval_shape(sampling_lib.standardize, logits[:, 0], batch.sampling)
  weights = jnp.zeros(probs.shape, probs.dtype)
  start = _Descent(none, jnp.ones((rows,), bool), none, none, weights)
  walk, (nodes, tokens, probs) = lax.scan(
      test, start, (jnp.arange(gamma + 1, dtype=jnp.int32), bits)
  )
  return walk, nodes.T, tokens.T[:, :gamma], jnp.moveaxis(probs, 0, 1)

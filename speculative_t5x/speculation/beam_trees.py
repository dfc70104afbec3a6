# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Speculative beam search: several steps of a search per target call.

  draft    a tree of tokens behind the live hypotheses, its roots
  verify   one target call over roots and nodes
  walk     steps of the search, as long as all live hypotheses are nodes
  commit   caches of target and drafter along the paths of the walk

The first step of a walk needs the logits of the roots alone, so each call makes
at least one. Each step is `beams.step` of the logits that a plain search has,
whatever the tree is: it decides the number of steps per call, and nothing
else. The idea is that of Leviathan et al. (2023), A.4.

Legend: examples, beams (live hypotheses per example), gamma (depth of a tree),
nodes (of a tree and its roots), vocab.
"""

from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp

from speculative_t5x.speculation import beam_rows
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import proposing
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import views

WALK = 'walk'  # the scope of the steps of a call, in traces


class _Walk(NamedTuple):
  """A walk down a tree.

  Attributes:
    state: State of the search.
    nodes: [examples, beams] int32, the node of each live hypothesis.
    rows: [examples, beams] int32, the root that each began at.
    paths: [examples, beams, gamma + 1] int32, the nodes before each, root
      first.
    is_open: [examples] bool, whether all live hypotheses are nodes.
    num_steps: int32 scalar.
  """

  state: beams_lib.Beams
  nodes: jax.Array
  rows: jax.Array
  paths: jax.Array
  is_open: jax.Array
  num_steps: jax.Array


def call(setup: beams_lib.SearchSetup, run: beams_lib.Run) -> beams_lib.Run:
  """Make steps of each search by one call of the target, over its tree."""
  target, params, scoring, drafter, draft_params = setup
  gamma, limits = drafter.form.gamma, run.limits
  examples, beams = run.state.live.scores.shape
  num_wanted = _num_wanted(run.state, limits, gamma)
  # Of no cost where no drafter reads it.
  cache = target.separate_rows(run.cache)
  view = _view(
      run.state,
      views.TargetView(
          params, run.memory, cache, run.offsets, run.first_tokens
      ),
      num_wanted,
      drafter,
  )
  with jax.named_scope('draft'):  # names are for traces
    proposal, made, _ = proposing.propose(
        drafter, draft_params, run.draft_memory, run.draft_state, view,
        target.vocab_size,
    )  # fmt: skip
  tree = _rooted(proposal, view, beams)
  positions = run.offsets[::beams] + run.state.num_steps
  nodes = token_trees.nodes_of(tree, positions, beams, gamma)
  count = tree.tokens.shape[1]
  block = target.new_block(run.cache, examples, count)
  with jax.named_scope('target'):
    logits, block = target.decode_tree(
        params, run.memory, run.cache, block, nodes, 0, count, positions
    )
  with jax.named_scope(WALK):
    walk = _walk(
        run.state, tree, logits, limits, scoring, target.special_ids, gamma
    )
  path = walk.rows, walk.paths
  return run._replace(
      state=walk.state,
      cache=target.commit(run.cache, block, *path, positions),
      draft_state=proposing.commit(drafter, run.draft_state, made, *path),
      counts=_count(run.counts, run.state, walk.state, num_wanted, gamma),
  )


def _count(
    counts: outcome_lib.Statistics,
    before: beams_lib.Beams,
    after: beams_lib.Beams,
    num_wanted: jax.Array,
    gamma: int,
) -> outcome_lib.Statistics:
  """Return counts with those of one more call."""
  num_accepted = after.num_steps - before.num_steps - 1
  none = outcome_lib.none_yet(num_wanted.shape[0], gamma)
  return outcome_lib.COUNTING.update(
      counts,
      none._replace(
          num_computed=num_wanted,
          # Nothing is rejected where a search ends inside a tree.
          num_drafted=jnp.where(after.has_ended, num_accepted, num_wanted),
          num_accepted=num_accepted,
          is_active=~before.has_ended,
      ),
  )


def _num_wanted(
    state: beams_lib.Beams, limits: jax.Array, gamma: int
) -> jax.Array:
  """Return how many depths are of use, [examples] int32."""
  # The step behind the last depth makes a token too.
  num_wanted = jnp.clip(limits - state.num_steps - 1, 0, gamma)
  return jnp.where(state.has_ended, 0, num_wanted)


def _view(
    state: beams_lib.Beams,
    target: views.TargetView,
    num_wanted: jax.Array,
    drafter: contracts.Drafter,
) -> views.View:
  """Return the drafter's view of the live hypotheses, a row each."""
  examples, beams, length = state.live.tokens.shape
  rows, of_rows = examples * beams, lambda x: jnp.repeat(x, beams)
  # Argmax draws nothing.
  shape = rows, drafter.form.num_uniforms, 2
  return views.View(
      sequences=state.live.tokens.reshape(rows, length),
      num_tokens=of_rows(state.num_steps),
      num_wanted=of_rows(num_wanted),
      uniforms=uniforms_lib.Uniforms(
          jnp.zeros(shape, jnp.uint32), uniforms_lib.user_name(drafter)
      ),
      sampling=sampling_lib.GREEDY.of_rows(rows),
      target=target,
      last_outcome=None,
      scores=state.live.scores.reshape(rows),
  )


def _rooted(
    proposal: contracts.Draft | token_trees.Candidates,
    view: views.View,
    beams: int,
) -> token_trees.Candidates:
  """Return what was drafted as trees behind the live hypotheses."""
  tree = proposal
  if isinstance(proposal, contracts.Draft):
    tree = token_trees.of_chains(proposal, beams)
  # A draft model may begin with another token than the target.
  tokens = state_lib.decoder_inputs(
      view.sequences, view.target.first_tokens, view.num_tokens, 1
  )
  tokens = [tokens.reshape(-1, beams), tree.tokens[:, beams:]]
  return tree._replace(tokens=jnp.concatenate(tokens, axis=1))


def _walk(
    state: beams_lib.Beams,
    tree: token_trees.Candidates,
    logits: jax.Array,
    limits: jax.Array,
    scoring: beam_scores.Scoring,
    special_ids: contracts.SpecialIds,
    gamma: int,
) -> _Walk:
  """Step while all live hypotheses are nodes, in each example on its own."""
  examples, beams = state.live.scores.shape
  index = jnp.broadcast_to(
      jnp.arange(beams, dtype=jnp.int32), (examples, beams)
  )

  def step(walk: _Walk) -> _Walk:
    at_nodes = beam_rows.gather(logits, walk.nodes)
    after, parents = beams_lib.step(
        walk.state, at_nodes, limits, scoring, special_ids
    )
    after, parents = beam_rows.where(
        walk.is_open, (after, parents), (walk.state, index)
    )
    before, rows, paths = beam_rows.gather(
        (walk.nodes, walk.rows, walk.paths), parents
    )
    # Of closed ones the path is done.
    paths = beam_rows.where(
        walk.is_open, paths.at[..., walk.num_steps].set(before), walk.paths
    )
    child, is_node = _find(tree, before, _last_tokens(after))
    is_open = walk.is_open & ~after.has_ended & jnp.all(is_node, axis=1)
    return _Walk(
        after,
        jnp.where(is_open[:, None], child, walk.nodes),
        rows,
        paths,
        is_open,
        walk.num_steps + 1,
    )

  return lax.while_loop(
      lambda walk: jnp.any(walk.is_open),
      step,
      _Walk(
          state,
          index,
          index,
          jnp.zeros((examples, beams, gamma + 1), jnp.int32),
          ~state.has_ended,
          jnp.int32(0),
      ),
  )


def _last_tokens(state: beams_lib.Beams) -> jax.Array:
  """Return the last token of each live hypothesis, [examples, beams]."""
  # Index -1 of a row that only fills the batch would be the last slot.
  last = jnp.maximum(state.live.counts - 1, 0)
  return jnp.take_along_axis(state.live.tokens, last[..., None], axis=-1)[
      ..., 0
  ]


def _find(
    tree: token_trees.Candidates, parents: jax.Array, tokens: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Return the child of each parent with a token, and whether it is there.

  Both are [examples, beams], as the arguments are.
  """
  is_child = tree.parents[:, None] == parents[..., None]
  # A root is its own parent, and nobody's child.
  num_roots = parents.shape[1]
  is_draft = jnp.arange(tree.tokens.shape[1]) >= num_roots
  is_same = is_child & (tree.tokens[:, None] == tokens[..., None])
  is_same &= (tree.is_there & is_draft)[:, None]
  # Without a match argmax is 0, a root: whoever reads it looks at the second.
  child = jnp.argmax(is_same, axis=-1).astype(jnp.int32)
  return child, jnp.any(is_same, axis=-1)

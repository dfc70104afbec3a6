# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""One target call of every row: Algorithm 1 of Leviathan et al. (2023).

A step drafts up to gamma tokens, scores them all by one target call, accepts a
prefix and draws one more token. Each row advances by its own number of tokens.
Plain decoding is the step of a drafter that drafts nothing. A chain is scored
and accepted by `chain_step`, a tree by `tree_step`; all else is the same.

A step is a pure function of the state and of the uniforms it is given.

Legend: rows, gamma (draft tokens per block), length (longest output), vocab.
"""

from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import chain_step
from speculative_t5x.speculation import committing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import proposing
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import tree_step
from speculative_t5x.speculation import views

# By the form of the drafter.
_JUDGES = {forms.Chain: chain_step.judge, forms.Tree: tree_step.judge}


def step(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    uniforms: jax.Array,
) -> tuple[state_lib.State, outcome_lib.Outcome]:
  """Draft, score, accept a prefix and draw one more token, for every row.

  An example of a block, gamma 3, a row at 2 committed tokens `x y`:

    decoder fed              y  a  b  c      at positions 2, 3, 4, 5
    target's distributions   p1 p2 p3 p4     of the tokens at 2, 3, 4, 5
    a, b accepted, c rejected: a b and a token from max(0, p3 - q3) are
    committed, and the next block is fed from position 5 on, over what c left
    there.

  Args:
    batch: What the rows have read. The keys are not used here.
    state: Rows that have ended stay as they are.
    uniforms: [rows, count, 2] random bits, of which `noise` says how many and
      what for.
  Returns:
    The next state, and what happened.
  Reference: Leviathan et al. (2023), Algorithm 1, arXiv:2211.17192v2.
  """
  drafter = setup.drafter
  tree_step.check(setup.rule, setup.policy, drafter.form)
  drafter_uniforms, rule_uniforms = setup.noise.divide(uniforms)
  view, proposal, made, cache = _draft(setup, batch, state, drafter_uniforms)
  cache, paths, judged = _JUDGES[type(drafter.form)](
      setup,
      batch,
      state.replace(target_cache=cache),
      proposal,
      view.num_wanted,
      rule_uniforms,
  )
  root = jnp.zeros_like(state.num_tokens)[:, None]  # of a row's own tree
  state = state.replace(
      target_cache=cache,
      draft_state=proposing.commit(
          drafter, state.draft_state, made, root, paths
      ),
  )
  return committing.commit(setup, batch, state, judged)


def drafted(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    uniforms: jax.Array,
) -> contracts.Draft:
  """Return the chains of a `step`, cut to the tokens that can be accepted."""
  own, _ = setup.noise.divide(uniforms)
  view, draft, *_ = _draft(setup, batch, state, own)
  return chain_step.cut(setup, draft, view.num_wanted)[1]


def _draft(setup, batch, state, uniforms) -> tuple[views.View, Any, Any, Any]:
  """Return the drafter's view, and what `proposing.propose` returns."""
  view = proposing.view_of(setup, batch, state, uniforms)
  with jax.named_scope('draft'):  # names are for traces
    return view, *proposing.propose(
        setup.drafter,
        setup.draft_params,
        batch.draft_memory,
        state.draft_state,
        view,
        setup.target.vocab_size,
    )

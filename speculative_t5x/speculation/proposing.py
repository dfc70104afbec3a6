# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Asking a drafter for drafts: what it sees, and the check of what it returns.

Legend: rows, gamma (draft tokens per block, or depths of a tree), vocab.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import beam_rows
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import token_trees
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import views

# By the form of the drafter.
_PROPOSALS = {
    forms.Chain: contracts.Draft,
    forms.Tree: token_trees.Candidates,
}


def view_of(
    setup: state_lib.Setup,
    batch: state_lib.Batch,
    state: state_lib.State,
    uniforms: uniforms_lib.Uniforms,
) -> views.View:
  """Return the view of the drafter of a setup, with its uniforms."""
  return views.View(
      sequences=state.sequences,
      num_tokens=state.num_tokens,
      num_wanted=_num_wanted(setup, batch, state),
      uniforms=uniforms,
      sampling=batch.draft_sampling,
      target=batch.view(
          setup.target_params, state.target_cache, state.last_features
      ),
      last_outcome=state.outcome,
      begin=functools.partial(
          setup.policy.begin,
          state.policy_state,
          gamma=setup.drafter.form.gamma,
      ),
      continues=functools.partial(_continues, setup, state),
      wants_always=setup.policy.is_constant,
      draw=setup.noise.draw,
      # Trees alone ask for it, and `tree_step.check` is for their rules.
      draw_candidates=lambda *args: setup.rule.draw_candidates(*args),
  )


def _num_wanted(
    setup: state_lib.Setup, batch: state_lib.Batch, state: state_lib.State
) -> jax.Array:
  """Return how many draft tokens each row can use, [rows] int32."""
  policy, gamma = setup.policy, setup.drafter.form.gamma
  if not gamma:  # plain decoding, which policies know nothing of
    return jnp.zeros_like(state.num_tokens)
  num_remaining = batch.limits - state.num_tokens
  num_wanted = jnp.asarray(
      policy.num_wanted(state.policy_state, num_remaining, gamma), jnp.int32
  )
  # With r tokens left a block of r draft tokens is enough: if all are accepted,
  # the bonus token is past the limit and is not committed.
  num_wanted = jnp.clip(num_wanted, 0, jnp.minimum(num_remaining, gamma))
  return jnp.where(state.has_ended, 0, num_wanted)


def _continues(setup, state, progress, logits, tokens):
  # What follows the end of sequence cannot be accepted.
  is_end = setup.target.special_ids.is_end(tokens)
  gamma = setup.drafter.form.gamma
  wanted, progress = setup.policy.continues(
      state.policy_state, progress, logits, tokens, gamma
  )
  return wanted & ~is_end, progress


def propose(
    drafter: contracts.Drafter,
    params: contracts.Params,
    memory: contracts.Memory,
    state: Any,
    view: views.View,
    vocab_size: int,
) -> tuple[contracts.Draft | token_trees.Candidates, Any, contracts.Cache]:
  """Call `drafter.propose` and check what it returns, while it is traced.

  Returns:
    The draft or the candidates, what `commit` takes, and the target's cache.
  Raises:
    ValueError: for anything but the proposal of its form, of its shapes and
      types, and for a chain a state like the one before.
  """
  name = f'The drafter {type(drafter).__name__}'
  returned = drafter.propose(params, memory, state, view)
  kind = _PROPOSALS[type(drafter.form)]
  if not isinstance(returned, tuple) or len(returned) != 2:
    raise ValueError(
        f'{name} must return two values from propose: its {kind.__name__}, and'
        ' its next state, of a tree what its commit takes.'
    )
  proposal, made = returned
  if not isinstance(proposal, kind):
    raise ValueError(
        f'{name} must return a {kind.__name__} from propose, got'
        f' {type(proposal).__name__}.'
    )
  if kind is token_trees.Candidates:
    return proposal, made, view.target.cache
  cache = proposal.target_cache
  proposal = proposal.replace(target_cache=None)
  rows, gamma = view.num_tokens.shape[0], drafter.form.gamma
  form = _form_of_draft(proposal, rows, gamma, vocab_size)
  check_form(f'{name} returned its draft', form, proposal)
  check_form(f'{name} returned its state', state, made)
  if cache is None:
    return proposal, made, view.target.cache
  check_form(f"{name} returned the target's cache", view.target.cache, cache)
  return proposal, made, cache


def commit(
    drafter: contracts.Drafter,
    state: Any,
    made: Any,
    rows: jax.Array,
    paths: jax.Array,
) -> Any:
  """Return a drafter's next state: see `contracts.Drafter.commit`.

  That of a chain is the one it made, of the row that each row continues.
  """
  if isinstance(drafter.form, forms.Chain):
    return beam_rows.take(made, rows)
  return drafter.commit(state, made, rows, paths)


def _form_of_draft(
    draft: contracts.Draft, rows: int, gamma: int, vocab_size: int
) -> contracts.Draft:
  """Return the shapes and types that a draft of these kinds must have."""
  form = jax.ShapeDtypeStruct
  expected = contracts.Draft(
      form((rows, gamma), jnp.int32), form((rows,), jnp.int32)
  )
  if draft.probs is not None or draft.is_point_mass is not None:
    dtype = jnp.result_type(jnp.float32 if draft.probs is None else draft.probs)
    expected = expected.replace(probs=form((rows, gamma, vocab_size), dtype))
  if draft.is_point_mass is not None:
    expected = expected.replace(is_point_mass=form((rows, gamma), bool))
  return expected


def check_form(what: str, expected: Any, found: Any) -> None:
  """Check that a pytree has the form of another one.

  Raises:
    ValueError: naming the first difference.
  """
  one, other = _forms(expected), _forms(found)
  for place in {**one, **other}:
    if one.get(place) != other.get(place):
      raise ValueError(
          f'{what} with {other.get(place)} instead of {one.get(place)}'
          f'{f" at {place}" if place else ""}. Structure, shapes and types must'
          ' be those of speculation.contracts, and the same in every step.'
      )


def _forms(tree: Any) -> dict[str, str]:
  """Return type and shape of each array by its place."""
  show = lambda x: f'{jnp.result_type(x)}{list(jnp.shape(x))}'
  leaves, _ = jax.tree.flatten_with_path(tree)
  return {jax.tree_util.keystr(path): show(leaf) for path, leaf in leaves}

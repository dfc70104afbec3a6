# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Several drafters in a given order: each drafts on where those before it stop.

Legend: rows, gamma (draft tokens per block), vocab.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import views


@dataclasses.dataclass(frozen=True)
class DraftersInOrder:
  """Drafts by the first drafter, then by the second after its tokens, ...

  A row that the first one has no token for is left to the second, which drafts
  also after a draft of the first that is shorter than wanted.

  Attributes:
    drafters: Drafters in this order, all of one gamma.
    target: Whose end of sequence ends a draft.
  """

  drafters: tuple[contracts.Drafter, ...]
  target: contracts.Model

  @property
  def form(self) -> forms.Chain:
    parts = [drafter.form for drafter in self.drafters]
    return forms.Chain(
        parts[0].gamma,
        num_uniforms=sum(form.num_uniforms for form in parts),
        # The last one drafts what the others leave.
        drafts_all_wanted=parts[-1].drafts_all_wanted,
        reads_hints=any(form.reads_hints for form in parts),
        reads_last_features=any(form.reads_last_features for form in parts),
    )

  def init(self, params, context: views.Context, rows, slots):
    begun = [
        drafter.init(own, context, rows, slots)
        for drafter, own in zip(self.drafters, params, strict=True)
    ]
    memories, states = zip(*begun, strict=True)
    return memories, states

  def propose(
      self, params, memory, state, view: views.View
  ) -> tuple[contracts.Draft, Any]:
    uniforms = view.uniforms.of_drafters(self.drafters)
    # A later drafter may want nothing, and an earlier one falls behind it.
    view = view._replace(wants_always=False)
    draft, states = None, []
    for drafter, own, memory_of, before, drawn_by in zip(
        self.drafters, params, memory, state, uniforms, strict=True
    ):
      seen = view._replace(uniforms=drawn_by)
      if draft is not None:
        seen = self._after(draft, seen)
      more, after = drafter.propose(own, memory_of, before, seen)
      # More than was wanted would lie past the block, where `join` has no room.
      more = more.replace(lengths=jnp.clip(more.lengths, 0, seen.num_wanted))
      draft = more if draft is None else join(draft, more)
      states.append(after)
      if more.target_cache is not None:
        target = view.target._replace(cache=more.target_cache)
        view = view._replace(target=target)
    return draft.replace(target_cache=view.target.cache), tuple(states)

  def _after(
      self, draft: contracts.Draft, view: views.View
  ) -> views.View:
    """Return the view of a drafter that goes on after a draft."""
    slots = jnp.arange(view.sequences.shape[1], dtype=jnp.int32)[None]
    # Draft a b behind 5 tokens: slots 5 and 6 have the indices 0 and 1.
    index = slots - view.num_tokens[:, None]
    gamma = draft.tokens.shape[1]
    tokens = jnp.take_along_axis(
        draft.tokens, jnp.clip(index, 0, gamma - 1), axis=1
    )
    is_draft = (index >= 0) & (index < draft.lengths[:, None])
    is_end = self.target.special_ids.is_end(draft.tokens)
    is_end &= jnp.arange(gamma) < draft.lengths[:, None]
    num_wanted = view.num_wanted - draft.lengths
    return view._replace(
        sequences=jnp.where(is_draft, tokens, view.sequences),
        num_tokens=view.num_tokens + draft.lengths,
        num_pending=view.num_pending + draft.lengths,
        num_wanted=jnp.where(jnp.any(is_end, axis=1), 0, num_wanted),
        uniforms=view.uniforms.after(draft.lengths),
    )


def join(first: contracts.Draft, second: contracts.Draft) -> contracts.Draft:
  """Return one draft, then the other, in every row; together at most gamma."""
  gamma = first.tokens.shape[1]
  index = jnp.arange(gamma, dtype=jnp.int32)[None]
  is_first = index < first.lengths[:, None]
  # Behind 2 tokens of the first, index 2 takes the second's index 0.
  at = jnp.clip(index - first.lengths[:, None], 0, gamma - 1)

  def choose(one, other):
    shape = (*at.shape, *[1] * (other.ndim - 2))
    other = jnp.take_along_axis(other, at.reshape(shape), axis=1)
    return jnp.where(is_first.reshape(shape), one, other)

  tokens = choose(first.tokens, second.tokens)
  lengths = first.lengths + second.lengths
  if first.probs is None and second.probs is None:
    return contracts.Draft(tokens, lengths)
  some = second.probs if first.probs is None else first.probs
  probs = [
      jnp.zeros_like(some) if draft.probs is None else draft.probs
      for draft in (first, second)
  ]
  masses = [_is_point_mass(draft) for draft in (first, second)]
  return contracts.Draft(tokens, lengths, choose(*probs), choose(*masses))


def _is_point_mass(draft: contracts.Draft) -> jax.Array:
  """Return which tokens are point masses, [rows, gamma] bool."""
  if draft.is_point_mass is not None:
    return draft.is_point_mass
  return jnp.full(draft.tokens.shape, draft.probs is None)

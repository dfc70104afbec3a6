# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A smaller model that drafts by decoding: the paper's M_q (Section 3.6).

Legend: examples, rows, gamma (draft tokens per block), vocab (the target's),
slots, length.
"""

import dataclasses
from typing import Any, NamedTuple

from flax import struct
from flax.linen import partitioning
import jax
import jax.numpy as jnp

from speculative_t5x.drafters import autoregression
from speculative_t5x.networks import sharding
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import views


class DraftModelMemory(NamedTuple):
  """The part that a draft model only reads.

  Attributes:
    memory: The model's, one row per example.
    offsets: [examples] int32, see `contracts.Started`.
    first_tokens: [examples] int32, likewise.
  """

  memory: contracts.Memory
  offsets: jax.Array
  first_tokens: jax.Array

  def of_rows(self, rows: int) -> tuple[jax.Array, jax.Array]:
    """Return offsets and first tokens per row."""
    per_example = rows // self.offsets.shape[0]
    repeat = lambda x: jnp.repeat(x, per_example)
    return repeat(self.offsets), repeat(self.first_tokens)


@struct.dataclass
class DraftModelState:
  """The state of a draft model from block to block.

  Attributes:
    cache: Its keys and values.
    num_fed: [rows] int32, positions fed so far; those past a row's committed
      tokens hold rejected draft tokens.
  """

  cache: contracts.Cache
  num_fed: jax.Array


@dataclasses.dataclass(frozen=True)
class ModelDrafter:
  """Drafts up to gamma tokens, one at a time, with a model of its own.

  Attributes:
    model: Reads the inputs and decodes.
    gamma: Draft tokens per block, at least 1.
    vocab_size: Width of the target's logits. A narrower draft model gives the
      rest probability 0; a wider one is cut and renormalised.
    rules: How the model lies on a mesh, where one is in force: its own way and
      not the target's, whose number of heads is another.
    reads_features: Whether the model reads the features of the target, as a
      decoder on its encoder does.
    decodes_trees: Whether the model is a `contracts.DecodesTrees`.
  """

  model: contracts.Model
  gamma: int
  vocab_size: int
  rules: sharding.Rules = sharding.REPLICATED
  reads_features: bool = False
  decodes_trees: bool = True

  @property
  def form(self) -> forms.Chain:
    return forms.Chain(
        self.gamma,
        num_uniforms=self.gamma,
        drafts_all_wanted=True,
        special_ids=self.model.special_ids,
        grows_trees=self.decodes_trees,
    )

  def init(
      self, params, context: views.Context, rows, slots
  ) -> tuple[DraftModelMemory, DraftModelState]:
    known = {'features': context.features} if self.reads_features else {}
    with partitioning.axis_rules(self.rules):
      started = self.model.start(params, context.inputs, rows, slots, **known)
    state = DraftModelState(started.cache, jnp.zeros((rows,), jnp.int32))
    # Models without inputs have one example per row.
    sizes = [x.shape[0] for x in jax.tree.leaves(context.inputs)]
    per_example = rows // sizes[0] if sizes else 1
    first_tokens = started.first_tokens
    if first_tokens is None:
      first_tokens = context.target.first_tokens
    # Rows of an example begin alike, and `of_rows` repeats them.
    memory = DraftModelMemory(
        started.memory,
        started.offsets[::per_example],
        first_tokens[::per_example],
    )
    return memory, state

  def propose(
      self,
      params,
      memory: DraftModelMemory,
      state: DraftModelState,
      view: views.View,
  ) -> tuple[contracts.Draft, DraftModelState]:
    offsets, first_tokens = memory.of_rows(view.num_tokens.shape[0])

    def decode(cache, tokens, index, at):
      with partitioning.axis_rules(self.rules):
        logits, cache = self.model.decode(
            params, memory.memory, cache, tokens, offsets + index, at
        )
      return self.fit_width(logits), cache

    draft, cache, num_fed = autoregression.draft(
        decode,
        state.cache,
        # Rejected draft tokens were fed too: their positions are fed again.
        jnp.minimum(state.num_fed, view.num_tokens - view.num_pending),
        first_tokens,
        view,
        self.gamma,
    )
    return draft, DraftModelState(cache, num_fed)

  # What `draft_tree` asks of it, whose state is the cache.

  def share_rows(
      self, state: DraftModelState, trees: int, roots: int
  ) -> contracts.Cache:
    """Return the state for trees that continue several rows each."""
    if roots == 1:  # a row continues itself
      return state.cache
    return self.model.share_rows(state.cache, trees)

  def new_block(
      self, params, memory, state: contracts.Cache, view, trees: int, nodes: int
  ) -> Any:
    """Return an empty block of nodes; see `contracts.DecodesTrees`."""
    del params, memory, view
    return self.model.new_block(state, trees, nodes)

  def decode_tree(self, *args) -> tuple[jax.Array, Any]:
    """See `contracts.DecodesTrees`; logits are as wide as the target's."""
    with partitioning.axis_rules(self.rules):
      logits, block = self.model.decode_tree(*args)
    return self.fit_width(logits), block

  def commit(self, *args) -> contracts.Cache:
    """See `contracts.DecodesTrees`."""
    with partitioning.axis_rules(self.rules):
      return self.model.commit(*args)

  def fit_width(
      self, logits: jax.Array, missing_value: float = -jnp.inf
  ) -> jax.Array:
    """Cut logits [..., any] to the target's width, or pad them."""
    missing = self.vocab_size - logits.shape[-1]
    if missing <= 0:
      return logits[..., : self.vocab_size]
    # Not 0: a token that the draft model does not know has q = 0.
    padding = [(0, 0)] * (logits.ndim - 1) + [(0, missing)]
    return jnp.pad(logits, padding, constant_values=missing_value)

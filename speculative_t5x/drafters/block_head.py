# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A head that drafts a block of tokens in one call.

It is a small decoder that is fed masks in the places of the tokens ahead. After
5 committed tokens, of which the last target call made 2, gamma 3:

  index         4  5  6   7    of the decoder's inputs, a block of 2 gamma
  token         d  e  m1  m2   committed tokens, then masks
  logits of        x  y   z    three draft tokens

The next call writes over what masks and rejected tokens left in the cache.

Draft tokens are independent of each other, given the committed ones, or a
narrow recurrence over them adds to the logits of each: see
`layers.DraftRecurrence`. In a tree it runs along each path.

A head may be fed the target's last features of the position before each
committed token as well, as `feature_head` is: then the last target call has
shown them, and masks have none.

Legend: rows, gamma (draft tokens per block), block (positions per call), vocab,
dim (of the recurrence), trees, roots and nodes (per tree, the roots of a tree
being rows next to each other).
References: Stern et al. (2018), arXiv:1811.03115; for masks behind committed
  tokens Chen et al. (2026), "DFlash", arXiv:2602.06036.
"""

import dataclasses
from typing import Any, NamedTuple

from flax.linen import partitioning
import jax
import jax.numpy as jnp

from speculative_t5x.drafters import autoregression
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import network
from speculative_t5x.speculation import beam_rows
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import views


class _Ahead(NamedTuple):
  """Next tokens as one call knows them.

  Attributes:
    logits: [rows, gamma, vocab], without the recurrence.
    read: [rows, gamma, dim], what the recurrence reads of each position.
  """

  logits: jax.Array
  read: jax.Array


class _Block(NamedTuple):
  """Nodes of trees behind one call.

  Attributes:
    ahead: `_Ahead` of [trees, roots, gamma, ...].
    states: [trees, nodes, dim], of the recurrence behind each node.
    after: The state of the head after the call.
  """

  ahead: _Ahead
  states: jax.Array
  after: draft_model.DraftModelState


@dataclasses.dataclass(frozen=True)
class BlockHead(draft_model.ModelDrafter):
  """Drafts up to gamma tokens with one call of a head.

  The attributes are those of a draft model. Its network has masks for all
  tokens of a draft but the first; with a greater gamma it drafts fewer.
  """

  @property
  def form(self) -> forms.Chain:
    reads_last_features = network.is_feature_head(self.model.network)
    return dataclasses.replace(
        super().form,
        drafts_all_wanted=self.gamma <= self.max_tokens,
        reads_last_features=reads_last_features,
        # A tree has features of no row.
        grows_trees=self.decodes_trees and not reads_last_features,
    )

  @property
  def is_causal(self) -> bool:
    """True of a head whose draft tokens know those before them."""
    return self.model.network.recurrence_dim is not None

  @property
  def max_tokens(self) -> int:
    """Draft tokens that its network has positions for."""
    return self.model.network.num_masks + 1

  def init(self, params, context: views.Context, rows, slots):
    # A block of masks reaches past all tokens.
    return super().init(params, context, rows, slots + 2 * self.gamma)

  def propose(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: draft_model.DraftModelState,
      view: views.View,
  ) -> tuple[contracts.Draft, draft_model.DraftModelState]:
    ahead, after = self._look_ahead(params, memory, state, view)
    view = view._replace(
        num_wanted=jnp.minimum(view.num_wanted, self.max_tokens),
        wants_always=view.wants_always and self.form.drafts_all_wanted,
    )
    if not self.is_causal:
      return _draw_all(ahead.logits, view), after
    first_tokens = memory.of_rows(view.num_tokens.shape[0])[1]

    def decode(state, tokens, start, at):
      del at
      # No counter of its own: by two XLA does not know how often a loop runs,
      # and a GPU waits for the host in each turn.
      step = start[0] - view.num_tokens[0]
      of_step = lambda x: jax.lax.dynamic_index_in_dim(x, step, 1, False)
      with partitioning.axis_rules(self.rules):
        added, state = self.model.follow(
            params, state, tokens[:, 0], of_step(ahead.read)
        )
      logits = of_step(ahead.logits) + self.fit_width(added, 0)
      return logits[:, None], state

    def draw(sampling: sampling_lib.Sampling) -> contracts.Draft:
      return autoregression.draft(
          decode,
          jnp.zeros_like(ahead.read[:, 0]),
          view.num_tokens,
          first_tokens,
          view._replace(sampling=sampling),
          self.gamma,
          first_block=1,
      )[0]

    # One choice per block, not one per token: a GPU waits for the host at each.
    # A turn is small enough to be compiled twice; that of a draft model is not.
    draft = jax.lax.cond(
        jnp.any(view.sampling.temperature > sampling_lib.MIN_TEMPERATURE),
        lambda: draw(view.sampling),
        lambda: draw(sampling_lib.GREEDY),
    )
    return draft, after

  def _look_ahead(
      self,
      params,
      memory: draft_model.DraftModelMemory,
      state: draft_model.DraftModelState,
      view: views.View,
  ) -> tuple[_Ahead, draft_model.DraftModelState]:
    """Feed what was committed since the last call, and masks behind it.

    It runs in every step, also where no row wants a token: so no row is behind
    by more than a target call commits, gamma + 1 tokens, the last of which is
    followed by gamma - 1 masks.
    """
    offsets, first_tokens = memory.of_rows(view.num_tokens.shape[0])
    num_committed = view.num_tokens - view.num_pending
    # In a step that commits nothing the last token is fed again.
    num_fed = jnp.minimum(state.num_fed, num_committed)
    block = 2 * self.gamma
    index = jnp.arange(block, dtype=jnp.int32)
    last = view.num_tokens - num_fed
    ahead = index - last[:, None]
    tokens = state_lib.decoder_inputs(
        view.sequences, first_tokens, num_fed, block
    )
    config = self.model.network
    # Masks past the last one fill the block: nothing reads them.
    mask = jnp.minimum(ahead, config.num_masks) - 1
    tokens = jnp.where(ahead > 0, config.vocab_size + mask, tokens)
    # Behind draft tokens of another drafter fewer are left to be drafted.
    at = jnp.minimum(last[:, None] + index[: self.gamma], block - 1)
    args = params, memory.memory, state.cache, tokens, offsets + num_fed, at
    with partitioning.axis_rules(self.rules):
      logits, cache, read = self.model.decode_with_features(
          *args, fed=self._features(view, block)
      )
    after = draft_model.DraftModelState(cache, num_committed + 1)
    return _Ahead(self.fit_width(logits), read), after

  def _features(self, view: views.View, block: int) -> jax.Array | None:
    """Return the target's features of the positions before those of a block.

    They are zeros where the target has not been: [rows, block, width].
    """
    if not self.form.reads_last_features:
      return None
    # Before any call there is one, of the position before the first.
    num_shown = jnp.maximum(view.last_outcome.num_committed, 1)
    shown = view.target.last_features
    is_shown = jnp.arange(shown.shape[1]) < num_shown[:, None]
    shown = jnp.where(is_shown[..., None], shown, 0)
    return jnp.pad(shown, ((0, 0), (0, block - shown.shape[1]), (0, 0)))

  # Of trees: the state is that of chains.

  def share_rows(self, state, trees: int, roots: int):
    return state

  def new_block(
      self, params, memory, state, view, trees: int, nodes: int
  ) -> _Block:
    """Return a block of nodes, all of which one call is for."""
    ahead, after = self._look_ahead(params, memory, state, view)
    split = lambda x: x.reshape(trees, -1, *x.shape[1:])
    ahead = jax.tree.map(split, ahead)
    shape = trees, nodes, ahead.read.shape[-1]
    return _Block(ahead, jnp.zeros(shape, ahead.read.dtype), after)

  def decode_tree(
      self, params, memory, state, block, nodes, first, count, num_cached
  ) -> tuple[jax.Array, _Block]:
    del memory, state
    new = slice(first, first + count)
    of_new = lambda x: x[:, new]
    depths = of_new(nodes.positions) - num_cached[:, None]
    # Nothing is drafted behind the last depth.
    depths = jnp.minimum(depths, self.gamma - 1)
    places = of_new(nodes.roots) * self.gamma + depths

    def of_places(x):
      x = x.reshape(x.shape[0], -1, x.shape[-1])
      return jnp.take_along_axis(x, places[..., None], axis=1)

    # Behind the last mask, depths have no tokens.
    is_drafted = (depths < self.max_tokens)[..., None]
    logits = jnp.where(is_drafted, of_places(block.ahead.logits), -jnp.inf)
    if not self.is_causal:
      return logits, block
    # A node sees one node per depth of its path, a root none before it.
    before = of_new(nodes.positions) - 1
    is_parent = of_new(nodes.sees) & (
        nodes.positions[:, None] == before[..., None]
    )
    parents = jnp.einsum(
        'tnm,tmd->tnd', is_parent.astype(block.states.dtype), block.states
    )
    with partitioning.axis_rules(self.rules):
      added, states = self.model.follow(
          params, parents, of_new(nodes.tokens), of_places(block.ahead.read)
      )
    states = block.states.at[:, new].set(states)
    return logits + self.fit_width(added, 0), block._replace(states=states)

  def commit(self, state, block: _Block, rows, paths, num_cached) -> Any:
    del state, paths, num_cached
    return beam_rows.take(block.after, rows)


def _draw_all(logits: jax.Array, view: views.View) -> contracts.Draft:
  """Draw tokens [rows, gamma] that are independent of each other."""
  gamma = logits.shape[1]
  (uniforms,) = view.uniforms.split(gamma)
  probs, tokens = sampling_lib.standardize_and_draw(
      logits, view.sampling, lambda probs: view.draw(probs, uniforms)
  )
  lengths = jnp.zeros_like(view.num_tokens)
  is_open = view.num_wanted > 0
  progress = view.begin(jnp.broadcast_to(view.num_pending, lengths.shape))
  for i in range(gamma):
    lengths = lengths + is_open
    goes_on, progress = view.continues(progress, logits[:, i], tokens[:, i])
    is_open = is_open & (lengths < view.num_wanted) & goes_on
  return contracts.Draft(tokens, lengths, probs)

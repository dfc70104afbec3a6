# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""All that the decoding loop asks of models, drafters and rules.

The loop knows nothing else about them, so a table of probabilities serves as a
model just as well as T5 does. Static attributes (sizes, names) are plain Python
values; everything else is a pytree.

Legend: rows (sequences that are decoded together), examples (inputs; each has
rows // examples rows next to each other), block (positions decoded by one
call), gamma (draft tokens per block), vocab, length (of the longest output),
slots (positions of a cache).
"""

import dataclasses
from typing import Any, NamedTuple, Protocol, runtime_checkable

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import forms
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import views

Params = Any
# A pytree with one row per example: token ids of an encoder, a prompt, ...
Inputs = Any
# Stands in inputs and hints where there is no token. No id of a vocabulary
# means that: in some, 0 is a token like others.
NO_TOKEN = -1
# What decoding only reads, one row per example: keys and values of the inputs
# and their mask. The loop never carries or rewinds it.
Memory = Any
# The decoder's own keys and values and nothing else, one row per sequence.
Cache = Any


@dataclasses.dataclass(frozen=True)
class SpecialIds:
  """Token ids with a meaning of their own.

  Attributes:
    end: Ends a sequence; the one that inputs and hints are written with.
    padding: Fills an output past its end; may be NO_TOKEN.
    start: First input of the decoder; None where a network takes it from its
      inputs, as a decoder alone does.
    other_ends: Further ids that end a sequence, as of a chat model.
    forbidden: Ids that are never written.
  """

  end: int
  padding: int = NO_TOKEN
  start: int | None = None
  other_ends: tuple[int, ...] = ()
  forbidden: tuple[int, ...] = ()

  @property
  def ends(self) -> tuple[int, ...]:
    """All ids that end a sequence."""
    return self.end, *self.other_ends

  def is_end(self, tokens: jax.Array) -> jax.Array:
    """Return which tokens end a sequence, bool of the same shape."""
    is_end = tokens == self.end
    for each in self.other_ends:
      is_end |= tokens == each
    return is_end


def mask(logits: jax.Array, ids: tuple[int, ...]) -> jax.Array:
  """Return logits [..., vocab], or log-probabilities, -inf of some ids."""
  tokens = jnp.arange(logits.shape[-1])
  for each in ids:
    logits = jnp.where(tokens != each, logits, -jnp.inf)
  return logits


class Started(NamedTuple):
  """A batch whose inputs a model has read.

  Attributes:
    memory: What decoding only reads.
    cache: With the slots that were asked for.
    offsets: [rows] int32, the position of the first decoder input: 0 for an
      encoder-decoder, the prompt's length minus one for a decoder alone.
    first_tokens: [rows] int32, the decoder input there; None of a draft model
      that begins with the target's.
    features: What the model computed of its inputs, one row per example, for
      drafters that share it: the output of an encoder, or of a model that is
      a `ShowsFeatures` the last features of a prompt. None without any.
    last_features: [rows, 1, width], those of the position before the first
      decoder input, zeros where there is none; None unless it was asked for
      them, see `ShowsFeatures`.
  """

  memory: Memory
  cache: Cache
  offsets: jax.Array
  first_tokens: jax.Array | None
  features: Any = None
  last_features: jax.Array | None = None

  def view(self, params: Params) -> views.TargetView:
    """Return what drafters may share of the target that has read them."""
    return views.TargetView(
        params,
        self.memory,
        self.cache,
        self.offsets,
        self.first_tokens,
        self.last_features,
    )


class Model(Protocol):
  """A language model, as the loop and the drafters know it."""

  vocab_size: int
  special_ids: SpecialIds

  def start(
      self,
      params: Params,
      inputs: Inputs,
      rows: int,
      slots: int,
      features: Any = None,
  ) -> Started:
    """Read the inputs.

    Args:
      params: Parameters of the model.
      inputs: One row per example.
      rows: Number of sequences to decode, a multiple of the examples (static).
      slots: Number of positions that the cache must hold (static).
      features: What the model has computed of the same inputs before, see
        `Started`; None to compute it. A model may lack this argument: it is
        only passed if there are features.
    """

  def decode(
      self,
      params: Params,
      memory: Memory,
      cache: Cache,
      tokens: jax.Array,
      positions: jax.Array,
      at: jax.Array | None,
  ) -> tuple[jax.Array, Cache]:
    """Decode a block.

    A row is rewound by passing a smaller position: what was written at or past
    it is never read again.

    Args:
      params: Parameters of the model.
      memory: Memory that `start` returned.
      cache: Cache that `start` or the last call returned.
      tokens: [rows, block] int32. Tokens fed at `positions` and after.
      positions: [rows] int32. Position of the first token of each row.
      at: [rows] int32. The one index of the block whose logits are wanted; the
        result has a block of 1. None for all.
    Returns:
      The logits [rows, block, vocab] of the token after each position, and the
      next cache.
    """


class ShowsFeatures(Protocol):
  """A model or a network that also returns its last features, for heads.

  The features of a position are what the output head reads there. They are
  asked for where the drafter has a true `reads_last_features`.
  """

  def start_with_features(
      self,
      params: Params,
      inputs: Inputs,
      rows: int,
      slots: int,
      features: Any = None,
  ) -> Started:
    """Read the inputs as `start` does; `Started.last_features` is not None."""

  def decode_with_features(
      self,
      params: Params,
      memory: Memory,
      cache: Cache,
      tokens: jax.Array,
      positions: jax.Array,
      at: jax.Array | None,
      fed: jax.Array | None = None,
  ) -> tuple[jax.Array, Cache, jax.Array]:
    """Decode a block as `decode` does.

    A head on a target is fed `fed`, [rows, block, width], the target's features
    of the position before each. Other networks may lack this argument.

    Returns:
      Logits and cache, and the features of the positions of the logits, [rows,
      block or 1, width].
    """


class Nodes(NamedTuple):
  """Tokens of trees, one tree per example, whose paths are decoded at once.

  They lie in a block of their own beside the cache, so that siblings may share
  a position.

  Attributes:
    tokens: [examples, nodes] int32.
    positions: [examples, nodes] int32.
    roots: [examples, nodes] int32, the row of the example whose cache a node
      continues.
    sees: [examples, nodes, nodes] bool, the nodes that each attends to: those
      of its path, itself included.
  """

  tokens: jax.Array
  positions: jax.Array
  roots: jax.Array
  sees: jax.Array


class DecodesTrees(Protocol):
  """A model or a network that decodes trees; rows are those of the cache."""

  def share_rows(self, cache: Cache, examples: int) -> Cache:
    """Return a cache of `start` for rows that continue each other.

    As beams do. A cache with one row per example is taken as it is.
    """

  def separate_rows(self, cache: Cache) -> Cache:
    """Return a cache of `share_rows` as `decode` takes it: a copy."""

  def new_block(self, cache: Cache, examples: int, nodes: int) -> Any:
    """Return an empty block beside a cache (sizes are static)."""

  def decode_tree(
      self,
      params: Params,
      memory: Memory,
      cache: Cache,
      block: Any,
      nodes: Nodes,
      first: int,
      count: int,
      num_cached: jax.Array,
  ) -> tuple[jax.Array, Any]:
    """Decode some nodes: `count` of them from `first` on (both static).

    Args:
      params: Parameters of the model.
      memory: Memory that `start` returned.
      cache: Cache of one row per example, or of `share_rows`. It is only read.
      block: Block of `new_block` or of the last call, in which other nodes that
        these see lie.
      nodes: All nodes of the block.
      first: The first one to decode.
      count: How many.
      num_cached: [examples] int32, slots of each row that nodes see.
    Returns:
      The logits [examples, count, vocab] of the token after each, and the next
      block.
    """

  def commit(
      self,
      cache: Cache,
      block: Any,
      rows: jax.Array,
      paths: jax.Array,
      num_cached: jax.Array,
  ) -> Cache:
    """Return the cache in which each row continues another one by a path.

    Args:
      cache: Cache that the block lies beside.
      block: The block.
      rows: [examples, rows per example] int32, the row that each continues.
      paths: [examples, rows per example, length] int32, nodes that are written
        to the slots from `num_cached` on.
      num_cached: [examples] int32.
    """


@struct.dataclass
class Draft:
  """Draft tokens of each row, and the distributions they were drawn from.

  Attributes:
    tokens: [rows, gamma] int32. Draft tokens, in order.
    lengths: [rows] int32 in [0, gamma]. Number of draft tokens; the rest only
      fills the block.
    probs: [rows, gamma, vocab]. The distribution that each token was drawn
      from, standardized and in the dtype of the draw. None if no token was
      sampled: then each has probability 1 under the drafter.
    is_point_mass: [rows, gamma] bool. Which tokens were not sampled and have
      probability 1; `probs` is ignored there. None if all tokens are of one
      kind.
    target_cache: The target's next cache of a drafter that runs layers of the
      target; None for that of the view.
  """

  tokens: jax.Array
  lengths: jax.Array
  probs: jax.Array | None = None
  is_point_mass: jax.Array | None = None
  target_cache: Cache | None = None


class Drafter(Protocol):
  """A way to draft. What it drafts for a row depends on that row alone.

  A drafter may stop before a draft token for any reason that is known before
  the token is sampled. It must not drop a token because of the token's own
  value: that would bias the outputs. A drafter is a static argument of compiled
  functions and must be hashable, as a frozen dataclass is.

  Attributes:
    form: Its sizes, and what it reads.
  """

  form: forms.Chain | forms.Tree

  def init(
      self, params: Params, context: views.Context, rows: int, slots: int
  ) -> tuple[Memory, Any]:
    """Return what the drafter only reads, and its state before any block.

    Args:
      params: The drafter's own, or None.
      context: What it may read.
      rows: Sequences to decode (static).
      slots: Positions that a cache must hold (static).
    """

  def propose(
      self, params: Params, memory: Memory, state: Any, view: views.View
  ) -> tuple[Any, Any]:
    """Draft up to `view.num_wanted` tokens, or depths of a tree, per row.

    Args:
      params: The drafter's own, or None.
      memory: Memory from `init`.
      state: State from `init` or the last call. Entries for positions from a
        row's `num_tokens` on belong to rejected tokens.
      view: What it may look at.
    Returns:
      A `Draft` and the next state; of a tree the `token_trees.Candidates`, and
      what `commit` needs of them.
    """

  def commit(
      self, state: Any, made: Any, rows: jax.Array, paths: jax.Array
  ) -> Any:
    """Return the next state of a drafter of trees; others need no `commit`.

    Args:
      state: State before the draft.
      made: What `propose` returned beside the candidates.
      rows: [trees, roots] int32, the root that each sequence continues.
      paths: [trees, roots, gamma + 1] int32, the nodes of its path, root first,
        and any behind these.
    """


class Scores(NamedTuple):
  """The target's scores of the token after each draft token.

  Attributes:
    logits: [rows, gamma + 1, vocab]; position i is about the token after i
      draft tokens.
    probs: [rows, block, vocab]. The distribution to sample from: the
      standardized logits.
    sampling: Sampling by which the logits were standardized; arrays [rows].
  """

  logits: jax.Array
  probs: jax.Array
  sampling: sampling_lib.Sampling


class Verdict(NamedTuple):
  """The decision of a rule.

  Attributes:
    num_accepted: [rows] int32 in [0, lengths].
    next_weights: [rows, vocab], from which the loop draws the token after the
      accepted ones: resampled if a draft token was rejected, else the bonus
      token. Non-negative, not all 0, and not necessarily normalised.
  """

  num_accepted: jax.Array
  next_weights: jax.Array


class Rule(Protocol):
  """Decides which draft tokens are accepted, and how the next token is drawn.

  A rule is a pytree; a change of its values does not cause recompilation. If it
  has parameters, it is a dataclass, and the record names them.

  Attributes:
    name: Name for the record.
    is_lossless: Whether the outputs keep the target's distribution.
  """

  name: str
  is_lossless: bool

  def __call__(
      self,
      scores: Scores,
      draft: Draft,
      accept_uniforms: jax.Array,
  ) -> Verdict:
    """Accept a prefix of each row's draft.

    Args:
      scores: What the target says of the block.
      draft: Cut at its first end of sequence and at the length limit.
      accept_uniforms: [rows, gamma] floats in [0, 1), one per draft token.
    """


@runtime_checkable
class CoupledRule(Protocol):
  """A way to draw the token of a position from the noise of the position.

  It takes the place of a `Rule`. The noise is keyed by row and position, and
  the drafter draws from it as the target does. A draft token is accepted if and
  only if it is the target's own draw, which is emitted otherwise: `noise`
  does that, and a coupled rule has no say in it, because noise that target and
  drafter share is exact under no other test.

  Attributes:
    name: Name for the record.
    is_lossless: True.
  """

  name: str
  is_lossless: bool

  def draw(self, probs: jax.Array, uniforms: jax.Array) -> jax.Array:
    """Draw tokens, so that similar distributions often draw the same one.

    Args:
      probs: [..., vocab], standardized. Without a positive value any token will
        do.
      uniforms: [..., 2] random bits, see `uniforms`.
    Returns:
      Tokens [...] int32, with probability `probs` over the uniforms.
    """

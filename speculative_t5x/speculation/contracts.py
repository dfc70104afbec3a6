# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What the decoding loop asks of models, drafters, rules and policies.

The loop knows nothing else about them, so a table of probabilities serves as a
model just as well as T5 does. Static attributes (sizes, names) are plain Python
values; everything else is a pytree.

Legend: rows (sequences that are decoded together), examples (inputs; each has
rows // examples rows next to each other), block (positions decoded by one
call), gamma (draft tokens per block), vocab, length (of the longest output),
slots (positions of a cache).
"""

from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple, Protocol, runtime_checkable

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import uniforms as uniforms_lib

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

  def view(self, params: Params) -> 'TargetView':
    """Return what drafters may share of the target that has read them."""
    return TargetView(
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
    of the position before each. What is no head may lack this argument.

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


class TreeModel(Model, DecodesTrees, Protocol):
  """A model that decodes trees."""


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
  """

  tokens: jax.Array
  lengths: jax.Array
  probs: jax.Array | None = None
  is_point_mass: jax.Array | None = None


class TargetView(NamedTuple):
  """The target, for drafters that share it.

  Attributes:
    params: Parameters of the target.
    memory: What the target has read of its inputs.
    cache: Cache of the target, which holds the committed tokens.
    offsets: [rows] int32, position of the first decoder input, see `Started`.
    first_tokens: [rows] int32, the decoder input there.
    last_features: [rows, gamma + 1, width]. Features of the positions of the
      last target call, whose first one is `Outcome.num_before` behind the
      offset: those at the index of a rejected token and behind it are stale.
      Before any call the first one is `Started.last_features`. None unless the
      drafter reads them.
  """

  params: Params
  memory: Memory
  cache: Cache
  offsets: jax.Array
  first_tokens: jax.Array
  last_features: jax.Array | None = None


class Context(NamedTuple):
  """What a drafter may read before the first block.

  Attributes:
    inputs: One row per example.
    hints: [examples, any] int32. Token ids that an output may repeat, such as
      an earlier version of it. NO_TOKEN fills a row and separates several
      texts. None without hints.
    target: The target, which has read the inputs.
    features: What the target computed of the inputs, see `Started`.
  """

  inputs: Inputs
  hints: jax.Array | None
  target: TargetView
  features: Any


def drafts_on(
    progress: Any, logits: jax.Array, tokens: jax.Array
) -> tuple[jax.Array, Any]:
  """Draft on in every row: see `View.continues`."""
  del logits
  return jnp.ones(tokens.shape, bool), progress


class View(NamedTuple):
  """What a drafter may look at.

  Attributes:
    sequences: [rows, length] int32. Tokens committed so far.
    num_tokens: [rows] int32. Number of committed tokens.
    num_wanted: [rows] int32 in [0, gamma]. The most draft tokens that are
      worth having in this step: what the policy asks for, up to the limit; 0 in
      rows that have ended.
    uniforms: Uniforms of the drafter, `num_uniforms` per row; under a coupled
      rule those of the next positions, one each.
    sampling: Turns a draft model's logits into a distribution; arrays [rows].
    target: The target, for drafters that share it.
    last_outcome: `outcome.Outcome` of the previous step. Before the first one
      it says that nothing was drafted and nothing was committed.
    num_pending: [rows] int32. How many of the last `num_tokens` are not yet
      committed: they are draft tokens of drafters before this one.
    begin: Takes how many draft tokens there are, [rows] int32, and returns what
      `continues` knows of the draft at first.
    continues: Takes what it knows of the draft, the logits of a draft token's
      distribution before they were standardized, [rows, vocab], and the token,
      [rows]; returns whether to draft another one after it, [rows] bool, and
      what it then knows. A drafter that samples asks it after each token.
    wants_always: Whether this drafter alone drafts, and in every step as many
      tokens as each row that has not ended may have (static). Then some row
      wants a token, and a network was fed all but what the last step drew.
    draw: Draws tokens, [...], from distributions, [..., vocab], and uniforms,
      [..., 2]: as `sampling.draw`, or as a coupled rule does. Under that a
      drafter that draws otherwise has fewer tokens accepted.
  """

  sequences: jax.Array
  num_tokens: jax.Array
  num_wanted: jax.Array
  uniforms: uniforms_lib.Uniforms
  sampling: sampling_lib.Sampling
  target: TargetView
  last_outcome: Any
  num_pending: jax.Array | int = 0
  begin: Callable[[jax.Array], Any] = lambda num_drafted: None
  continues: Callable[[Any, jax.Array, jax.Array], tuple[jax.Array, Any]] = (
      drafts_on
  )
  wants_always: bool = False
  draw: Callable[[jax.Array, jax.Array], jax.Array] = sampling_lib.draw


class ModelCall(NamedTuple):
  """Calls of a network with equal shapes, to count a draft's operations.

  Attributes:
    model: The network.
    begin: Takes what `Drafter.init` takes, and returns the parameters, the
      memory and the cache of a call.
    block: Number of positions per call and row.
    count: Number of calls per draft.
    wants_one: Whether the logits of one position of each row are wanted.
  """

  model: Model
  begin: Callable[[Params, Context, int, int], tuple[Params, Memory, Cache]]
  block: int
  count: int
  wants_one: bool = False


class Drafter(Protocol):
  """A way to draft. What it drafts for a row depends on that row alone.

  A drafter may stop before a draft token for any reason that is known before
  the token is sampled. It must not drop a token because of the token's own
  value: that would bias the outputs. A drafter is a static argument of compiled
  functions and must be hashable, as a frozen dataclass is.

  A drafter with a vocabulary of its own also has `special_ids`, which must be
  the target's. One that runs networks also has `model_calls()`, a tuple of
  `ModelCall`. One with `drafts_all_wanted` True always drafts `num_wanted`
  tokens, unless `continues` stops it: then verification has one width. One that
  reads `Context.hints` has a true `reads_hints`; others may get None for them.
  One that reads `TargetView.last_features` has a true `reads_last_features`,
  and its target must be a `ShowsFeatures`.

  Attributes:
    max_draft_tokens: gamma, the most draft tokens per block.
    num_uniforms: How many uniforms it uses per block and row.
  """

  max_draft_tokens: int
  num_uniforms: int

  def init(
      self,
      params: Params,
      context: Context,
      rows: int,
      slots: int,
  ) -> tuple[Memory, Any]:
    """Return what the drafter only reads, and its state before any block.

    Args:
      params: The drafter's own, or None.
      context: What it may read.
      rows: Sequences to decode (static).
      slots: Positions that a cache must hold (static).
    """

  def propose(
      self, params: Params, memory: Memory, state: Any, view: View
  ) -> tuple[Draft, Any, Cache]:
    """Draft up to `view.num_wanted` tokens per row.

    Args:
      params: The drafter's own, or None.
      memory: Memory from `init`.
      state: State from `init` or the last call. Entries for positions from a
        row's `num_tokens` on belong to rejected tokens.
      view: What it may look at.
    Returns:
      The draft, the next state, and the target's cache: that of the view,
      unless the drafter runs layers of the target.
    """


class Scores(NamedTuple):
  """What the target says about the token after each draft token.

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
  """What a rule decided.

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
  """How every token of a position is drawn from the noise of the position.

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


class Siblings(NamedTuple):
  """Candidates for one position of each row, in the order of their tests.

  Attributes:
    tokens: [rows, width] int32, drawn by the rule that tests them.
    is_there: [rows, width] bool, False where a row has fewer.
    logits: [rows, vocab], of the draft model at the position. None if they were
      not drawn: they follow from the tokens before them, and no two are equal.
    sampling: Sampling that they were drawn by; arrays [rows].
  """

  tokens: jax.Array
  is_there: jax.Array
  logits: jax.Array | None
  sampling: sampling_lib.Sampling


class Choice(NamedTuple):
  """Which of several candidates a rule chose.

  Attributes:
    index: [rows] int32, which one; their number where none was accepted.
    next_weights: [rows, vocab], see `Verdict`: from which the position's token
      is drawn where none was accepted. Without candidates, the target's own.
  """

  index: jax.Array
  next_weights: jax.Array


@runtime_checkable
class CandidateRule(Protocol):
  """A rule that also tests several candidates per position.

  How candidates are drawn comes with the rule, because its test is exact for
  that draw alone. What is drawn at a position depends on the tokens before it,
  and not on what becomes of its siblings.

  Attributes:
    name: Name for the record.
    is_lossless: Whether the outputs keep the target's distribution.
    tests_undrawn: Whether it also tests candidates that were not drawn.
  """

  name: str
  is_lossless: bool
  tests_undrawn: bool

  def draw_candidates(
      self,
      logits: jax.Array,
      sampling: sampling_lib.Sampling,
      uniforms: jax.Array,
  ) -> jax.Array:
    """Draw the candidates of positions.

    Args:
      logits: [rows, positions, vocab], of the draft model.
      sampling: Turns them into distributions; arrays [rows].
      uniforms: [rows, positions, width, 2] random bits, see `uniforms`.
    Returns:
      Tokens [rows, positions, width] int32.
    """

  def choose(
      self, target_probs: jax.Array, siblings: Siblings, uniforms: jax.Array
  ) -> Choice:
    """Accept one candidate of each row, or none.

    Args:
      target_probs: [rows, vocab], standardized.
      siblings: The candidates.
      uniforms: [rows, width] floats in [0, 1), one per candidate.
    """


class DraftLengthPolicy(Protocol):
  """Decides how many draft tokens are wanted ("gamma policy").

  Its state has one entry per row, as `loop.admit` replaces rows. A number of
  draft tokens outside [0, gamma] is clipped.

  What it decides for a row depends on that row alone, so that a sample does
  not depend on the batch. It may stop a draft after a token for any reason.

  Attributes:
    name: Name for the record. Policies with other settings have other names, or
      a job that resumes takes the results of one for those of the other.
    is_constant: Whether it always wants gamma draft tokens and never stops
      before: then verification has one width.
  """

  name: str
  is_constant: bool

  def init(self, rows: int) -> Any:
    """Return the policy's state before the first step."""

  def num_wanted(
      self, state: Any, num_remaining: jax.Array, gamma: int
  ) -> jax.Array:
    """Return how many draft tokens are wanted, [rows] int32 in [0, gamma].

    Args:
      state: State from `init` or `update`.
      num_remaining: [rows] int32, tokens up to each row's limit.
      gamma: The most that the drafter makes (static).
    """

  def begin(self, state: Any, num_drafted: jax.Array, gamma: int) -> Any:
    """Return what `continues` knows of a draft at first, a pytree.

    Args:
      state: State from `init` or `update`.
      num_drafted: [rows] int32, draft tokens that there are already, of a
        drafter that does not ask after each token.
      gamma: Draft tokens per block (static).
    """

  def continues(
      self,
      state: Any,
      progress: Any,
      logits: jax.Array,
      tokens: jax.Array,
      gamma: int,
  ) -> tuple[jax.Array, Any]:
    """Return whether to draft on after a token, [rows] bool.

    Args:
      state: State from `init` or `update`.
      progress: Progress from `begin` or `continues` for the token before.
      logits: [rows, vocab], of the token's distribution before they were
        standardized, so that they tell a sure argmax from an unsure one.
      tokens: [rows] int32, the token.
      gamma: Draft tokens per block (static).
    Returns:
      Whether to draft on, and the next progress.
    """

  def update(self, state: Any, outcome: Any) -> Any:
    """Return the state after a step, from its `outcome.Outcome`."""

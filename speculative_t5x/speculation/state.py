# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The state of the loop, all that it only reads, and how rows begin.

Legend: rows, examples, length (of the longest output), gamma (draft tokens per
block), slots (positions of a cache).
"""

from typing import Any, NamedTuple

from flax import struct
import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import noise as noise_lib
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import verification
from speculative_t5x.speculation import views


class Setup(NamedTuple):
  """The way to decode: the same for all rows.

  Attributes:
    target: Model whose distribution the outputs follow.
    target_params: Parameters of the target.
    drafter: Drafts for the target.
    draft_params: Parameters of the drafter, or None.
    rule: Decides which draft tokens are accepted; randomness comes with it.
    policy: Decides how many draft tokens are wanted.
    rescale_log_probs: Whether to score under the distribution sampled from
      (True, T5X's default) or under the model's own (False, and always by a
      rule that is not lossless). Static.
    keeps_alternatives: bool scalar, whether the likeliest tokens of each
      position are found in this run, which takes a pass over its logits; None
      if they never are (static).
  """

  target: contracts.Model
  target_params: contracts.Params
  drafter: contracts.Drafter
  draft_params: contracts.Params
  rule: contracts.Rule | contracts.CoupledRule = verification.TOKENWISE
  policy: draft_length.Policy = draft_length.Fixed()
  rescale_log_probs: bool = True
  keeps_alternatives: jax.Array | None = None

  @property
  def shows_features(self) -> bool:
    """True if the target is asked for its last features."""
    return self.drafter.form.reads_last_features

  def decode(
      self,
      memory: contracts.Memory,
      cache: contracts.Cache,
      tokens: jax.Array,
      positions: jax.Array,
  ) -> tuple[jax.Array, contracts.Cache, jax.Array | None]:
    """Call the target; return logits, cache and what the drafter reads of it.

    See `contracts.ShowsFeatures`.
    """
    given = self.target_params, memory, cache, tokens, positions, None
    if self.shows_features:
      return self.target.decode_with_features(*given)
    return *self.target.decode(*given), None

  @property
  def noise(self) -> noise_lib.ByCall | noise_lib.ByPosition:
    """The randomness of the steps."""
    return noise_lib.of(self.rule, self.drafter)


@struct.dataclass
class Batch:
  """All that the loop reads of its rows and never changes.

  Attributes:
    keys: [rows] typed PRNG keys, see `row_keys`.
    limits: [rows] int32 in [0, length]. The most tokens of each row. A row of
      limit 0 is padding: it never runs and counts nowhere.
    sampling: Turns the target's logits into the distribution that the outputs
      follow; arrays [rows].
    draft_sampling: Likewise, of drafters that draw from logits. Any will do,
      the closer to `sampling` the better.
    offsets: [rows] int32. Position of the first decoder input of each row.
    first_tokens: [rows] int32. The decoder input there.
    memory: What decoding reads of the target, one row per example.
    draft_memory: What decoding reads of the drafter, one row per example.
  """

  keys: jax.Array
  limits: jax.Array
  sampling: sampling_lib.Sampling
  draft_sampling: sampling_lib.Sampling
  offsets: jax.Array
  first_tokens: jax.Array
  memory: contracts.Memory
  draft_memory: contracts.Memory

  def view(
      self,
      params: contracts.Params,
      cache: contracts.Cache,
      last_features: jax.Array | None,
  ) -> views.TargetView:
    """Return the target as it stands, for drafters that share it."""
    return views.TargetView(
        params,
        self.memory,
        cache,
        self.offsets,
        self.first_tokens,
        last_features,
    )


@struct.dataclass
class State:
  """All that the loop carries. There is no global step: each row has its own.

  Attributes:
    sequences: [rows, length] int32. Committed tokens; padding past them.
    num_tokens: [rows] int32. Number of committed tokens.
    has_ended: [rows] bool. Whether no more tokens come.
    log_probs: [rows] float32. Log-probability of the committed tokens.
    num_calls: [rows] int32. Target calls made for the row.
    target_cache: Cache of the target.
    last_features: See `views.TargetView`; None unless the drafter reads
      them.
    draft_state: State of the drafter.
    policy_state: State of the draft length policy.
    outcome: Outcome of the last step.
  """

  sequences: jax.Array
  num_tokens: jax.Array
  has_ended: jax.Array
  log_probs: jax.Array
  num_calls: jax.Array
  target_cache: contracts.Cache
  last_features: jax.Array | None
  draft_state: Any
  policy_state: Any
  outcome: outcome_lib.Outcome


def row_keys(
    seeds: jax.Array, example_ids: jax.Array, num_decodes: int = 1
) -> jax.Array:
  """Return keys that depend on seed, example and decode number alone.

  Args:
    seeds: int32, a scalar for all examples or [examples].
    example_ids: [examples] int32.
    num_decodes: Rows per example (static).
  Returns:
    [examples * num_decodes] typed keys, an example's next to each other.
  """
  # Decodes are folded in last, so that more of them change no earlier one.
  rows = lambda x: jnp.repeat(x, num_decodes)
  decodes = jnp.tile(jnp.arange(num_decodes), len(example_ids))
  return decode_keys(rows(example_keys(seeds, example_ids)), decodes)


def example_keys(seeds: jax.Array, example_ids: jax.Array) -> jax.Array:
  """Return keys of examples, which `decode_keys` makes keys of rows; see there.

  Threefry whatever the default is: the bits of T5X's `unsafe_rbg` depend on
  the batch.
  """

  def of_example(seed, example_id):
    key = jax.random.key(seed, impl='threefry2x32')
    return jax.random.fold_in(key, example_id)

  seeds = jnp.broadcast_to(seeds, jnp.shape(example_ids))
  return jax.vmap(of_example)(seeds, example_ids)


def decode_keys(keys: jax.Array, decodes: jax.Array) -> jax.Array:
  """Return the keys of decodes, by their numbers [rows], of examples' keys."""
  return jax.vmap(jax.random.fold_in)(keys, decodes)


def cache_slots(length: int, gamma: int) -> int:
  """Return the positions a cache needs so that no write is ever clamped.

  A row that has ended at the limit still writes its block, after the end: with
  length 4 and gamma 2 it is fed at positions 4, 5 and 6, of 7 slots.
  """
  return length + gamma + 1


def start(
    setup: Setup,
    inputs: contracts.Inputs,
    rows: int,
    slots: int,
    features: Any = None,
) -> contracts.Started:
  """Have the target read inputs, for the drafter of a setup.

  `last_features` are those of as many positions as a target call has.

  Raises:
    ValueError: if the drafter reads features that the target does not show.
  """
  # Own models may lack the argument.
  known = {} if features is None else {'features': features}
  args = setup.target_params, inputs, rows, slots
  if not setup.shows_features:
    return setup.target.start(*args, **known)
  if not hasattr(setup.target, 'decode_with_features'):
    raise ValueError(
        f'The drafter {type(setup.drafter).__name__} reads the last features of'
        f' its target, which a {type(setup.target).__name__} does not show.'
        ' Choose another drafter, or see contracts.ShowsFeatures.'
    )
  started = setup.target.start_with_features(*args, **known)
  missing = (0, 0), (0, setup.drafter.form.gamma), (0, 0)
  last = jnp.pad(started.last_features, missing)
  return started._replace(last_features=last)


def begin(
    setup: Setup,
    inputs: contracts.Inputs,
    keys: jax.Array,
    limits: jax.Array,
    sampling: sampling_lib.Sampling,
    draft_sampling: sampling_lib.Sampling | None = None,
    *,
    length: int,
    hints: jax.Array | None = None,
    features: Any = None,
) -> tuple[Batch, State]:
  """Read inputs and return the state before the first step.

  Args:
    keys: [rows] typed PRNG keys, see `row_keys`.
    limits: [rows] int32. The most tokens of each row, see `Batch`.
    sampling: Sampling of the target, scalars for all rows or arrays [rows].
    draft_sampling: Likewise, of the drafter; None for the target's.
    length: Tokens of the longest output (static).
    hints: [examples, any] int32, see `views.Context`; None without.
    features: What the target reads of another network's encoder, see
      `contracts.Model.start`; None to compute it.
  Raises:
    ValueError: if there are no rows.
  """
  gamma, rows = setup.drafter.form.gamma, limits.shape[0]
  if rows == 0:
    raise ValueError('A batch has no rows. Give at least one input.')
  slots = cache_slots(length, gamma)
  started = start(setup, inputs, rows, slots, features)
  context = views.Context(
      inputs, hints, started.view(setup.target_params), started.features
  )
  draft_memory, draft_state = setup.drafter.init(
      setup.draft_params, context, rows, slots
  )
  batch = Batch(
      keys,
      limits,
      sampling.of_rows(rows),
      (draft_sampling or sampling).of_rows(rows),
      started.offsets,
      started.first_tokens,
      started.memory,
      draft_memory,
  )
  counts = lambda *shape: jnp.zeros((rows, *shape), jnp.int32)
  state = State(
      sequences=jnp.full_like(counts(length), setup.target.special_ids.padding),
      num_tokens=counts(),
      has_ended=limits <= 0,  # such a row only fills the batch
      log_probs=jnp.zeros((rows,), jnp.float32),
      num_calls=counts(),
      target_cache=started.cache,
      last_features=started.last_features,
      draft_state=draft_state,
      policy_state=setup.policy.init(rows),
      outcome=outcome_lib.none_yet(rows, gamma),
  )
  return batch, state


def decoder_inputs(
    sequences: jax.Array,
    first_tokens: jax.Array,
    index: jax.Array,
    block: int,
) -> jax.Array:
  """Return the tokens that a decoder is fed after `index` tokens.

  A decoder is fed the sequence shifted right behind its first token: for the
  sequence a b c, index 0, 1, 2, 3 takes <first> a b c.

  Args:
    sequences: [rows, length] int32. Committed tokens.
    first_tokens: [rows] int32, see `Batch`.
    index: [rows] int32 in [0, length]. Number of tokens before the block.
    block: Number of tokens to return (static). Those past the sequence's end
      are its last token; they must not matter.
  Returns:
    [rows, block] int32.
  """
  # Index 2, block 3: sequence places 1, 2, 3, which are fed at the positions 2,
  # 3 and 4 of the decoder.
  offsets = jnp.arange(-1, block - 1, dtype=index.dtype)
  at = index[:, None] + offsets[None]
  last = sequences.shape[-1] - 1
  tokens = jnp.take_along_axis(sequences, jnp.clip(at, 0, last), axis=-1)
  return jnp.where(at < 0, first_tokens[:, None], tokens)

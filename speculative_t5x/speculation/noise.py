# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The randomness of a step: what it is keyed by, and what it decides.

ByCall      rules that accept by chance: new uniforms for each target call
ByPosition  coupled rules: the uniform of a position draws its token

A rule that accepts by chance samples a position again after a rejection, and
needs new uniforms for it: they never depend on the position. Under a coupled
rule a position's token is the target's draw from the noise of the position,
and a draft token is accepted if it is the same one, so that drafter, gamma,
policy, batch and load change no token.

Noise comes with the rule. That draft tokens drawn from shared noise are
accepted by p / q, which is biased, cannot be said here.

Legend: rows, gamma (draft tokens per block), width (positions that are
verified), vocab, count (uniforms per step and row).
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import verification


class ByCall(NamedTuple):
  """Uniforms of a row's target calls, for a rule that accepts by chance.

  Those of a step are the drafter's, one per test of the rule, and one for the
  token that is drawn after the accepted ones.
  """

  rule: contracts.Rule
  drafter: contracts.Drafter
  draw = staticmethod(sampling_lib.draw)  # see `views.View`

  @property
  def num_tests(self) -> int:
    """Most draft tokens that a step tests: all of a chain.

    Of a tree, the children of one node per depth.
    """
    return self.drafter.form.gamma * self.drafter.form.width

  @property
  def num_uniforms(self) -> int:
    """Number of uniforms that a step uses per row."""
    return self.drafter.form.num_uniforms + self.num_tests + 1

  def table(
      self, keys: jax.Array, state: Any, max_steps: int
  ) -> jax.Array:
    """Draw the uniforms of the steps after a `state.State`, by keys [rows]."""
    return uniform_table(keys, state.num_calls, max_steps, self.num_uniforms)

  def look_up(self, table: jax.Array, first: Any, state: Any) -> jax.Array:
    """Return the uniforms of the next step, [rows, count, 2].

    The table begins with those of the state `first`.
    """
    # Call 7 of a row that had made 5 calls before this loop is entry 2.
    return uniforms_at(table, state.num_calls - first.num_calls)

  def divide(
      self, uniforms: jax.Array
  ) -> tuple[uniforms_lib.Uniforms, tuple[jax.Array, jax.Array]]:
    """Return the drafter's uniforms, and those that `decide` takes."""
    own, accept, draw = uniforms_lib.Uniforms(uniforms, 'A step').split(
        self.drafter.form.num_uniforms, self.num_tests, 1
    )
    user = uniforms_lib.user_name(self.drafter)
    return uniforms_lib.Uniforms(own, user), (accept, draw[:, 0])

  def decide(
      self,
      scores: contracts.Scores,
      draft: contracts.Draft,
      uniforms: tuple[jax.Array, jax.Array],
  ) -> tuple[jax.Array, jax.Array]:
    """Return how many draft tokens are accepted, and the token after them.

    Both are [rows] int32. The draft may be narrower than gamma.
    """
    accept_uniforms, draw_uniforms = uniforms
    width = draft.tokens.shape[1]
    verdict = self.rule(
        scores,
        draft,
        uniforms_lib.coins(accept_uniforms[:, :width], scores.probs.dtype),
    )
    next_token = sampling_lib.draw(verdict.next_weights, draw_uniforms)
    return verdict.num_accepted, next_token


class ByPosition(NamedTuple):
  """Uniforms of a row's positions, for a coupled rule; methods as of `ByCall`.

  Those of a step are of the positions that it may commit, one each: whoever
  draws a token there has the same.
  """

  rule: contracts.CoupledRule
  drafter: contracts.Drafter

  @property
  def draw(self):
    return self.rule.draw

  @property
  def num_uniforms(self) -> int:
    return self.drafter.form.gamma + 1

  def table(self, keys, state, max_steps) -> jax.Array:
    # Keyed as plain decoding keys its calls, which commits position k by call
    # k: where a coupled rule draws as it does, it has the same samples.
    size = min(max_steps * self.num_uniforms, state.sequences.shape[1])
    return uniform_table(keys, state.num_tokens, size, 1)[:, :, 0]

  def look_up(self, table, first, state) -> jax.Array:
    # A row at 7 tokens that had 5 before this loop has entries 2, 3, ... Those
    # past the table are past the longest output and never committed.
    index = jnp.arange(self.num_uniforms, dtype=jnp.int32)[:, None]
    index = index + state.num_tokens - first.num_tokens
    index = jnp.minimum(index, table.shape[0] - 1)[..., None]
    return jnp.moveaxis(jnp.take_along_axis(table, index, axis=0), 0, 1)

  def divide(self, uniforms):
    user = uniforms_lib.user_name(self.drafter)
    count = self.drafter.form.num_uniforms
    return uniforms_lib.PositionUniforms(uniforms, user, count), uniforms

  def decide(self, scores, draft, uniforms):
    width = scores.probs.shape[1]
    tokens = self.rule.draw(scores.probs, uniforms[:, :width])
    # The token of a position is the target's own draw, accepted or not.
    is_same = draft.tokens == tokens[:, :-1]
    num_accepted = verification.count_prefix(draft, is_same)
    at = num_accepted[:, None]
    return num_accepted, jnp.take_along_axis(tokens, at, axis=1)[:, 0]


def of(
    rule: contracts.Rule | contracts.CoupledRule, drafter: contracts.Drafter
) -> ByCall | ByPosition:
  """Return the noise that comes with a rule."""
  is_coupled = isinstance(rule, contracts.CoupledRule)
  return (ByPosition if is_coupled else ByCall)(rule, drafter)


def plain_rule(
    rule: contracts.Rule | contracts.CoupledRule,
) -> contracts.Rule | contracts.CoupledRule:
  """Return the rule by which plain decoding draws what is compared with a rule.

  A coupled rule has its own draw. All others are alike without a draft token.
  """
  is_coupled = isinstance(rule, contracts.CoupledRule)
  return rule if is_coupled else verification.TOKENWISE


def uniform_table(
    keys: jax.Array, first: jax.Array, size: int, count: int
) -> jax.Array:
  """Draw the uniforms of consecutive calls or positions of each row.

  They are random bits [size, rows, count, 2] uint32, see `uniforms`, from the
  number `first` [rows] on.
  """
  numbers = first + jnp.arange(size, dtype=jnp.int32)[:, None]

  def draw(key, number):
    # By a row's own number, so that no other row and no step changes it.
    key = jax.random.fold_in(key, number)
    return jax.random.bits(key, (count, 2), jnp.uint32)

  return jax.vmap(jax.vmap(draw), (None, 0))(keys, numbers)


def uniforms_at(table: jax.Array, calls: jax.Array) -> jax.Array:
  """Return what each row uses at its own call [rows], [rows, count, 2]."""
  index = calls[None, :, None, None]
  return jnp.take_along_axis(table, index, axis=0)[0]

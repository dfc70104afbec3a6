# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A batch decoded from its first token to its last, in both ways.

What both hosts of the loop call, this package's own jobs and T5X: they encode,
and they say what each row is.

Legend: examples, rows (examples times decodes an example), length (of the
outputs).
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import speculation
from speculative_t5x import verification


class Target(NamedTuple):
  """A model that has read its inputs.

  Attributes:
    decoder: its seam.
    params: its parameters.
    encoder_input_tokens: [examples, inputs_length] int32, what it has read.
    encoded: its encoder's output.
    context: what its decoder only reads.
  """

  decoder: seam.BlockDecoder
  params: seam.Params
  encoder_input_tokens: jax.Array
  encoded: jax.Array
  context: seam.Context


class Guesser(NamedTuple):
  """A way to guess, and the parameters it guesses by.

  Attributes:
    drafter: see `seam.Drafter`.
    params: its own; None if it has none.
  """

  drafter: seam.Drafter
  params: seam.Params


def decode_plainly(
    target: Target,
    rows: speculation.Rows,
    sampling: sampling_lib.Sampling,
    *,
    length: int,
    rescale_log_probs: bool = True,
) -> tuple[speculation.State, jax.Array]:
  """Decodes one token a target call.

  Args:
    target: has read the inputs.
    rows: an example's decodes next to each other.
    sampling: the law of the outputs.
    length: of the longest output (static).
    rescale_log_probs: score under the law sampled from, or under the model's
      own (static).
  Returns:
    The last state, and the steps of the loop.
  """
  setup = speculation.Plain(
      target.decoder, target.params, target.context, sampling,
      rescale_log_probs,
  )  # fmt: skip
  state = speculation.init_state(
      target.decoder, target.context, rows, length=length, gamma=0
  )
  step = functools.partial(speculation.plain_step, setup)
  return speculation.run(step, rows, state, num_uniforms=1)


def decode_speculatively(
    target: Target,
    guesser: Guesser,
    rows: speculation.Rows,
    sampling: sampling_lib.Sampling,
    draft_sampling: sampling_lib.Sampling,
    *,
    length: int,
    rescale_log_probs: bool = True,
    rule: verification.Rule = verification.TOKENWISE,
) -> tuple[speculation.State, jax.Array]:
  """Decodes up to gamma + 1 tokens a target call, by the same law.

  Args:
    target: as for `decode_plainly`, and all that follows.
    guesser: drafts for it.
    rows: an example's decodes next to each other.
    sampling: the law of the outputs.
    draft_sampling: the law of the guesses.
    length: of the longest output (static).
    rescale_log_probs: see `decode_plainly`.
    rule: which guesses are kept.
  Returns:
    The last state, and the steps of the loop.
  """
  drafter = guesser.drafter
  draft_context, draft_state = drafter.init(
      guesser.params,
      target.encoder_input_tokens,
      target.encoded,
      rows.limits.shape[0],
      speculation.cache_slots(length, drafter.gamma),
  )
  setup = speculation.Speculation(
      target.decoder,
      target.params,
      target.context,
      drafter,
      guesser.params,
      draft_context,
      sampling,
      draft_sampling,
      rescale_log_probs,
      rule,
  )
  state = speculation.init_state(
      target.decoder,
      target.context,
      rows,
      draft_state,
      length=length,
      gamma=drafter.gamma,
  )
  step = functools.partial(speculation.speculative_step, setup)
  num_uniforms = 2 * drafter.gamma + 1
  return speculation.run(step, rows, state, num_uniforms)


def best_last(log_probs: jax.Array, tree: Any, num_decodes: int) -> Any:
  """Orders the decodes of each example by score, as T5X does.

  Args:
    log_probs: [rows].
    tree: of arrays [rows, ...].
    num_decodes: rows an example (static).
  Returns:
    The tree of arrays [examples, num_decodes, ...], scores ascending; equal
    ones as they were decoded.
  """
  by_example = lambda x: x.reshape(-1, num_decodes, *x.shape[1:])
  order = jnp.argsort(by_example(log_probs), axis=1, stable=True)

  def ordered(x: jax.Array) -> jax.Array:
    x = by_example(x)
    index = order.reshape(*order.shape, *[1] * (x.ndim - 2))
    return jnp.take_along_axis(x, index, axis=1)

  return jax.tree.map(ordered, tree)

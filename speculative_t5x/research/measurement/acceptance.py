# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Acceptance probabilities on given text: Corollary 3.6, teacher-forced.

The target scores a whole text in one call. The drafter proposes one token at
each position of the text, so that alpha is known for any drafter and for every
gamma at once.

Legend: rows (examples times decodes), length (of the texts), vocab.
"""

from collections.abc import Callable, Iterable
import dataclasses
import functools
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import engine
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import progress
from speculative_t5x.research.measurement import forced
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import step as step_lib
from speculative_t5x.speculation import uniforms as uniforms_lib


@dataclasses.dataclass(frozen=True)
class Text:
  """Acceptance at each token of one text that the target wrote.

  Attributes:
    betas: [tokens] float32, probability that a draft token there is accepted,
      the sum of min(p, q) over the vocabulary: Definition 3.1 by Theorem 3.5.
      0 where the drafter proposes nothing.
    acceptance_probs: [tokens] float32, the probability that the text's own
      token is drafted and accepted, given that it is the output: min(1, q / p).
      See `theory.expected_calls`.
  """

  betas: np.ndarray
  acceptance_probs: np.ndarray


def score(
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
    decoded: token_decoder.Decoded,
) -> list[Text]:
  """Scores what the target wrote by plain decoding.

  Args:
    decoder: both models.
    request: what was decoded.
    decoded: what `decoder.plain` made of it.
  Returns:
    A text for each row that has a token.
  """
  request = decoder.place(request)
  with decoder.scope():
    betas, acceptance_probs = jax.device_get(
        _read_along(
            decoder.target_model,
            decoder.make_drafter(1),
            decoder.target.params,
            decoder.loaded_drafter.params,
            request,
            jnp.asarray(decoded.sequences),
            _acceptance_of,
        )
    )
  rows: Iterable = zip(
      betas.T, acceptance_probs.T, decoded.num_tokens, strict=True
  )
  return [Text(beta[:n], probs[:n]) for beta, probs, n in rows if n]


def draft_probs(
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
    row: int,
    sequence: np.ndarray,
) -> np.ndarray:
  """Returns the drafter's distribution of every token of a sequence.

  Args:
    decoder: both models.
    request: the batch, whose shape is kept: rounding depends on it.
    row: index of the row in it, among all decodes of all examples.
    sequence: [length] int32, the tokens that the drafter sees.
  Returns:
    [length, vocab]; zeros where the drafter proposes nothing.
  """
  request = decoder.place(forced.repeat_row(decoder, request, row))
  rows = len(request.example_ids) * decoder.num_decodes
  with decoder.scope():
    probs = _read_along(
        decoder.target_model,
        decoder.make_drafter(1),
        decoder.target.params,
        decoder.loaded_drafter.params,
        request,
        jnp.asarray(np.tile(sequence, (rows, 1))),
        _draft_probs_of,
    )
  return np.asarray(probs)


def _acceptance_of(
    tokens: jax.Array, p: jax.Array, q: jax.Array
) -> tuple[jax.Array, jax.Array]:
  """Returns beta and the acceptance probability of tokens, each [rows]."""
  take = lambda probs: jnp.take_along_axis(probs, tokens[:, None], axis=-1)[
      :, 0
  ]
  # A token that the target wrote has p > 0, but for rounding between paths.
  accept_prob = jnp.where(take(q) < take(p), take(q) / take(p), 1)
  # Rounding may add up to more than 1.
  beta = jnp.minimum(jnp.sum(jnp.minimum(p, q), axis=-1), 1)
  return beta, accept_prob


def _draft_probs_of(tokens: jax.Array, p: jax.Array, q: jax.Array) -> jax.Array:
  """Returns q of the first row, [vocab]."""
  del tokens, p
  return q[0]


# What is static holds no weights: it stays in JAX's cache of programs.
@functools.partial(jax.jit, static_argnums=(0, 1, 6))
def _read_along(
    model: contracts.Model,
    drafter: contracts.Drafter,
    target_params: contracts.Params,
    draft_params: contracts.Params,
    request: requests_lib.Request,
    sequences: jax.Array,
    read: Callable[[jax.Array, jax.Array, jax.Array], Any],
) -> Any:
  """Returns what is read of p and q at each token of the sequences.

  Args:
    model: the target.
    drafter: proposes one token per call.
    target_params: parameters of the target.
    draft_params: parameters of the drafter, or None.
    request: the inputs, and both samplings.
    sequences: [rows, length] int32.
    read: takes the tokens at a position, [rows] int32, and the distributions p
      of the target and q of the drafter there, [rows, vocab].
  Returns:
    What `read` returns, stacked, [length, ...].
  """
  rows, length = sequences.shape
  inputs = request.inputs
  # A drafter may feed tokens past the one that it is asked for.
  slots = state_lib.cache_slots(length, drafter.max_draft_tokens)
  started = model.start(target_params, inputs, rows, slots)
  target = contracts.TargetView(target_params, started.memory, started.cache)
  memory, state = drafter.init(
      draft_params,
      contracts.Context(inputs, request.hints, target, started.features),
      rows,
      slots,
  )
  logits, cache = model.decode(
      target_params,
      started.memory,
      started.cache,
      state_lib.decoder_inputs(
          sequences, started.first_tokens, jnp.zeros((rows,), jnp.int32), length
      ),
      started.offsets,
      None,
  )
  target_probs = sampling_lib.standardize(logits, request.sampling)

  positions = jnp.arange(length, dtype=jnp.int32)

  def at_token(carry, index_and_probs):
    state, cache = carry
    index, p = index_and_probs
    draft, state, cache = step_lib.propose(
        drafter,
        draft_params,
        memory,
        state,
        _view_at(
            index,
            drafter,
            request,
            jnp.where(positions < index, sequences, model.special_ids.padding),
            target._replace(cache=cache),
        ),
        model.vocab_size,
    )
    found = read(sequences[:, index], p, _first_probs(draft, p))
    return (state, cache), found

  _, found = lax.scan(
      at_token,
      (state, cache),
      (positions, jnp.moveaxis(target_probs, 1, 0)),
  )
  return found


def _view_at(
    index: jax.Array,
    drafter: contracts.Drafter,
    request: requests_lib.Request,
    sequences: jax.Array,
    target: contracts.TargetView,
) -> contracts.View:
  """Returns the drafter's view when `index` tokens are committed."""
  rows = sequences.shape[0]
  return contracts.View(
      sequences=sequences,
      num_tokens=jnp.full((rows,), index),
      num_wanted=jnp.ones((rows,), jnp.int32),
      # Its token does not matter, only the distribution of the token.
      uniforms=uniforms_lib.Uniforms(
          jnp.zeros((rows, drafter.num_uniforms, 2), jnp.uint32),
          f'The drafter {type(drafter).__name__}',
      ),
      sampling=request.draft_sampling,
      target=target,
      last_outcome=outcome_lib.none_yet(rows, drafter.max_draft_tokens),
  )


def _first_probs(draft: contracts.Draft, like: jax.Array) -> jax.Array:
  """Returns the distribution of the first draft token; zeros without one."""
  point = jax.nn.one_hot(draft.tokens[:, 0], like.shape[-1], dtype=like.dtype)
  probs = point if draft.probs is None else draft.probs[:, 0]
  if draft.is_point_mass is not None:
    probs = jnp.where(draft.is_point_mass[:, :1], point, probs)
  return jnp.where(draft.lengths[:, None] > 0, probs, 0)


def collect(
    decoder: token_decoder.TokenDecoder,
    requests: Iterable[requests_lib.Request],
    num_tokens: int,
    *,
    name: str = 'acceptance',
) -> list[Text]:
  """Decodes plainly and scores, until a number of tokens is written.

  Args:
    decoder: both models.
    requests: what to decode; fewer tokens come out if they end before.
    num_tokens: least number of tokens; the last batch is kept whole.
    name: what the progress lines begin with.
  """
  texts, total = [], 0
  with progress.Progress(name, num_tokens, 'tokens') as shown:
    plain = engine.Engine(decoder, is_plain=True)
    for result in plain.stream(requests):
      found = score(decoder, result.request, result.decoded)
      texts += found
      total += sum(len(text.betas) for text in found)
      shown.show(min(total, num_tokens))
      if total >= num_tokens:
        break
  return texts

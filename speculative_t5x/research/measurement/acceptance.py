# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Acceptance probabilities on given text: Corollary 3.6, teacher-forced.

The target scores a whole text in one call. The drafter proposes one token at
each position of the text, so that alpha is known for any drafter and for every
gamma at once.

Legend: rows (examples times decodes), length (of the texts), vocab.
"""

from collections.abc import Iterable
import functools
import math
from typing import NamedTuple

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import batching
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import progress
from speculative_t5x.research import whole_batches
from speculative_t5x.rules import lenience
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import forms
from speculative_t5x.speculation import outcome as outcome_lib
from speculative_t5x.speculation import proposing
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import uniforms as uniforms_lib
from speculative_t5x.speculation import views

# Of Table 5; see `Text.lenient_betas`.
LENIENCES = 1.0, 0.5, 0.3, 0.1


class Text(NamedTuple):
  """Acceptance at each token of one text, or of one per row.

  Arrays of several texts are [length, ..., rows].
  """

  # [tokens] float32, probability that a draft token there is accepted, the sum
  # of min(p, q) over the vocabulary: Definition 3.1 by Theorem 3.5. 0 where the
  # drafter proposes nothing.
  betas: np.ndarray | jax.Array
  # [leniences, tokens] float32, the sum of min(p / l, q) for each of
  # `LENIENCES`: Appendix A.5. At temperature 0 it is the sum of q over the
  # tokens whose probability before standardization is at least l times the
  # largest one.
  lenient_betas: np.ndarray | jax.Array
  # [tokens] float32, the smallest q / p of the tokens that the target may
  # write: what rejection sampling accepts, Appendix A.2.
  control_betas: np.ndarray | jax.Array


class Written(NamedTuple):
  """Outputs of the target for some inputs."""

  batch: input_batch.InputBatch  # the inputs
  # [rows, length] int32, with padding behind a row's tokens; a row per example.
  sequences: np.ndarray
  num_tokens: np.ndarray  # [rows] int32


def score(decoder: token_decoder.TokenDecoder, written: Written) -> list[Text]:
  """Score what plain decoding wrote; return a text per row with a token.

  Alpha of a tree is that of its draft model's chain.
  """
  drafter = decoder.make_drafter(1)
  if isinstance(drafter.form, forms.Tree):
    drafter = drafter.form.chain
  batch = decoder.place(written.batch)
  with decoder.scope():
    texts = _read_along(
        decoder.target_model,
        drafter,
        decoder.target.params,
        decoder.loaded_drafter.params,
        batch,
        jnp.asarray(written.sequences),
    )
  columns = [np.moveaxis(np.asarray(x), -1, 0) for x in texts]
  rows = zip(written.num_tokens, *columns, strict=True)
  return [Text(*(x[:n].T for x in row)) for n, *row in rows if n]


# What is static holds no weights: it stays in JAX's cache of programs.
@functools.partial(jax.jit, static_argnums=(0, 1))
def _read_along(
    model: contracts.Model,
    drafter: contracts.Drafter,
    target_params: contracts.Params,
    draft_params: contracts.Params,
    batch: input_batch.InputBatch,
    sequences: jax.Array,
) -> Text:
  """Have the drafter propose a token at each position of [rows, length] texts.
  """
  rows, length = sequences.shape
  inputs = batch.inputs
  # A drafter may feed tokens past the one that it is asked for.
  slots = state_lib.cache_slots(length, drafter.form.gamma)
  setup = state_lib.Setup(model, target_params, drafter, draft_params)
  started = state_lib.start(setup, inputs, rows, slots)
  target = started.view(target_params)
  memory, state = drafter.init(
      draft_params,
      views.Context(inputs, batch.hints, target, started.features),
      rows,
      slots,
  )
  logits, cache, features = setup.decode(
      started.memory,
      started.cache,
      state_lib.decoder_inputs(
          sequences, started.first_tokens, jnp.zeros((rows,), jnp.int32), length
      ),
      started.offsets,
  )
  if features is not None:
    # Those of the position before each token, by token.
    first = target.last_features[:, :1]
    features = jnp.concatenate([first, features[:, :-1]], axis=1)
    features = jnp.moveaxis(features, 1, 0)
  positions = jnp.arange(length, dtype=jnp.int32)

  def at_token(carry, of_token):
    state, cache = carry
    index, logits, feature = of_token
    last_features = target.last_features
    if feature is not None:
      last_features = last_features.at[:, 0].set(feature)
    # Position by position: sorting the logits of a whole text at once takes
    # seven times their memory.
    p = sampling_lib.standardize(logits, batch.sampling)
    before = jnp.where(positions < index, sequences, model.special_ids.padding)
    draft, state, cache = proposing.propose(
        drafter,
        draft_params,
        memory,
        state,
        view_at(
            index,
            drafter,
            batch,
            before,
            target._replace(cache=cache, last_features=last_features),
            # Its token does not matter, only the distribution of the token.
            jnp.zeros((rows, drafter.form.num_uniforms, 2), jnp.uint32),
        ),
        model.vocab_size,
    )
    q = _first_probs(draft, p)
    is_greedy = batch.sampling.temperature <= sampling_lib.MIN_TEMPERATURE
    lenient = jnp.stack(
        [
            jnp.where(
                is_greedy,
                _beta(lenience.is_near_argmax(logits, each), q),
                _beta(p / each, q),
            )
            for each in LENIENCES
        ]
    )
    ratios = jnp.where(p > 0, q / jnp.where(p > 0, p, 1), jnp.inf)
    control = jnp.minimum(jnp.min(ratios, axis=-1), 1)
    return (state, cache), Text(_beta(p, q), lenient, control)

  _, along = lax.scan(
      at_token,
      (state, cache),
      (positions, jnp.moveaxis(logits, 1, 0), features),
  )
  return along


def _beta(p: jax.Array, q: jax.Array) -> jax.Array:
  """Return the sum of min(p, q) over the last axis."""
  # Rounding may add up to more than 1.
  return jnp.minimum(jnp.sum(jnp.minimum(p, q), axis=-1), 1)


def view_at(
    num_tokens: int | jax.Array,
    drafter: contracts.Drafter,
    batch: input_batch.InputBatch,
    sequences: jax.Array,
    target: views.TargetView,
    uniforms: jax.Array,
) -> views.View:
  """Return a drafter's view when each row has the same number of tokens.

  The drafter is asked for all tokens that it can draft. Sequences are [rows,
  length] int32 and uniforms [rows, drafter.form.num_uniforms, 2] uint32.
  """
  rows, wanted = sequences.shape[0], drafter.form.gamma
  return views.View(
      sequences=sequences,
      num_tokens=jnp.full((rows,), num_tokens, jnp.int32),
      num_wanted=jnp.full((rows,), wanted, jnp.int32),
      uniforms=uniforms_lib.Uniforms(
          uniforms, f'The drafter {type(drafter).__name__}'
      ),
      sampling=batch.draft_sampling,
      target=target,
      last_outcome=outcome_lib.none_yet(rows, wanted),
  )


def _first_probs(draft: contracts.Draft, like: jax.Array) -> jax.Array:
  """Return the distribution of the first draft token; zeros without one."""
  point = jax.nn.one_hot(draft.tokens[:, 0], like.shape[-1], dtype=like.dtype)
  probs = point if draft.probs is None else draft.probs[:, 0]
  if draft.is_point_mass is not None:
    probs = jnp.where(draft.is_point_mass[:, :1], point, probs)
  return jnp.where(draft.lengths[:, None] > 0, probs, 0)


def write(
    decoder: token_decoder.TokenDecoder,
    requests: Iterable[request_lib.Request],
    settings: request_lib.Settings,
    num_tokens: float,
    *,
    batch_size: int,
    name: str = 'acceptance',
) -> list[Written]:
  """Decode plainly until `num_tokens`, or all, are written, in whole batches.

  The settings made the requests, of one decode each. `num_tokens` is infinite
  for all, and the line that shows progress has the name.
  """
  inputs_length = decoder.options.inputs_length
  goal = None if math.isinf(num_tokens) else num_tokens
  written, total = [], 0
  with progress.Progress(name, goal, 'tokens') as shown:
    for part in batching.parts(requests, batch_size):
      (batch,) = input_batch.whole_batches(
          part, settings, size=batch_size, inputs_length=inputs_length
      )
      report = jax.device_get(whole_batches.decode(decoder.alone, batch))
      written.append(Written(batch, report.sequences, report.num_tokens))
      total += int(np.sum(report.num_tokens))
      shown.show(min(total, num_tokens))
      if total >= num_tokens:
        break
  return written


def collect(
    decoder: token_decoder.TokenDecoder, written: Iterable[Written]
) -> list[Text]:
  """Score all that the target of a decoder wrote, by its drafter."""
  return [text for each in written for text in score(decoder, each)]

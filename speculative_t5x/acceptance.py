# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""How likely guesses are kept on given text: Corollary 3.6, teacher-forced.

One call of each model scores a whole text, so that alpha is known before any
speculation is run, and for every gamma at once.

Legend: rows (examples times decodes), length (of the texts), vocab.
"""

from collections.abc import Iterable
import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import sampling as sampling_lib
from speculative_t5x import seam
from speculative_t5x import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5
from speculative_t5x.networks import t5_decoding


@dataclasses.dataclass(frozen=True)
class Text:
  """Acceptance at each token of one text that the target wrote.

  Attributes:
    betas: [tokens] float32, probability that a guess there is kept, sum of
      min(p, q) over the vocabulary: Definition 3.1 by Theorem 3.5.
    keep_probs: [tokens] float32, the same given that the token there is the
      text's: min(1, q / p) of it. See `analysis.expected_calls`.
  """

  betas: np.ndarray
  keep_probs: np.ndarray


def score(
    decoder: token_decoder.TokenDecoder,
    request: token_decoder.Request,
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
    betas, keep_probs = jax.device_get(
        _score(
            decoder.target.config,
            decoder.target_decoder,
            decoder.drafter,
            decoder.target.params,
            decoder.draft.params,
            request,
            jnp.asarray(decoded.sequences),
        )
    )
  rows: Iterable = zip(betas, keep_probs, decoded.num_tokens, strict=True)
  return [Text(beta[:n], keep[:n]) for beta, keep, n in rows if n]


# What is static holds no weights: it stays in JAX's cache of programs.
@functools.partial(jax.jit, static_argnums=(0, 1, 2))
def _score(
    config: t5.T5Config,
    target_decoder: seam.BlockDecoder,
    drafter: draft_model.DraftModel,
    target_params: seam.Params,
    draft_params: seam.Params,
    request: token_decoder.Request,
    sequences: jax.Array,
) -> tuple[jax.Array, jax.Array]:
  tokens = request.encoder_input_tokens
  _, context = t5_decoding.encode(config, target_params, tokens)
  target = _target_laws(
      target_decoder, target_params, context, sequences, request.sampling
  )
  draft = drafter.laws(
      draft_params, tokens, sequences, request.draft_sampling
  )
  # [rows, length, vocab] -> [rows, length]
  take = lambda laws: jnp.take_along_axis(laws, sequences[..., None], axis=-1)
  written, guessed = take(target)[..., 0], take(draft)[..., 0]
  # A token that the target wrote has p > 0, but for rounding between paths.
  keep_probs = jnp.where(guessed < written, guessed / written, 1)
  betas = jnp.sum(jnp.minimum(target, draft), axis=-1)
  return jnp.minimum(betas, 1), keep_probs  # rounding may add up to more


def _target_laws(decoder, params, context, sequences, sampling) -> jax.Array:
  batch, length = sequences.shape
  start = jnp.zeros((batch,), jnp.int32)
  logits, _ = decoder.decode_block(
      params,
      context,
      decoder.init_cache(context, batch, length),
      seam.decoder_inputs(sequences, start, length),
      start,
      None,
  )
  return sampling_lib.standardize(logits, sampling)


def collect(
    decoder: token_decoder.TokenDecoder,
    requests: Iterable[token_decoder.Request],
    num_tokens: int,
) -> list[Text]:
  """Decodes plainly and scores, until so many tokens are written.

  Args:
    decoder: both models.
    requests: what to decode; fewer tokens come out if they end before.
    num_tokens: at least so many; what is decoded with the last one is kept.
  """
  texts, total = [], 0
  for request in requests:
    decoded = jax.device_get(decoder.plain(request))
    token_decoder.check_finite(decoded)
    found = score(decoder, request, decoded)
    texts += found
    total += sum(len(text.betas) for text in found)
    if total >= num_tokens:
      break
  return texts

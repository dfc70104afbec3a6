# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""This package's ways of decoding."""

from collections.abc import Callable
import functools
from importlib import metadata

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from speculative_t5x import loading
from speculative_t5x import loops
from speculative_t5x import sampling
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.networks import t5_decoding

GREEDY = sampling.make_sampling(temperature=0.0)

DecodeRead = Callable[[loops.Target, loops.Guesser | None], jax.Array]


def versions() -> dict[str, str]:
  return {'speculative_t5x': metadata.version('speculative_t5x')}


def make_ways(case: cases.Case) -> dict[str, measuring.Way]:
  """Plain decoding, and speculative decoding if there is a draft."""
  target, draft = [
      network and loading.make_model(network.config, network.params)
      for network in (case.target, case.draft)
  ]
  decoder = token_decoder.TokenDecoder(
      target, draft or target, gamma=case.gamma, length=cases.LENGTH
  )
  ways = {
      'plain': measuring.Way(
          functools.partial(_whole, decoder.plain),
          from_encoded(case, target, None, _decode_plainly),
      )
  }
  if draft:
    ways['speculative'] = measuring.Way(
        functools.partial(_whole, decoder.speculative),
        from_encoded(case, target, draft, _decode_speculatively),
    )
  return ways


def _whole(
    decode: Callable[[token_decoder.Request], token_decoder.Decoded],
    tokens: np.ndarray,
) -> measuring.Decode:
  request = token_decoder.Request(
      encoder_input_tokens=jnp.asarray(tokens)[None],
      example_ids=jnp.zeros((1,), jnp.int32),
      limits=jnp.full((1,), cases.LENGTH, jnp.int32),
      seed=jnp.int32(0),
      sampling=GREEDY,
      draft_sampling=GREEDY,
  )
  return lambda: np.asarray(decode(request).sequences[0])


def _rows() -> speculation.Rows:
  keys = speculation.row_keys(jnp.int32(0), jnp.zeros((1,), jnp.int32))
  return speculation.Rows(keys, jnp.full((1,), cases.LENGTH, jnp.int32))


def _decode_plainly(target: loops.Target, unused_guesser) -> jax.Array:
  state, _ = loops.decode_plainly(
      target, _rows(), GREEDY, length=cases.LENGTH
  )
  return state.sequences


def _decode_speculatively(
    target: loops.Target, guesser: loops.Guesser
) -> jax.Array:
  state, _ = loops.decode_speculatively(
      target, guesser, _rows(), GREEDY, GREEDY, length=cases.LENGTH
  )
  return state.sequences


def from_encoded(
    case: cases.Case,
    target: cases.Network | loading.Model,
    draft: cases.Network | loading.Model | None,
    decode: DecodeRead,
) -> measuring.Start:
  """Decoding that begins with the output of both encoders.

  Args:
    case: what is decoded.
    target: prepared for decoding.
    draft: likewise; None if nothing is drafted.
    decode: to sequences of one row.
  """
  models = [target] if draft is None else [target, draft]
  encoders = [
      jax.jit(functools.partial(t5_decoding.encode, model.config))
      for model in models
  ]

  def run(params, tokens, encoded, contexts):
    decoder = t5_decoding.block_decoder(target.config)
    read = loops.Target(decoder, params[0], tokens, encoded, contexts[0])
    if draft is None:
      return decode(read, None)
    drafter = draft_model.DraftModel(
        t5_decoding.block_decoder(draft.config),
        lambda params, tokens: contexts[1],
        case.gamma,
        target.config.vocab_size,
    )
    return decode(read, loops.Guesser(drafter, params[1]))

  compiled = jax.jit(run)
  params = [model.params for model in models]

  def start(tokens: np.ndarray) -> measuring.Decode:
    tokens = jnp.asarray(tokens)[None]
    outputs = [encode(p, tokens) for encode, p in zip(encoders, params)]
    contexts = [context for _, context in outputs]
    return lambda: np.asarray(
        compiled(params, tokens, outputs[0][0], contexts)
    ).reshape(-1)

  return start

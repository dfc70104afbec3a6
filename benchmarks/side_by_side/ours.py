# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decodes with this package."""

from collections.abc import Callable
import dataclasses
import functools
from importlib import metadata

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.side_by_side import cases
from benchmarks.side_by_side import measuring
from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import draft_model
from speculative_t5x.drafters import nothing
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import cross_attending
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import t5
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import loop
from speculative_t5x.speculation import sampling
from speculative_t5x.speculation import state as state_lib

GREEDY = sampling.GREEDY.as_arrays()


def versions() -> dict[str, str]:
  return {'speculative_t5x': metadata.version('speculative_t5x')}


def make_ways(case: cases.Case) -> dict[str, measuring.Way]:
  """Return plain decoding, and speculative decoding if there is a draft."""
  target, draft = [
      network and models_lib.make_model(network.config, network.params)
      for network in (case.target, case.draft)
  ]
  shares_encoder = draft and not draft.config.num_encoder_layers
  decoder = token_decoder.TokenDecoder(
      target,
      draft or target,
      gamma=case.gamma,
      max_tokens=cases.LENGTH,
  )
  ways = {
      'plain': measuring.Way(
          functools.partial(_whole, decoder.plain),
          from_encoded(case, target, None),
      )
  }
  if draft:
    ways['speculative'] = measuring.Way(
        functools.partial(_whole, decoder.speculative),
        None if shares_encoder else from_encoded(case, target, draft),
    )
  return ways


def _whole(
    decode: Callable[[input_batch.InputBatch], token_decoder.Decoded],
    tokens: np.ndarray,
) -> measuring.Decode:
  batch = input_batch.InputBatch(
      inputs=_inputs(tokens),
      example_ids=jnp.zeros((1,), jnp.int32),
      limits=jnp.full((1,), cases.LENGTH, jnp.int32),
      seed=jnp.int32(0),
      sampling=GREEDY,
      draft_sampling=GREEDY,
  )
  return lambda: np.asarray(decode(batch).sequences[0])


def _inputs(tokens: np.ndarray) -> jax.Array:
  """Return one input, [1, length], whose padding is no token."""
  return jnp.where(tokens > 0, tokens, contracts.NO_TOKEN)[None]


@dataclasses.dataclass(frozen=True)
class _Encoded(network_lib.NetworkModel):
  """A T5 whose inputs are what its encoder, and those of others, made of them.

  Attributes:
    index: The place of its own memory in the inputs.
  """

  index: int = 0

  def start(self, params, memories, rows, slots) -> contracts.Started:
    """See `contracts.Model.start`."""
    return contracts.Started(
        memories[self.index],
        self.network.init_cache(rows, slots),
        jnp.zeros((rows,), jnp.int32),
        jnp.full((rows,), self.special_ids.start, jnp.int32),
    )


def _memory(
    config: t5.T5Config, params, inputs: jax.Array
) -> cross_attending.Memory:
  return config.start(params, inputs, 1, 1).memory


def from_encoded(
    case: cases.Case,
    target: cases.Network | models_lib.Model,
    draft: cases.Network | models_lib.Model | None,
) -> measuring.Start:
  """Return decoding that begins with the output of both encoders.

  Args:
    case: What is decoded.
    target: Prepared for decoding.
    draft: Likewise; None for plain decoding.
  """
  models = [target] if draft is None else [target, draft]
  encoders = [
      jax.jit(functools.partial(_memory, model.config)) for model in models
  ]
  wrapped = [
      _Encoded(model.config, t5.SPECIAL_IDS, index=index)
      for index, model in enumerate(models)
  ]
  drafter = nothing.Nothing()
  if draft is not None:
    drafter = draft_model.DraftModel(
        wrapped[1], case.gamma, target.config.vocab_size
    )

  def run(params, memories):
    draft_params = None if draft is None else params[1]
    setup = state_lib.Setup(
        wrapped[0], params[0], drafter, draft_params
    )
    keys = state_lib.row_keys(jnp.int32(0), jnp.zeros((1,), jnp.int32))
    limits = jnp.full((1,), cases.LENGTH, jnp.int32)
    begun = state_lib.begin(
        setup, memories, keys, limits, sampling.GREEDY, length=cases.LENGTH
    )
    state, *_ = loop.decode(setup, begun)
    return state.sequences

  compiled = jax.jit(run)
  params = [model.params for model in models]

  def start(tokens: np.ndarray) -> measuring.Decode:
    inputs = _inputs(tokens)
    memories = [encode(p, inputs) for encode, p in zip(encoders, params)]
    return lambda: np.asarray(compiled(params, memories)).reshape(-1)

  return start

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles T5X's own decoding for a topology, where T5X can be imported."""

from collections.abc import Callable
import functools

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.speculation import sampling as sampling_lib

# Imported here and not in the function that uses it: T5X's modules register
# with gin, and gin's registry is locked while a job runs.
try:
  from speculative_t5x.research import t5x_sampler
except ImportError:
  IS_IMPORTABLE = False
else:
  IS_IMPORTABLE = True


def compile_plain(
    config: t5.T5Config,
    place: topology.Topology,
    *,
    examples: int,
    inputs_length: int,
    length: int,
) -> jax.stages.Compiled:
  """Compile argmax decoding by T5X's `temperature_sample`, on one device."""
  return lower(
      config,
      place,
      t5x_sampler.temperature_sample(sampling_lib.GREEDY),
      examples=examples,
      inputs_length=inputs_length,
      length=length,
  ).compile()


def lower(
    config: t5.T5Config,
    place: topology.Topology,
    decode_fn: Callable,
    *,
    examples: int,
    inputs_length: int,
    length: int,
    num_decodes: int = 1,
) -> jax.stages.Lowered:
  """Lower decoding by a function of T5X, on one device."""
  where = place.replicated()
  dtype = jnp.dtype(config.dtype)
  params = jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, dtype, sharding=where),
      models.abstract_params(config),
  )
  tokens = lambda size: jax.ShapeDtypeStruct(
      (examples, size), jnp.int32, sharding=where
  )
  batch = {
      'encoder_input_tokens': tokens(inputs_length),
      'decoder_input_tokens': tokens(length),
  }
  decode = functools.partial(
      t5x_sampler.make_model(config, decode_fn).predict_batch_with_aux,
      num_decodes=num_decodes,
  )
  return jax.jit(decode).lower(params, batch)

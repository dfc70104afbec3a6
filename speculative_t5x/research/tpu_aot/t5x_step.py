# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles T5X's own decoding for a TPU, where T5X can be imported."""

from collections.abc import Callable
import functools

import jax
import jax.numpy as jnp

from speculative_t5x.loading import models
from speculative_t5x.networks import t5
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.research.tpu_aot import topology
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
) -> programs.Program:
  """Compile argmax decoding by T5X's `temperature_sample`, on one device."""
  shapes = reading.Shapes(
      caches=[(examples, config.num_heads, config.head_dim, length)],
      params=[x.shape for x in jax.tree.leaves(models.abstract_params(config))],
      vocab_size=config.vocab_size,
  )
  make = lambda: lower(
      config,
      place,
      t5x_sampler.temperature_sample(sampling_lib.GREEDY),
      examples=examples,
      inputs_length=inputs_length,
      length=length,
  ).compile()
  return programs.compile_loop(make, shapes)


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

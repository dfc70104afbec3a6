# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles decoding programs for a TPU and analyses each."""

from collections.abc import Callable
import dataclasses
import time

import jax

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import autoregression
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import input_widths
from speculative_t5x.networks import sharding
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.tpu_aot import hlo
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.speculation import state as state_lib


@dataclasses.dataclass(frozen=True)
class Program:
  """The analysis of a compiled program that has one decoding loop."""

  compile_s: float  # of tracing and compilation
  step: reading.Reading  # one trip of the loop
  # One trip of its inner loop, which proposes one draft token after the first
  # of a block; None if there is no inner loop.
  draft_step: reading.Reading | None
  # Bytes of device memory while the program runs: `arguments` (mainly the
  # parameters), `temporaries` (caches, keys and values of the inputs,
  # activations), `outputs`, and `code`, the program itself.
  memory: dict[str, int]


# Compiles a loop of a decoder for a batch.
Compile = Callable[
    [token_decoder.TokenDecoder, input_batch.InputBatch], jax.stages.Compiled
]


def compile_verify(
    decoder: token_decoder.TokenDecoder, batch: input_batch.InputBatch
) -> jax.stages.Compiled:
  """Compile a loop that verifies gamma given draft tokens per step."""
  return part_programs.PartPrograms(decoder).lower_verify(batch).compile()


def compile_decoding(
    make: Compile,
    decoder: token_decoder.TokenDecoder,
    batch: input_batch.InputBatch,
) -> Program:
  """Compile a loop of abstract models and analyse it; see `compile_loop`."""
  shapes = _shapes(decoder, len(batch.example_ids))
  gamma = decoder.options.gamma
  return compile_loop(lambda: make(decoder, batch), shapes, gamma)


def compile_loop(
    make: Callable[[], jax.stages.Compiled],
    shapes: reading.Shapes,
    gamma: int = 0,
) -> Program:
  """Compile a program that has one decoding loop and analyse it.

  Arrays are recognised by their shapes. `gamma` is that of a network, which
  draws draft tokens one by one.
  """
  start = time.perf_counter()
  compiled = make()
  seconds = time.perf_counter() - start
  stats = compiled.memory_analysis()
  trips = {
      autoregression.CATCH_UP: 0,
      autoregression.FIRST: 1,
      autoregression.LATER: gamma - 1,
      input_widths.SCOPE: 1,  # at most, each: it encodes before decoding
  }
  trip, inner_trip = reading.read_loop(
      hlo.parse(compiled.as_text()), shapes, trips, autoregression.LATER
  )
  return Program(
      compile_s=seconds,
      step=trip,
      draft_step=inner_trip,
      memory={
          'arguments': stats.argument_size_in_bytes,
          'temporaries': stats.temp_size_in_bytes,
          'outputs': stats.output_size_in_bytes,
          'code': stats.generated_code_size_in_bytes,
      },
  )


def _shapes(
    decoder: token_decoder.TokenDecoder, examples: int
) -> reading.Shapes:
  """Return the per-device shapes of both models' caches and parameters."""
  models = decoder.target, *decoder.loaded_drafter.models
  options = decoder.options
  rows = examples * options.num_decodes
  gammas = 0, options.gamma  # of plain and of speculative decoding
  sizes = [state_lib.cache_slots(options.max_tokens, x) for x in gammas]
  return reading.Shapes(
      caches=[
          _cache_shape(model, rows, slots)
          for model in models
          for slots in sizes
      ],
      params=[
          param.sharding.shard_shape(param.shape)
          for model in models
          for param in jax.tree.leaves(model.params)
      ],
      vocab_size=decoder.target.config.vocab_size,
  )


def _cache_shape(
    model: models_lib.Model, rows: int, slots: int
) -> tuple[int, ...]:
  shape = rows, model.config.num_heads, model.config.head_dim, slots
  if model.mesh is None:
    return shape
  axes = 'batch', 'heads', 'kv', 'length'
  place = sharding.named_sharding(model.mesh, model.rules, axes, shape)
  return place.shard_shape(shape)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles decoding programs for a TPU and analyses each."""

from collections.abc import Callable, Iterator
import dataclasses
import enum
import time

import jax

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import autoregression
from speculative_t5x.loading import models as models_lib
from speculative_t5x.networks import input_widths
from speculative_t5x.networks import sharding
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.tpu_aot import hlo
from speculative_t5x.research.tpu_aot import reading
from speculative_t5x.speculation import state as state_lib

_OUT_OF_MEMORY = 'RESOURCE_EXHAUSTED'


class DoesNotFitError(ValueError):
  """A program does not fit into the memory of a device."""


@dataclasses.dataclass(frozen=True)
class Memory:
  """Device memory that a program needs while it runs, in bytes.

  Attributes:
    arguments: mainly the parameters.
    temporaries: KV caches, keys and values of the inputs, activations.
    outputs: the program's outputs.
    code: the program itself.
  """

  arguments: int
  temporaries: int
  outputs: int
  code: int


@dataclasses.dataclass(frozen=True)
class Program:
  """The analysis of a compiled program that has one decoding loop.

  Attributes:
    compile_s: seconds of tracing and compilation.
    step: one trip of the loop.
    draft_step: one trip of its inner loop, which proposes one draft token after
      the first of a block; None if there is no inner loop.
    memory: device memory that the program needs.
  """

  compile_s: float
  step: reading.Reading
  draft_step: reading.Reading | None
  memory: Memory


class Loop(enum.Enum):
  """A decoding loop, by what one step of it does."""

  PLAIN = 'one target call'
  VERIFY = 'verification of gamma given draft tokens'
  SPECULATIVE = 'drafting and verification'


def compile_decoding(
    loop: Loop,
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
) -> Program:
  """Compiles a decoding loop and analyses it.

  Raises:
    DoesNotFitError: if the program does not fit into a device's memory.
  """

  def make() -> jax.stages.Compiled:
    if loop == Loop.VERIFY:
      parts = part_programs.PartPrograms(decoder)
      return parts.lower_verify(request).compile()
    if loop == Loop.PLAIN:
      return decoder.compile_plain(request)
    return decoder.compile_speculative(request)

  shapes = _shapes(decoder, len(request.example_ids))
  return compile_loop(make, shapes, decoder.gamma)


def compile_loop(
    make: Callable[[], jax.stages.Compiled],
    shapes: reading.Shapes,
    gamma: int = 0,
) -> Program:
  """Compiles a program that has one decoding loop and analyses it.

  Args:
    make: compiles the program.
    shapes: shapes by which arrays are recognised.
    gamma: draft tokens per trip, where a network draws them one by one.
  Raises:
    DoesNotFitError: if the program does not fit into a device's memory.
  """
  start = time.perf_counter()
  try:
    compiled = make()
  except RuntimeError as error:
    if _OUT_OF_MEMORY not in str(error):
      raise
    raise DoesNotFitError(
        "The program does not fit into a chip's memory:"
        f' {str(error).splitlines()[0]} Use more chips, a smaller batch or a'
        ' smaller target.'
    ) from error
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
      memory=Memory(
          arguments=stats.argument_size_in_bytes,
          temporaries=stats.temp_size_in_bytes,
          outputs=stats.output_size_in_bytes,
          code=stats.generated_code_size_in_bytes,
      ),
  )


def _shapes(
    decoder: token_decoder.TokenDecoder, examples: int
) -> reading.Shapes:
  """Returns the per-device shapes of both models' caches and parameters."""
  models = decoder.target, *decoder.loaded_drafter.models
  rows = examples * decoder.num_decodes
  return reading.make_shapes(
      caches=[
          shape
          for model in models
          for gamma in (0, decoder.gamma)
          for shape in _cache_shapes(
              model, rows, state_lib.cache_slots(decoder.length, gamma)
          )
      ],
      params=[shape for model in models for shape in _param_shapes(model)],
      vocab_size=decoder.target.config.vocab_size,
  )


def _cache_shapes(
    model: models_lib.Model, rows: int, slots: int
) -> Iterator[tuple[int, ...]]:
  shape = rows, model.config.num_heads, model.config.head_dim, slots
  if model.mesh is None:
    yield shape
    return
  axes = 'batch', 'heads', 'kv', 'length'
  place = sharding.named_sharding(model.mesh, model.rules, axes, shape)
  yield place.shard_shape(shape)


def _param_shapes(model: models_lib.Model) -> Iterator[tuple[int, ...]]:
  for param in jax.tree.leaves(model.params):
    yield param.sharding.shard_shape(param.shape)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Decoding compiled for a TPU, and what is read off each program."""

from collections.abc import Callable, Iterator
import dataclasses
import time

import jax

from speculative_t5x import loading
from speculative_t5x import sharding
from speculative_t5x import speculation
from speculative_t5x import token_decoder
from speculative_t5x.tpu_aot import hlo
from speculative_t5x.tpu_aot import reading
from speculative_t5x.walltime import part_programs

_OUT_OF_MEMORY = 'RESOURCE_EXHAUSTED'


class DoesNotFitError(ValueError):
  """A program that the memory of a device does not hold."""


@dataclasses.dataclass(frozen=True)
class Memory:
  """Bytes of a device's memory that a program takes while it runs.

  Attributes:
    arguments: parameters, above all.
    temporaries: caches, keys and values of the inputs, activations.
    outputs: what it gives.
    code: the program itself.
  """

  arguments: int
  temporaries: int
  outputs: int
  code: int

  @property
  def total(self) -> int:
    return self.arguments + self.temporaries + self.outputs + self.code


@dataclasses.dataclass(frozen=True)
class Program:
  """A compiled program of one loop.

  Attributes:
    compile_s: seconds that tracing and compiling took.
    step: what one trip of the loop does.
    draft_step: what one of the later guesses within it does, if there are any.
    memory: what the program takes.
  """

  compile_s: float
  step: reading.Reading
  draft_step: reading.Reading | None
  memory: Memory


def compile_plain(
    decoder: token_decoder.TokenDecoder, request: token_decoder.Request
) -> Program:
  """Plain decoding by the target, whole; a step is one call of the target.

  Raises:
    DoesNotFitError: if the compiler finds no room, as do the others here.
  """
  return _compile(lambda: decoder.compile_plain(request), decoder, request)


def compile_verify(
    decoder: token_decoder.TokenDecoder, request: token_decoder.Request
) -> Program:
  """Verifying alone; a step scores gamma guesses that cost nothing."""
  parts = part_programs.PartPrograms(decoder)
  return _compile(
      lambda: parts.lower_verify(request).compile(), decoder, request
  )


def compile_speculative(
    decoder: token_decoder.TokenDecoder, request: token_decoder.Request
) -> Program:
  """Speculative decoding, whole; a step drafts gamma guesses and verifies."""
  return _compile(
      lambda: decoder.compile_speculative(request), decoder, request
  )


def _compile(
    make: Callable[[], jax.stages.Compiled],
    decoder: token_decoder.TokenDecoder,
    request: token_decoder.Request,
) -> Program:
  return compile_loop(make, _shapes(decoder, len(request.example_ids)))


def compile_loop(
    make: Callable[[], jax.stages.Compiled], shapes: reading.Shapes
) -> Program:
  """Compiles a program of one loop and reads it.

  Args:
    make: compiles it.
    shapes: what arrays are known by.
  Raises:
    DoesNotFitError: if the compiler finds no room for it.
  """
  start = time.perf_counter()
  try:
    compiled = make()
  except RuntimeError as error:
    if _OUT_OF_MEMORY not in str(error):
      raise
    raise DoesNotFitError(
        f'A chip does not hold the program: {str(error).splitlines()[0]} Take'
        ' more chips, a smaller batch or a smaller target.'
    ) from error
  seconds = time.perf_counter() - start
  stats = compiled.memory_analysis()
  loop = reading.read_loop(hlo.parse(compiled.as_text()), shapes)
  return Program(
      compile_s=seconds,
      step=loop.trip,
      draft_step=loop.inner_trip,
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
  """Of what one device holds of both models."""
  models = decoder.target, decoder.draft
  rows = examples * decoder.num_decodes
  return reading.make_shapes(
      caches=[
          shape
          for model in models
          for gamma in (0, decoder.gamma)
          for shape in _cache_shapes(
              model, rows, speculation.cache_slots(decoder.length, gamma)
          )
      ],
      params=[shape for model in models for shape in _param_shapes(model)],
      vocab_size=decoder.target.config.vocab_size,
  )


def _cache_shapes(
    model: loading.Model, rows: int, slots: int
) -> Iterator[tuple[int, ...]]:
  shape = rows, model.config.num_heads, model.config.head_dim, slots
  if model.mesh is None:
    yield shape
    return
  axes = 'batch', 'heads', 'kv', 'length'
  place = sharding.named_sharding(model.mesh, model.rules, axes, shape)
  yield place.shard_shape(shape)


def _param_shapes(model: loading.Model) -> Iterator[tuple[int, ...]]:
  for param in jax.tree.leaves(model.params):
    yield param.sharding.shard_shape(param.shape)

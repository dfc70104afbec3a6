# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Arithmetic operations of the parts, counted in the programs themselves.

Counted are the calls of the two decoders, as in Section 3.4 of Leviathan et
al. (2023): neither the encoders nor what chooses tokens from logits.
"""

import dataclasses
import functools

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import nothing
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import views


@dataclasses.dataclass(frozen=True)
class Operations:
  """Floating-point operations of the networks' calls, for a whole batch."""

  target: float  # of one target call on one position per row
  verify: float  # of one on gamma + 1 positions per row, or a tree's nodes
  draft: float  # of gamma tokens; 0 for a drafter without a network
  draft_token: float  # of the last token of a draft of two

  @property
  def ops_coefficient(self) -> float:
    """c-hat, operations per token, drafter over target: Definition 3.10."""
    return self.draft_token / self.target

  def factor(self, baseline_steps: int, speculative_steps: int) -> float:
    """Return speculative over plain operations for the steps of each loop."""
    speculative = speculative_steps * (self.verify + self.draft)
    return speculative / (baseline_steps * self.target)


def count(
    decoder: token_decoder.TokenDecoder, batch: input_batch.InputBatch
) -> Operations:
  """Count the operations of decoding batches of the shape of one."""
  options = decoder.options
  rows = len(batch.limits) * options.num_decodes
  slots = state_lib.cache_slots(options.max_tokens, options.gamma)
  arguments, started = start(
      decoder.target_model,
      decoder.target.params,
      batch.inputs,
      rows,
      slots,
      decoder.drafter,
  )
  context = views.Context(
      batch.inputs,
      batch.hints,
      started.view(arguments[0]),
      started.features,
  )
  draft_params = shapes(decoder.loaded_drafter.params)

  def target(block: int) -> float:
    return flops(
        decoder.target_model, arguments, rows, block, wants_one=False
    )

  @functools.cache
  def draft_call(model, block: int, wants_one: bool, begin) -> float:
    arguments = jax.eval_shape(
        lambda *given: begin(*given, rows, slots), draft_params, context
    )
    return flops(model, arguments, rows, block, wants_one)

  def draft(gamma: int) -> float:
    return sum(
        call.count
        * draft_call(call.model, call.block, call.wants_one, call.begin)
        for call in decoder.make_drafter(gamma).form.calls
        if call.count
    )

  return Operations(
      target=target(1),
      verify=target(decoder.drafter.form.num_nodes),
      draft=draft(options.gamma),
      draft_token=draft(2) - draft(1),
  )


def start(
    model: contracts.Model,
    params: contracts.Params,
    inputs: jax.Array,
    rows: int,
    slots: int,
    drafter: contracts.Drafter = nothing.NoDrafter(),  # noqa: B008
) -> tuple[
    tuple[contracts.Params, contracts.Memory, contracts.Cache],
    contracts.Started,
]:
  """Return the shapes of what a model's calls take, and of its start.

  A drafter that reads its features is given.
  """
  abstract = shapes(params)

  def read(params) -> contracts.Started:
    setup = state_lib.Setup(model, params, drafter, None)
    return state_lib.start(setup, inputs, rows, slots)

  started = jax.eval_shape(read, abstract)
  return (abstract, started.memory, started.cache), started


def shapes(tree: contracts.Params) -> contracts.Params:
  """Return the shapes of parameters, without where they lie."""
  return jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), tree)


def flops(
    model: contracts.Model,
    arguments: tuple[contracts.Params, contracts.Memory, contracts.Cache],
    rows: int,
    block: int,
    wants_one: bool,
) -> float:
  """Return the operations of one call, by the compiler's analysis of it."""
  fed = jax.ShapeDtypeStruct((rows, block), jnp.int32)
  positions = jax.ShapeDtypeStruct((rows,), jnp.int32)
  at = positions if wants_one else None
  # No other platform's client analyses what it has not compiled.
  with jax.default_device(jax.local_devices(backend='cpu')[0]):
    lowered = jax.jit(model.decode).lower(*arguments, fed, positions, at)
  # A table may compute nothing.
  return float(lowered.cost_analysis().get('flops', 0))

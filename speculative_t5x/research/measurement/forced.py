# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The target's logits after given tokens, computed in blocks of a given width.

Matrix products of different shapes round differently. The batch therefore has
the shape that it has when it is decoded, and one row of it in all its places.
"""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib


def repeat_row(
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
    row: int,
) -> requests_lib.Request:
  """Returns a request of the same shape with one row's input in all places.

  The hints and the features of the input are repeated too.
  """
  repeat = lambda x: jnp.broadcast_to(x[row // decoder.num_decodes], x.shape)
  names = 'inputs', 'hints', 'features'
  found = {name: getattr(request, name) for name in names}
  return request.replace(**jax.tree.map(repeat, found))


def logits_at(
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
    row: int,
    sequence: np.ndarray,
    position: int,
    block: int,
) -> np.ndarray:
  """Returns the logits at a position after decoding the sequence in blocks.

  Args:
    decoder: decoder with the target.
    request: the batch.
    row: index of the row in it, among all decodes of all examples.
    sequence: [length] int32, the tokens before the position.
    position: position of the token whose logits are returned.
    block: positions per target call.
  Returns:
    [vocab], in the dtype of the logits.
  """
  params, model = decoder.target.params, decoder.target_model
  inputs = repeat_row(decoder, request, row).inputs
  rows = len(inputs) * decoder.num_decodes
  first = model.special_ids.start
  fed = np.concatenate([[first], sequence[:position]]).astype(np.int32)
  # The last block ends at the position. The first block may overlap the second,
  # which then overwrites its cache slots. If there is one block, tokens after
  # the position only fill it up; the logits do not depend on them.
  starts = [0, *reversed(range(position + 1 - block, 0, -block))]
  slots = state_lib.cache_slots(decoder.length, decoder.gamma)
  with decoder.scope():
    memory, cache, *_ = _start(model, params, inputs, rows, slots)
    for start in starts:
      tokens = np.resize(fed[start : start + block], (1, block))
      tokens = jnp.asarray(np.repeat(tokens, rows, axis=0))
      positions = jnp.full((rows,), start, jnp.int32)
      logits, cache = _decode(
          model, params, memory, cache, tokens, positions, None
      )
  return np.asarray(logits[row, position - starts[-1]])


@functools.partial(jax.jit, static_argnums=(0, 3, 4))
def _start(model: contracts.Model, *arguments) -> contracts.Started:
  return model.start(*arguments)


@functools.partial(jax.jit, static_argnums=0)
def _decode(model: contracts.Model, *arguments):
  return model.decode(*arguments)

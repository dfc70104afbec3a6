# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network that is not in the package: a recurrent one, without attention.

Its cache holds the state after each position, so that rewinding is reading an
earlier one. It reads the mean of its inputs' embeddings.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts


@dataclasses.dataclass(frozen=True)
class Recurrent:
  """A `network.Network`."""

  vocab_size: int
  width: int = 16
  dtype: Any = jnp.float32
  name: ClassVar[str] = 'recurrent'
  special_ids: ClassVar = contracts.SpecialIds(end=1, padding=0, start=0)
  reads_features: ClassVar[bool] = False
  axis_units: ClassVar = {}

  def init(self, key):
    sizes = {'embed': self.vocab_size, 'mix': self.width, 'read': self.width}
    keys = jax.random.split(key, 4)
    params = {
        name: jax.random.normal(key, (size, self.width)) / self.width**0.5
        for (name, size), key in zip(sizes.items(), keys)
    }
    head = jax.random.normal(keys[3], (self.width, self.vocab_size))
    return {'decoder': {**params, 'head': head}}

  def axes(self):
    names = {'embed': ('vocab', None), 'head': (None, 'vocab')}
    params = jax.eval_shape(self.init, jax.random.key(0))['decoder']
    return {'decoder': {x: names.get(x, (None, None)) for x in params}}

  def prepared(self, platform, merged):
    return self

  def prepare(self, leaves, merged):
    return leaves

  def start(self, params, inputs, rows, slots, features=None):
    params, is_token = params['decoder'], (inputs >= 0)[..., None]
    embedded = jnp.where(is_token, params['embed'][inputs], 0)
    mean = embedded.sum(1) / jnp.maximum(is_token.sum(1), 1)
    cache = jnp.zeros((rows, slots, self.width))
    zeros = jnp.zeros((rows,), jnp.int32)
    return contracts.Started(mean @ params['read'], cache, zeros, None)

  def decode(self, params, memory, cache, tokens, positions, at):
    params, rows = params['decoder'], jnp.arange(len(tokens))
    first = jnp.repeat(memory, len(tokens) // len(memory), axis=0)
    earlier = cache[rows, jnp.maximum(positions - 1, 0)]
    state = jnp.where(positions[:, None] > 0, earlier, first)
    states = []
    for i in range(tokens.shape[1]):
      state = jnp.tanh(state @ params['mix'] + params['embed'][tokens[:, i]])
      cache = cache.at[rows, positions + i].set(state)
      states.append(state)
    states = jnp.stack(states, axis=1)
    if at is not None:
      states = jnp.take_along_axis(states, at[:, None, None], axis=1)
    return states @ params['head'], cache

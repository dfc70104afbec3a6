# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A recurrent network that is not in the package, for tests.

Its cache holds the state after each position: rewinding reads an earlier one.
"""

import dataclasses
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from speculative_t5x.speculation import contracts


@dataclasses.dataclass(frozen=True)
class Recurrent:
  """A `network.Network` that begins from the mean of its inputs."""

  vocab_size: int
  width: int = 16
  dtype: Any = jnp.float32
  name: ClassVar[str] = 'recurrent'
  special_ids: ClassVar = contracts.SpecialIds(end=1, padding=0, start=0)
  ends_inputs: ClassVar[bool] = True
  reads_features: ClassVar[bool] = False
  axis_units: ClassVar = {}

  def init(self, key):
    draw = lambda key, *shape: jax.random.normal(key, shape) / self.width**0.5
    embed, mix, head = jax.random.split(key, 3)
    return {
        'embed': draw(embed, self.vocab_size, self.width),
        'mix': draw(mix, self.width, self.width),
        'head': 4 * draw(head, self.width, self.vocab_size),
    }

  def axes(self):
    return {name: (None, None) for name in ('embed', 'mix', 'head')}

  def prepared(self, platform, merged):
    return self

  def prepare(self, leaves, merged):
    return leaves

  def start(self, params, inputs, rows, slots, features=None):
    is_token = (inputs >= 0)[..., None]
    total = jnp.where(is_token, params['embed'][inputs], 0).sum(1)
    mean = total / jnp.maximum(is_token.sum(1), 1)
    cache = jnp.zeros((rows, slots, self.width))
    return contracts.Started(mean, cache, jnp.zeros((rows,), jnp.int32), None)

  def score(self, params, inputs, outputs, dropout_key=None, features=None):
    fed = jnp.pad(outputs[:, :-1], ((0, 0), (1, 0)), constant_values=0)
    started = self.start(params, inputs, *outputs.shape)
    positions = jnp.zeros(len(outputs), jnp.int32)
    return self.decode(
        params, started.memory, started.cache, fed, positions, None
    )[0]

  def decode(self, params, memory, cache, tokens, positions, at):
    rows = jnp.arange(len(tokens))
    first = jnp.repeat(memory, len(tokens) // len(memory), axis=0)
    earlier = cache[rows, jnp.maximum(positions - 1, 0)]
    state = jnp.where(positions[:, None] > 0, earlier, first)
    for i in range(tokens.shape[1]):
      state = jnp.tanh(state @ params['mix'] + params['embed'][tokens[:, i]])
      cache = cache.at[rows, positions + i].set(state)
    block = positions[:, None] + jnp.arange(tokens.shape[1])
    if at is not None:
      block = jnp.take_along_axis(block, at[:, None], axis=1)
    return cache[rows[:, None], block] @ params['head'], cache

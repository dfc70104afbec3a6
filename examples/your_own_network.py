# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network of your own as target and draft model: a small recurrent one.

Checks by enumeration that outputs follow the target's distribution, whatever
the draft model is.

  python examples/your_own_network.py
"""

import dataclasses

import jax.numpy as jnp
import numpy as np

import speculative_t5x as st
from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import contracts


@dataclasses.dataclass(frozen=True)
class Recurrent:
  """A `contracts.Model`: a state that each token changes, from the inputs'.

  The cache keeps the state before each position, so that a row is rewound by
  reading at a smaller one.
  """

  vocab_size: int
  width: int
  special_ids = contracts.SpecialIds(end=1, padding=0, start=0)

  def random(self, seed):
    generator, v, w = np.random.default_rng(seed), self.vocab_size, self.width
    draw = lambda *shape: np.float32(1.5 * generator.normal(size=shape))
    return {'embed': draw(v, w), 'mix': draw(w, w), 'head': draw(w, v)}

  def start(self, params, inputs, rows, slots):
    memory = params['embed'][jnp.maximum(inputs, 0)].mean(axis=1)
    cache = jnp.zeros((rows, slots + 1, self.width))
    cache = cache.at[:, 0].set(jnp.repeat(memory, rows // len(inputs), axis=0))
    zeros = jnp.zeros(rows, jnp.int32)
    return contracts.Started(memory, cache, zeros, zeros)

  def decode(self, params, memory, cache, tokens, positions, at):
    rows, logits = jnp.arange(len(tokens)), []
    for i in range(tokens.shape[1]):
      state = cache[rows, positions + i] @ params['mix']
      state = jnp.tanh(state + params['embed'][tokens[:, i]])
      cache = cache.at[rows, positions + i + 1].set(state)
      logits.append(state @ params['head'])
    logits = jnp.stack(logits, axis=1)
    if at is not None:
      logits = jnp.take_along_axis(logits, at[:, None, None], axis=1)
    return logits, cache


def main():
  target, draft = Recurrent(3, width=6), Recurrent(3, width=2)
  params, inputs = target.random(0), np.array([[2, 2, 1], [2, 1, 0]], np.int32)

  def find_logits(example, tokens):  # after some tokens, without a cache
    state = params['embed'][inputs[example]].mean(axis=0)
    for token in (0, *tokens):
      state = jnp.tanh(state @ params['mix'] + params['embed'][token])
    return state @ params['head']

  drafter = draft_model.DraftModel(draft, 2, target.vocab_size)
  limits = 4, 3  # tokens per output
  pair = st.testing.Pair(target, params, drafter, draft.random(1), inputs,
                         limits, find_logits)  # fmt: skip
  st.testing.check_pair(pair)
  print('Outputs follow the distribution of the target.')


if __name__ == '__main__':
  main()

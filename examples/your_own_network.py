# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""A network of your own as target and draft model: a Flax NNX module.

Checks by enumeration that outputs follow the target's distribution, whatever
the draft model is, then decodes.

  python examples/your_own_network.py
"""

import dataclasses

from flax import nnx
import jax
import jax.numpy as jnp
import numpy as np

import speculative_t5x as st
from speculative_t5x.drafters import draft_model
from speculative_t5x.speculation import contracts


class Attending(nnx.Module):
  """A layer of attention, which decodes a token per call by its own cache."""

  def __init__(self, vocab_size, width, slots, seed):
    rngs = nnx.Rngs(seed)
    self.embed = nnx.Embed(vocab_size, width, rngs=rngs)
    self.place = nnx.Embed(64, width, rngs=rngs)
    self.attention = nnx.MultiHeadAttention(2, width, rngs=rngs)
    self.attention.init_cache((slots, width))
    self.head = nnx.Linear(width, vocab_size, rngs=rngs)

  def __call__(self, tokens, decode):  # [length] -> [length, vocab]
    first = self.attention.cache_index[...] if decode else 0
    x = self.embed(tokens) + self.place(first + jnp.arange(len(tokens)))
    mask = None if decode else nnx.make_causal_mask(tokens)
    return self.head(4 * x + self.attention(4 * x, mask=mask, decode=decode))


@dataclasses.dataclass(frozen=True)
class Wrapped:
  """The module as a network: `vmap` makes rows of it, and `scan` a block."""

  vocab_size: int
  width: int
  name, dtype = 'attending', 'float32'
  ends_inputs = reads_features = False  # a prompt, which an output continues
  special_ids = contracts.SpecialIds(end=1, padding=0, start=None)

  def split(self, slots=1, seed=0):
    """Return the module's structure, its parameters and an empty cache."""
    module = Attending(self.vocab_size, self.width, slots, seed)
    return nnx.split(module, nnx.Param, nnx.Cache)

  def start(self, params, inputs, rows, slots, features=None):
    prompts = jnp.repeat(inputs, rows // len(inputs), axis=0)
    last = jnp.maximum(jnp.sum(prompts >= 0, axis=1) - 1, 0)
    *_, cache = self.split(slots + prompts.shape[1])
    cache = jax.tree.map(lambda x: jnp.repeat(x[None], rows, axis=0), cache)
    # Padding lies behind a prompt: its slots are written again before any read.
    tokens = jnp.maximum(prompts, 0)
    _, cache = self.decode(params, None, cache, tokens, 0 * last, None)
    first = jnp.take_along_axis(tokens, last[:, None], axis=1)[:, 0]
    return contracts.Started(None, cache, last, first)

  def decode(self, params, memory, cache, tokens, positions, at):
    structure, *_ = self.split()

    def read(cache, token):
      module = nnx.merge(structure, params, cache)
      logits = module(token[None], decode=True)[0]
      return nnx.state(module, nnx.Cache), logits

    def read_row(cache, tokens, position):
      module = nnx.merge(structure, params, cache)
      module.attention.cache_index[...] = position  # rewinds the row
      return jax.lax.scan(read, nnx.state(module, nnx.Cache), tokens)

    cache, logits = jax.vmap(read_row)(cache, tokens, positions)
    if at is not None:
      logits = jnp.take_along_axis(logits, at[:, None, None], axis=1)
    return logits, cache


def main():
  target, draft = Wrapped(3, width=8), Wrapped(3, width=4)
  structure, params, cache = target.split()
  _, draft_params, _ = draft.split(seed=1)
  prompts = np.array([[2, 2, 0], [2, -1, -1]], np.int32)
  module = nnx.merge(structure, params, cache)
  read = jax.jit(lambda tokens: module(tokens, decode=False))  # without a cache

  def find_logits(example, tokens):
    text = [*prompts[example][prompts[example] >= 0], *tokens]
    return read(np.resize(text, 8))[len(text) - 1]

  drafter = draft_model.ModelDrafter(draft, 2, target.vocab_size)
  limits = 4, 3  # tokens per output
  pair = st.testing.Pair(target, params, drafter, draft_params, prompts, limits,
                         find_logits)  # fmt: skip
  st.testing.check_pair(pair)
  print('Outputs follow the distribution of the target.')

  decoder = st.TokenDecoder(st.Model.of(target, params),
                            st.Model.of(draft, draft_params), max_tokens=8)
  print(decoder.generate([[2, 2, 0], [2]]))


if __name__ == '__main__':
  main()

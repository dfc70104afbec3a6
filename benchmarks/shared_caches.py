# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Measures the slowdown of draft and target from sharing processor caches.

The speculative loop alternates drafting and verification. If the caches hold
each model alone but not both, the loop takes longer than the two parts alone.
To separate this effect from overhead of the loop, the draft is replaced by one
that only reads its weights, and by one that does nothing.

  python -m benchmarks.shared_caches [--gamma=5]

Prints a line of JSON for the embedded pair, with all programs timed
interleaved: median milliseconds of drafting, of reading weights, of idling and
of verification, each alone and each drafter together with verification; and
GB/s of repeated reads of matrices of several sizes, which shows the size of the
caches.
"""

from collections.abc import Callable
import dataclasses

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from benchmarks import running
from speculative_t5x import embedded
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import uniforms as uniforms_lib

_TEXT = 'On Friday, the IC 182 from Bonn arrives at platform 11 at 9:25 PM.'
_TOKEN = 5  # any token that does not end a row
_SIZES_MIB = (2, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64)
_WIDTH = 1024
_READS = 50  # per compiled loop


@dataclasses.dataclass(frozen=True)
class Idle:
  """Drafts the same tokens always, at no cost."""

  target: contracts.Model
  max_draft_tokens: int

  @property
  def num_uniforms(self) -> int:
    """As many as the draft model uses."""
    return self.max_draft_tokens

  def init(self, params, inputs, target, rows, slots) -> tuple[None, None]:
    """See `contracts.Drafter.init`."""
    return None, None

  def touch(self, params: contracts.Params, number: jax.Array) -> jax.Array:
    """Return what a draft must wait for, different for each number."""
    del params
    return number

  def propose(
      self, params, memory, state, view
  ) -> tuple[contracts.Draft, None, contracts.Cache]:
    """See `contracts.Drafter.propose`."""
    del memory
    shape = len(view.num_tokens), self.max_draft_tokens
    vocab_size = self.target.vocab_size
    number = uniforms_lib.coins(view.uniforms.values[0, 0], jnp.float32)
    total = self.touch(params, number)
    # The loop must wait for it, and not know that its value does not matter.
    token = jnp.where(total > jnp.finfo(jnp.float32).max, 0, _TOKEN)
    draft = contracts.Draft(
        tokens=jnp.full(shape, token, jnp.int32),
        lengths=view.num_wanted,
        probs=jnp.full((*shape, vocab_size), 1 / vocab_size),
    )
    return draft, state, view.target.cache


class Read(Idle):
  """Reads the weights of the draft model's decoder once per draft."""

  def touch(self, params: contracts.Params, number: jax.Array) -> jax.Array:
    """Return a sum over all weights."""
    total = number
    for leaf in jax.tree.leaves(params['decoder']):
      matrix = leaf.reshape(-1, leaf.shape[-1])
      total += jnp.sum(matrix @ jnp.full(leaf.shape[-1:], number, leaf.dtype))
    return total


def make_programs(gamma: int) -> dict[str, Callable[[], object]]:
  """Return loops of `part_programs.MAX_STEPS` steps, by name."""
  texts = embedded.load_decoder(gamma=gamma)
  decoder = texts.tokens
  request, _ = texts.make_request([_TEXT])
  request = decoder.place(request)
  drafter = decoder.loaded_drafter
  programs = {}
  for name, make in {
      'drafts': drafter.make,
      'read': Read,
      'idle': Idle,
  }.items():
    other = decoder.with_drafter(dataclasses.replace(drafter, make=make), gamma)
    bound = part_programs.PartPrograms(other).bind(request)
    programs[name] = bound['drafts']
    programs[f'{name}_and_verify'] = bound['t_call']
    programs['verify'] = bound['t_verify']
  return programs


def make_readers() -> dict[int, Callable[[], object]]:
  """Return loops of `_READS` reads of a matrix, by its size in MiB."""

  @jax.jit
  def loop(matrix, vector):
    def body(_, vector):
      return vector + 1e-9 * jnp.sum(matrix @ vector)

    return lax.fori_loop(0, _READS, body, vector)

  vector = jnp.ones((_WIDTH,))
  matrices = {
      size: jnp.ones((size * 2**20 // (4 * _WIDTH), _WIDTH))
      for size in _SIZES_MIB
  }
  return {
      size: lambda matrix=matrix: loop(matrix, vector)
      for size, matrix in matrices.items()
  }


def main():
  parser = running.parser('shared_caches', __doc__)
  parser.add_argument('--gamma', type=int, default=5)
  parser.add_argument('--repeats', type=int, default=31)
  arguments = parser.parse_args()
  if arguments.gamma < 2:
    parser.error('--gamma must be at least 2')
  readers, parts = make_readers(), make_programs(arguments.gamma)
  spans = running.time_programs(parts | readers, arguments.repeats)
  ms = {n: 1e3 * spans[n] / part_programs.MAX_STEPS for n in parts}
  median = lambda values: float(np.median(values))
  beyond = lambda x: median(ms[f'{x}_and_verify'] - ms[x] - ms['verify'])
  line = running.line(
      'shared_caches',
      gamma=arguments.gamma,
      ms={name: median(values) for name, values in ms.items()},
      in_turns_beyond_apart_ms={
          name: beyond(name) for name in ('drafts', 'read', 'idle')
      },
      read_gb_per_s={
          size: _READS * size * 2**20 / median(spans[size]) / 1e9
          for size in readers
      },
      repeats=arguments.repeats,
  )
  print(line)


if __name__ == '__main__':
  main()

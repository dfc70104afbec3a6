# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""What draft and target cost each other by sharing the processor's caches.

A step of the speculative loop drafts and verifies in turns. Where both models
together do not fit the caches that each fits alone, that takes longer than the
two do by themselves. To tell this from what the loop itself might cost, the
draft is exchanged for one that merely reads its weights, and for one that does
nothing at all.

  python -m benchmarks.shared_caches [--gamma=5]

Prints a line of JSON, of the embedded pair, everything timed in turns: medians
in milliseconds of drafting and verifying, reading and verifying, idling and
verifying, apart and in turns; and GB/s of reading matrices of several sizes
again and again, which shows how large the caches are.
"""

import argparse
from collections.abc import Callable
import copy
import dataclasses
import json

import jax
from jax import lax
import jax.numpy as jnp
import numpy as np

from speculative_t5x import embedded
from speculative_t5x import run_record
from speculative_t5x import seam
from speculative_t5x.drafters import draft_model
from speculative_t5x.walltime import part_programs
from speculative_t5x.walltime import step_times

_TEXT = 'On Friday, the IC 182 from Bonn arrives at platform 11 at 9:25 PM.'
_GUESS = 5  # any token that does not end a row
_SIZES_MIB = (2, 4, 8, 12, 16, 20, 24, 28, 32, 48, 64)
_WIDTH = 1024
_READS = 50  # in one compiled loop


@dataclasses.dataclass(frozen=True)
class Idler(draft_model.DraftModel):
  """Guesses the same tokens always, at no cost."""

  def touch(self, params: seam.Params, number: jax.Array) -> jax.Array:
    """What a guess must wait for, another for each number."""
    del params
    return number

  def propose(
      self, params, context, state, target_cache, sequences, num_tokens,
      uniforms, sampling,
  ):  # fmt: skip
    """See `seam.Drafter.propose`."""
    del context, sequences, sampling
    rows = len(num_tokens)
    total = self.touch(params, uniforms[0, 0])
    # The loop must wait for it, and not know that it says nothing.
    guess = jnp.where(total > jnp.finfo(jnp.float32).max, 0, _GUESS)
    draft = seam.Draft(
        tokens=jnp.full((rows, self.gamma), guess, jnp.int32),
        lengths=jnp.full((rows,), self.gamma, jnp.int32),
        probs=jnp.full(
            (rows, self.gamma, self.vocab_size), 1 / self.vocab_size
        ),
        is_point_mass=jnp.zeros((rows,), bool),
    )
    return draft, state, target_cache


class Reader(Idler):
  """Reads the weights of the draft's decoder once, and guesses likewise."""

  def touch(self, params: seam.Params, number: jax.Array) -> jax.Array:
    """A sum over all weights."""
    total = number
    for leaf in jax.tree.leaves(params['decoder']):
      matrix = leaf.reshape(-1, leaf.shape[-1])
      total += jnp.sum(matrix @ jnp.full(leaf.shape[-1:], number, leaf.dtype))
    return total


def make_programs(gamma: int) -> dict[str, Callable[[], object]]:
  """Loops of `part_programs.MAX_STEPS` steps, by name."""
  pair = embedded.load_pair(gamma=gamma)
  decoder = pair.tokens
  request, _ = pair.make_request([_TEXT])
  request = decoder.place(request)
  own = vars(decoder.drafter)
  drafters = {
      'drafts': decoder.drafter, 'read': Reader(**own), 'idle': Idler(**own)
  }  # fmt: skip
  programs = {}
  for name, drafter in drafters.items():
    other = copy.copy(decoder)
    other.drafter = drafter
    bound = part_programs.PartPrograms(other).bind(request)
    programs[name] = bound['drafts']
    programs[f'{name}_and_verify'] = bound['t_call']
    programs['verify'] = bound['t_verify']
  return programs


def make_readers() -> dict[int, Callable[[], object]]:
  """Loops of `_READS` readings of a matrix, by its size in MiB."""

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
  parser = argparse.ArgumentParser(
      description=__doc__,
      formatter_class=argparse.RawDescriptionHelpFormatter,
  )
  parser.add_argument('--gamma', type=int, default=5)
  parser.add_argument('--repeats', type=int, default=31)
  arguments = parser.parse_args()
  if arguments.gamma < 2:
    parser.error('--gamma must be at least 2')
  readers, parts = make_readers(), make_programs(arguments.gamma)
  spans = step_times.seconds_in_turns(parts | readers, arguments.repeats)
  ms = {n: 1e3 * spans[n] / part_programs.MAX_STEPS for n in parts}
  median = lambda values: float(np.median(values))
  print(
      json.dumps(
          {
              'benchmark': 'shared_caches',
              'gamma': arguments.gamma,
              'ms': {name: median(values) for name, values in ms.items()},
              'in_turns_beyond_apart_ms': {
                  name: median(
                      ms[f'{name}_and_verify'] - ms[name] - ms['verify']
                  )
                  for name in ('drafts', 'read', 'idle')
              },
              'read_gb_per_s': {
                  size: _READS * size * 2**20 / median(spans[size]) / 1e9
                  for size in readers
              },
              'repeats': arguments.repeats,
              'host': run_record.describe_host(),
              'device': run_record.describe_device(),
          }
      )
  )


if __name__ == '__main__':
  main()

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles beam searches of T5 1.1 for a TPU that is not there.

  python -m benchmarks.tpu_beams --target=xxl --draft=small \\
    [--gamma=5] [--draft_beams=12] [--topology=v4:1x1x1] [--layers=2]

Prints a line of JSON with the compiler's estimate of cycles, at batch 1 on one
chip in bfloat16:

  block  a target call of 8 positions of one row, without verification
  wide   likewise, of as many positions as the tree
  tree   a target call of a whole tree, beams + gamma * draft_beams positions,
         and the commit of a path
  plain  a step of a plain search: the call, the best candidates, the caches
  call   all of a call of a speculative search: drafting, tree, as many steps as
         --steps says, commits

With --layers all stacks have that many layers, which compiles sooner. Nothing
runs. For what cycles leave out see `research.ahead_of_time.program_reading`.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
import dataclasses
import pathlib
from typing import Any

import jax
from jax import lax
import jax.numpy as jnp

from benchmarks import running
from speculative_t5x.decoder import token_decoder
from speculative_t5x.drafters import beam_drafts
from speculative_t5x.networks import input_widths
from speculative_t5x.networks import t5
from speculative_t5x.research.ahead_of_time import bench
from speculative_t5x.research.ahead_of_time import hlo
from speculative_t5x.research.ahead_of_time import program_reading
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import beam_loop
from speculative_t5x.speculation import beam_scores
from speculative_t5x.speculation import beam_trees
from speculative_t5x.speculation import beams as beams_lib
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import token_trees

BLOCK = 8


def parse(given: Sequence[str] | None = None) -> argparse.Namespace:
  """Parse the options."""
  parser = running.parser('tpu_beams', __doc__)
  for name, default in (('target', 'xxl'), ('draft', 'small')):
    parser.add_argument(
        f'--{name}', choices=t5_published.SIZES, default=default
    )
  parser.add_argument('--topology', default='v4:1x1x1')
  running.add_counts(
      parser, beams=4, gamma=5, draft_beams=12, steps=2, inputs_length=512,
      targets_length=128,
  )  # fmt: skip
  parser.add_argument('--layers', type=running.positive)
  parser.add_argument('--output', type=pathlib.Path)
  return parser.parse_args(given)


def _config(size: str, layers: int | None) -> t5.T5Config:
  config = t5_published.make_config(size, 'bfloat16')
  if layers is None:
    return config
  return dataclasses.replace(
      config, num_encoder_layers=layers, num_decoder_layers=layers
  )


class Programs:
  """Functions of abstract models, each with one loop."""

  def __init__(self, options: argparse.Namespace):
    self.options = options
    self.place = topology.describe(options.topology).with_mesh(None)
    target, draft = (
        bench.make_model(self.place, _config(size, options.layers))
        for size in (options.target, options.draft)
    )
    self.decoder = token_decoder.TokenDecoder(
        target,
        draft,
        gamma=options.gamma,
        max_tokens=options.targets_length,
    )
    self.draft_params = draft.params
    self.params = target.params
    self.model = self.decoder.target_model
    self.drafter = beam_drafts.of(
        self.decoder.drafter, options.beams, options.draft_beams
    )
    batch = bench.make_batch(self.place, 1, options.inputs_length)
    self.inputs, self.limits = batch.inputs, batch.limits
    scalar = jax.ShapeDtypeStruct((), jnp.float32)
    self.scoring = beam_scores.BrevityPenalty(
        bench.replicated(self.place, scalar)
    )

  def plain(self) -> jax.stages.Lowered:
    """Lower a plain search."""
    return self._lower(None)

  def call(self) -> jax.stages.Lowered:
    """Lower a speculative search."""
    return self._lower(self.drafter)

  def _lower(
      self, drafter: contracts.Drafter | None
  ) -> jax.stages.Lowered:

    def run(params, draft_params, inputs, limits, scoring):
      setup = beams_lib.SearchSetup(
          self.model, params, scoring, drafter, draft_params
      )
      return beam_loop.search(setup, inputs, limits, **self._sizes)

    return jax.jit(run).lower(
        self.params,
        self.draft_params,
        self.inputs,
        self.limits,
        self.scoring,
    )

  @property
  def _sizes(self) -> dict[str, int]:
    return {
        'beams': self.options.beams,
        'length': self.options.targets_length,
    }

  @property
  def tree_size(self) -> int:
    options = self.options
    return options.beams + options.gamma * options.draft_beams

  def block(self) -> jax.stages.Lowered:
    """Lower calls of a block of one row."""
    return self._blocks(BLOCK)

  def wide(self) -> jax.stages.Lowered:
    """Lower calls of a block of one row, as large as a tree."""
    return self._blocks(self.tree_size)

  def _blocks(self, size: int) -> jax.stages.Lowered:

    def call(params, started, position, tokens, cache):
      logits, cache = self.model.decode(
          params, started.memory, cache, tokens, position, None
      )
      return jnp.argmax(logits, axis=-1).astype(jnp.int32), cache

    return self._calls(call, rows=1, size=size)

  def tree(self) -> jax.stages.Lowered:
    """Lower calls of a tree."""
    beams, gamma = self.options.beams, self.options.gamma
    width, size = self.options.draft_beams, self.tree_size

    def call(params, started, position, tokens, cache):
      parents = jnp.maximum(jnp.arange(size, dtype=jnp.int32) - width, 0)
      parents = jnp.where(jnp.arange(size) < beams, jnp.arange(size), parents)
      tree = token_trees.Candidates(
          tokens, parents[None].astype(jnp.int32), jnp.ones((1, size), bool)
      )
      nodes = token_trees.nodes_of(tree, position, beams, gamma)
      logits, block = self.model.decode_tree(
          params, started.memory, cache, self.model.new_block(cache, 1, size),
          nodes, 0, size, position,
      )  # fmt: skip
      tokens = jnp.argmax(logits, axis=-1).astype(jnp.int32)
      # The path depends on the logits, as that of a walk.
      paths = tokens[:, :beams, None] % size + jnp.zeros(
          (1, beams, gamma + 1), jnp.int32
      )
      rows = tokens[:, :beams] % beams
      return tokens, self.model.commit(cache, block, rows, paths, position)

    return self._calls(call, rows=beams, size=size)

  def _calls(
      self, call: Callable[..., Any], rows: int, size: int
  ) -> jax.stages.Lowered:
    slots = state_lib.cache_slots(
        self.options.targets_length, max(self.options.gamma, BLOCK)
    )

    def run(params, inputs, count):
      started = self.model.start(params, inputs, rows, slots)
      tokens = jnp.zeros((1, size), jnp.int32)
      cache = started.cache
      if rows > 1:
        cache = self.model.share_rows(cache, 1)
      body = lambda _, carry: call(params, started, count, *carry)
      return lax.fori_loop(0, count[0], body, (tokens, cache))

    return jax.jit(run).lower(self.params, self.inputs, self.limits)

  def read(self, lowered: jax.stages.Lowered) -> dict[str, Any]:
    """Compile a program, and return what a trip of its loop costs."""
    trips = {input_widths.SCOPE: 1, beam_trees.WALK: self.options.steps}
    program = hlo.parse(lowered.compile().as_text())
    trip, _ = program_reading.read_loop(program, trips)
    return {
        'step_s': self.place.chip.seconds(trip.cycles),
        **dataclasses.asdict(trip),
    }


def lines(options: argparse.Namespace) -> Iterator[str]:
  """Yield the line of a pair."""
  programs = Programs(options)
  names = ['block', 'wide', 'tree', 'plain', 'call']
  with programs.decoder.scope():
    found = {name: programs.read(getattr(programs, name)()) for name in names}
  seconds = {name: each['step_s'] for name, each in found.items()}
  settings = {k: v for k, v in vars(options).items() if k != 'output'}
  yield running.line(
      'tpu_beams',
      **settings,
      block_size=BLOCK,
      dtype='bfloat16',
      tree_over_block=seconds['tree'] / seconds['block'],
      tree_over_wide=seconds['tree'] / seconds['wide'],
      call_over_plain=seconds['call'] / seconds['plain'],
      **found,
  )


def main(given: Sequence[str] | None = None) -> None:
  options = parse(given)
  running.write(lines(options), options.output)


if __name__ == '__main__':
  running.run(main)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles a target and its drafts for one topology and describes the programs.

The descriptions are entries of the record that the preflight job writes;
`report` explains their keys.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

import jax

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting as drafting_lib
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.research import progress
from speculative_t5x.research import whole_batches
from speculative_t5x.research.ahead_of_time import abstract_pair
from speculative_t5x.research.ahead_of_time import programs
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.simulation import by_name
from speculative_t5x.speculation import ranges

Description = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Sizes:
  """Sizes of what is decoded: see `configs/runs/preflight.gin`."""

  batch_size: int = 1
  inputs_length: int = 512
  targets_length: int = 128
  dtype: str = 'bfloat16'
  mesh_shape: Sequence[int] | None = None

  def __post_init__(self):
    counts = 'batch_size', 'inputs_length', 'targets_length'
    ranges.check_settings(ranges.COUNT, **{x: getattr(self, x) for x in counts})


class Bench:
  """Compiles programs of one target and logs the name of each to stderr."""

  def __init__(
      self,
      place: topology.Topology,
      shapes: Sizes,
      name: str,
      config: network_lib.Network,
  ):
    """Describe a batch for the topology; nothing is compiled.

    The network of the target is as a checkpoint holds it; records have its
    name.
    """
    self._place = place
    self._shapes = shapes
    self._name = name
    self._target = abstract_pair.make_model(place, config)
    self._batch = abstract_pair.make_batch(
        place, shapes.batch_size, shapes.inputs_length
    )

  def make_draft(self, config: network_lib.Network) -> models.Model:
    """Return an abstract draft model."""
    return abstract_pair.make_model(self._place, config, sharding.REPLICATED)

  def describe_target(self) -> Description:
    """Compile a step of the target."""
    form = 'padded' if self._target.config.min_block > 1 else 'one_row'
    compiled = self._compile(
        f'one step of {self._name}',
        lambda pair, batch: whole_batches.compiled(pair.alone, batch),
    )
    return {
        'name': self._name,
        'num_params': models.count_params(self._target.config),
        'steps': {form: compiled},
    }

  def describe_pair(self, draft: str, gamma: int) -> Description:
    """Compile the decoding loop of a draft by name."""
    name = by_name.network_name(draft)
    drafter = by_name.load(draft, self._target, self.make_draft)
    loop = self.describe_loop(name, drafter, gamma)
    return {'draft': name, 'gamma': gamma, 'loop': loop}

  def describe_loop(
      self,
      name: str,
      drafter: drafting_lib.Drafting | models.Model,
      gamma: int,
  ) -> Description:
    """Compile the target's decoding loop with a drafter of some name."""
    return self._compile(
        f'loop of {self._name} with {name}, gamma {gamma}',
        whole_batches.compiled,
        drafter,
        gamma,
    )

  def _compile(
      self,
      name: str,
      make: Callable[..., jax.stages.Compiled],
      drafter: drafting_lib.Drafting | models.Model | None = None,
      gamma: int = 1,
  ) -> Description:
    decoder = token_decoder.TokenDecoder(
        self._target,
        drafter or self._target,
        gamma=gamma,
        max_tokens=self._shapes.targets_length,
    )
    progress.say(f'compiling {name}')
    program = programs.compile_loop(
        self._place, make, decoder, self._batch, gamma=gamma
    )
    step_s = self._place.chip.seconds(program.step.cycles)
    return {**dataclasses.asdict(program), 'step_s': step_s}

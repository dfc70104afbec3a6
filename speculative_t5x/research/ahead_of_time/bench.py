# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles a target and its drafts for one topology and describes the programs.

The descriptions are entries of the record that the preflight job writes;
`preflight_report` explains their keys.
"""

from collections.abc import Callable, Sequence
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.drafters import drafting as drafting_lib
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research import progress
from speculative_t5x.research import whole_batches
from speculative_t5x.research.ahead_of_time import program_reading
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.simulation import by_name
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib

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
    self._target = make_model(place, config)
    self._batch = make_batch(place, shapes.batch_size, shapes.inputs_length)

  def make_draft(self, config: network_lib.Network) -> models.Model:
    """Return an abstract draft model."""
    return make_model(self._place, config, sharding.REPLICATED)

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
    program = program_reading.compile_loop(
        self._place, make, decoder, self._batch, gamma=gamma
    )
    step_s = self._place.chip.seconds(program.step.cycles)
    return {**dataclasses.asdict(program), 'step_s': step_s}


def make_model(
    place: topology.Topology,
    config: t5.T5Config,
    rules: sharding.Rules = sharding.MODEL_PARALLEL,
) -> models.Model:
  """Return an abstract model, prepared as `models.make_model` prepares one."""
  prepared = config.prepared(place.platform, merged=place.mesh is None)
  params = models.abstract_params(prepared)
  if place.mesh is None:
    shardings = jax.tree.map(lambda _: place.replicated(), params)
  else:
    shardings = models.param_shardings(prepared, place.mesh, rules)
  is_float = lambda x: jnp.issubdtype(x.dtype, jnp.floating)
  params = jax.tree.map(
      lambda x, where: jax.ShapeDtypeStruct(
          x.shape,
          jnp.dtype(config.dtype) if is_float(x) else x.dtype,
          sharding=where,
      ),
      params,
      shardings,
  )
  return models.Model(prepared, params, mesh=place.mesh, rules=rules)


def replicated(place: topology.Topology, tree: Any) -> Any:
  """Return the shapes of a tree's arrays, each whole on every device."""
  where = place.replicated()
  return jax.tree.map(
      lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype, sharding=where), tree
  )


def make_batch(
    place: topology.Topology, examples: int, inputs_length: int
) -> input_batch.InputBatch:
  """Return an abstract batch of inputs, with its rows along the data axis."""
  by_row = place.replicated()
  if place.mesh is not None:
    by_row = sharding.named_sharding(
        place.mesh, sharding.REPLICATED, ('batch',), (examples,)
    )
  tokens, count = (
      jax.ShapeDtypeStruct(shape, jnp.int32, sharding=by_row)
      for shape in ((examples, inputs_length), (examples,))
  )
  sampling = replicated(place, sampling_lib.GREEDY.as_arrays())
  return input_batch.InputBatch(
      inputs=tokens,
      example_ids=count,
      limits=count,
      seed=replicated(place, jax.ShapeDtypeStruct((), jnp.int32)),
      sampling=sampling,
      draft_sampling=sampling,
  )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles a target and its drafts for one topology and describes the programs.

The descriptions are entries of the record that the preflight job writes;
`report` explains their keys.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any

import jax

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting as drafting_lib
from speculative_t5x.networks import network as network_lib
from speculative_t5x.networks import sharding
from speculative_t5x.research import progress
from speculative_t5x.research import whole_batches
from speculative_t5x.research.ahead_of_time import abstract_pair
from speculative_t5x.research.ahead_of_time import programs
from speculative_t5x.research.ahead_of_time import roofline
from speculative_t5x.research.ahead_of_time import t5x_step
from speculative_t5x.research.ahead_of_time import topology
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import theory

Description = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Shapes:
  """Sizes of what is decoded: see `configs/runs/preflight.gin`."""

  batch_size: int = 1
  inputs_length: int = 512
  targets_length: int = 128
  dtype: str = 'bfloat16'
  mesh_shape: Sequence[int] | None = None
  draft_model_parallel: bool = False

  def __post_init__(self):
    ranges.check_settings(
        ranges.COUNT,
        batch_size=self.batch_size,
        inputs_length=self.inputs_length,
        targets_length=self.targets_length,
    )


class Bench:
  """Compiles programs of one target and logs the name of each to stderr."""

  def __init__(
      self,
      place: topology.Topology,
      shapes: Shapes,
      name: str,
      config: network_lib.Network,
  ):
    """Describe a batch for the topology; nothing is compiled.

    Args:
      place: What programs are compiled for.
      shapes: Sizes of the batch.
      name: The target's, in records.
      config: The target's network, as a checkpoint holds it.
    """
    self._place = place
    self._shapes = shapes
    self._name = name
    self._config = config
    mesh = sharding.describe(place.mesh)
    self._rows = shapes.batch_size // mesh.get(sharding.DATA_AXIS, 1)
    self._draft_rules = (
        sharding.MODEL_PARALLEL
        if shapes.draft_model_parallel
        else sharding.REPLICATED
    )
    self._batch = abstract_pair.make_batch(
        place, shapes.batch_size, shapes.inputs_length
    )
    # Tracing the shapes of XXL takes a second, and a call of it another one.
    self._make = functools.cache(
        functools.partial(abstract_pair.make_model, place)
    )
    self._seconds = functools.cache(self._count_seconds)

  def make_draft(self, config: network_lib.Network) -> models.Model:
    """Return an abstract draft model."""
    return self._make(config, self._draft_rules)

  def needed_bytes(self, draft: str, gamma: int) -> int:
    """Return the bytes that a pair needs per device, by an estimate."""
    return memory.peak_bytes(self._held(draft, gamma))

  def _held(
      self, draft: str, gamma: int
  ) -> tuple[memory.DeviceBytes, memory.DeviceBytes]:
    """Return what the target and the draft need per device."""
    shapes = self._shapes
    mesh_shape = sharding.describe(self._place.mesh).values()
    workload = memory.Workload(
        batch_size=shapes.batch_size,
        num_decodes=1,
        inputs_length=shapes.inputs_length,
        targets_length=shapes.targets_length,
        gamma=gamma,
        mesh_shape=tuple(mesh_shape) or (1, 1),
        draft_model_parallel=shapes.draft_model_parallel,
    )
    drafting = by_name.find(draft, self._config).num_bytes(workload)
    return memory.target_bytes(self._config, workload), drafting

  def describe_target(self) -> Description:
    """Return roofline times of the target, and its steps in both forms."""
    num_params = models.count_params(self._config)
    return self._describe_model(self._name, num_params, self._config)

  def describe_draft(self, draft: str) -> Description:
    """Return the same of the network that drafts.

    A table has no steps, and a head none without its target.
    """
    found = by_name.find(draft, self._config)
    name = found.description.name
    if found.config is None or network_lib.is_feature_head(found.config):
      count = found.description.num_params
      return {'name': name, 'num_params': count, 'calls': [], 'steps': {}}
    # The steps are those of an encoder-decoder: the encoder is not read in a
    # step, nor are the kernels that depend on its width.
    config = dataclasses.replace(
        found.config,
        num_encoder_layers=found.config.num_encoder_layers or 1,
        encoder_dim=None,
    )
    rules = self._draft_rules if found.is_own else sharding.MODEL_PARALLEL
    num_params = models.count_params(found.config)
    return self._describe_model(name, num_params, config, rules)

  def _describe_model(
      self,
      name: str,
      num_params: int,
      config: network_lib.Network,
      rules: sharding.Rules = sharding.MODEL_PARALLEL,
  ) -> Description:
    """Describe a model, which lies on a mesh by some rules."""
    model = self._make(config, rules)
    forms = {'one_row': self._make(config, rules, 1)}
    if model.config.min_block > 1:
      forms['padded'] = model
    return {
        'name': name,
        'num_params': num_params,
        'calls': [self._count(model, 1)],
        'steps': {
            form: self._compile(
                f'one step of {name}, {form.replace("_", " ")}',
                whole_batches.compiled_plain,
                prepared,
            )
            for form, prepared in forms.items()
        },
    }

  def describe_verify(self, gamma: int) -> Description:
    """Compile the verification of gamma draft tokens by the target."""
    model = self._make(self._config)
    name = f'verification by {self._name}, gamma {gamma}'
    return {
        'gamma': gamma,
        'call': self._count(model, gamma + 1),
        'program': self._compile(
            name, programs.compile_verify, model, gamma=gamma
        ),
    }

  def describe_pair(self, draft: str, gamma: int) -> Description:
    """Compile a pair's whole decoding loop."""
    name = by_name.network_name(draft)
    drafter = by_name.find(draft, self._config).load(
        self._make(self._config),
        self.make_draft,
        functools.partial(abstract_pair.replicated, self._place),
    )
    return {
        'draft': name,
        'gamma': gamma,
        'loading_bytes': memory.loading_bytes(self._held(draft, gamma)),
        'loop': self.describe_loop(name, drafter, gamma),
    }

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
        self._make(self._config),
        drafter,
        gamma,
    )

  def describe_row(self, row: published.Row) -> Description:
    """Return the roofline cost coefficient and speedup of a Table 2 row.

    By Theorem 3.8 with a time of its own for verification.
    """
    plain_s, verify_s = (
        self._seconds(block, self._config) for block in (1, row.gamma + 1)
    )
    draft = t5_published.make_config(row.draft, self._shapes.dtype)
    draft_s = self._seconds(1, draft, self._draft_rules)
    tokens = float(theory.expected_tokens(row.alpha, row.gamma))
    return {
        'c': draft_s / plain_s,
        'speedup': tokens * plain_s / (row.gamma * draft_s + verify_s),
    }

  def describe_t5x(self) -> Description | None:
    """Compile T5X's own step if T5X is importable, for one device."""
    if self._place.mesh is not None or not t5x_step.IS_IMPORTABLE:
      return None
    make = functools.partial(
        t5x_step.compile_plain,
        self._config,
        self._place,
        examples=self._shapes.batch_size,
        inputs_length=self._shapes.inputs_length,
        length=self._shapes.targets_length,
    )
    return self._run(f"T5X's own step, {self._name}", make)

  def _count(self, model: models.Model, block: int) -> Description:
    call = roofline.count(
        model,
        rows=self._rows,
        block=block,
        slots=state_lib.cache_slots(self._shapes.targets_length, block - 1),
        inputs_length=self._shapes.inputs_length,
    )
    seconds = call.seconds(self._place.chip)
    return {'block': block, **call._asdict(), 'seconds': seconds}

  def _count_seconds(self, block: int, *model: Any) -> float:
    return self._count(self._make(*model), block)['seconds']

  def _compile(
      self,
      name: str,
      make: Callable[..., jax.stages.Compiled],
      target: models.Model,
      drafter: drafting_lib.Drafting | models.Model | None = None,
      gamma: int = 1,
  ) -> Description:
    decoder = token_decoder.TokenDecoder(
        target,
        drafter or target,
        gamma=gamma,
        max_tokens=self._shapes.targets_length,
    )
    return self._run(name, make, decoder, self._batch, gamma=gamma)

  def _run(
      self,
      name: str,
      make: Callable[..., jax.stages.Compiled],
      *arguments: Any,
      gamma: int = 0,
  ) -> Description:
    progress.say(f'compiling {name}')
    program = programs.compile_loop(self._place, make, *arguments, gamma=gamma)
    step_s = self._place.chip.seconds(program.step.cycles)
    return {**dataclasses.asdict(program), 'step_s': step_s}

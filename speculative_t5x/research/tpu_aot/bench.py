# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Compiles pairs of T5 1.1 models for one topology and describes the programs.

The descriptions are entries of the record that the tpu-preflight job writes;
`report` explains their keys.
"""

from collections.abc import Callable, Sequence
import dataclasses
import functools
from typing import Any

from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting as drafting_lib
from speculative_t5x.networks import network
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research import progress
from speculative_t5x.research.paper import published
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.research.tpu_aot import abstract_pair
from speculative_t5x.research.tpu_aot import programs
from speculative_t5x.research.tpu_aot import roofline
from speculative_t5x.research.tpu_aot import t5x_step
from speculative_t5x.research.tpu_aot import topology
from speculative_t5x.speculation import state as state_lib
from speculative_t5x.speculation import theory

PREFIX = 't5_1_1_'  # a network's name is this prefix and its size

Description = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Shapes:
  """What is decoded, and how: see `configs/runs/tpu_preflight.gin`."""

  batch_size: int = 1
  inputs_length: int = 512
  targets_length: int = 128
  dtype: str = 'bfloat16'
  mesh_shape: Sequence[int] | None = None
  draft_model_parallel: bool = False


class Bench:
  """Compiles programs for one place and logs the name of each to stderr."""

  def __init__(self, place: topology.Topology, shapes: Shapes):
    self._place = place
    self._shapes = shapes
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

  def needed_bytes(self, target: str, draft: str, gamma: int) -> int:
    """Return the bytes that a pair needs per device, by an estimate."""
    return memory.peak_bytes(self._held(target, draft, gamma))

  def _held(
      self, target: str, draft: str, gamma: int
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
    config = self._config(target)
    drafting = by_name.find(draft, config).num_bytes(workload)
    return memory.target_bytes(config, workload), drafting

  def describe_target(self, target: str) -> Description:
    """Return roofline times of the target, and its steps in both forms."""
    config = self._config(target)
    return self._describe_model(
        by_name.network_name(target), models.count_params(config), config
    )

  def describe_draft(self, target: str, draft: str) -> Description:
    """Return the same of the network that drafts.

    A table has no steps, and a head none without its target.
    """
    found = by_name.find(draft, self._config(target))
    name = found.description.name
    if found.config is None or network.is_feature_head(found.config):
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
      config: t5.T5Config,
      rules: sharding.Rules = sharding.MODEL_PARALLEL,
  ) -> Description:
    """Describe an encoder-decoder, which lies on a mesh by some rules."""
    model = self._make(config, rules)
    return {
        'name': name,
        'num_params': num_params,
        'calls': [self._count(model, 1)],
        'steps': {
            form: self._compile(
                f'one step of {name}, {form.replace("_", " ")}',
                token_decoder.TokenDecoder.compile_plain,
                self._make(config, rules, min_block),
            )
            for form, min_block in (('one_row', 1), ('padded', None))
        },
    }

  def describe_verify(self, target: str, gamma: int) -> Description:
    """Compile the verification of gamma draft tokens by the target."""
    model = self._make(self._config(target))
    name = f'verification by {PREFIX}{target}, gamma {gamma}'
    return {
        'gamma': gamma,
        'call': self._count(model, gamma + 1),
        'program': self._compile(
            name, programs.compile_verify, model, gamma=gamma
        ),
    }

  def describe_pair(self, target: str, draft: str, gamma: int) -> Description:
    """Compile a pair's whole decoding loop."""
    name, config = by_name.network_name(draft), self._config(target)
    model = self._make(config)
    drafter = by_name.find(draft, config).load(
        model,
        lambda config: self._make(config, self._draft_rules),
        functools.partial(abstract_pair.replicated, self._place),
    )
    loop = self._compile(
        f'loop of {PREFIX}{target} with {name}, gamma {gamma}',
        token_decoder.TokenDecoder.compile_speculative,
        model,
        drafter,
        gamma,
    )
    return {
        'draft': name,
        'gamma': gamma,
        'loading_bytes': memory.loading_bytes(self._held(target, draft, gamma)),
        'loop': loop,
    }

  def describe_row(self, target: str, row: published.Row) -> Description:
    """Return the roofline cost coefficient and speedup of a Table 2 row.

    By Theorem 3.8 with a time of its own for verification.
    """
    config = self._config(target)
    plain_s, verify_s = (self._seconds(x, config) for x in (1, row.gamma + 1))
    draft_s = self._seconds(1, self._config(row.draft), self._draft_rules)
    tokens = float(theory.expected_tokens(row.alpha, row.gamma))
    return {
        'c': draft_s / plain_s,
        'speedup': tokens * plain_s / (row.gamma * draft_s + verify_s),
    }

  def describe_t5x(self, target: str) -> Description | None:
    """Compile T5X's own step if T5X is importable, for one device."""
    if self._place.mesh is not None or not t5x_step.IS_IMPORTABLE:
      return None
    return self._run(
        f"T5X's own step, {PREFIX}{target}",
        lambda: t5x_step.compile_plain(
            self._config(target),
            self._place,
            examples=self._shapes.batch_size,
            inputs_length=self._shapes.inputs_length,
            length=self._shapes.targets_length,
        ),
    )

  def _config(self, size: str) -> t5.T5Config:
    return t5_published.make_config(size, self._shapes.dtype)

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
      make: programs.Compile,
      target: models.Model,
      drafter: drafting_lib.Drafting | None = None,
      gamma: int = 1,
  ) -> Description:
    decoder = token_decoder.TokenDecoder(
        target,
        drafter or target,
        gamma=gamma,
        max_tokens=self._shapes.targets_length,
    )
    return self._run(
        name, lambda: programs.compile_decoding(make, decoder, self._batch)
    )

  def _run(
      self, name: str, make: Callable[[], programs.Program]
  ) -> Description:
    progress.say(f'compiling {name}')
    program = make()
    step_s = self._place.chip.seconds(program.step.cycles)
    return {**dataclasses.asdict(program), 'step_s': step_s}

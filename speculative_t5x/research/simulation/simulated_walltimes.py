# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Walltimes of T5 1.1 with drafts of any size, with simulated acceptance.

Target and draft run in full, with random weights on random inputs; only the
acceptance of draft tokens is drawn at a given rate alpha. The walltime is
therefore that of a pair of these sizes with this alpha. The outputs are
meaningless and do not follow the target's distribution.
"""

from collections.abc import Callable, Iterable, Sequence
import dataclasses
import functools
import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import chips
from speculative_t5x.networks import t5
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import ranges
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import simulated_acceptance
from speculative_t5x.speculation import theory

_FIRST_TOKEN = 3  # below are padding, the end and the unknown token


@dataclasses.dataclass(frozen=True)
class Pairing:
  """A draft model beside the target, and its acceptance rate."""

  draft: str  # see `simulation.by_name`
  alpha: float
  gamma: int
  temperature: float = 0.0


# Pairings sorted by it share what is compiled with those before them: values
# of alpha and temperature compile nothing.
_PROGRAM = operator.attrgetter('draft', 'gamma', 'alpha')


@dataclasses.dataclass(frozen=True)
class Shapes:
  """The inputs to decode, and how often: see `configs/runs/simulate.gin`."""

  num_examples: int = 16
  batch_size: int = 1
  inputs_length: int = 64
  targets_length: int = 64
  dtype: str | None = None
  repeats: int = 1
  rounds: int = walltimes.ROUNDS
  seed: int = 0
  matmul_precision: str | None = 'highest'

  def __post_init__(self):
    values = dataclasses.asdict(self)
    for name in ('dtype', 'seed', 'matmul_precision'):
      del values[name]
    ranges.check_settings(ranges.COUNT, **values)
    request_lib.check_int32('seed', self.seed)


def measure_pairings(
    target_size: str,
    pairings: Sequence[Pairing],
    shapes: Shapes,
    open_folder: Callable[[], Any],
) -> tuple[list[run_record.RunRecord], Any]:
  """Measure one target with several drafts.

  What the folder, see `jobs.outputs.output_folder`, has of an earlier run is
  not measured again.

  Returns:
    One record per pairing, in their order, and the folder.
  Raises:
    ValueError: for values out of range, or weights that need more memory than
      is free, before memory and the folder are touched.
  """
  arguments.check_some('draft_size', pairings)
  for pairing in pairings:
    simulated_acceptance.make_rule(pairing.alpha)  # before anything is made
    sampling_lib.Sampling(pairing.temperature)
  arguments.check_gammas([p.gamma for p in pairings], shapes.targets_length)
  dtype = shapes.dtype or chips.suited_dtype()
  shapes = dataclasses.replace(shapes, dtype=dtype)
  _check_memory(target_size, {p.draft for p in pairings}, dtype)
  folder = open_folder()
  pairs = _RandomPairs(target_size, shapes)
  measured = {}
  for pairing in sorted(pairings, key=_PROGRAM):
    measured[pairing] = pairs.measure(pairing, folder)
    folder.add(measured[pairing])
  return [measured[pairing] for pairing in pairings], folder


def _check_memory(target_size: str, drafts: Iterable[str], dtype: str) -> None:
  """Refuse weights that do not fit; caches and programs are not counted."""
  target = t5_published.make_config(target_size, dtype)
  networks = [by_name.make_config(draft, target) for draft in drafts]
  count = max(map(models_lib.count_params, networks))
  count += models_lib.count_params(target)
  needed = count * jnp.dtype(dtype).itemsize
  free = memory.available_bytes()
  if needed > free:
    raise ranges.ArgumentError(
        f'The weights of T5 1.1 {target_size} and of its largest draft in'
        f' {dtype} take {memory.text(needed)}, and {memory.text(free)} are free'
        ' on this device. Give a smaller target_size or draft, or'
        ' dtype=bfloat16.',
        target_size=target_size,
        dtype=dtype,
    )


class _RandomPairs:
  """One target, and the draft and the programs that were made last."""

  def __init__(self, target_size: str, shapes: Shapes):
    self._name = by_name.network_name(target_size)
    self._config = t5_published.make_config(target_size, shapes.dtype)
    self._shapes = shapes
    self._plain = functools.cache(self._make_plain)
    self._drafter = functools.lru_cache(1)(self._make_drafter)
    self._programs = functools.lru_cache(1)(self._make_programs)

  def measure(self, pairing: Pairing, folder: Any) -> run_record.RunRecord:
    """Return the record of a pairing, the folder's or measured now."""
    draft, gamma = pairing.draft, pairing.gamma
    # What is known already is found without weights.
    abstract = self._plain(_abstract_model)
    settings = self._settings(
        abstract.with_drafter(
            by_name.load(draft, abstract.target, _abstract_model), gamma
        ),
        pairing,
    )
    name = (
        f'{self._name} and {draft}, gamma {gamma}, alpha {pairing.alpha:g},'
        f' temperature {pairing.temperature:g}'
    )
    if known := folder.find(settings, name):
      return known
    record, *_ = walltimes.measure(
        self._programs(draft, gamma), self._batches(pairing), settings, name
    )
    predicted = theory.walltime_factor(pairing.alpha, gamma, record.c)
    return dataclasses.replace(record, predicted_speedup=float(predicted))

  def _make_plain(
      self, make_model: Callable[[t5.T5Config], models_lib.Model]
  ) -> token_decoder.TokenDecoder:
    return token_decoder.TokenDecoder(
        make_model(self._config),
        drafting.Drafting(),
        gamma=1,
        max_tokens=self._shapes.targets_length,
        may_end=False,
        matmul_precision=self._shapes.matmul_precision,
    )

  def _make_drafter(self, name: str) -> drafting.Drafting:
    target = self._plain(make_model).target
    return by_name.load(name, target, make_model)

  def _make_programs(
      self, draft: str, gamma: int
  ) -> part_programs.PartPrograms:
    plain = self._plain(make_model)
    decoder = plain.with_drafter(self._drafter(draft), gamma)
    return part_programs.PartPrograms(decoder)

  def _batches(self, pairing: Pairing) -> list[input_batch.InputBatch]:
    shapes = self._shapes
    shape = (shapes.num_examples, shapes.inputs_length)
    rng = np.random.default_rng(shapes.seed)
    tokens = rng.integers(
        _FIRST_TOKEN, t5_published.VOCAB_SIZE, shape, np.int32
    )
    settings = request_lib.Settings(
        sampling=sampling_lib.Sampling(pairing.temperature),
        max_tokens=shapes.targets_length,
        seed=shapes.seed,
        rule=simulated_acceptance.make_rule(pairing.alpha),
    )
    batches = input_batch.whole_batches(
        [settings.request(ids, number) for number, ids in enumerate(tokens)],
        settings,
        size=shapes.batch_size,
        inputs_length=shapes.inputs_length,
    )
    return list(batches)

  def _settings(
      self, decoder: token_decoder.TokenDecoder, pairing: Pairing
  ) -> run_record.RunRecord:
    shapes = self._shapes
    described = provenance.describe_decoding(
        decoder,
        simulated_acceptance.make_rule(pairing.alpha),
        sampling_lib.Sampling(pairing.temperature),
    )
    target = dataclasses.replace(described.pop('target'), name=self._name)
    return provenance.new_record(
        'walltime',
        num_examples=shapes.num_examples,
        truncated_inputs=0,
        target=target,
        seed=shapes.seed,
        batch_size=shapes.batch_size,
        inputs_length=shapes.inputs_length,
        simulated_acceptance=pairing.alpha,
        repeats=shapes.repeats,
        rounds=shapes.rounds,
        **described,
    )


def _abstract_model(config: t5.T5Config) -> models_lib.Model:
  prepared = config.prepared(jax.default_backend(), merged=True)
  params = models_lib.abstract_params(prepared)
  num_params = models_lib.count_params(config)
  return models_lib.Model(prepared, params, num_params=num_params)


def make_model(config: t5.T5Config, seed: int = 0) -> models_lib.Model:
  """Make a model with random weights on the device, prepared for decoding.

  Arrays are made one at a time in the config's dtype, so that memory holds only
  one copy.
  """
  progress.say(f'making {models_lib.count_params(config):,} random weights')
  model = _abstract_model(config)
  leaves, tree = jax.tree.flatten(model.params)
  # The fastest generator: no result depends on the values.
  keys = jax.random.split(jax.random.key(seed, impl='rbg'), len(leaves))
  dtype = jnp.dtype(config.dtype)
  values = [_random(leaf.shape, dtype, key) for leaf, key in zip(leaves, keys)]
  params = jax.block_until_ready(jax.tree.unflatten(tree, values))
  return dataclasses.replace(model, params=params)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _random(shape: tuple[int, ...], dtype: jnp.dtype, key) -> jax.Array:
  if len(shape) == 1:  # the scale of a norm
    return jnp.ones(shape, dtype)
  # Uniform with variance 1 / inputs, which is cheaper than normal.
  bound = (3 / shape[0]) ** 0.5
  return jax.random.uniform(key, shape, dtype, -bound, bound)

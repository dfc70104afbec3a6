# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Walltimes of T5 1.1 with drafts of any size, with simulated acceptance.

Target and draft run with random weights on random inputs; draft tokens are
accepted at a given rate.
"""

from collections.abc import Callable, Sequence
import copy
import dataclasses
import functools
import operator
from typing import Any

import jax
import numpy as np

from speculative_t5x.decoder import input_batch
from speculative_t5x.decoder import request as request_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.loading import descriptions
from speculative_t5x.loading import models as models_lib
from speculative_t5x.loading.compatibility import memory
from speculative_t5x.loading.drafters import drafting
from speculative_t5x.networks import chips
from speculative_t5x.networks import sharding
from speculative_t5x.networks import t5
from speculative_t5x.research import arguments
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import provenance
from speculative_t5x.research.measurement import walltimes
from speculative_t5x.research.simulation import by_name
from speculative_t5x.research.simulation import random_models
from speculative_t5x.research.simulation import t5_published
from speculative_t5x.speculation import draft_length
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
PROGRAM = operator.attrgetter('draft', 'gamma', 'alpha')


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
    target_size: str | None,
    pairings: Sequence[Pairing],
    shapes: Shapes,
    open_folder: Callable[[], Any],
) -> tuple[list[run_record.RunRecord], Any]:
  """Measure one target, the largest that fits if None, with several drafts.

  What the folder, see `jobs.outputs.output_folder`, has of an earlier run is
  not measured again.

  Returns:
    One record per pairing, in their order, and the folder.
  Raises:
    ValueError: for values out of range, or pairs that need more memory than
      there is, before memory and the folder are touched.
  """
  arguments.check_some('draft_size', pairings)
  for pairing in pairings:
    simulated_acceptance.make_rule(pairing.alpha)  # before anything is made
    sampling_lib.Sampling(pairing.temperature)
  arguments.check_gammas([p.gamma for p in pairings], shapes.targets_length)
  dtype = shapes.dtype or chips.suited_dtype()
  shapes = dataclasses.replace(shapes, dtype=dtype)
  drafts = sorted({p.draft for p in pairings})
  gamma = max(p.gamma for p in pairings)
  target_size = choose_target(target_size, drafts, gamma, shapes)
  folder = open_folder()
  bench = Bench(target_size, shapes)
  measured = {}
  for pairing in sorted(pairings, key=PROGRAM):
    settings, name = bench.settings(pairing), bench.name(pairing)
    record = folder.find(settings, name, len(pairings))
    record = record or bench.measure(pairing, settings, name)
    folder.add(record)
    measured[pairing] = record
  return [measured[pairing] for pairing in pairings], folder


class Bench:
  """One target, and the draft and the programs that were made last."""

  def __init__(self, target_size: str, shapes: Shapes):
    self._target_size = target_size
    self._target_name = by_name.network_name(target_size)
    self._target_config = t5_published.make_config(target_size, shapes.dtype)
    self._shapes = shapes
    # While one is made, the last one is still there; see `_needed_bytes`.
    self._drafter = functools.lru_cache(1)(self._make_drafter)
    self._programs = functools.lru_cache(1)(self._make_programs)

  def name(self, pairing: Pairing) -> str:
    """Return what the progress calls a pairing."""
    return (
        f'{self._target_size} and {pairing.draft}, gamma {pairing.gamma},'
        f' alpha {pairing.alpha:g}, temperature {pairing.temperature:g}'
    )

  def at(self, shapes: Shapes) -> 'Bench':
    """Return the bench of the same models at another number of rows."""
    other = copy.copy(self)
    other._shapes = shapes
    return other

  def time_runs(
      self, pairing: Pairing, settings: run_record.RunRecord, name: str
  ) -> run_record.RunRecord:
    """Return the settings of a pairing with both runs, without their parts."""
    decoder = self._programs(pairing.draft, pairing.gamma).decoder
    ways = whole_batches.ways(decoder)
    batches = self._batches(pairing)
    with progress.Progress(name, len(batches)) as shown:
      runs = interleaved.Timer(ways, repeats=settings.repeats).run(
          batches, after=shown.show
      )
    return walltimes.add_runs(settings, *runs)

  def measure(
      self, pairing: Pairing, settings: run_record.RunRecord, name: str
  ) -> run_record.RunRecord:
    """Return the settings of a pairing with what is measured of it."""
    programs = self._programs(pairing.draft, pairing.gamma)
    batches = self._batches(pairing)
    record, *_ = walltimes.measure(programs, batches, settings, name)
    predicted = theory.walltime_factor(pairing.alpha, pairing.gamma, record.c)
    return dataclasses.replace(record, predicted_speedup=float(predicted))

  @functools.cached_property
  def _plain(self) -> token_decoder.TokenDecoder:
    return token_decoder.TokenDecoder(
        _random_model(self._target_name, self._target_config, seed=1),
        drafting.Drafting(),
        gamma=1,
        max_tokens=self._shapes.targets_length,
        may_end=False,
        matmul_precision=self._shapes.matmul_precision,
    )

  def _make_drafter(self, name: str) -> drafting.Drafting:
    draft = by_name.find(name, self._target_config)
    return draft.load(
        self._plain.target,
        lambda config: _random_model(draft.description.name, config, seed=2),
        lambda shapes: random_models.make_table(shapes, seed=2),
    )

  def _make_programs(
      self, draft: str, gamma: int
  ) -> part_programs.PartPrograms:
    decoder = self._plain.with_drafter(self._drafter(draft), gamma)
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

  def settings(self, pairing: Pairing) -> run_record.RunRecord:
    """Return a record before anything is measured."""
    shapes = self._shapes
    rule = simulated_acceptance.make_rule(pairing.alpha)
    draft = by_name.find(pairing.draft, self._target_config)
    return provenance.new_record(
        'walltime',
        num_examples=shapes.num_examples,
        truncated_inputs=0,
        target=descriptions.ModelDescription(
            name=self._target_name,
            num_params=models_lib.count_params(self._target_config),
            dtype=shapes.dtype,
        ),
        drafter=dataclasses.replace(
            draft.description, temperature=pairing.temperature
        ),
        verification=run_record.Verification(rule.name),
        lossless=rule.is_lossless,
        gamma=pairing.gamma,
        gamma_policy=draft_length.Fixed.name,
        **provenance.describe_sampling(
            sampling_lib.Sampling(pairing.temperature)
        ),
        num_decodes=1,
        seed=shapes.seed,
        batch_size=shapes.batch_size,
        inputs_length=shapes.inputs_length,
        targets_length=shapes.targets_length,
        mesh=sharding.describe(None),
        matmul_precision=shapes.matmul_precision,
        simulated_acceptance=pairing.alpha,
        repeats=shapes.repeats,
        rounds=shapes.rounds,
    )


def _random_model(
    name: str, config: t5.T5Config, seed: int
) -> models_lib.Model:
  count = models_lib.count_params(config)
  progress.say(f'making {name}, {count:,} random weights')
  model = random_models.make_model(config, seed)
  jax.block_until_ready(model.params)
  return model


def _needed_bytes(
    target_size: str, names: Sequence[str], gamma: int, shapes: Shapes
) -> int:
  """Return the bytes of the target, the drafts and the measurement.

  While a draft is made, the last one is still there. The parts that are timed
  beside the runs have caches, keys and values of their own.
  """
  workload = memory.Workload(
      batch_size=shapes.batch_size,
      num_decodes=1,
      inputs_length=shapes.inputs_length,
      targets_length=shapes.targets_length,
      gamma=gamma,
  )
  config = t5_published.make_config(target_size, shapes.dtype)
  target = memory.target_bytes(config, workload)
  drafts = [by_name.find(name, config).num_bytes(workload) for name in names]
  models = target.total + sum(sorted(draft.total for draft in drafts)[-2:])
  parts = 2 * target.cache + target.cross
  parts += max(draft.cache + draft.cross for draft in drafts)
  running = target.params + max(draft.params for draft in drafts)
  copies = memory.copy_bytes(running, shapes.dtype, jax.default_backend())
  return models + parts + copies + walltimes.OWN_BYTES


def choose_target(
    target_size: str | None,
    names: Sequence[str],
    gamma: int,
    shapes: Shapes,
) -> str:
  """Return the target asked for, or the largest that fits; allocate nothing.

  Raises:
    ValueError: if it does not fit the memory, or there is no draft of a name.
  """
  available = memory.available_bytes()
  # The largest one has every draft that any target has.
  largest_config = t5_published.make_config(target_size or 'xxl')
  for name in names:
    by_name.find(name, largest_config)

  def fits(size: str) -> bool:
    try:
      return _needed_bytes(size, names, gamma, shapes) <= available
    except ValueError:  # it lacks layers that a draft names
      return False

  sizes = [target_size] if target_size else [*t5_published.SIZES]
  if largest := next(filter(fits, reversed(sizes)), None):
    return largest
  needed, free = (
      f'{count:,} bytes ({count / 2**30:.1f} GiB)'
      for count in (_needed_bytes(sizes[0], names, gamma, shapes), available)
  )
  raise ranges.ArgumentError(
      f'T5 1.1 {sizes[0]} with {", ".join(names)} in {shapes.dtype} needs'
      f' {needed}, and {free} are free on this device. Give target_size=None'
      ' for the largest that fits, dtype=bfloat16, or smaller drafts.',
      target_size=target_size,
      dtype=shapes.dtype,
  )

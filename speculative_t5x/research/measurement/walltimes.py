# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime of decoding, the times of its parts, and its lower bound.

Runs, parts and the speed of reading are timed interleaved, so that their ratios
hold on a machine whose speed changes. Each part of a record has a function.
"""

from collections.abc import Callable
import dataclasses
from typing import Any, NamedTuple

import numpy as np

from speculative_t5x.decoder import counts
from speculative_t5x.decoder import input_batch
from speculative_t5x.networks import network as network_lib
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research import whole_batches
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import intervals
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.measurement import step_times
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import sampling as sampling_lib
from speculative_t5x.speculation import theory
from speculative_t5x.speculation import verification

ROUNDS = 15  # of the parts
_MAX_STEP_DIFFERENCE = 0.03


class Reference(NamedTuple):
  """Another system that decodes with the same weights."""

  name: str
  version: str
  # How it decodes with a sampling; None if it cannot sample like this.
  way: Callable[[sampling_lib.Sampling], whole_batches.Way | None]


def measure(
    programs: part_programs.PartPrograms,
    batches: list[input_batch.InputBatch],
    settings: run_record.RunRecord,
    name: str,
    reference: whole_batches.Way | None = None,
) -> tuple[run_record.RunRecord, interleaved.Run, interleaved.Run]:
  """Time both ways of decoding batches of one shape, and their parts.

  By the settings, the record before measurement, each batch is timed `repeats`
  times, and the parts `rounds` times, spread over the batches. The way of
  `settings.reference`, if there is one, is timed between the others.

  Returns:
    The record, without alpha and quality; the plain and the speculative run.
  """
  progress.say(f'{name}: compiling the parts')
  decoder, examples = programs.decoder, batches[0]
  rows = len(examples.limits) * decoder.options.num_decodes
  parts = step_times.Parts(programs, examples)
  reader = read_floor.FloorReader(
      read_floor.step_bytes(decoder, rows, examples.inputs.shape[1])
  )
  places = np.linspace(0, len(batches) - 1, settings.rounds).round().astype(int)

  def time_parts(number: int) -> None:
    for _ in range(settings.repeats):
      parts.time_encoders(batches[number])
    for _ in range(np.count_nonzero(places == number)):
      parts.time_round()
      reader.time_round()

  ways = whole_batches.ways(decoder)
  if reference is not None:
    ways += (reference,)
  timer = interleaved.Timer(ways, repeats=settings.repeats)
  with progress.Progress(name, len(batches)) as shown:
    plain, speculative, *others = timer.run(
        batches, before=time_parts, after=shown.show
    )
  for decoded in plain.decoded:
    decoded.check_whole()
  # Reading depends on a batch's inputs; the steps of all batches are alike.
  by_batch = [
      parts.times(slice(first, first + settings.repeats))
      for first in range(0, len(batches) * settings.repeats, settings.repeats)
  ]
  # On a mesh, one device reads a part of the bytes.
  floor_ms = reader.floor_s() * 1e3 if decoder.mesh is None else None
  record = dataclasses.replace(
      add_runs(settings, plain, speculative),
      **_parts(parts.times(), floor_ms),
      **_bound(plain, speculative, by_batch),
      **_reading(by_batch, decoder.target.config),
  )
  for other in others:
    compared = _reference(record, other, plain, speculative)
    record = dataclasses.replace(record, reference=compared)
  return record, plain, speculative


def add_runs(
    record: run_record.RunRecord,
    plain: interleaved.Run,
    speculative: interleaved.Run,
) -> run_record.RunRecord:
  """Return a record with two runs over the same batches."""
  return dataclasses.replace(
      add_speculative(record, speculative),
      baseline=run_of(plain),
      speedup=interleaved.speedup(plain, speculative),
      speedup_ci95=intervals.ratio_interval(plain.seconds, speculative.seconds),
      compile_s=run_record.BothRuns(plain.compile_s, speculative.compile_s),
      warmup=interleaved.WARMUP,
  )


def add_speculative(
    record: run_record.RunRecord, run: interleaved.Run
) -> run_record.RunRecord:
  """Return a record with what a speculative run counted."""
  described = run_of(run)
  interval = None
  if run.decoded is not None:
    drafts = [each.statistics for each in run.decoded]
    interval = intervals.rate_interval(
        np.concatenate([each.num_accepted for each in drafts]),
        np.concatenate([each.num_tested for each in drafts]),
    )
  return dataclasses.replace(
      record,
      speculative=described,
      **counts.acceptance_rates(vars(described)),
      accepted_per_tested_ci95=interval,
      padded_share=run.counts.idle_share,
  )


def run_of(
    run: interleaved.Run,
) -> run_record.PlainRun | run_record.SpeculativeRun:
  """Return counts and walltime of a run, for a record."""
  values = {
      **counts.count_run(run.counts),
      'walltime_s': run.walltime_s,
      'tokens_per_s': run.counts.tokens / run.walltime_s,
  }
  if run.counts.speculation is None:
    return run_record.PlainRun(**values)
  drafts = counts.count_speculation(run.counts)
  return run_record.SpeculativeRun(**values, **drafts)


def add_alpha(
    record: run_record.RunRecord,
    alpha: run_record.Alpha,
    rule: contracts.Rule,
) -> run_record.RunRecord:
  """Add alpha, and the speedup that Theorem 3.8 predicts from it.

  The theorem is about the paper's rule and chains of a fixed length alone.
  """
  predicted = None
  is_fixed = record.gamma_policy == draft_length.Fixed.name
  is_fixed &= record.drafter.candidates is None
  if is_fixed and isinstance(rule, verification.Tokenwise):
    predicted = float(
        theory.walltime_factor(alpha.value, record.gamma, record.c)
    )
  return dataclasses.replace(record, alpha=alpha, predicted_speedup=predicted)


def _reference(
    record: run_record.RunRecord,
    run: interleaved.Run,
    plain: interleaved.Run,
    speculative: interleaved.Run,
) -> run_record.Reference:
  identical = None
  if record.temperature <= sampling_lib.MIN_TEMPERATURE:
    identical = sum(
        np.sum(np.all(one.sequences == other.sequences, axis=1)[is_row]).item()
        for one, other in zip(run.decoded, plain.decoded, strict=True)
        for is_row in [other.num_tokens > 0]  # the others only fill a batch
    )
  return dataclasses.replace(
      record.reference,
      run=run_of(run),
      identical=identical,
      speedup=interleaved.speedup(run, speculative),
      speedup_ci95=intervals.ratio_interval(run.seconds, speculative.seconds),
  )


def _parts(
    times: step_times.PartTimes, floor_ms: float | None
) -> dict[str, Any]:
  steps = {k: x for k, x in vars(times).items() if k.endswith('_ms')}
  return {
      **steps,
      'c': times.t_draft_ms / times.t1_ms,  # Definition 3.7
      'verify_cost_ratio': times.t_verify_ms / times.t1_ms,
      'floor_ms': floor_ms,
      'floor_ratio': floor_ms and times.t1_ms / floor_ms,
  }


def _reading(
    by_batch: list[step_times.PartTimes], target: network_lib.Network
) -> dict[str, Any]:
  """Return the time of reading inputs, by the name of what reads them."""
  has_encoder = network_lib.has_encoder(target)
  return {
      'encoder_s' if has_encoder else 'prompt_s': run_record.ReadingSeconds(
          sum(times.target_encoder_s for times in by_batch),
          sum(times.draft_encoder_s for times in by_batch),
      )
  }


def _bound(
    plain: interleaved.Run,
    speculative: interleaved.Run,
    by_batch: list[step_times.PartTimes],
) -> dict[str, Any]:
  """Compare the time of runs with the sum of their parts, per batch."""
  encoder_s = sum(times.target_encoder_s for times in by_batch)
  plain_parts_s = [
      times.plain_seconds(steps)
      for times, steps in zip(by_batch, plain.steps, strict=True)
  ]
  parts_s = [
      times.speculative_seconds(
          int(decoded.work.num_draft_steps), decoded.work.calls_by_width
      )
      for times, decoded in zip(by_batch, speculative.decoded, strict=True)
  ]
  bound = sum(plain_parts_s) / sum(parts_s)
  decode_s = plain.walltime_s - encoder_s
  return {
      'bound_speedup': bound,
      'loop_efficiency': interleaved.speedup(plain, speculative) / bound,
      # Both sides have in common which draft tokens were accepted.
      'loop_efficiency_ci95': intervals.ratio_interval(
          [plain.seconds, parts_s], [speculative.seconds, plain_parts_s]
      ),
      'warnings': _warnings(decode_s / (sum(plain_parts_s) - encoder_s)),
  }


def _warnings(step_ratio: float) -> tuple[str, ...]:
  """Return what a reader of the times must know; see also `judgement`."""
  if abs(step_ratio - 1) <= _MAX_STEP_DIFFERENCE:
    return ()
  change = 'slower' if step_ratio > 1 else 'faster'
  return (
      f'plain decoding took {step_ratio:.3f} times t1 per token: the speed of'
      f' the machine changed during the measurement, or a step is {change} in'
      ' the decoding loop than alone',
  )

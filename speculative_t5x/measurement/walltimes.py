# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime of decoding, the times of its parts, and its lower bound.

Runs, parts and the speed of reading are timed interleaved, so that their ratios
hold on a machine whose speed changes.
"""

from typing import NamedTuple

import jax
import numpy as np

from speculative_t5x import token_decoder
from speculative_t5x.measurement import interleaved
from speculative_t5x.measurement import intervals
from speculative_t5x.measurement import operations
from speculative_t5x.measurement import part_programs
from speculative_t5x.measurement import part_sums
from speculative_t5x.measurement import read_floor
from speculative_t5x.measurement import run_record
from speculative_t5x.measurement import step_times

ROUNDS = 15  # of the parts
_WINDOW = 5  # rounds whose median holds for a batch: one odd round is nothing
OWN_BYTES = read_floor.MAX_BYTES  # that measuring takes at most
_MAX_STEP_DIFFERENCE = 0.03
_MAX_EFFICIENCY = 1.02


class Measured(NamedTuple):
  """What was measured.

  Attributes:
    record: under the keys of the run record.
    plain: the plain run.
    speculative: the speculative one.
  """

  record: run_record.Record
  plain: interleaved.Run
  speculative: interleaved.Run


def measure(
    programs: part_programs.PartPrograms,
    batches: list[token_decoder.Request],
    *,
    repeats: int,
    name: str,
    rounds: int = ROUNDS,
) -> Measured:
  """Times both ways of decoding and their parts.

  Args:
    programs: the parts, compiled once for all distributions.
    batches: to decode, of one shape.
    repeats: how often each batch is timed.
    name: what the progress lines begin with.
    rounds: how often the parts are timed, spread over the batches.
  """
  decoder, request = programs.decoder, batches[0]
  rows = len(request.limits) * decoder.num_decodes
  inputs_length = request.encoder_input_tokens.shape[1]
  parts = step_times.Parts(programs, request)
  readers = read_floor.Readers(
      read_floor.step_bytes(decoder, rows, inputs_length)
  )
  places = np.linspace(0, len(batches) - 1, rounds).round().astype(int)

  def time_parts(number: int) -> None:
    for _ in range(np.count_nonzero(places == number)):
      parts.time_round()
      readers.time_round()

  plain, speculative = interleaved.run(
      decoder, batches, repeats=repeats, name=name, between=time_parts
  )
  record = describe_runs(plain, speculative, repeats)
  record |= _describe_parts(parts)
  record |= _describe_floor(parts, readers, decoder)
  windows = _windows(parts, places, len(batches))
  record |= _compare(plain, speculative, windows, decoder.gamma)
  record |= _count_operations(decoder, request, record)
  record['peak_memory_bytes'] = {
      'baseline': _peak_bytes(decoder.compile_plain(request)),
      'speculative': _peak_bytes(decoder.compile_speculative(request)),
  }
  return Measured(record, plain, speculative)


def describe_runs(
    plain: interleaved.Run,
    speculative: interleaved.Run,
    repeats: int,
) -> run_record.Record:
  """What two runs over the same batches say, under the record's keys."""
  sides = {
      'baseline': run_record.count_run(plain.decoded),
      'speculative': run_record.count_run(speculative.decoded)
      | run_record.count_speculation(speculative.decoded),
  }
  for side, run in zip(sides.values(), (plain, speculative), strict=True):
    side['walltime_s'] = run.walltime_s
    side['tokens_per_s'] = side['tokens'] / run.walltime_s
  return {
      **sides,
      **run_record.acceptance_rates(sides['speculative']),
      'padded_share': run_record.padded_share(speculative.decoded),
      'speedup': interleaved.speedup(plain, speculative),
      'speedup_ci95': interleaved.speedup_interval(plain, speculative),
      'compile_s': {
          'baseline': plain.compile_s,
          'speculative': speculative.compile_s,
      },
      'repeats': repeats,
      'warmup': interleaved.WARMUP,
  }


def step_times_of(record: run_record.Record) -> part_sums.StepTimes:
  """The parts' times, back from a record."""
  return part_sums.StepTimes(
      record['encoder_s']['target'],
      record['encoder_s']['draft'],
      *(record[f'{n}_ms'] for n in ('t1', 't_verify', 't_draft', 't_draft2')),
  )


def _windows(
    parts: step_times.Parts, places: np.ndarray, num_batches: int
) -> list[part_sums.StepTimes]:
  """The parts' times that hold for each batch, of the rounds around it.

  Args:
    parts: that were timed.
    places: [rounds], the batch that each round came before, ascending.
    num_batches: of the run.
  """
  done = np.searchsorted(places, np.arange(num_batches), side='right')
  first = np.clip(done - _WINDOW // 2 - 1, 0, max(len(places) - _WINDOW, 0))
  return [parts.times(slice(i, i + _WINDOW)) for i in first.tolist()]


def _describe_parts(parts: step_times.Parts) -> run_record.Record:
  times = parts.times()
  return {
      't1_ms': times.t1_ms,
      't_verify_ms': times.t_verify_ms,
      't_draft_ms': times.t_draft_ms,
      't_draft2_ms': times.t_draft2_ms,
      't_call_ms': parts.call_ms(),
      'c': intervals.estimate_cost_coefficient(
          parts.seconds['t_draft'], parts.seconds['t1']
      ).value,
      'verify_cost_ratio': times.t_verify_ms / times.t1_ms,
  }


def _describe_floor(
    parts: step_times.Parts,
    readers: read_floor.Readers,
    decoder: token_decoder.TokenDecoder,
) -> run_record.Record:
  if decoder.mesh is not None:  # one device reads a part of the bytes
    return {'floor_ms': None, 'floor_ratio': None}
  floor_ms = readers.floor_s() * 1e3
  return {'floor_ms': floor_ms, 'floor_ratio': parts.times().t1_ms / floor_ms}


def _compare(
    plain: interleaved.Run,
    speculative: interleaved.Run,
    windows: list[part_sums.StepTimes],
    gamma: int,
) -> run_record.Record:
  """What the runs took beside what their parts add up to.

  Args:
    plain: the plain run.
    speculative: the speculative one.
    windows: the parts' times that hold for each batch.
    gamma: draft tokens per block.
  """
  encoder_s = sum(times.target_encoder_s for times in windows)
  draft_encoder_s = sum(times.draft_encoder_s for times in windows)
  plain_s = sum(
      part_sums.plain_seconds(times, int(decoded.num_steps))
      for times, decoded in zip(windows, plain.decoded, strict=True)
  )
  speculative_s = sum(
      part_sums.speculative_seconds(times, int(decoded.num_steps), gamma)
      for times, decoded in zip(windows, speculative.decoded, strict=True)
  )
  bound = plain_s / speculative_s
  efficiency = interleaved.speedup(plain, speculative) / bound
  decode_s = plain.walltime_s - encoder_s
  rest_s = speculative.walltime_s - encoder_s - draft_encoder_s
  has_rest = min(decode_s, rest_s) > 0
  return {
      'encoder_s': {'target': encoder_s, 'draft': draft_encoder_s},
      'bound_speedup': bound,
      'decode_speedup': decode_s / rest_s if has_rest else None,
      'loop_efficiency': efficiency,
      'warnings': _warnings(decode_s / (plain_s - encoder_s), efficiency),
  }


def _warnings(step_ratio: float, efficiency: float) -> list[str]:
  """What a reader of the times must know."""
  found = []
  if abs(step_ratio - 1) > _MAX_STEP_DIFFERENCE:
    found.append(
        f'plain decoding took {step_ratio:.3f} times t1 a token: the machine'
        ' changed its speed meanwhile, or a step costs more in the run'
    )
  if efficiency > _MAX_EFFICIENCY:
    found.append(
        f'loop efficiency {efficiency:.3f} is above {_MAX_EFFICIENCY}: a'
        ' mistake in measuring; repeat on a quiet machine'
    )
  return found


def _count_operations(decoder, request, record) -> run_record.Record:
  counted = operations.count(decoder, request)
  return {
      'ops_coefficient': counted.ops_coefficient,
      'operations_factor': counted.factor(
          record['baseline']['loop_steps'], record['speculative']['loop_steps']
      ),
  }


def _peak_bytes(compiled: jax.stages.Compiled) -> int | None:
  """Bytes that a program holds at most, its arguments included."""
  found = compiled.memory_analysis()
  if found is None:  # not every backend says
    return None
  return (
      found.argument_size_in_bytes
      + found.output_size_in_bytes
      + found.temp_size_in_bytes
      - found.alias_size_in_bytes
  )

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The walltime of decoding, the times of its parts, and its lower bound.

Runs, parts and the speed of reading are timed interleaved, so that their ratios
hold on a machine whose speed changes.
"""

import dataclasses
from typing import NamedTuple

import jax
import numpy as np

from speculative_t5x.decoder import counts
from speculative_t5x.decoder import requests as requests_lib
from speculative_t5x.decoder import token_decoder
from speculative_t5x.research import progress
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import interleaved
from speculative_t5x.research.measurement import operations
from speculative_t5x.research.measurement import part_programs
from speculative_t5x.research.measurement import part_sums
from speculative_t5x.research.measurement import read_floor
from speculative_t5x.research.measurement import step_times
from speculative_t5x.research.measurement import tallies
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import draft_length
from speculative_t5x.speculation import theory
from speculative_t5x.speculation import verification

ROUNDS = 15  # of the parts
_WINDOW = 5  # rounds; their median holds for a batch, whatever one outlier is
OWN_BYTES = read_floor.MAX_BYTES  # that measuring takes at most
_MAX_STEP_DIFFERENCE = 0.03
_MAX_EFFICIENCY = 1.02


class Measured(NamedTuple):
  """What was measured.

  Attributes:
    record: the record of the configuration, without alpha and quality.
    plain: the plain run.
    speculative: the speculative run.
  """

  record: run_record.RunRecord
  plain: interleaved.Run
  speculative: interleaved.Run


def measure(
    programs: part_programs.PartPrograms,
    batches: list[requests_lib.Request],
    settings: run_record.RunRecord,
    name: str,
) -> Measured:
  """Times both ways of decoding and their parts.

  Args:
    programs: the parts, compiled once for all distributions.
    batches: to decode, of one shape.
    settings: the record before measurement. Each batch is timed `repeats`
      times, and the parts are timed `rounds` times, spread over the batches.
    name: what the progress lines begin with.
  """
  progress.say(f'{name}: compiling the parts')
  decoder, request = programs.decoder, batches[0]
  rows = len(request.limits) * decoder.num_decodes
  inputs_length = request.inputs.shape[1]
  parts = step_times.Parts(programs, request)
  readers = read_floor.Readers(
      read_floor.step_bytes(decoder, rows, inputs_length)
  )
  places = np.linspace(0, len(batches) - 1, settings.rounds).round().astype(int)

  def time_parts(number: int) -> None:
    for _ in range(settings.repeats):
      parts.time_encoders(batches[number])
    for _ in range(np.count_nonzero(places == number)):
      parts.time_round()
      readers.time_round()

  plain, speculative = interleaved.run(
      decoder,
      batches,
      repeats=settings.repeats,
      name=name,
      between=time_parts,
  )
  for decoded in plain.decoded:
    token_decoder.check_finite(decoded)
  progress.say(f'{name}: counting operations and memory')
  record = add_runs(settings, plain.tally(), speculative.tally())
  record = _add_parts(record, parts)
  if decoder.mesh is None:  # on a mesh, one device reads a part of the bytes
    floor_ms = readers.floor_s() * 1e3
    record = dataclasses.replace(
        record, floor_ms=floor_ms, floor_ratio=record.t1_ms / floor_ms
    )
  windows = _windows(parts, places, len(batches), settings.repeats)
  record = _add_bound(record, plain, speculative, windows)
  if decoder.policy.is_constant and rows == 1:
    record = _add_oracle(record, plain, speculative, windows)
  num_widths = len(speculative.decoded[0].calls_by_width)
  record = _add_programs(record, decoder, request, num_widths)
  return Measured(record, plain, speculative)


def add_runs(
    record: run_record.RunRecord,
    plain: tallies.Tally,
    speculative: tallies.Tally,
) -> run_record.RunRecord:
  """Returns a record with what two runs over the same batches counted."""
  speculative_run = run_of(speculative, is_speculative=True)
  return dataclasses.replace(
      record,
      baseline=run_of(plain, is_speculative=False),
      speculative=speculative_run,
      **counts.acceptance_rates(vars(speculative_run)),
      padded_share=counts.padded_share(speculative.counts),
      speedup=interleaved.speedup(plain, speculative),
      speedup_ci95=interleaved.speedup_interval(plain, speculative),
      compile_s=run_record.BothRuns(plain.compile_s, speculative.compile_s),
      warmup=interleaved.WARMUP,
  )


def run_of(
    tally: tallies.Tally, is_speculative: bool
) -> run_record.PlainRun | run_record.SpeculativeRun:
  """Returns counts and walltime of a run, for a record."""
  values = {
      **counts.count_run(tally.counts),
      'walltime_s': tally.walltime_s,
      'tokens_per_s': tally.counts.tokens / tally.walltime_s,
  }
  if not is_speculative:
    return run_record.PlainRun(**values)
  drafts = counts.count_speculation(tally.counts)
  return run_record.SpeculativeRun(**values, **drafts)


def add_alpha(
    record: run_record.RunRecord,
    alpha: run_record.Alpha,
    rule: contracts.Rule,
) -> run_record.RunRecord:
  """Adds alpha, and the speedup that Theorem 3.8 predicts from it.

  Args:
    record: a record with gamma and c.
    alpha: alpha by Corollary 3.6.
    rule: which draft tokens were accepted. The theorem is about the paper's,
      and about drafts of a fixed length; of others, no speedup is predicted.
  """
  predicted = None
  is_fixed = record.gamma_policy == draft_length.Fixed.name
  if is_fixed and isinstance(rule, verification.Tokenwise):
    predicted = float(
        theory.walltime_factor(alpha.value, record.gamma, record.c)
    )
  return dataclasses.replace(record, alpha=alpha, predicted_speedup=predicted)


def step_times_of(record: run_record.RunRecord) -> part_sums.StepTimes:
  """Returns the times of the parts, as a record has them."""
  return part_sums.StepTimes(
      target_encoder_s=record.encoder_s.target,
      draft_encoder_s=record.encoder_s.draft,
      t1_ms=record.t1_ms,
      t_verify_ms=record.t_verify_ms,
      t_draft_ms=record.t_draft_ms,
      t_draft2_ms=record.t_draft2_ms,
  )


class _Window(NamedTuple):
  """The times of the parts that hold for a batch.

  Attributes:
    times: times of the parts.
    width_ms: milliseconds of a target call at each width of verification.
  """

  times: part_sums.StepTimes
  width_ms: tuple[float, ...]


def _windows(
    parts: step_times.Parts, places: np.ndarray, num_batches: int, repeats: int
) -> list[_Window]:
  """Returns the parts' times for each batch.

  Args:
    parts: The parts that were timed. Times of steps are from the rounds around
      a batch; those of the encoders are its own, because they depend on its
      inputs.
    places: [rounds], the batch that each round came before, ascending.
    num_batches: number of batches in the run.
    repeats: how often the encoders were timed on each batch.
  """
  done = np.searchsorted(places, np.arange(num_batches), side='right')
  first = np.clip(done - _WINDOW // 2 - 1, 0, max(len(places) - _WINDOW, 0))
  found = []
  for batch, start in enumerate(first.tolist()):
    rounds = slice(start, start + _WINDOW)
    encoded = slice(batch * repeats, (batch + 1) * repeats)
    times = parts.times(rounds, encoded)
    found.append(_Window(times, parts.width_ms(rounds)))
  return found


def _add_parts(
    record: run_record.RunRecord, parts: step_times.Parts
) -> run_record.RunRecord:
  times = parts.times()
  return dataclasses.replace(
      record,
      t1_ms=times.t1_ms,
      t_verify_ms=times.t_verify_ms,
      t_draft_ms=times.t_draft_ms,
      t_draft2_ms=times.t_draft2_ms,
      t_call_ms=parts.call_ms(),
      c=times.t_draft_ms / times.t1_ms,  # Definition 3.7
      t_width_ms=parts.width_ms(),
      verify_cost_ratio=times.t_verify_ms / times.t1_ms,
  )


def _add_bound(
    record: run_record.RunRecord,
    plain: interleaved.Run,
    speculative: interleaved.Run,
    windows: list[_Window],
) -> run_record.RunRecord:
  """Compares what the runs took with what their parts add up to.

  Args:
    record: a record with the speedup of the runs.
    plain: the plain run.
    speculative: the speculative run.
    windows: the times of the parts that hold for each batch.
  Returns:
    The record with the bound, the efficiency and the warnings.
  """
  encoder_s = sum(x.times.target_encoder_s for x in windows)
  draft_encoder_s = sum(x.times.draft_encoder_s for x in windows)
  plain_s, speculative_s = _plain_seconds(windows, plain), 0.0
  for window, decoded in zip(windows, speculative.decoded, strict=True):
    calls = np.asarray(decoded.calls_by_width)
    # A loop of one width verifies whole blocks only.
    whole = (window.times.t_verify_ms,)
    width_ms = whole if len(calls) == 1 else window.width_ms
    speculative_s += part_sums.adaptive_seconds(
        window.times, int(decoded.num_draft_steps), calls, width_ms
    )
  bound = plain_s / speculative_s
  efficiency = record.speedup / bound
  decode_s = plain.walltime_s - encoder_s
  rest_s = speculative.walltime_s - encoder_s - draft_encoder_s
  has_rest = min(decode_s, rest_s) > 0
  return dataclasses.replace(
      record,
      encoder_s=run_record.EncoderSeconds(encoder_s, draft_encoder_s),
      bound_speedup=bound,
      decode_speedup=decode_s / rest_s if has_rest else None,
      loop_efficiency=efficiency,
      warnings=_warnings(decode_s / (plain_s - encoder_s), efficiency),
  )


def _plain_seconds(windows: list[_Window], plain: interleaved.Run) -> float:
  """Returns the seconds of plain decoding if it took the sum of its parts."""
  return sum(
      part_sums.plain_seconds(window.times, int(decoded.num_steps))
      for window, decoded in zip(windows, plain.decoded, strict=True)
  )


def _add_oracle(
    record: run_record.RunRecord,
    plain: interleaved.Run,
    speculative: interleaved.Run,
    windows: list[_Window],
) -> run_record.RunRecord:
  """Adds what an oracle of draft lengths would gain.

  Args:
    record: the record of the runs.
    plain: the plain run.
    speculative: the speculative run, with one row per batch and a policy that
      does not shorten drafts: then the counts tell how many draft tokens each
      block could have.
    windows: the times of the parts that hold for each batch.
  """
  oracle_s = sum(
      part_sums.oracle_seconds(
          window.times,
          np.sum(decoded.statistics.accepted_histogram, axis=0),
          window.width_ms,
      )
      for window, decoded in zip(windows, speculative.decoded, strict=True)
  )
  speedup = _plain_seconds(windows, plain) / oracle_s
  return dataclasses.replace(record, oracle_speedup=speedup)


def _warnings(step_ratio: float, efficiency: float) -> tuple[str, ...]:
  """Returns what a reader of the times must know."""
  found = []
  if abs(step_ratio - 1) > _MAX_STEP_DIFFERENCE:
    found.append(
        f'plain decoding took {step_ratio:.3f} times t1 per token: the speed of'
        ' the machine changed during the measurement, or a step is slower in'
        ' the decoding loop than alone'
    )
  if efficiency > _MAX_EFFICIENCY:
    found.append(
        f'loop efficiency {efficiency:.3f} is above {_MAX_EFFICIENCY}: the'
        ' measurement is wrong; repeat it on a quiet machine'
    )
  return tuple(found)


def _add_programs(
    record: run_record.RunRecord,
    decoder: token_decoder.TokenDecoder,
    request: requests_lib.Request,
    num_widths: int,
) -> run_record.RunRecord:
  """Returns a record with the operations and the memory of the programs.

  Args:
    record: the record of the runs.
    decoder: both ways.
    request: a batch.
    num_widths: widths of verification in the speculative loop. The operations
      of a run are only known if it is one, and drafts are all of one length.
  """
  counted = operations.count(decoder, request)
  factor = None
  if num_widths == 1:
    factor = counted.factor(
        record.baseline.loop_steps, record.speculative.loop_steps
    )
  return dataclasses.replace(
      record,
      peak_memory_bytes=run_record.BothRuns(
          _peak_bytes(decoder.compile_plain(request)),
          _peak_bytes(decoder.compile_speculative(request)),
      ),
      ops_coefficient=counted.ops_coefficient,
      operations_factor=factor,
  )


def _peak_bytes(compiled: jax.stages.Compiled) -> int | None:
  """Returns the most bytes that a program holds, arguments included."""
  found = compiled.memory_analysis()
  if found is None:  # not every backend says
    return None
  return (
      found.argument_size_in_bytes
      + found.output_size_in_bytes
      + found.temp_size_in_bytes
      - found.alias_size_in_bytes
  )

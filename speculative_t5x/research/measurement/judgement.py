# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Judges if the times of a run record may be read, and what they say.

Times of a busy machine can be wrong in a way that their own interval does not
show: it is computed from the batches that were timed, and a disturbance need
not hit plain and speculative decoding alike. What gives it away is that the
record contradicts itself. Every report, verdict, advice and cost goes through
here, so that none is made of such a record; the record keeps its values.
"""

import dataclasses
import enum

from speculative_t5x.research import run_record

# Times of parts are medians of a few rounds, and their ratios are no better.
_PARTS_ERROR = 0.02
# By kernels of other shapes, a step on more positions may take a little less.
_LEAST_VERIFY_COST = 0.9
_TIMES = {x.name: None for x in dataclasses.fields(run_record.RunTimes)}
_RUN_TIMES = dict.fromkeys(('walltime_s', 'tokens_per_s'))
_REFERENCE_TIMES = dict.fromkeys(('run', 'speedup', 'speedup_ci95'))

REMEDY = 'Measure again on a quiet machine, with more examples.'


class Claim(enum.StrEnum):
  """The claim of a record on the speed of speculative decoding."""

  FASTER = 'faster'
  SLOWER = 'slower'
  NO_DIFFERENCE = 'no difference shown'
  NO_INTERVAL = 'no interval'
  UNRELIABLE = 'unreliable'
  NOT_MEASURED = 'not measured'


def verdict(record: run_record.RunRecord) -> Claim:
  """Return whether speculation is faster, as far as a record tells."""
  if record.speedup is None:
    return Claim.NOT_MEASURED
  return Claim.UNRELIABLE if objection(record) else _by_interval(record)


def objection(record: run_record.RunRecord) -> str | None:
  """Return in a line why the times of a record must not be read, if so.

  Values are compared as they are printed, with two decimals. Keys that the
  record lacks, as older ones do, raise no objection.
  """
  if record.speedup is None:
    return None
  possible = largest_speedup(record)
  if possible is not None and round(record.speedup, 2) > round(possible, 2):
    return (
        f'a speedup of {record.speedup:.2f} cannot be: a speculative step takes'
        f' no less time than a plain one, and replaces {possible:.2f} of them'
    )
  ratio = record.verify_cost_ratio
  if ratio is not None and ratio < _LEAST_VERIFY_COST:
    return (
        f'verifying {record.gamma + 1} positions took {ratio:.2f} times a step'
        ' on one'
    )
  if _is_above_its_parts(record):
    return (
        f'loop efficiency {record.loop_efficiency:.2f} is above 1: the run took'
        ' less time than its parts'
    )
  return None


def largest_speedup(record: run_record.RunRecord) -> float | None:
  """Return the most that a run can gain by its counts; None if not known.

  A speculative step verifies a block, and takes no less time than a plain step.
  At batch size 1 the most is the number of tokens per target call. In larger
  batches the rows of a batch wait for each other, and the ratio of the loops'
  steps may be above it. Samples of both ways may differ in length.
  """
  most = [record.tokens_per_target_call]
  if record.baseline and record.speculative:
    steps = record.baseline.loop_steps, record.speculative.loop_steps
    most.append(steps[0] / steps[1] if all(steps) else None)
  return max((x for x in most if x is not None), default=None)


def readable(record: run_record.RunRecord) -> run_record.RunRecord:
  """Return a record without its times, if they must not be read."""
  if objection(record) is None:
    return record
  without = lambda part, times: part and dataclasses.replace(part, **times)
  return dataclasses.replace(
      record,
      **_TIMES,
      baseline=without(record.baseline, _RUN_TIMES),
      speculative=without(record.speculative, _RUN_TIMES),
      reference=without(record.reference, _REFERENCE_TIMES),
  )


def _is_above_its_parts(record: run_record.RunRecord) -> bool:
  efficiency, bounds = record.loop_efficiency, record.loop_efficiency_ci95
  if efficiency is None:
    return False
  least = efficiency if bounds is None else bounds[0]
  return least > 1 + _PARTS_ERROR


def _by_interval(record: run_record.RunRecord) -> Claim:
  """Return the verdict of a speedup's interval alone.

  The bounds are compared as they are printed, with two decimals, so that the
  verdict never contradicts a printed interval that includes 1.
  """
  if record.speedup_ci95 is None:
    return Claim.NO_INTERVAL
  low, high = (round(bound, 2) for bound in record.speedup_ci95)
  if low > 1:
    return Claim.FASTER
  return Claim.SLOWER if high < 1 else Claim.NO_DIFFERENCE

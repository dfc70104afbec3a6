# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The run record: one JSON object per configuration that was run.

The fields of these classes are the keys of the JSON objects, in their order,
without a level for the groups of a record. Keys are stable. A value that does
not apply or was not measured is None, null in JSON, and never left out.
`docs/run_record.md` explains every key.
"""

from collections.abc import Mapping
import dataclasses
import typing
from typing import Any

from speculative_t5x.loading import descriptions
from speculative_t5x.loading.files import json_files

SCHEMA_VERSION = 1


@dataclasses.dataclass(frozen=True)
class Verification:
  """The rule by which draft tokens are accepted."""

  rule: str  # its name, with its parameters
  lenience: float | None = None


@dataclasses.dataclass(frozen=True)
class Device:
  """The accelerator and the software that drives it."""

  platform: str
  kind: str
  count: int  # of devices
  processes: int
  jax: str
  jaxlib: str
  libtpu: str | None


@dataclasses.dataclass(frozen=True)
class Host:
  """The processor of the machine and the cores given to the process."""

  cpu: str
  cores: int


@dataclasses.dataclass(frozen=True)
class PlainRun:
  """Counts and walltime of plain decoding."""

  tokens: int
  target_calls: int  # of each row that has not ended
  loop_steps: int  # of the compiled loop
  walltime_s: float
  tokens_per_s: float


@dataclasses.dataclass(frozen=True)
class SpeculativeRun(PlainRun):
  """Counts and walltime of speculative decoding."""

  drafted: int  # up to the end of sequence and the length limit
  drafted_computed: int
  tested: int  # accepted or rejected
  accepted: int
  cut_short: int  # blocks without a resampled or bonus token
  acceptance_histogram: tuple[int, ...]  # blocks by accepted draft tokens
  per_position_acceptance: tuple[float | None, ...]  # accepted over drafted


@dataclasses.dataclass(frozen=True)
class BothRuns:
  """A value of plain decoding, and the same of speculative decoding."""

  baseline: Any
  speculative: Any


@dataclasses.dataclass(frozen=True)
class Reference:
  """Another system that decodes the same examples with the same weights.

  Its times were taken between those of the other ways.
  """

  name: str
  version: str
  run: PlainRun | None = None
  identical: int | None = None  # rows equal to plain decoding; temperature 0
  speedup: float | None = None  # its walltime over the speculative one
  speedup_ci95: tuple[float, float] | None = None


@dataclasses.dataclass(frozen=True)
class ReadingSeconds:
  """Seconds in which target and drafter read their inputs."""

  target: float
  draft: float


@dataclasses.dataclass(frozen=True)
class Alpha:
  """Alpha by Corollary 3.6, with its 95 percent interval."""

  value: float
  ci95: tuple[float, float] | None
  num_tokens: int


@dataclasses.dataclass(frozen=True)
class Greedy:
  """Rows by how their outputs compare with plain decoding.

  They are greedy outputs, samples of a coupled rule, or hypotheses of a beam
  search, all those of an example counted as one.
  """

  identical: int
  near_tie: int
  mismatch: int
  unexplained: int = 0  # searches that differ; null in older records


# Keys of the fields of a `sampling.Sampling`, in their order: T5X's names.
SAMPLING_KEYS = {
    'temperature': 'temperature',
    'top_k': 'topk',
    'top_p': 'topp',
    'min_p': 'minp',
    'typical_p': 'typicalp',
}


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunOrigin:
  """When a run was made, by which job and code, and of which examples."""

  schema_version: int = SCHEMA_VERSION
  created: str | None = None
  package_version: str | None = None
  commit: str | None = None
  job: str | None = None
  task: str | None = None
  split: str | None = None
  num_examples: int | None = None
  inputs_digest: str | None = None
  truncated_inputs: int | None = None
  unknown_inputs: int | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunSettings:
  """The models, how they decoded, and on which devices."""

  target: descriptions.ModelDescription | None = None
  drafter: descriptions.DrafterDescription | None = None
  verification: Verification | None = None
  gamma: int | None = None
  gamma_policy: str | None = None
  temperature: float | None = None
  topk: int | None = None
  topp: float | None = None
  minp: float | None = None
  typicalp: float | None = None
  # What else differs in the drafter's sampling, by the names above.
  draft_sampling: Mapping[str, float] | None = None
  num_decodes: int | None = None
  beams: int | None = None
  brevity_penalty: float | None = None
  length_penalty: float | None = None
  draft_beams: int | None = None
  seed: int | None = None
  batch_size: int | None = None
  inputs_length: int | None = None
  targets_length: int | None = None
  num_valid_tokens: int | None = None
  device: Device | None = None
  host: Host | None = None
  mesh: Mapping[str, int] | None = None
  matmul_precision: str | None = None
  lossless: bool | None = None
  simulated_acceptance: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunCounts:
  """Counts and walltimes of both ways of decoding."""

  baseline: PlainRun | None = None
  speculative: SpeculativeRun | None = None
  draft_acceptance_rate: float | None = None
  accepted_per_tested: float | None = None
  accepted_per_tested_ci95: tuple[float, float] | None = None
  mean_acceptance_length: float | None = None
  tokens_per_target_call: float | None = None
  padded_share: float | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunTimes:
  """Times of both ways and of their parts, and what follows from them."""

  encoder_s: ReadingSeconds | None = None  # of a network with an encoder
  prompt_s: ReadingSeconds | None = None  # of one without
  t1_ms: float | None = None
  t_verify_ms: float | None = None
  t_draft_ms: float | None = None
  t_draft2_ms: float | None = None
  t_call_ms: float | None = None
  t_width_ms: tuple[float, ...] | None = None
  c: float | None = None
  verify_cost_ratio: float | None = None
  floor_ms: float | None = None
  floor_ratio: float | None = None
  predicted_speedup: float | None = None
  bound_speedup: float | None = None
  speedup: float | None = None
  speedup_ci95: tuple[float, float] | None = None
  loop_efficiency: float | None = None
  loop_efficiency_ci95: tuple[float, float] | None = None


@dataclasses.dataclass(frozen=True, kw_only=True)
class RunMeasurement:
  """The timing of a run, another system beside it, and the outputs' quality."""

  reference: Reference | None = None
  compile_s: BothRuns | None = None
  repeats: int | None = None
  rounds: int | None = None
  warmup: int | None = None
  warnings: tuple[str, ...] | None = None
  alpha: Alpha | None = None
  rule_alpha: Alpha | None = None
  quality: BothRuns | None = None  # metrics of the task by name
  greedy: Greedy | None = None


# Fields of the last base come first.
@dataclasses.dataclass(frozen=True, kw_only=True)
class RunRecord(RunMeasurement, RunTimes, RunCounts, RunSettings, RunOrigin):
  """One configuration of a job: its settings, and what was measured.

  Rates lie in [0, 1]. Times are seconds, unless the name ends in `_ms`.
  """


KEYS = tuple(field.name for field in dataclasses.fields(RunRecord))


def to_json(record: RunRecord) -> str:
  """Return a record, whose numbers are finite, as one line of JSON."""
  return json_files.dumps(dataclasses.asdict(record))


def from_dict(values: Mapping[str, Any], kind: type = RunRecord) -> Any:
  """Return the record, or another dataclass, that a JSON object holds.

  A missing key is None, at any level, and an unknown key is ignored.
  """
  return kind(
      **{
          field.name: _decode(field.type, values.get(field.name))
          for field in dataclasses.fields(kind)
      }
  )


def _decode(field_type: Any, value: Any) -> Any:
  """Return a value of a JSON object as a field of this type holds it."""
  kind, *_ = typing.get_args(field_type) or [field_type]
  if isinstance(value, list):
    return tuple(_decode(kind, each) for each in value)
  is_nested = dataclasses.is_dataclass(kind) and isinstance(value, Mapping)
  return from_dict(value, kind) if is_nested else value

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The run record: one JSON object for each configuration that was run.

Keys are stable. A value that does not apply or was not measured is null and
never left out. Rates lie in [0, 1]; times are seconds, unless the key ends in
`_ms`. `docs/run_record.md` explains every key.

Legend: gamma (draft tokens per block).
"""

from collections.abc import Sequence
import datetime
import hashlib
import importlib.metadata
import json
import os
import pathlib
import platform
import subprocess
from typing import Any

import jax
import numpy as np

from speculative_t5x import sharding
from speculative_t5x import token_decoder
from speculative_t5x.speculation import contracts
from speculative_t5x.speculation import verification

SCHEMA_VERSION = 1

Record = dict[str, Any]

KEYS = (
    # Settings.
    'schema_version', 'created', 'package_version', 'commit', 'job', 'task',
    'split', 'num_examples', 'truncated_inputs', 'target', 'drafter',
    'verification', 'gamma', 'gamma_policy', 'temperature', 'topk', 'topp',
    'num_decodes', 'seed', 'batch_size', 'inputs_length', 'targets_length',
    'device', 'host', 'mesh', 'matmul_precision', 'lossless',
    'simulated_acceptance',
    # Counts.
    'baseline', 'speculative', 'draft_acceptance_rate', 'accepted_per_tested',
    'mean_acceptance_length', 'tokens_per_target_call', 'padded_share',
    # Times.
    'encoder_s', 't1_ms', 't_verify_ms', 't_draft_ms', 't_draft2_ms',
    't_call_ms', 'c', 'verify_cost_ratio', 'floor_ms', 'floor_ratio', 'alpha',
    'predicted_speedup', 'bound_speedup', 'speedup', 'speedup_ci95',
    'decode_speedup', 'loop_efficiency', 'reference', 'compile_s', 'repeats',
    'rounds', 'warmup', 'peak_memory_bytes', 'ops_coefficient',
    'operations_factor', 'warnings',
    # Quality.
    'quality', 'greedy',
)  # fmt: skip


_DRAFTER_KEYS = (
    'kind', 'name', 'checkpoint', 'num_params', 'dtype', 'model_parallel',
    'temperature',
)  # fmt: skip


def make(job: str, **values: Any) -> Record:
  """A record with the given values, every other key null.

  Raises:
    KeyError: for a key that the record does not have.
  """
  if unknown := values.keys() - set(KEYS):
    raise KeyError(f'The run record has no key {sorted(unknown)}.')
  record: Record = dict.fromkeys(KEYS)
  record |= {
      'schema_version': SCHEMA_VERSION,
      **origin(),
      'job': job,
      'device': describe_device(),
      'host': describe_host(),
  }
  return record | values


def origin() -> Record:
  """When a record is made, and by which code."""
  now = datetime.datetime.now(datetime.UTC)
  return {
      'created': now.isoformat('T', 'seconds'),
      'package_version': _package_version(),
      'commit': commit_of(pathlib.Path(__file__).parents[1]),
  }


def _package_version() -> str:
  import speculative_t5x  # it imports nothing of this module's

  return speculative_t5x.__version__


def commit_of(folder: pathlib.Path) -> str | None:
  """The commit of the checkout that holds a folder, None where none does.

  Where files of the folder that git tracks have been changed since, a plus sign
  and a hash of the changes follow.
  """
  git = lambda *command: subprocess.run(
      ['git', '--no-optional-locks', '-C', str(folder), *command],
      capture_output=True,
      check=True,
  ).stdout
  try:
    # An installed package may lie within the checkout of something else.
    git('ls-files', '--error-unmatch', '.')
    commit = git('rev-parse', 'HEAD').decode().strip()
    changes = git('diff', '--no-ext-diff', 'HEAD', '--', '.')
  except (OSError, subprocess.CalledProcessError):
    return None
  if not changes:
    return commit
  return f'{commit}+{hashlib.sha256(changes).hexdigest()[:8]}'


def describe_device() -> Record:
  """The accelerator and the software that drives it."""
  device = jax.devices()[0]
  libtpu = device.client.platform_version if device.platform == 'tpu' else None
  return {
      'platform': device.platform,
      'kind': device.device_kind,
      'count': jax.device_count(),
      'processes': jax.process_count(),
      'jax': jax.__version__,
      'jaxlib': importlib.metadata.version('jaxlib'),
      'libtpu': libtpu,
  }


def describe_host() -> Record:
  """The processor of this machine and the cores given to this process."""
  return {'cpu': _cpu_name(), 'cores': len(os.sched_getaffinity(0))}


def _cpu_name() -> str:
  cpuinfo = pathlib.Path('/proc/cpuinfo')
  if cpuinfo.exists():
    for line in cpuinfo.read_text().splitlines():
      if line.startswith('model name'):
        return line.partition(':')[2].strip()
  return platform.processor()


def describe_decoding(
    decoder: token_decoder.TokenDecoder,
    temperature: float,
    draft_temperature: float,
    rule: contracts.Rule = verification.TOKENWISE,
) -> Record:
  """Returns what decodes: models, drafter, rule and settings.

  Args:
    decoder: of the run.
    temperature: of the target.
    draft_temperature: of the drafter.
    rule: which draft tokens are accepted.
  """
  drafter = dict.fromkeys(_DRAFTER_KEYS) | decoder.loaded_drafter.description
  return {
      'target': decoder.target.describe(),
      'drafter': drafter | {'temperature': draft_temperature},
      'verification': {'rule': rule.name, 'lenience': None},
      'lossless': rule.is_lossless,
      'gamma': decoder.gamma,
      'gamma_policy': decoder.policy.name,
      'temperature': temperature,
      'num_decodes': decoder.num_decodes,
      'mesh': sharding.describe(decoder.mesh),
      'matmul_precision': decoder.matmul_precision,
  }


def count_run(batches: Sequence[token_decoder.Decoded]) -> Record:
  """Counts of a run, plain or speculative, summed over its batches.

  Args:
    batches: what the run decoded, as numpy arrays.
  """
  total = lambda field: int(sum(np.sum(getattr(b, field)) for b in batches))
  return {
      'tokens': total('num_tokens'),
      'target_calls': total('num_calls'),
      'loop_steps': total('num_steps'),
  }


def count_speculation(batches: Sequence[token_decoder.Decoded]) -> Record:
  """Counts that only a speculative run has.

  Acceptance per position is unconditional: draft tokens accepted at position i
  over draft tokens proposed there.
  """
  sums = jax.tree.map(
      lambda *counts: np.sum([np.sum(c, axis=0) for c in counts], axis=0),
      *[batch.statistics for batch in batches],
  )
  accepted_histogram = sums.accepted_histogram
  at_least = lambda histogram: np.cumsum(histogram[::-1])[::-1][1:]
  accepted_at = at_least(accepted_histogram)
  drafted_at = at_least(sums.drafted_histogram)
  accepted = int(accepted_at.sum())
  return {
      'drafted': int(drafted_at.sum()),
      'drafted_computed': int(sums.num_computed),
      'tested': accepted + int(sums.num_rejections),
      'accepted': accepted,
      'cut_short': int(sums.num_cut_short),
      'acceptance_histogram': accepted_histogram.tolist(),
      'per_position_acceptance': [
          _ratio(a, d) for a, d in zip(accepted_at, drafted_at, strict=True)
      ],
  }


def acceptance_rates(speculative: Record) -> Record:
  """The rates of a record, from the counts of its speculative run."""
  accepted, calls = speculative['accepted'], speculative['target_calls']
  per_call = _ratio(accepted, calls)
  return {
      'draft_acceptance_rate': _ratio(accepted, speculative['drafted']),
      'accepted_per_tested': _ratio(accepted, speculative['tested']),
      'mean_acceptance_length': None if per_call is None else 1 + per_call,
      'tokens_per_target_call': _ratio(speculative['tokens'], calls),
  }


def padded_share(batches: Sequence[token_decoder.Decoded]) -> float | None:
  """Share of row-steps spent on rows that had ended or on padding rows."""
  row_steps = sum(int(b.num_steps) * len(b.num_calls) for b in batches)
  calls = sum(int(np.sum(b.num_calls)) for b in batches)
  used = _ratio(calls, row_steps)
  return None if used is None else 1 - used


def _ratio(numerator, denominator) -> float | None:
  return float(numerator) / float(denominator) if denominator else None


def to_json(record: Record) -> str:
  """One line of JSON. Numbers that are not finite are refused."""
  return json.dumps(record, ensure_ascii=False, allow_nan=False)

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Runs from files, their labels in tables and figures, and points of figures.

Runs of one label differ in gamma alone, so that a sweep of gamma is compared
with nothing else.

Legend: gamma (guesses a target call); c (time of a draft step over a target
step, Definition 3.7).
"""

from collections.abc import Callable, Mapping, Sequence
import dataclasses
import functools
import json
import math
import os
from typing import Any

from etils import epath

from speculative_t5x import run_record
from speculative_t5x.paper import readings

# Settings that labels leave unsaid where all runs share them, and their words.
_UNSAID = {
    'target.name': 'for',
    'target.num_params': 'target of',
    'target.checkpoint': 'target at',
    'drafter.checkpoint': 'draft at',
    'drafter.num_params': 'draft of',
    'drafter.dtype': 'draft in',
    'split': 'split',
    'num_decodes': 'decodes',
    'inputs_length': 'inputs of',
    'targets_length': 'outputs of',
    'device.kind': 'on',
    'device.count': 'devices',
    'mesh': 'mesh',
    'host.cpu': 'by',
    'host.cores': 'cores',
    'matmul_precision': 'precision',
}


def read(path: str | os.PathLike[str]) -> list[run_record.Record]:
  """The records of a job's results, or of another file of such lines.

  Raises:
    ValueError: for a file that cannot be read, or has something else.
  """
  try:
    lines = epath.Path(path).read_text().split('\n')
    records = [json.loads(line) for line in lines if line]
    if not all(isinstance(r, dict) and 'schema_version' in r for r in records):
      raise ValueError('a line of it is something else')
    return records
  except (OSError, TypeError, ValueError) as error:
    raise ValueError(
        f'{path} cannot be read as run records ({error}). Pass the'
        ' results.jsonl of a walltime job.'
    ) from error


def label(record: readings.Record) -> str:
  """What a reader must know of a run of a drafter, but gamma.

  Task and drafter, the target where acceptance is dialled, temperature, what is
  set beyond the usual, and the rate that acceptance is dialled to.
  """
  parts = [_models(record), f'T={record["temperature"]:g}', *_unusual(record)]
  if readings.is_dialled(record):
    parts.append(f'dialled {record["simulated_acceptance"]:g}')
  return ', '.join(parts)


def curve_label(record: readings.Record) -> str:
  """One for all rates and temperatures that a pair is dialled to."""
  if not readings.is_dialled(record):
    return label(record)
  return ', '.join([_models(record), *_unusual(record), 'dialled'])


def _models(record: readings.Record) -> str:
  name = readings.model_name(record['drafter'])
  if readings.is_dialled(record):
    name += f' for {readings.model_name(record["target"])}'
  return f'{record["task"]}: {name}' if record['task'] else name


def _unusual(record: readings.Record) -> list[str]:
  dtype = record['target']['dtype'] or 'float32'
  draft_temperature = record['drafter'].get('temperature')
  settings = (
      (
          f'draft T={draft_temperature}',
          draft_temperature not in (None, record['temperature']),
      ),
      (f'batch {record["batch_size"]}', record['batch_size'] != 1),
      (f'topk {record["topk"]}', record['topk']),
      (f'topp {record["topp"]}', record['topp']),
      (dtype, dtype != 'float32'),
  )
  return [words for words, is_set in settings if is_set]


def labels(
    records: Sequence[readings.Record],
    label: Callable[[readings.Record], str] = label,
) -> list[str]:
  """A label for each record, another one for other settings.

  Where records of one label differ in a setting that it leaves unsaid, the
  setting is added to it.

  Args:
    records: of drafters.
    label: says the rest of their settings, or merges them on purpose.
  """
  names = [label(record) for record in records]
  for key, words in _UNSAID.items():
    settings = [str(_look_up(record, key)) for record in records]
    by_name = {}
    for name, setting in zip(names, settings, strict=True):
      by_name.setdefault(name, set()).add(setting)
    names = [
        f'{name}, {words} {setting}' if len(by_name[name]) > 1 else name
        for name, setting in zip(names, settings, strict=True)
    ]
  return names


def _look_up(record: readings.Record, key: str) -> Any:
  """The value of a key as the documentation writes it: `device.kind`."""
  return functools.reduce(lambda x, part: x.get(part), key.split('.'), record)


def alphas(
    records: Sequence[readings.Record],
) -> list[tuple[str, float, Mapping[str, Any]]]:
  """Label, temperature and the measured alpha, one for all gammas of a label.

  Args:
    records: of any job; those without a measured alpha are left out.
  Raises:
    ValueError: for two alphas of one label.
  """
  known = [record for record in records if record['alpha'] is not None]
  found = {}
  for record, name in zip(known, labels(known), strict=True):
    entry = name, record['temperature'], record['alpha']
    _, _, first = found.setdefault(name, entry)
    if first['value'] != record['alpha']['value']:
      raise ValueError(
          f'{name} was measured twice, with alpha {first["value"]} and'
          f' {record["alpha"]["value"]}. Pass the records of one run alone, or'
          ' give another output folder.'
      )
  return list(found.values())


@dataclasses.dataclass(frozen=True)
class Point:
  """A measured run, to be laid over a figure of the paper.

  Attributes:
    label: see `labels`.
    alpha: see `readings.alpha`.
    gamma: guesses a target call.
    cost_coefficient: c.
    tokens_per_call: committed tokens over target calls.
    speedup: plain over speculative walltime.
    speedup_ci95: its 95 percent interval, None for too few batches.
    operations_factor: speculative over plain operations, None if not counted.
  """

  label: str
  alpha: float
  gamma: int
  cost_coefficient: float
  tokens_per_call: float
  speedup: float
  speedup_ci95: tuple[float, float] | None
  operations_factor: float | None


def points(
    records: Sequence[readings.Record],
    label: Callable[[readings.Record], str] = label,
) -> list[Point]:
  """A point for each record that has all it needs; others are left out.

  Args:
    records: of any job. A plain run gives no point, nor does one whose alpha,
      c, tokens a call or speedup was not measured or is no finite number.
    label: of a record; see `labels`.
  """
  complete = [record for record in records if _is_complete(record)]
  return [
      Point(
          label=name,
          alpha=readings.alpha(record),
          gamma=record['gamma'],
          cost_coefficient=record['c'],
          tokens_per_call=record['tokens_per_target_call'],
          speedup=record['speedup'],
          speedup_ci95=_pair(record['speedup_ci95']),
          operations_factor=_finite(record['operations_factor']),
      )
      for record, name in zip(complete, labels(complete, label), strict=True)
  ]


def _is_complete(record: readings.Record) -> bool:
  needed = ('gamma', 'c', 'tokens_per_target_call', 'speedup')
  numbers = [readings.alpha(record), *(record[key] for key in needed)]
  return record['drafter'] is not None and None not in map(_finite, numbers)


def _finite(number: float | None) -> float | None:
  return number if number is not None and math.isfinite(number) else None


def _pair(interval: Sequence[float] | None) -> tuple[float, float] | None:
  return None if interval is None else (interval[0], interval[1])

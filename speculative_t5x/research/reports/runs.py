# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Run records read from files, and their labels in tables and figures.

Runs that share a label differ in gamma only, so that a label names a sweep.
"""

from collections.abc import Callable, Sequence
import json
import operator
import os

from speculative_t5x.loading.files import user_paths
from speculative_t5x.research import run_record
from speculative_t5x.research.reports import readings

# Settings that a label mentions only if runs differ in them, and its words.
_IF_DIFFERENT = {
    'target.name': 'for',
    'target.num_params': 'target of',
    'target.checkpoint': 'target at',
    'drafter.checkpoint': 'draft at',
    'drafter.num_params': 'draft of',
    'drafter.dtype': 'draft in',
    'drafter.short_vocabulary': 'short vocabulary of',
    'drafter.table': 'table at',
    'drafter.candidates': 'candidates',
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


def read(path: str | os.PathLike[str]) -> list[run_record.RunRecord]:
  """Read the records of a file that has one per line, as results.jsonl.

  Raises:
    ValueError: for a file that cannot be read, or holds something else.
  """
  try:
    lines = user_paths.expand(path).read_text(encoding='utf-8').split('\n')
    found = [json.loads(line) for line in lines if line]
    _ = [values['schema_version'] for values in found]  # every record has it
    return [run_record.from_dict(values) for values in found]
  except (OSError, KeyError, TypeError, ValueError) as error:
    raise ValueError(
        f'{path} cannot be read as run records ({error!r}). Pass the'
        ' results.jsonl of a walltime job.'
    ) from error


def label(record: run_record.RunRecord) -> str:
  """Return the settings of a speculative run, except gamma and defaults."""
  name = readings.model_name(record.drafter)
  rate = []
  if readings.is_simulated(record):
    name += f' for {readings.model_name(record.target)}'
    rate = [f'simulated acceptance {record.simulated_acceptance:g}']
  pair = f'{record.task}: {name}' if record.task else name
  settings = f'T={record.temperature:g}', *unusual_settings(record)
  return ', '.join([pair, *settings, *rate])


def unusual_settings(record: run_record.RunRecord) -> list[str]:
  """Return the settings of a run that differ from the defaults."""
  found = unusual_sampling(record)
  if record.batch_size != 1:
    found.append(f'batch {record.batch_size}')
  if record.target.dtype not in (None, 'float32'):
    found.append(record.target.dtype)
  return found + readings.rule_and_policy(record)


def unusual_sampling(record: run_record.RunRecord) -> list[str]:
  """Return the filters of a run, and what differs in sampling drafts."""
  names = 'topk', 'topp', 'minp', 'typicalp'
  found = [f'{name} {x}' for name in names if (x := getattr(record, name))]
  draft = record.drafter
  if draft and draft.temperature not in (None, record.temperature):
    found.append(f'draft T={draft.temperature}')
  others = record.draft_sampling or {}
  return found + [f'draft {name} {value}' for name, value in others.items()]


def labels(
    records: Sequence[run_record.RunRecord],
    label: Callable[[run_record.RunRecord], str],
) -> list[str]:
  """Return one label per record, different for different settings.

  If records with the same label differ in a setting of the model, the data or
  the machine, the setting is appended.
  """
  names = [label(record) for record in records]
  for key, words in _IF_DIFFERENT.items():
    look_up = operator.attrgetter(key)
    settings = [str(look_up(record)) for record in records]
    by_name = {}
    for name, setting in zip(names, settings, strict=True):
      by_name.setdefault(name, set()).add(setting)
    names = [
        f'{name}, {words} {setting}' if len(by_name[name]) > 1 else name
        for name, setting in zip(names, settings, strict=True)
    ]
  return names

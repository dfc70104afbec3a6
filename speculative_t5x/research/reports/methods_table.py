# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The table of the methods job: drafters, rules and policies on several tasks.

It is made from run records alone:

  methods_table.render({'translation': runs.read('<folder>/results.jsonl')})
"""

import collections
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.reports import markdown
from speculative_t5x.research.reports import readings
from speculative_t5x.research.reports import runs
from speculative_t5x.research.reports import walltime_summary

_LEGEND = (
    'Each task has the `speedup` over plain decoding, with its 95 percent'
    ' interval, and `tokens_per_target_call`. Bold is the largest speedup of a'
    " task with a rule whose outputs follow the target's distribution. A"
    ' drafter and a policy are named by their kinds if no task has two of the'
    f' kind. {markdown.MISSING} was not measured, or cannot be read.'
)


class Method(NamedTuple):
  """The subject of a row; the names of its fields head the columns."""

  drafter: str
  rule: str
  policy: str
  gamma: str


def render(
    tasks: Mapping[str, Sequence[run_record.RunRecord]],
) -> markdown.Page:
  """Return a table per temperature and batch size, with a row per method."""
  records = [record for each in tasks.values() for record in each]
  parts = [walltime_summary.setup(records)]
  parts += readings.input_notes(records)
  for (temperature, batch_size), table in tables(tasks).items():
    parts.append(f'## Temperature {temperature:g}, batch {batch_size}')
    parts.append(table)
  parts += [_LEGEND, walltime_summary.cautions(records)]
  return markdown.Page(parts, records)


def tables(
    tasks: Mapping[str, Sequence[run_record.RunRecord]],
) -> dict[tuple[float, int], markdown.Table]:
  """Return the tables of `render` by temperature and batch size."""
  columns = [*Method._fields]
  tasks = {
      name: [*map(judgement.readable, each)] for name, each in tasks.items()
  }
  for name in tasks:
    columns += [f'{name}: speedup', f'{name}: tokens/call']
  rows: dict[tuple[float, int], dict[Method, dict[str, str]]] = {}
  for name, method, record in methods(tasks):
    of_setting = rows.setdefault((record.temperature, record.batch_size), {})
    row = of_setting.setdefault(method, method._asdict())
    mark = '**' if record is _best(tasks[name], record) else ''
    row[f'{name}: speedup'] = f'{mark}{markdown.speedup(record)}{mark}'
    tokens = markdown.number(record.tokens_per_target_call)
    row[f'{name}: tokens/call'] = tokens
  return {
      setting: markdown.Table([*rows[setting].values()], columns)
      for setting in sorted(rows)
  }


def methods(
    tasks: Mapping[str, Sequence[run_record.RunRecord]],
) -> Iterator[tuple[str, Method, run_record.RunRecord]]:
  """Yield the task, the method and the record of each run."""
  names, labels, records = [], [], []
  for name, each in tasks.items():
    names += [name] * len(each)
    labels += runs.labels(each, lambda x: readings.model_name(x.drafter))
    records += each
  drafters = _shorten(names, labels, [x.drafter.kind for x in records])
  policies = [readings.policy(record) for record in records]
  kinds = [policy.partition('(')[0] for policy in policies]
  policies = _shorten(names, policies, kinds)
  rules = map(readings.rule, records)
  gammas = (str(record.gamma) for record in records)
  found = map(Method, drafters, rules, policies, gammas)
  yield from zip(names, found, records, strict=True)


def _best(
    records: Sequence[run_record.RunRecord], like: run_record.RunRecord
) -> run_record.RunRecord | None:
  """Return the fastest run with a lossless rule in the setting of another."""
  setting = like.temperature, like.batch_size
  found = [
      record
      for record in records
      if (record.temperature, record.batch_size) == setting
      and record.lossless is not False
      and record.speedup is not None
  ]
  return max(found, key=lambda record: record.speedup, default=None)


def _shorten(
    tasks: Sequence[str], labels: Sequence[str], kinds: Sequence[str | None]
) -> list[str]:
  """Return kinds, and labels where a task has several of one kind.

  Draft models and measured costs are a task's own, and share a row.
  """
  different = set(zip(tasks, labels, kinds, strict=True))
  counts = collections.Counter((task, kind) for task, _, kind in different)
  several = {kind for (_, kind), count in counts.items() if count > 1}
  return [
      label if kind is None or kind in several else kind
      for label, kind in zip(labels, kinds, strict=True)
  ]

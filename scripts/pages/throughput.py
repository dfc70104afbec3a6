# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Table and figure of the records of `benchmarks.throughput`."""

from collections.abc import Iterator, Mapping, Sequence
import json
import pathlib
from typing import Any

from matplotlib import figure as figure_lib
from matplotlib import ticker

from speculative_t5x.research import figure_style
from speculative_t5x.research.reports import markdown

Record = Mapping[str, Any]  # of one batch size

# A way of the benchmark, and what readers call it.
_NAMES = {
    'plain': 'plain, refilled',
    'speculative': 'speculative, refilled',
    'auto': "refilled, `GAMMA='auto'`",
    'plain_whole': 'plain, whole batches',
    'speculative_whole': 'speculative, whole batches',
    't5x': "T5X's `temperature_sample`",
    'speculative_in_t5x': 'speculative, in T5X',
    'transformers': 'Hugging Face `generate`',
    'transformers_assisted': 'Hugging Face assisted generation',
    'ctranslate2': 'CTranslate2',
}
_AXES_IN = 2.2  # height, inches


def read(path: pathlib.Path) -> list[Record]:
  """Read the records of a file, by batch size."""
  found = map(json.loads, path.read_text().splitlines())
  return sorted(found, key=lambda record: record['batch'])


def render(records: Sequence[Record]) -> markdown.Page:
  """Return the page: a table of rates, and one of idle row-steps."""
  return markdown.Page(
      [
          _conditions(records[0]),
          'Tokens per second, and the ratio to whole plain batches of the same'
          ' size with its 95 percent interval:',
          _table(records, _rate),
          'Share of row-steps in which a row had ended:',
          _table(records, lambda way: markdown.number(way['idle_share'])),
      ],
      records,
  )


def draw(records: Sequence[Record]) -> figure_lib.Figure:
  """Draw the tokens per second over the batch size."""
  with figure_style.applied():
    figure, (axes,) = figure_style.panels(
        'rows of a batch', ['tokens per second'], _AXES_IN
    )
    for number, (way, name) in enumerate(_measured(records)):
      axes.plot(
          [record['batch'] for record in records],
          [record[way]['tokens_per_s'] for record in records],
          label=name.replace('`', ''),
          marker=figure_style.MARKERS[number],
          markersize=figure_style.MARK_POINTS,
          linestyle=figure_style.DASHES[number % len(figure_style.DASHES)],
      )
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_formatter(ticker.ScalarFormatter())
    axes.set_xticks([record['batch'] for record in records])
    axes.set_xmargin(0.05)
    axes.set_ylim(bottom=0)
    figure.legend(loc='outside lower center', ncols=2)
  return figure


def _conditions(record: Record) -> str:
  host, device = record['host'], record['device']
  return (
      f'Greedy decoding, {record["dtype"]}, gamma {record["gamma"]},'
      f' {record["cores"]} cores of an {host["cpu"]},'
      f' JAX {device["jax"]}; {record["repeats"]} interleaved repeats after one'
      ' that is not timed. Each system is in a process of its own.'
  )


def _measured(records: Sequence[Record]) -> Iterator[tuple[str, str]]:
  for way, name in _NAMES.items():
    if all(way in record for record in records):
      yield way, name


def _table(records: Sequence[Record], cell) -> markdown.Table:
  row = lambda name, value: {'': name} | {
      f'batch {record["batch"]}': value(record) for record in records
  }
  ways = [
      row(name, lambda record, way=way: cell(record[way]))
      for way, name in _measured(records)
      if any(cell(record[way]) != markdown.MISSING for record in records)
  ]
  inputs = row('inputs', lambda record: f'{record["num_inputs"]}')
  return markdown.Table([inputs, *ways])


def _rate(way: Mapping[str, Any]) -> str:
  ratio = markdown.estimate(
      way['over_plain_whole'], way['over_plain_whole_ci95']
  )
  return f'{way["tokens_per_s"]:,.0f}; {ratio}'

# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""The figure of walltime and methods jobs: the speedup of each method."""

from collections.abc import Mapping, Sequence

from matplotlib import figure as figure_lib

from speculative_t5x.research import figure_style
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement
from speculative_t5x.research.reports import methods_table
from speculative_t5x.research.reports import walltime_summary

_ROW_IN, _REST_IN = 0.2, 1.1  # height of a row and of all else, inches


def draw(
    tasks: Mapping[str, Sequence[run_record.RunRecord]],
) -> figure_lib.Figure:
  """Draw a row per method, and a panel per temperature and batch size.

  A mark is the speedup over plain decoding of a task, and a bar its 95 percent
  interval. Times that cannot be read are left out; some can.
  """
  tasks = {
      name: [*map(judgement.readable, each)] for name, each in tasks.items()
  }
  runs = [
      (name, _label(method), record)
      for name, method, record in methods_table.methods(tasks)
      if record.speedup is not None
  ]
  settings = sorted({(x.temperature, x.batch_size) for *_, x in runs})
  labels = [*dict.fromkeys(label for _, label, _ in runs)]
  with figure_style.applied():
    figure = figure_style.Figure(
        (figure_style.PAGE_IN, _ROW_IN * len(labels) + _REST_IN),
        layout='constrained',
    )
    (panels,) = figure.subplots(1, len(settings), sharey=True, squeeze=False)
    for axes, setting in zip(panels, settings):
      temperature, batch = setting
      axes.set_title(f'T = {temperature:g}, batch {batch}', fontsize=7)
      axes.axvline(1, color='silver', linewidth=0.8)
      axes.grid(True, axis='x')
      axes.set_xmargin(0.05)
      axes.set_axisbelow(True)
      for number, task in enumerate(tasks):
        own = [
            (labels.index(label), record)
            for name, label, record in runs
            if name == task
            and (record.temperature, record.batch_size) == setting
        ]
        # Tasks of a row lie one below the other.
        shift = (number + 1) / (len(tasks) + 1) - 0.5
        places = [place + shift for place, _ in own]
        look = {'color': f'C{number}', 'label': task}
        axes.plot(
            [record.speedup for _, record in own], places, linestyle='',
            marker=figure_style.MARKERS[number % len(figure_style.MARKERS)],
            markersize=0.75 * figure_style.MARK_POINTS, **look,
        )  # fmt: skip
        for place, (_, record) in zip(places, own, strict=True):
          if record.speedup_ci95 is not None:
            ends = record.speedup_ci95
            axes.hlines(place, *ends, look['color'], linewidth=0.9)
    panels[0].set_yticks(range(len(labels)), labels)
    panels[0].set_ylim(len(labels) - 0.5, -0.5)  # the first row on top
    records = [record for *_, record in runs]
    conditions = '; '.join(walltime_summary.conditions(records))
    figure.supxlabel(
        f'speedup over plain decoding, bar: 95%\n{conditions}',
        size=figure_style.SMALL,
    )
    if len(tasks) > 1:
      figure.legend(
          *panels[0].get_legend_handles_labels(),
          loc='outside upper center',
          ncols=len(tasks),
      )
  return figure


def _label(method: methods_table.Method) -> str:
  return ', '.join([*method[:-1], f'γ = {method.gamma}'])

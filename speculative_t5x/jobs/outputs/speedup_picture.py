# Copyright 2026 The speculative_t5x Authors.
# SPDX-License-Identifier: Apache-2.0
"""Writes the figure of speedups beside a job's table."""

from collections.abc import Mapping, Sequence
import importlib.util
import os
import sys

from speculative_t5x.loading.files import user_paths
from speculative_t5x.loading.files import whole_files
from speculative_t5x.research import run_record
from speculative_t5x.research.measurement import judgement


def write(
    output_dir: str | os.PathLike[str],
    name: str,
    tasks: Mapping[str, Sequence[run_record.RunRecord]],
) -> None:
  """Write a PNG file of the speedups of each task, if some can be read.

  Without matplotlib, a line on stderr says that there is none.
  """
  records = [record for each in tasks.values() for record in each]
  if not any(judgement.readable(record).speedup for record in records):
    return
  if importlib.util.find_spec('matplotlib') is None:
    print(
        f'{name} is not drawn, as matplotlib is missing: pip install'
        " 'speculative_t5x[figures]'",
        file=sys.stderr,
    )
    return
  from speculative_t5x.research import figure_style  # imports matplotlib
  from speculative_t5x.research import speedup_figure  # likewise

  picture = figure_style.render(speedup_figure.draw(tasks), records=records)
  folder = user_paths.expand(output_dir)
  path = whole_files.write_bytes(folder, name, [picture])
  print(f'Written: {path}')
